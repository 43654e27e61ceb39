"""Five machines lose everything and come back from one file, with what was under way: an open call, a frozen program."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.member_homes import files_in
from fixtures.owned_machine import FRIEND, MINE, OwnedMachine, machines, pair_all
from lan.network import Lan

pytestmark = pytest.mark.timeout(900)

COUNTER = """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display "counting")
(+ (fib 6) (fib 5))
"""


def test_five_wiped_machines_come_back_with_an_open_call_and_a_frozen_program(
    lan: Lan, tmp_path: Path
) -> None:
    *five, mill = machines(lan, tmp_path, "desk", "pi", "shed", "attic", "barn", "mill")
    desk, pi, *_ = five
    pair_all(desk, *five[1:])
    mill.gets_agent("Level", "The water stands at two metres.")
    pair_all(desk, mill, whose=FRIEND, back=MINE)

    twins = {one.name: one.makes_twin(f"Rose-{one.name}", f"You live on the {one.name}.") for one in five}
    for one in five:
        (one.twin(twins[one.name]) / "notes.txt").write_text(f"planted on the {one.name}")
    pi.freezes(twins["pi"], "counter", COUNTER, after=58)
    desk.freezes(twins["desk"], "counter", COUNTER, after=58)
    desk.twin_says("Rose-desk", "remember that the gate is green")
    desk.rappd("chat", "remember that the key is under the pot")
    mill.stop()
    asked = desk.calls("mill:Level", "how high is the water?", code=8)
    assert "Queued" in asked or "away" in asked

    stick = tmp_path / "stick.egg"
    desk.rappd("neighborhood", "snapshot", "--out", stick)
    old_key = desk.fingerprint
    before = {one.name: left_by(one, twins[one.name]) for one in five}
    for one in five:
        one.loses_everything()
    assert desk.told("outbox", "list")["outbox"] == []

    pair_all(desk, *five[1:])
    desk.rappd("egg", "signers", "--trust", old_key, "--name", "my desk before")
    assert "1 open call" in desk.rappd("neighborhood", "hatch", stick, "--yes")
    for one in five[1:]:
        one.hatches_what_arrived()
    for one in five:
        assert left_by(one, twins[one.name]) == before[one.name]
    said = str(desk.told("threads", "list"))
    assert "the gate is green" in said and "under the pot" in said

    for one in (pi, desk):
        assert one.resumes(twins[one.name], "counter")["frames"] == [{"frame": 1, "result": "13"}]

    mill.start()
    mill.rappd("peers", "revoke", "desk", "--yes")  # whose key is another now
    pair_all(desk, mill, whose=FRIEND, back=MINE)
    (call,) = [row for row in desk.told("outbox", "list")["outbox"] if row["state"] == "open"]
    assert call["what"] == "how high is the water?"
    desk.stop()
    assert call["id"] in [
        row["id"] for row in desk.told("outbox", "list")["outbox"] if row["state"] == "open"
    ]
    desk.start()
    desk.rappd("outbox", "redirect", call["id"], "mill")
    desk.wait_for(lambda: desk.ends(call["thread"]), what="the answer")
    assert "two metres" in str(desk.ends(call["thread"]))
    assert all(one.verified() for one in (*five, mill))


def left_by(machine: OwnedMachine, key: str) -> dict[str, bytes]:
    """The files of a twin that should come back."""
    own = ("HATCH_RECEIPT.json", "bonds.json", ".env", ".repos.json")
    return {path: found for path, found in files_in(machine.twin(key)).items() if path not in own}
