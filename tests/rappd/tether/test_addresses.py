"""Addresses in links for phones."""

from __future__ import annotations

import pytest

from neighborhoods.discovery.interfaces import Interface
from rappd.tether import addresses
from rappd.tether.addresses import one_of_each_network, reachable_addresses

LINKS = (
    Interface("tun0", 3, ("10.8.0.2", "2001:470:9::2")),
    Interface("eth0", 2, ("192.168.1.12", "2001:470:1::12", "fd77::12", "fe80::12")),
)
FOUR = ["192.168.1.12:7072", "10.8.0.2:7072"]
SIX = ["[2001:470:1::12]:7072", "[fd77::12]:7072", "[2001:470:9::2]:7072"]
BOTH = [FOUR[0], SIX[0], FOUR[1], *SIX[1:]]


@pytest.mark.parametrize(
    ("listening", "shown"),
    [
        (("0.0.0.0", "::"), BOTH),
        (("0.0.0.0",), FOUR),
        (("::",), SIX),
        (("192.168.1.12",), FOUR[:1]),
        (("fd77::12",), SIX[1:2]),
        ((), []),
    ],
)
def test_only_addresses_that_are_listened_on_are_shown(
    monkeypatch: pytest.MonkeyPatch, listening: tuple[str, ...], shown: list[str]
) -> None:
    monkeypatch.setattr(addresses, "interfaces", lambda: LINKS)
    ways = {"192.0.2.1": "192.168.1.12", "2001:db8::1": "2001:470:1::12"}
    monkeypatch.setattr(addresses, "_default_route", lambda _, far: ways[far])
    assert reachable_addresses(listening, 7072) == shown


def test_an_ipv6_address_of_the_default_route_goes_before_a_container(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links = (Interface("docker0", 2, ("172.17.0.1",)), Interface("eth0", 3, ("fd77::12",)))
    monkeypatch.setattr(addresses, "interfaces", lambda: links)
    monkeypatch.setattr(addresses, "_default_route", lambda _, far: "fd77::12" if ":" in far else "")
    assert reachable_addresses(("0.0.0.0", "::"), 1) == ["[fd77::12]:1", "172.17.0.1:1"]


def test_links_show_one_address_of_each_ipv6_network() -> None:
    every = ["10.0.0.1:1", "[2001:470:1::5]:1", "10.0.0.2:1", "[2001:470:1::6]:1", "[fd77::5]:1"]
    assert one_of_each_network(every) == ["10.0.0.1:1", "[2001:470:1::5]:1", "10.0.0.2:1", "[fd77::5]:1"]
