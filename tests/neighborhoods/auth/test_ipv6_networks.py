"""From where callers with global IPv6 addresses may come in."""

from __future__ import annotations

from ipaddress import IPv6Network, ip_address
from types import SimpleNamespace

import pytest

from neighborhoods.auth import allowed_networks
from neighborhoods.auth.allowed_networks import (
    LocalNetworks,
    ipv6_network,
    on_link,
    own_network,
    own_networks,
)

OWN = (IPv6Network("2001:470:1::/64"),)


@pytest.mark.parametrize(
    ("source", "admitted"),
    [
        ("192.168.1.20", True),
        ("203.0.113.7", True),  # IPv4 is let in as it always was
        ("::ffff:203.0.113.7", True),
        ("::1", True),
        ("fe80::1%eth0", True),
        ("fd12:3456::9", True),
        ("2001:470:1::77", True),
        ("2001:470:1:0:ffff::1", True),
        ("2001:470:1:1::77", False),
        ("2001:470:5:9::1", True),  # named
        ("2001:470:6::1", False),
        ("2001:db8::1", False),
        ("2002:c0a8:114::1", False),  # 6to4: anybody's, whatever IPv4 address it carries
        ("64:ff9b::c0a8:114", False),
        ("2001:0:c0a8:114::1", False),
        ("::192.168.1.20", False),
        ("fec0::1", False),
        ("pi.local", False),
        ("", False),
    ],
)
def test_global_ipv6_callers_are_admitted_from_own_and_named_networks_alone(
    source: str, admitted: bool
) -> None:
    networks = LocalNetworks(["2001:470:5::/48"], lambda: OWN)
    assert networks.admits(source) is admitted


def test_a_network_that_this_machine_joins_is_own_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    now, own = [100.0], [OWN]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    networks = LocalNetworks((), lambda: own[0])
    assert networks.admits("2001:470:1::77") and not networks.admits("2001:470:9::1")
    own[0] = (IPv6Network("2001:470:9::/64"),)
    now[0] += 3
    assert networks.admits("2001:470:9::1") and not networks.admits("2001:470:1::77")


def test_ipv4_addresses_are_of_no_such_network() -> None:
    assert not LocalNetworks((), lambda: OWN).holds(ip_address("203.0.113.7"))


@pytest.mark.parametrize(
    ("address", "prefix", "network"),
    [
        ("2001:470:1::5", 64, "2001:470:1::/64"),
        ("2001:470:1::5", 128, "2001:470:1::5/128"),
        ("fe80::5%eth0", 64, "fe80::/64"),
        ("2002:c000:204::1", 16, "2002:c000:204::/48"),  # as sit0 has it: not everybody with 6to4
    ],
)
def test_own_network_is_never_more_than_a_site(address: str, prefix: int, network: str) -> None:
    assert own_network(address, prefix) == IPv6Network(network)


def test_network_of_a_tunnel_that_everybody_shares_is_not_own(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [("2001:470:1::5", 64), ("2001:0:c000:204::1", 32), ("2001:0:c000:204::1", 128)]
    ips = [SimpleNamespace(ip=(address, 0, 0), network_prefix=prefix) for address, prefix in addresses]
    ips.append(SimpleNamespace(ip="192.168.1.20", network_prefix=24))
    monkeypatch.setattr("ifaddr.get_adapters", lambda: [SimpleNamespace(ips=ips)])
    monkeypatch.setattr(allowed_networks, "on_link", lambda table: [])
    assert own_networks() == OWN, "Teredo's is all the world's"


ROUTES = """\
20010470000100000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
20010470000200000000000000000000 40 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000100 00000001 00000000 00000003     eth0
20010470000300000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00200200       lo
20000000000000000000000000000000 03 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     tun0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     ppp0
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
"""  # fmt: skip


def test_networks_on_the_link_are_read_and_none_behind_a_router_or_a_vpn() -> None:
    assert on_link(ROUTES) == [IPv6Network("2001:470:1::/64")]


@pytest.mark.parametrize("text", ["::/0", "2000::/3", "2001::/31", "10.0.0.0/8", "x", "fe80::1%eth0/64", ""])
def test_what_is_no_network_or_half_the_world_cannot_be_named(text: str) -> None:
    with pytest.raises(ValueError):
        ipv6_network(text)
