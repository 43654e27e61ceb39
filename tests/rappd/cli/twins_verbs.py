"""``rappd twins …`` as tests call it, and twins that were never born."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from fixtures.running_daemon import RunningDaemon

from twins.workspace.identity_file import Identity
from twins.workspace.rappid import Rappid

BORN = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)


def run(daemon: RunningDaemon, *arguments: str, exits: int = 0, **more: Any) -> str:
    """``rappd twins …``; returns stdout of one that ended as it should, stderr of one that did not."""
    done = daemon.cli("twins", *arguments, **more)
    assert done.returncode == exits, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if exits else done.stdout


def told(daemon: RunningDaemon, noun: str, *arguments: str, exits: int = 0, **more: Any) -> Any:
    """The value under ``noun`` of a verb's one object."""
    done = daemon.cli("twins", arguments[0], "--json", *arguments[1:], **more)
    assert done.returncode == exits, done.stdout + done.stderr
    return json.loads(done.stdout)[noun]


def error(daemon: RunningDaemon, *arguments: str, exits: int, **more: Any) -> dict[str, str]:
    """The error of a verb that was refused."""
    done = daemon.cli("twins", arguments[0], "--json", *arguments[1:], **more)
    assert done.returncode == exits, done.stderr
    [line] = done.stderr.splitlines()
    found: dict[str, str] = json.loads(line)
    assert found.keys() == {"error", "do", "code"}
    return found


def lay(
    daemon: RunningDaemon, name: str, number: int, *, parent: Rappid | None = None, kind: str = "personal"
) -> Rappid:
    """A twin laid down by hand, without the cost of a birth; ``number`` makes its rappid."""
    rappid = Rappid.parse(f"rappid:@desk/{'x'}:{number:064x}")
    folder = daemon.home / "twins" / rappid.key
    folder.mkdir(parents=True)
    identity = Identity.new(rappid, name=name, kind=kind, born_at=BORN, parent=parent)
    (folder / "rappid.json").write_bytes(identity.encode())
    return rappid
