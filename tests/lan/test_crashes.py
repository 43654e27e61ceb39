"""Whole daemons are killed while they call each other: nothing is done twice, everything is answered once.

``RAPPD_CRASH_ROUNDS`` makes the tests that kill at random moments longer.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from lan.daemons import Daemon, at_once, measured, new_key, pair, results, signal_all
from lan.network import Lan, require

ROUNDS = int(os.environ.get("RAPPD_CRASH_ROUNDS", "2"))

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.timeout(600 + 60 * ROUNDS),
    pytest.mark.own_process(zygote=True),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Daemon]]:
    """The desk, which calls, and the pi, which is called."""
    require()
    with Lan() as lan:
        folder = tmp_path_factory.mktemp("both")
        desk = Daemon(lan.machine("desk"), folder).launch()
        pi = Daemon(lan.machine("pi"), folder).launch()
        pair(desk.wait_ready(), pi.wait_ready())
        yield desk, pi


@pytest.fixture
def chance(capsys: pytest.CaptureFixture[str]) -> random.Random:
    """Random moments; a failing test shows the seed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


Asked = dict[str, str]
"""Keys of calls, and the agent of each."""


@pytest.mark.parametrize("killed", ["the one called", "the caller", "both"])
def test_killed_at_any_moment(both: tuple[Daemon, Daemon], chance: random.Random, killed: str) -> None:
    desk, pi = both
    victims = {"the one called": [pi], "the caller": [desk], "both": [desk, pi]}[killed]
    asked: Asked = {}
    for _ in range(ROUNDS):
        with at_once(16) as pool:
            _calls(desk, pool, chance, asked, 16)
            time.sleep(chance.uniform(0.0, 1.2) ** 2)
            for victim in chance.sample(victims, len(victims)):
                victim.crash()
            time.sleep(chance.choice([0.0, 0.3]))
            for victim in victims:
                victim.launch()
            for victim in victims:
                victim.wait_ready()
    measured("all is settled after", _settled(both, asked))


def test_the_one_called_is_killed_while_it_empties_a_queue(
    both: tuple[Daemon, Daemon], chance: random.Random
) -> None:
    desk, pi = both
    asked: Asked = {}
    pi.crash()
    with at_once(16) as pool:
        rows = results(_calls(desk, pool, chance, asked, 60, wait=0.1))
    assert {row["state"] for row in rows} == {"queued"}
    for _ in range(ROUNDS):
        pi.launch()
        pi.wait_for(lambda: pi.begun().keys() & asked.keys() or not desk.waiting(), what="the first to begin")
        time.sleep(chance.uniform(0.0, 0.6))
        pi.crash()
    pi.start()
    measured("all is settled after", _settled(both, asked))


def test_a_call_that_is_cut_off_says_so(both: tuple[Daemon, Daemon]) -> None:
    desk, pi = both
    once, again = new_key(), new_key()
    asked = {once: "Count", again: "Again"}
    with at_once(2) as pool:
        calls = [pool.submit(desk.call, "pi", key, agent=asked[key], seconds=20, wait=1) for key in asked]
        rows = results(calls)
        assert {row["state"] for row in rows} == {"accepted"}
        pi.wait_for(lambda: pi.begun().keys() >= asked.keys(), what="both to begin")
        signal_all(pi, signal.SIGSTOP, but_itself=True)
        pi.crash()
    pi.start()
    measured("all is settled after", _settled(both, asked))
    (end,) = desk.ends(rows[0]["thread"])
    assert (end.get("code"), end.get("reason")) == (500, "interrupted")
    assert desk.ends(rows[1]["thread"]) == [{"result": f"counted {again}"}]
    assert (pi.begun()[once], pi.ended()[once], pi.begun()[again]) == (1, 0, 2)


def test_a_worker_that_stands_still_for_a_while_harms_nothing(both: tuple[Daemon, Daemon]) -> None:
    desk, pi = both
    key = new_key()
    row = desk.call("pi", key, seconds=1, wait=0.5)
    assert row["state"] == "accepted"
    workers = signal_all(pi, signal.SIGSTOP, but_itself=True)
    time.sleep(2)
    assert not desk.ends(row["thread"])
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    _settled(both, {key: "Count"})
    assert desk.ends(row["thread"]) == [{"result": f"counted {key}"}]


def test_a_daemon_that_stands_still_is_away_and_then_answers(both: tuple[Daemon, Daemon]) -> None:
    desk, pi = both
    assert pi.process is not None
    key = new_key()
    os.kill(pi.process.pid, signal.SIGSTOP)
    try:
        row = desk.call("pi", key, wait=1)
        assert row["state"] == "queued"
    finally:
        os.kill(pi.process.pid, signal.SIGCONT)
    _settled(both, {key: "Count"})
    assert desk.ends(row["thread"]) == [{"result": f"counted {key}"}]


def _calls(
    desk: Daemon, pool: Any, chance: random.Random, asked: Asked, count: int, wait: float = 5
) -> list[Future[Any]]:
    futures = []
    for _ in range(count):
        key, agent = new_key(), chance.choice(["Count", "Count", "Again"])
        asked[key] = agent
        seconds = chance.choice([0.0, 0.0, 0.02, 0.2])
        futures.append(pool.submit(desk.call, "pi", key, agent=agent, wait=wait, seconds=seconds))
    return futures


def _settled(both: tuple[Daemon, Daemon], asked: Asked) -> float:
    """Waits until nothing is open, and looks at every call: how long that took."""
    desk, pi = both
    began = time.monotonic()
    for one in both:
        one.wait_for(lambda one=one: not one.waiting(), what="nothing to wait any more")
    took = time.monotonic() - began
    ends = _ends_by_key(desk)
    begun, ended = pi.begun(), pi.ended()
    wrong = []
    for key, agent in asked.items():
        if key not in ends:
            told = True  # the caller was killed before it had written the question down
        elif len(ends[key]) != 1:
            told = False
        elif "result" in ends[key][0]:
            told = ended[key] >= 1
        else:
            told = agent == "Count" and ends[key][0]["reason"] == "interrupted"
        if not told or (agent == "Count" and begun[key] > 1):
            wrong.append(f"{agent} {key}: begun {begun[key]}, ended {ended[key]}, answers {ends.get(key)}")
    assert not wrong, "\n".join([*wrong, desk.log[-3000:], pi.log[-3000:]])
    desk.verified()
    pi.verified()
    return took


def _ends_by_key(desk: Daemon) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for thread in desk.threads():
        events = desk.ask("GET", f"/threads/{thread}")["events"]
        asked = [event["data"] for event in events if event["verb"] == "HELP"]
        if asked and "args" in asked[0]:
            ends = [event["data"] for event in events if event["verb"] in ("DONE", "ERROR")]
            found[asked[0]["args"]["key"]] = ends
    return found
