"""Advice about phones: what the command line says where a phone cannot join, and how many have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Terminal, on_terminal

from lan.daemons import Daemon
from lan.network import Lan, Machine
from lan.phones import Phone, chromium_on

HOLDER = "import socket\ns = socket.create_server(('', 7072))\nprint('open', flush=True)\ninput()\n"
RAPPD = "import runpy, sys\nsys.argv[0] = 'rappd'\nrunpy.run_module('rappd', run_name='__main__')\n"
WITHOUT_AIORTC = "import sys\nsys.modules['aiortc'] = None\n" + RAPPD


def doctor(machine: Machine, daemon: RunningDaemon, program: str = RAPPD) -> dict[str, Any]:
    """The doctor's row about phones, on that machine."""
    words = [f"{key}={value}" for key, value in daemon.environment.items()]
    command = ["env", "-i", *words, sys.executable, "-c", program, "doctor", "--json"]
    rows = json.loads(machine.run(command, cwd="/").stdout)["doctor"]
    [row] = [row for row in rows if row["about"] == "Phones"]
    return dict(row)


def idle(folder: Path) -> RunningDaemon:
    return RunningDaemon(folder / "home", LLM_FAKE="1")


def taken(machine: Machine) -> None:
    """Another program listens at the port for phones."""
    held = machine.start([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert held.stdout is not None
    assert held.stdout.readline() == b"open\n"


def test_pair_without_network_says_so(lan: Lan, tmp_path: Path) -> None:
    desk = Daemon(lan.machine("desk", address=""), tmp_path).start()
    done = desk.cli("pair")
    assert done.returncode == 9
    assert "This computer is on no network that a phone could reach" in done.stderr
    assert "Connect it to the Wi-Fi, then: " in done.stderr
    assert desk.ask("GET", "/operator/status")["phones"]["port"] == 0, "and closes the listener again"
    row = doctor(desk.machine, desk)
    assert (row["verdict"], row["do"]) == ("note", "connect it to the Wi-Fi, then: rappd pair")
    assert row["what"] == "this computer is on no network that a phone could reach"


def test_pair_with_a_taken_port_shows_another(lan: Lan, tmp_path: Path) -> None:
    machine = lan.machine("desk")
    taken(machine)
    row = doctor(machine, idle(tmp_path))
    assert row["verdict"] == "note"
    assert row["what"].startswith("port 7072 for phones is held by ")
    desk = Daemon(machine, tmp_path).start()
    terminal = Terminal(desk, "pair", columns=120)
    seen = terminal.read_until(lambda seen: "and type" in seen.words)
    assert "! Port 7072 is taken; phones use 7073" in seen.lines
    assert any(line.startswith(f"http://{machine.address}:7073/t#") for line in seen.lines)
    second = desk.cli("pair")
    assert second.returncode == 9
    assert "A QR code is shown already" in second.stderr
    assert "rappd pair --cancel" in second.stderr
    row = doctor(machine, desk)
    assert row["verdict"] == "note"
    assert row["what"].startswith("phones reach this computer at port 7073: 7072 is held by ")
    assert row["do"] == "nothing, or rappd config set tether.port 7073"
    assert desk.cli("pair", "--cancel").returncode == 0
    assert terminal.to_end().code == 8


def test_pair_without_visitor_names_wifi_and_port(lan: Lan, tmp_path: Path) -> None:
    desk = Daemon(lan.machine("desk"), tmp_path).start()
    done = desk.cli("pair", "--ttl", "21")
    assert done.returncode == 8
    [hint] = [line for line in done.stderr.splitlines() if "Nobody came yet." in line]
    for word in ("mobile data", "guest network", "firewall block port 7072"):
        assert word in hint
    assert "The QR code has expired" in done.stderr


def test_doctor_without_aiortc_names_the_websocket(lan: Lan, tmp_path: Path) -> None:
    machine = lan.machine("desk")
    assert doctor(machine, idle(tmp_path))["verdict"] == "good"
    row = doctor(machine, idle(tmp_path), WITHOUT_AIORTC)
    assert row["verdict"] == "note"
    assert "over a WebSocket" in row["what"]
    assert row["do"].startswith("pip install 'rappd[tether]'")


def test_doctor_names_a_damaged_list_of_phones(lan: Lan, tmp_path: Path) -> None:
    daemon = idle(tmp_path)
    daemon.home.mkdir()
    (daemon.home / "devices.json").write_text("{")
    row = doctor(lan.machine("desk"), daemon)
    assert (row["verdict"], row["do"]) == ("bad", "Delete it, and pair your phones anew.")


@pytest.mark.browser
def test_status_counts_phones_and_pair_asks_once(lan: Lan, tmp_path: Path) -> None:
    desk, machine = Daemon(lan.machine("desk"), tmp_path), lan.machine("phone")
    desk.start()
    assert "  Phones    off  rappd pair" in on_terminal(desk, "status").lines
    with chromium_on(machine, tmp_path) as browser:
        terminal = Terminal(desk, "pair", columns=120)
        terminal.read_until(lambda seen: "and type" in seen.words)
        phone = Phone(browser, desk)
        digits = phone.shows_digits(desk.ask("GET", "/devices/window")["links"][0])
        terminal.read_until(lambda seen: "Same, mine [m]" in seen.words)
        terminal.type("m\n")
        desk.wait_for(lambda: desk.ask("GET", "/devices/window")["state"] == "waiting")
        seen = terminal.read_until(lambda seen: "Now tap “Same number” on the phone" in seen.raw)
        assert digits in seen.text
        phone.page.get_by_role("button", name="Same number").click()
        done = terminal.to_end()
        assert done.code == 0
        assert done.text.count("Same, mine [m]") == 1
        assert (
            "✓ Android, Chrome joined; it is yours, and sees your conversations and memory. Change: rappd devices scopes"
            in done.lines
        )
        phone.page.get_by_role("button", name="Start talking").click()
        phone.is_connected()
        assert "  Phones    1, connected" in on_terminal(desk, "status").lines
        assert doctor(desk.machine, desk)["what"] == "1, connected"
    desk.wait_for(lambda: not desk.ask("GET", "/operator/status")["phones"]["connected"])
    assert "  Phones    1, not connected" in on_terminal(desk, "status").lines
