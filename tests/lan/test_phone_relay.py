"""A relay that ends the encryption between a phone and the computer, from two pairs of aiortc connections."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from lan.daemons import Daemon
from lan.network import Lan

ATTACK = Path(__file__).with_name("relay_attack.py")


def test_relay_between_phone_and_computer_is_noticed(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {})["links"][0]
    ran = relay.run([sys.executable, ATTACK, link], timeout=60)
    assert json.loads(ran.stdout) == {"computer": "stopped", "reason": "expired"}, ran.stderr
    assert desk.ask("GET", "/devices/window")["state"] == "open"
    assert desk.ask("GET", "/devices")["devices"] == []


def test_relay_that_knows_the_code_shows_other_digits(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {})["links"][0]
    attack = relay.start(
        [sys.executable, ATTACK, link, "--knows"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert attack.stdout is not None
    found = json.loads(attack.stdout.readline())
    assert found["computer"] == "auth_ok"
    assert found["phone accepts its proof"] is False
    assert desk.ask("GET", "/devices/window")["digits"] != found["phone"]


def test_five_bad_proofs_burn_the_code(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {})["links"][0]
    for _ in range(5):
        assert desk.ask("GET", "/devices/window")["state"] == "open"
        relay.run([sys.executable, ATTACK, link], timeout=60)
    assert desk.ask("GET", "/devices/window")["state"] == "expired"
