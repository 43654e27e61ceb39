"""Sightings are kept apart by their source, bounded, and told of."""

from __future__ import annotations

import pytest

from neighborhoods.discovery.discovered_nodes import Change, DiscoveredNode, DiscoveredNodes

A, B = "aa" * 32, "bb" * 32
SECOND = 1_000_000


def sighting(
    fingerprint: str = A, name: str = "pi", address: str = "10.0.0.1", at: int = 0
) -> DiscoveredNode:
    return DiscoveredNode(fingerprint, name, (address,), 7443, "nearby", at)


def told(sightings: DiscoveredNodes) -> list[tuple[Change, str]]:
    heard: list[tuple[Change, str]] = []
    sightings.listen(lambda change, one: heard.append((change, one.name)))
    return heard


def test_each_change_is_told_once() -> None:
    sightings = DiscoveredNodes()
    heard = told(sightings)
    sightings.saw("x", sighting())
    sightings.saw("x", sighting(address="10.0.0.2", at=SECOND))
    sightings.heard("x", 2 * SECOND)
    sightings.heard("x", 2 * SECOND + 1)
    sightings.gone("x")
    sightings.gone("x")
    assert heard == [("appeared", "pi"), ("changed", "pi"), ("heard", "pi"), ("gone", "pi")]
    assert len(sightings) == 0


def test_a_listener_can_leave_and_a_bad_one_harms_nobody() -> None:
    sightings = DiscoveredNodes()
    sightings.listen(lambda change, one: 1 / 0)
    heard: list[str] = []
    leave = sightings.listen(lambda change, one: heard.append(change))
    sightings.saw("x", sighting())
    leave()
    leave()
    sightings.gone("x")
    assert heard == ["appeared"]


def test_somebody_elses_claim_hides_nobody() -> None:
    sightings = DiscoveredNodes()
    sightings.saw("honest", sighting(address="10.0.0.1", at=1))
    sightings.saw("other", sighting(address="10.0.0.66", at=2))
    assert [one.addresses for one in sightings.of(A)] == [("10.0.0.66",), ("10.0.0.1",)]
    assert len(sightings) == 1
    sightings.gone("other")
    assert [one.addresses for one in sightings.of(A)] == [("10.0.0.1",)]


def test_one_source_that_becomes_another_machine() -> None:
    sightings = DiscoveredNodes()
    heard = told(sightings)
    sightings.saw("x", sighting(A, "a"))
    sightings.saw("x", sighting(B, "b"))
    assert heard == [("appeared", "a"), ("gone", "a"), ("appeared", "b")]
    assert sightings.of(A) == []


def test_claims_of_a_fingerprint_are_bounded() -> None:
    sightings = DiscoveredNodes()
    for number in range(50):
        sightings.saw(f"s{number}", sighting(address=f"10.0.0.{number}", at=number))
    assert [one.at for one in sightings.of(A)] == list(range(49, 41, -1))


def test_beyond_the_bound_the_longest_silent_strangers_go() -> None:
    sightings = DiscoveredNodes(most=100)
    sightings.pin([A])
    heard = told(sightings)
    sightings.saw("mine", sighting(A, "mine"))
    for number in range(300):
        sightings.saw(f"s{number}", sighting(f"{number:064x}", f"ghost{number}", at=number))
        if number % 50 == 0:
            sightings.heard("s0", number * SECOND + SECOND)
    names = {one.name for one in sightings.machines()}
    assert len(sightings) == 100
    assert {"mine", "ghost0", "ghost299"} <= names
    assert "ghost5" not in names
    assert sum(1 for change, _ in heard if change == "gone") == 201


def test_when_all_are_pinned_a_stranger_gives_way() -> None:
    sightings = DiscoveredNodes(most=2)
    sightings.pin([A, B])
    sightings.saw("a", sighting(A))
    sightings.saw("b", sighting(B))
    sightings.saw("c", sighting("cc" * 32))
    assert {one.fingerprint for one in sightings.machines()} == {A, B}


@pytest.mark.parametrize(
    ("before", "most", "expected"), [(3, 9, ["s0", "s1", "s2"]), (9, 2, ["s0", "s1"]), (0, 9, [])]
)
def test_the_silent_ones_are_known(before: int, most: int, expected: list[str]) -> None:
    sightings = DiscoveredNodes()
    for number in range(5):
        sightings.saw(f"s{number}", sighting(f"{number:064x}", at=number))
    assert sightings.silent_since(before, most) == expected
