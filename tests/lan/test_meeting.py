"""Whole daemons meet: they find each other, are named anew, move, part, and meet again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lan.daemons import Daemon, at_once, daemons, measured, new_key, pair, results
from lan.network import Lan, require

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Daemon], float]]:
    """Five machines that never met, and the moment when the last of them was ready; desk and pi pair later."""
    require()
    with Lan() as lan:
        every = daemons(lan, tmp_path_factory.mktemp("five"), "desk", "pi", "shed", "attic", "cellar")
        yield every, time.monotonic()


@pytest.fixture(scope="module")
def paired(five: tuple[list[Daemon], float]) -> tuple[Daemon, Daemon]:
    """The desk and the pi."""
    desk, pi = five[0][:2]
    pair(desk, pi)
    return desk, pi


def test_five_machines_are_found_and_none_is_trusted(five: tuple[list[Daemon], float]) -> None:
    every, ready = five
    for one in every:
        others = {other.name for other in every} - {one.name}
        one.wait_for(lambda one=one, others=others: set(one.peers()) == others, what="four others")
    measured("each sees four, after the last was ready", time.monotonic() - ready)
    for one in every:
        for name, row in one.peers().items():
            other = next(other for other in every if other.name == name)
            assert (row["presence"], row["paired"], row["reached"]) == ("found", False, "nearby")
            assert (row["fingerprint"], row["address"]) == (other.fingerprint, other.address)
        assert one.request("POST", "/call", {"peer": "pi", "text": "hello"}).status == 404


def test_calls_go_on_when_one_is_renamed_restarted_and_moved(
    five: tuple[list[Daemon], float], paired: tuple[Daemon, Daemon]
) -> None:
    (desk, pi), shed = paired, five[0][2]
    assert desk.call("pi", new_key())["state"] == "done"
    pi.stop()
    pi.environment["RAPPD_NAME"] = "strawberry"
    pi.start()
    ready = time.monotonic()
    assert desk.call("pi", new_key())["state"] == "done"
    measured("a call after the other restarted took", time.monotonic() - ready)
    shed.wait_for(lambda: shed.presence("strawberry") == "found" and not shed.presence("pi"), what="the name")
    for address in ("10.77.0.98", "10.77.0.99"):  # once more: the old ones must not mislead
        pi.machine.move(address)
        moved = time.monotonic()
        row = desk.call("pi", new_key(), wait=20)
        measured(f"the first call after a move took ({row['state']})", time.monotonic() - moved)
        assert row["state"] == "done" or _comes(desk, row["thread"])
        desk.wait_for(lambda: desk.presence("pi") == "here", what="the pi to be here")
        assert desk.call("pi", new_key())["state"] == "done"
        assert pi.call("desk", new_key())["state"] == "done"
    assert set(pi.begun().values()) == {1}
    pi.stop()
    pi.environment["RAPPD_NAME"] = "pi"
    pi.start()


def test_what_waits_goes_by_itself_when_they_meet_again(
    five: tuple[list[Daemon], float], paired: tuple[Daemon, Daemon]
) -> None:
    """The pi's link goes down, and the attic is cut off in silence, at the same time."""
    (desk, pi), (shed, attic), lan = paired, five[0][2:4], paired[0].machine.lan
    pair(shed, attic)
    every = [(desk, pi), (pi, desk), (shed, attic), (attic, shed)]
    _presences(every, "here")
    pi.machine.down()
    lan.part(attic.machine)
    since = time.monotonic()
    asked = [(one, other, new_key()) for one, other in every for _ in range(4)]
    with at_once(16) as pool:
        rows = results([pool.submit(one.call, other.name, key, wait=2) for one, other, key in asked])
    assert {row["state"] for row in rows} == {"queued"}
    _presences(every[:2], "away")
    measured("link down: both are away after", time.monotonic() - since)
    _presences(every[2:], "away")
    measured("cut off in silence: both are away after", time.monotonic() - since)
    assert [one.peers()[other.name]["waiting"] for one, other in every] == [4] * 4
    pi.machine.up()
    lan.heal()
    since = time.monotonic()
    for one, _ in every:
        one.wait_for(lambda one=one: not one.waiting(), what="nothing to wait any more")
    measured("healed: all is answered after", time.monotonic() - since)
    _presences(every, "here")
    measured("healed: all are here after", time.monotonic() - since)
    for (one, other, key), row in zip(asked, rows, strict=True):
        assert other.begun()[key] == 1
        assert one.ends(row["thread"]) == [{"result": f"counted {key}"}]


def test_where_nothing_is_announced_an_address_is_enough(lan: Lan, tmp_path: Path) -> None:
    machines = [lan.machine("desk"), lan.machine("pi")]
    for port in ("p1", "p2"):  # as in many guest networks
        slave = ["ip", "-n", lan.switch, "link", "set", port, "type", "bridge_slave"]
        subprocess.run([*slave, "mcast_flood", "off"], check=True)
    desk, pi = (Daemon(machine, tmp_path).launch() for machine in machines)
    desk.wait_ready()
    pi.wait_ready()
    added = desk.ask("POST", "/peers", {"address": pi.machine.address})["added"]
    assert (added["name"], added["fingerprint"], added["address"]) == ("pi", pi.fingerprint, pi.address)
    time.sleep(2)  # else they would have found each other by now
    listed = desk.ask("GET", "/peers")
    assert [source["found"] for source in listed["sources"] if source["source"] == "nearby"] == [0]
    asked = {"peer": "pi", "fingerprint": pi.fingerprint, "whose": "mine"}
    assert desk.ask("POST", "/pairings", asked)["pairing"]["state"] == "paired"
    back = {"peer": desk.address, "fingerprint": desk.fingerprint, "whose": "mine"}
    assert pi.ask("POST", "/pairings", back)["pairing"]["state"] == "paired"
    assert desk.call("pi", new_key())["state"] == "done"
    pi.stop()
    row = desk.call("pi", new_key(), wait=1)
    assert row["state"] == "queued"
    pi.start()
    assert _comes(desk, row["thread"])
    assert desk.peers()["pi"]["reached"] in ("last address", "typed")


def test_two_live_on_one_machine(lan: Lan, tmp_path: Path) -> None:
    both = lan.machine("desk")
    one, two = Daemon(both, tmp_path, "one").launch(), Daemon(both, tmp_path, "two").launch()
    third = Daemon(lan.machine("pi"), tmp_path).launch()
    for each in (one, two, third):
        each.wait_ready()
    assert 7443 in (one.port_for_peers, two.port_for_peers)
    assert one.port_for_peers != two.port_for_peers
    third.wait_for(lambda: set(third.peers()) == {"one", "two"}, what="both")
    one.wait_for(lambda: set(one.peers()) == {"two", "pi"}, what="both others")
    for here, there in ((third, one), (third, two), (one, two)):
        pair(here, there)
    for here, there in ((third, "one"), (third, "two"), (one, "two"), (two, "one"), (two, "pi")):
        assert here.call(there, new_key())["state"] == "done"


def _presences(every: list[tuple[Daemon, Daemon]], state: str) -> None:
    for one, other in every:
        one.wait_for(lambda one=one, other=other: one.presence(other.name) == state, what=f"it to be {state}")


def _comes(desk: Daemon, thread: str) -> bool:
    """True when an answer comes by itself."""
    return bool(desk.wait_for(lambda: desk.ends(thread), what="the answer"))
