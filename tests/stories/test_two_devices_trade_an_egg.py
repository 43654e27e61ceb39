"""Two devices without internet find each other, pair, chat, and trade an egg that one of them then runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.owned_machine import compare_words_and_pair, machines
from lan.network import Lan

pytestmark = pytest.mark.timeout(900)


def test_two_offline_devices_pair_chat_and_trade_an_egg_that_one_then_runs(lan: Lan, tmp_path: Path) -> None:
    desk, pi = machines(lan, tmp_path, "desk", "pi")
    pi.gets_agent("Weather", "It rains on the pi.")
    assert not desk.reaches("1.1.1.1") and not pi.reaches("1.1.1.1")

    desk.sees("pi")
    pi.sees("desk")
    compare_words_and_pair(desk, pi)

    assert "It rains on the pi." in desk.calls("pi:Weather", "how is the weather?")
    assert "Hello." in pi.calls("desk", "hello")

    charizard = desk.makes_twin("Charizard", "You are a small dragon.", Flame="A flame of 900 degrees.")
    assert "900 degrees" in desk.twin_says("Charizard", "tell me of the flame")
    egg = tmp_path / "charizard.egg"
    desk.rappd("egg", "pack", "Charizard", "-o", egg)
    assert "pi" in desk.rappd("egg", "send", egg, "pi")

    (arrived,) = pi.told("egg", "arrived")["arrived"]
    assert arrived["from"] == "desk"
    assert not pi.twin(charizard).exists(), "nothing of it is on the pi before its owner says yes"
    assert "1 code file" in pi.rappd("egg", "hatch", arrived["path"])
    assert "900 degrees" not in pi.twin_says("Charizard", "tell me of the flame"), "nobody has read it yet"
    pi.rappd("agents", "approve", "flame", "--twin", "Charizard")

    desk.stop()
    assert "900 degrees" in pi.twin_says("Charizard", "tell me of the flame")
    assert (pi.twin(charizard) / "soul.md").read_text().startswith("You are a small dragon.")
    assert pi.verified()
