"""Two machines whose owners take too long: both are told that time is up, and nothing is kept of it."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator

import pytest
from fixtures.machines import Machine
from fixtures.terminal import Seen, Terminal

Both = tuple[Machine, Machine]

SECONDS = "15"
"""Enough for a command to begin in on a busy machine."""
TOLD = "✗ Time is up; nothing was paired\n  → Start anew on both machines"
EXPIRED = 8


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Desk and pi, which know each other's address and give a pairing a few seconds."""
    folder = tmp_path_factory.mktemp("two")
    desk, pi = (
        Machine(folder / name, name, LLM_FAKE="1", RAPPD_PAIRING_SECONDS=SECONDS) for name in ("desk", "pi")
    )
    desk.start()
    pi.start()
    assert desk.cli("peers", "add", pi.address).returncode == 0
    assert pi.cli("peers", "add", desk.address).returncode == 0
    yield desk, pi
    desk.stop()
    pi.stop()


def asked(terminal: Terminal, what: str = "[y/N]") -> Seen:
    seen = terminal.read_until(lambda seen: what in seen.text)
    assert what in seen.text, seen.text
    return seen


def stored(machine: Machine) -> list[str]:
    """The names in its book on the disk."""
    with sqlite3.connect(f"file:{machine.home / 'rappd.db'}?mode=ro", uri=True) as db:
        return [str(row[0]) for row in db.execute("SELECT name FROM peers")]


def nothing_is_kept(*machines: Machine) -> None:
    for machine in machines:
        assert machine.trusted() == set()
        # The other side began a moment later, and ends as much later.
        machine.wait_for(lambda one=machine: one.peers()["asking"] == [], what="the end")
        assert stored(machine) == []


def test_nobody_answers_and_both_terminals_say_so(both: Both) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi")
    asked(asks)
    answers = Terminal(pi, "peers", "pair", "desk")
    asked(answers)
    for terminal in (asks, answers):
        ended = terminal.to_end()
        assert (ended.code, ended.text.endswith(TOLD)) == (EXPIRED, True), ended.text
    nothing_is_kept(desk, pi)


@pytest.mark.parametrize("yes", ["on the asking side", "on the asked side"])
def test_one_yes_is_not_enough_when_time_is_up(both: Both, yes: str) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi", "--mine")
    asked(asks)
    answers = Terminal(pi, "peers", "pair", "desk", "--mine")
    asked(answers)
    (asks if yes == "on the asking side" else answers).type("y\n")
    for terminal in (asks, answers):
        ended = terminal.to_end()
        assert (ended.code, ended.text.endswith(TOLD)) == (EXPIRED, True), ended.text
    nothing_is_kept(desk, pi)


def test_the_asking_side_alone_ends_too_and_for_programs(both: Both) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi", "--json")
    ended = asks.to_end()
    assert ended.code == EXPIRED
    rows = [json.loads(line) for line in ended.lines if line.startswith("{")]
    assert rows[-1] == {
        "error": "Time is up; nothing was paired.",
        "do": "Start anew on both machines.",
        "code": "pairing_expired",
    }
    assert rows[-2]["pairing"]["state"] == "expired"
    assert rows[-2]["pairing"]["seconds_left"] == 0
    nothing_is_kept(desk, pi)


def test_after_the_end_the_same_two_can_begin_anew(both: Both) -> None:
    desk, pi = both
    asked(first := Terminal(desk, "peers", "pair", "pi"))
    assert first.to_end().code == EXPIRED
    again = Terminal(desk, "peers", "pair", "pi")
    assert "On pi type: rappd peers pair desk" in asked(again).lines
    assert pi.peers()["asking"][0]["words"], "pi's owner is asked again, too"
    again.send(signal.SIGINT)
    again.to_end()
    nothing_is_kept(desk, pi)
