"""Calls between whole daemons over bad links, long absences and wrong clocks: each done once, each answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lan.daemons import Daemon, at_once, measured, new_key, pair, results
from lan.network import Lan, require

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Daemon]]:
    """The desk, and a pi behind a link whose weather changes."""
    require()
    with Lan() as lan:
        folder = tmp_path_factory.mktemp("far")
        desk = Daemon(lan.machine("desk"), folder).launch()
        pi = Daemon(lan.machine("pi", relayed=True), folder).launch()
        pair(desk.wait_ready(), pi.wait_ready())
        yield desk, pi


def test_calls_over_a_bad_link_are_each_done_once(far: tuple[Daemon, Daemon]) -> None:
    desk, pi = far
    keys = [new_key() for _ in range(50)]
    pi.machine.weather(delay=0.2, loss=0.05)
    began = time.monotonic()
    with at_once(10) as pool:
        rows = results([pool.submit(desk.call, "pi", key) for key in keys])
    measured("50 calls at 5 % loss and 200 ms each way", time.monotonic() - began)
    measured("… the slowest call", max(row["seconds"] for row in rows))
    pi.machine.weather()
    desk.wait_for(lambda: not desk.waiting(), what="nothing to wait any more")
    assert [pi.begun()[key] for key in keys] == [1] * 50
    for row, key in zip(rows, keys, strict=True):
        assert row["state"] in ("done", "queued", "accepted")
        assert desk.ends(row["thread"]) == [{"result": f"counted {key}"}]


def test_a_thousand_calls_wait_for_who_is_away(far: tuple[Daemon, Daemon]) -> None:
    desk, pi = far
    pi.crash()
    keys = [new_key() for _ in range(1000)]
    began = time.monotonic()
    with at_once(100) as pool:
        rows = results([pool.submit(desk.call, "pi", key, wait=0.1) for key in keys])
    measured("1,000 calls are queued in", time.monotonic() - began)
    assert {row["state"] for row in rows} == {"queued"}
    assert desk.peers()["pi"]["waiting"] == 1000
    pi.start()
    ready = time.monotonic()
    desk.wait_for(lambda: not desk.waiting(), 120, "nothing to wait any more")
    measured("after its return all are answered in", time.monotonic() - ready)
    assert [pi.begun()[key] for key in keys] == [1] * 1000
    for row, key in list(zip(rows, keys, strict=True))[::10]:
        assert desk.ends(row["thread"]) == [{"result": f"counted {key}"}]
    states = {row["id"]: row["state"] for row in desk.ask("GET", "/outbox")["outbox"]}
    assert {states[row["id"]] for row in rows if row["id"] in states} == {"done"}
    desk.verified()
    pi.verified()


def test_clocks_that_differ_by_minutes_do_no_harm(lan: Lan, tmp_path: Path) -> None:
    desk = Daemon(lan.machine("desk"), tmp_path, ahead=120.0).launch()
    pi = Daemon(lan.machine("pi"), tmp_path, ahead=-120.0).launch()
    pair(desk.wait_ready(), pi.wait_ready())
    ahead = desk.ask("GET", "/peers")["peers"][0]["paired_at"]
    assert 200 < ahead - pi.ask("GET", "/peers")["peers"][0]["paired_at"] < 280
    for here, there in ((desk, pi), (pi, desk)):
        assert here.call(there.name, new_key())["state"] == "done"
        there.crash()
        key = new_key()
        row = here.call(there.name, key, wait=0.5)
        assert row["state"] == "queued"
        there.start()
        here.wait_for(lambda here=here: not here.waiting(), what="nothing to wait any more")
        assert here.ends(row["thread"]) == [{"result": f"counted {key}"}]
        assert there.begun()[key] == 1
        here.wait_for(lambda here=here, there=there: here.presence(there.name) == "here", what="its presence")
