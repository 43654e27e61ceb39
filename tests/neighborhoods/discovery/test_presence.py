"""Presence is known by asking, with patience and without a crowd."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from neighborhoods.discovery.discovered_nodes import DiscoveredNode, DiscoveredNodes
from neighborhoods.discovery.presence import Presence, ProbePolicy

FAST = ProbePolicy(every=0.1, here=0.3, first=0.05, most=0.4, patience=0.2, apart=0.02, a_second=500)
SLOW = ProbePolicy(every=60, here=90, first=60, most=60, apart=0.05)


class Network:
    """Machines that answer or not, and how often each was asked."""

    def __init__(self, *up: str) -> None:
        self.up = set(up)
        self.asked: Counter[str] = Counter()
        self.told: list[tuple[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.takes = 0.0
        self.hangs: set[str] = set()

    async def probe(self, peer: str) -> float:
        self.asked[peer] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(600 if peer in self.hangs else self.takes)
        finally:
            self.at_once -= 1
        if peer not in self.up:
            raise OSError("no route")
        return 2.5


@asynccontextmanager
async def watching(network: Network, pace: ProbePolicy, *peers: str) -> AsyncIterator[Presence]:
    presence = Presence(
        network.probe, changed=lambda peer, state: network.told.append((peer, state)), pace=pace
    )
    presence.start()
    for peer in peers:
        presence.watch(peer)
    try:
        yield presence
    finally:
        await presence.close()
        assert network.at_once == 0


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(100):
        while not holds():
            await asyncio.sleep(0.01)


async def test_a_peer_that_answers_is_here() -> None:
    before = time.time_ns() // 1000
    network = Network("a")
    async with watching(network, FAST, "a") as presence:
        assert presence.presence("a") == ("away", None, 0)
        await until(lambda: presence.presence("a").state == "here")
        state, ms, since = presence.presence("a")
        assert (state, ms) == ("here", 2.5)
        assert before <= since <= time.time_ns() // 1000
        await until(lambda: network.asked["a"] > 3)
        assert presence.presence("a").since == since
        assert presence.presence("unknown") == ("away", None, 0)
    assert network.told == [("a", "here")]


async def test_a_peer_that_stops_answering_goes_away_and_comes_back() -> None:
    network = Network("a")
    async with watching(network, FAST, "a") as presence:
        await until(lambda: presence.presence("a").state == "here")
        network.up.clear()
        gone = time.time_ns() // 1000
        await until(lambda: ("a", "away") in network.told)
        assert presence.presence("a").state == "away"
        assert presence.presence("a").since <= gone
        network.up.add("a")
        await until(lambda: network.told[-1] == ("a", "here") and len(network.told) == 3)
        assert presence.presence("a").since > gone


async def test_one_that_hangs_is_away_and_holds_up_nobody() -> None:
    network = Network("b", "c")
    network.hangs = {"a"}
    async with watching(network, FAST, "a", "b", "c") as presence:
        await until(lambda: presence.presence("b").state == presence.presence("c").state == "here")
        await until(lambda: network.asked["a"] >= 2)
        assert presence.presence("a").state == "away"


async def test_the_absent_are_asked_ever_more_rarely() -> None:
    network = Network("here")
    # Without a longest pause: a busy machine that can ask nobody for half a second shows the same.
    pace = ProbePolicy(every=0.1, here=0.3, first=0.05, most=3600, patience=0.2, apart=0.02, a_second=500)
    async with watching(network, pace, "here", "away"):
        await until(lambda: network.asked["here"] >= 25)
    assert 3 <= network.asked["away"] < network.asked["here"] / 1.5


@pytest.mark.parametrize("how", ["appeared", "changed", "heard"])
async def test_a_sighting_makes_it_ask_at_once(how: str) -> None:
    network, sightings = Network(), DiscoveredNodes()
    async with watching(network, SLOW, "a", "other") as presence:
        sightings.listen(presence.on_sighting)
        if how != "appeared":
            sightings.saw("x", DiscoveredNode("a", "pi", ("10.0.0.1",), 1, "nearby", 0))
        await until(lambda: network.asked["a"] >= 1 and network.at_once == 0)
        await asyncio.sleep(0.2)
        asked, network.up = network.asked["a"], {"a"}
        if how == "heard":
            sightings.heard("x", 5_000_000)
        else:
            sightings.saw("x", DiscoveredNode("a", "pi", ("10.0.0.2",), 1, "nearby", 0))
        await until(lambda: presence.presence("a").state == "here")
        assert network.asked["a"] == asked + 1
        assert network.asked["other"] == 1


async def test_a_storm_of_hints_is_no_storm_of_questions() -> None:
    network = Network()
    pace = ProbePolicy(every=60, first=60, apart=0.2)
    async with watching(network, pace, "a") as presence:
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            presence.hurry("a")
            presence.hurry("nobody")
            await asyncio.sleep(0)
        seconds = time.monotonic() - ends + 1
    assert 2 <= network.asked["a"] <= seconds / 0.2 + 2
    assert "nobody" not in network.asked


async def test_a_sign_of_life_needs_no_question() -> None:
    network = Network()
    async with watching(network, SLOW, "a") as presence:
        await until(lambda: network.asked["a"] == 1 and network.at_once == 0)
        presence.heard_from("a")
        assert presence.presence("a")[:2] == ("here", None)
        presence.heard_from("a", 3.0)
        assert presence.presence("a")[:2] == ("here", 3.0)
        presence.heard_from("nobody")
        assert network.told == [("a", "here")]
        assert network.asked["a"] == 1


async def test_peer_that_comes_is_timed_though_it_speaks_on() -> None:
    network = Network()
    pace = ProbePolicy(every=5, here=60, first=60, most=60, apart=0.4)
    async with watching(network, pace, "a") as presence:
        await until(lambda: network.asked["a"] == 1 and network.at_once == 0)
        network.up.add("a")
        async with asyncio.timeout(100):
            while presence.presence("a")[:2] != ("here", 2.5):
                presence.heard_from("a")
                await asyncio.sleep(0.15)


@pytest.mark.parametrize("midway", [False, True], ids=["at_rest", "during_a_question"])
async def test_peer_is_told_though_it_speaks_by_itself(midway: bool) -> None:
    network = Network("a")
    network.takes = 0.1 if midway else 0.0
    async with watching(network, SLOW, "a") as presence:
        await until(lambda: network.asked["a"] == 1 and network.at_once == midway)
        await asyncio.sleep(SLOW.apart)
        presence.tell("a")
        for _ in range(40):
            presence.heard_from("a")
            await asyncio.sleep(0.005)
        await until(lambda: network.asked["a"] == 2)


async def test_peer_that_could_not_be_told_is_told_at_its_next_sign_of_life() -> None:
    network = Network()
    async with watching(network, SLOW, "a") as presence:
        presence.tell("a")
        await until(lambda: network.asked["a"] == 1 and network.at_once == 0)
        network.up.add("a")
        presence.heard_from("a")
        await until(lambda: network.asked["a"] == 2)


async def test_when_it_was_last_seen_outlives_a_restart() -> None:
    presence = Presence(Network().probe)
    presence.watch("a", seen_at=1234)
    presence.watch("a", seen_at=9999)
    assert presence.presence("a") == ("away", None, 1234)
    await presence.close()


async def test_forgotten_peer_is_not_probed() -> None:
    network = Network("a", "b")
    async with watching(network, FAST, "a", "b") as presence:
        await until(lambda: network.asked["a"] >= 2)
        presence.forget("a")
        await until(lambda: network.at_once == 0)
        asked, others = network.asked["a"], network.asked["b"]
        await until(lambda: network.asked["b"] > others + 4)
        assert network.asked["a"] == asked
        assert presence.presence("a").state == "away"


async def test_nothing_is_told_of_a_peer_that_is_forgotten_while_it_is_asked() -> None:
    network = Network("a")
    network.takes = 0.05
    async with watching(network, SLOW, "a") as presence:
        await until(lambda: network.at_once == 1)
        presence.forget("a")
        await until(lambda: network.at_once == 0)
        await asyncio.sleep(0.02)
    assert network.told == []


async def test_after_a_sleep_everybody_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network("a", "b")
    async with watching(network, SLOW, "a", "b") as presence:
        await until(lambda: presence.presence("a").state == presence.presence("b").state == "here")
        network.up = {"b"}
        monkeypatch.setattr("neighborhoods.discovery.presence.slept", lambda: 1e9)
        await until(lambda: network.asked["a"] == network.asked["b"] == 2)
        await until(lambda: presence.presence("b").state == "here")
        assert presence.presence("a").state == "away"


async def test_a_bad_listener_does_not_end_the_asking() -> None:
    network = Network("a")
    presence = Presence(network.probe, changed=lambda peer, state: 1 / 0, pace=FAST)
    presence.start()
    presence.watch("a")
    await until(lambda: network.asked["a"] > 3)
    await presence.close()


async def test_a_thousand_peers_are_asked_in_turn() -> None:
    peers = [f"p{number}" for number in range(1000)]
    network = Network(*peers)
    network.takes = 0.02
    began = time.monotonic()
    async with watching(network, ProbePolicy(), *peers) as presence:
        await until(lambda: len(network.asked) >= 60)
        presence.hurry("p999")
        await until(lambda: presence.presence("p999").state == "here")
        assert len(network.asked) < 500
        seconds = time.monotonic() - began
    assert network.asked.total() <= 20 + 20 * seconds + 2
    assert max(network.asked.values()) == 1


async def test_the_number_of_questions_at_once_is_bounded() -> None:
    peers = [f"p{number}" for number in range(200)]
    network = Network(*peers)
    network.takes = 0.05
    async with watching(network, ProbePolicy(a_second=10_000), *peers) as presence:
        for peer in peers:
            presence.hurry(peer)
        await until(lambda: all(presence.presence(peer).state == "here" for peer in peers))
    assert network.most_at_once == 16


async def test_peer_that_left_is_away_at_once_and_may_return() -> None:
    network = Network("a")
    async with watching(network, SLOW, "a") as presence:
        await until(lambda: presence.presence("a").state == "here")
        presence.left("a")
        state, ms, since = presence.presence("a")
        assert (state, ms) == ("away", None)
        assert since > 0
        assert network.told == [("a", "here"), ("a", "away")]
        presence.heard_from("a")
        await until(lambda: presence.presence("a").ms == 2.5)
        assert presence.presence("a").state == "here"


async def test_suspected_peer_is_away_after_one_missing_answer() -> None:
    network = Network("a", "b")
    async with watching(network, SLOW, "a", "b") as presence:
        await until(lambda: {presence.presence(one).state for one in "ab"} == {"here"})
        network.up.discard("a")
        presence.suspect("a")
        presence.suspect("b")
        await until(lambda: presence.presence("a").state == "away")
        await until(lambda: network.asked["b"] == 2)
        assert presence.presence("b").state == "here"
