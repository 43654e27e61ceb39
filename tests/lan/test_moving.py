"""A machine that moved to another address, in a network where nothing is announced, is found by what was written down."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from lan.daemons import Daemon, measured, new_key, pair
from lan.network import Lan

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(900)]

NEW = "10.77.0.60"
NOBODY = [f"10.77.0.{number}" for number in range(200, 208)]


def test_call_finds_moved_peer_among_dead_addresses(lan: Lan, tmp_path: Path) -> None:
    machines = [lan.machine("desk"), lan.machine("pi")]
    for port in ("p1", "p2"):
        slave = ["ip", "-n", lan.switch, "link", "set", port, "type", "bridge_slave"]
        subprocess.run([*slave, "mcast_flood", "off"], check=True)
    desk, pi = (Daemon(machine, tmp_path).launch() for machine in machines)
    desk.wait_ready()
    pi.wait_ready()
    pair(desk, pi)
    assert desk.call("pi", new_key())["state"] == "done"
    assert desk.peers()["pi"]["reached"] == "last address"
    entries = [f"https://{address}:7443" for address in NOBODY]
    typed = {"url": f"https://{NEW}:{pi.port_for_peers}", "typed": True}
    (desk.home / "peers.json").write_text(json.dumps({"peers": [*entries, typed]}))
    desk.wait_for(lambda: NEW in str(desk.ask("GET", "/peers")), what="the file to be read")
    pi.machine.move(NEW)
    key, moved = new_key(), time.monotonic()
    row = desk.call("pi", key, wait=60)
    measured("the first call after a move took", time.monotonic() - moved)
    assert row["state"] == "done", row
    assert pi.begun()[key] == 1

    def is_found() -> bool:  # the call itself may have gone over a line that the pi opened
        told = desk.peers()["pi"]
        return (told["reached"], told["address"]) == ("typed", f"{NEW}:{pi.port_for_peers}")

    desk.wait_for(is_found, what="the address that was typed")
    assert "typed" in desk.cli("peers", "list").stdout.splitlines()[1]
