"""A phone with another WebRTC stack, written from docs/wire.md: neither a browser's nor aiortc."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import REPO

from lan.daemons import Daemon
from lan.network import Lan, Machine
from lan.phones import paired_device

PHONE = REPO / "tests" / "lan" / "werift" / "phone.js"
PACKAGES = Path(sys.prefix) / "phone" / "node_modules"


def require_werift() -> None:
    """Skips where `make test` did not install it; under ``CI=true`` that is a failure instead."""
    reason = "" if shutil.which("node") else "needs Node"
    if not reason and not (PACKAGES / "werift").is_dir():
        reason = f"needs werift: sh tests/node-packages {PACKAGES.parent}"
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


class NodePhone:
    """Runs the phone once for each visit; what it holds between them is a file."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine, self._kept = machine, folder / "phone.json"

    def start(self, *words: str) -> subprocess.Popen[str]:
        what, where, text, *more = words
        command = ["node", str(PHONE), what, where, str(self._kept), text, *more]
        environment = {"NODE_PATH": str(PACKAGES)}
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return self._machine.start(command, environment=environment, **options)

    def visit(self, *words: str) -> dict[str, Any]:
        """From the connection to the answer."""
        return ended(self.start(*words))


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line that the phone prints."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def test_phone_of_another_stack_pairs_chats_and_resumes(lan: Lan, tmp_path: Path) -> None:
    require_werift()
    desk, machine = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("phone")
    assert isinstance(desk, Daemon)
    phone = NodePhone(machine, tmp_path)
    window = desk.ask("POST", "/devices/window", {"session": True})
    pairing = phone.start("pair", window["links"][0], "hello")
    asked = desk.wait_for(lambda: shown(desk), what="the digits")
    desk.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
    assert pairing.stdout is not None
    assert json.loads(pairing.stdout.readline()) == {"digits": asked["digits"]}
    first = ended(pairing)
    assert first["answer"] == "fake-llm: hello"
    assert paired_device(desk)["name"] == "Werift"

    address = window["links"][0].split("/")[2]
    long = "again " * 8_000
    by_certificate = phone.visit("resume", address, long)
    assert by_certificate["session"] == first["session"]
    assert by_certificate["answer"].startswith("fake-llm: again again")
    stranger = phone.start("resume", address, "once more", "--stranger")
    assert "409 other_certificate" in stranger.communicate(timeout=100)[1] and stranger.returncode
    assert len(desk.ask("GET", "/devices")["devices"]) == 1


def shown(desk: Daemon) -> dict[str, Any] | None:
    """The window once its digits are shown."""
    found: dict[str, Any] = desk.ask("GET", "/devices/window")
    return found if "digits" in found else None
