"""Addresses of a peer come in the order of their sources, each once."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from neighborhoods.discovery.discovered_nodes import DiscoveredNode, DiscoveredNodes
from neighborhoods.discovery.peer_address_order import MOST_CANDIDATES, AddressCandidate, AddressResolver
from neighborhoods.discovery.peers_file import PeersFile

A, B = "aa" * 32, "bb" * 32


class KnownAddresses:
    def __init__(self, path: Path, entries: list[Any], environment: str = "") -> None:
        path.write_text(json.dumps({"peers": entries}))
        self.sightings = DiscoveredNodes()
        self.nearby = SimpleNamespace(trouble="")
        self.resolver = AddressResolver(self.sightings, PeersFile(path, environment=environment), self.nearby)

    def saw(self, *addresses: str, at: int, fingerprint: str = A, port: int = 7443) -> None:
        seen = DiscoveredNode(fingerprint, "pi", addresses, port, "nearby", at)
        self.sightings.saw(f"{addresses}", seen)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peers.json"


async def test_address_sources_are_ordered(path: Path) -> None:
    entries = [
        {"url": "https://typed:7443", "typed": True},
        "https://listed:7443",
        {"url": "https://known:7443", "fingerprint": A},
        {"url": "https://another:7443", "fingerprint": B},
        "http://legacy:7071",
    ]
    known = KnownAddresses(path, entries, environment="https://from-environment")
    known.saw("10.0.0.1", "fe80::1%2", at=1)
    known.saw("10.0.0.2", at=2, port=7444)
    known.saw("10.0.0.3", at=3, fingerprint=B)
    assert await known.resolver.candidates(A, "10.0.0.9:7443") == [
        AddressCandidate("10.0.0.2:7444", "nearby"),
        AddressCandidate("10.0.0.1:7443", "nearby"),
        AddressCandidate("[fe80::1%2]:7443", "nearby"),
        AddressCandidate("10.0.0.9:7443", "last address"),
        AddressCandidate("known:7443", "list"),
        AddressCandidate("listed:7443", "list"),
        AddressCandidate("from-environment:7443", "list"),
        AddressCandidate("typed:7443", "typed"),
    ]
    assert [entry.url for entry in await known.resolver.legacy()] == ["http://legacy:7071"]


async def test_address_of_two_sources_is_given_once(path: Path) -> None:
    known = KnownAddresses(path, ["https://10.0.0.1:7443"])
    known.saw("10.0.0.1", at=1)
    assert await known.resolver.candidates(A, "10.0.0.1:7443") == [
        AddressCandidate("10.0.0.1:7443", "nearby")
    ]


async def test_what_turned_out_to_be_another_machine_is_left_out(path: Path) -> None:
    known = KnownAddresses(path, ["https://one:7443", "https://two:7443"])
    known.resolver.learn("one:7443", B)
    assert await known.resolver.candidates(A) == [AddressCandidate("two:7443", "list")]
    assert [one.address for one in await known.resolver.candidates(B)] == ["one:7443", "two:7443"]
    known.resolver.learn("one:7443", "")
    assert [one.address for one in await known.resolver.candidates(A)] == ["one:7443", "two:7443"]


async def test_a_damaged_last_address_is_passed_over(path: Path) -> None:
    assert await KnownAddresses(path, []).resolver.candidates(A, "no address at all") == []


async def test_a_long_list_is_cut_short(path: Path) -> None:
    known = KnownAddresses(path, [f"https://machine{number}:7443" for number in range(500)])
    known.saw("10.0.0.1", at=1)
    found = await known.resolver.candidates(A)
    assert len(found) == MOST_CANDIDATES
    assert found[0].source == "nearby"


async def test_each_source_reports_its_state(path: Path) -> None:
    known = KnownAddresses(path, ["https://a", {"url": "b", "typed": True}, 7])
    known.saw("10.0.0.1", at=1)
    known.saw("10.0.0.2", at=2)
    known.nearby.trouble = "No network connection."
    known.resolver.remember({A: "10.0.0.1:7443", B: ""})
    assert [(one.source, one.found, one.trouble) for one in await known.resolver.sources()] == [
        ("nearby", 1, "No network connection."),
        ("last address", 1, ""),
        ("list", 1, "peers.json: entry 2 has no URL."),
        ("typed", 1, ""),
    ]


async def test_address_source_is_reported_for_each_peer(path: Path) -> None:
    entries = [
        {"url": "https://typed:7443", "typed": True},
        "https://listed",
        {"url": "b:1", "fingerprint": B},
    ]
    known = KnownAddresses(path, entries, environment="https://from-environment")
    known.saw("10.0.0.1", "fe80::1%2", at=1)
    await known.resolver.candidates(A)
    told = {
        address: known.resolver.reached_by(A, address)
        for address in (
            "10.0.0.1:7443", "[fe80::1%2]:7443", "10.0.0.1:7444", "typed", "listed:7443",
            "from-environment:7443", "b:1", "10.0.0.9:7443", "",
        )
    }  # fmt: skip
    assert list(told.values()) == [
        "nearby", "nearby", "last address", "typed", "list", "list", "last address", "last address", None,
    ]  # fmt: skip
    known.saw("typed", at=2)
    assert known.resolver.reached_by(A, "typed:7443") == "nearby", "the likelier source is told"
