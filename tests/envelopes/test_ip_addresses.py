"""Addresses however they are written, as what they lead to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.urls import on_this_machine
from envelopes.ip_addresses import counts_as, dialled_text, is_this_machine, source_text
from neighborhoods.discovery.address_text import is_loopback, leads_somewhere
from neighborhoods.pairing.code_pairing import _source
from rappd.errors import RefusedError
from rappd.listeners.legacy_listener import network

LOOPBACK = [
    "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:7f00:0001", "[::1]",
    "::1%lo", "::ffff:127.0.0.1%lo", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::7f00:1",
    "2002:7f00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "127.1", "0x7f.1", "0177.0.0.1", "2130706433",
    "127.0.0.1.",
]  # fmt: skip
NO_MACHINE = ["0.0.0.0", "::", "::ffff:0.0.0.0", "::%lo", "0", "0.1", "64:ff9b::", "2002::"]
NAMES = ["localhost", "LOCALHOST.", "a.localhost", "ip6-localhost"]
OTHERS = [
    "10.0.0.1",
    "::ffff:10.0.0.1",
    "fe80::1%eth0",
    "2001:db8::1",
    "pi.local",
    "localhost.example",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("host", [*LOOPBACK, *NO_MACHINE, *NAMES])
def test_this_machine_is_known_by_each_rule(host: str) -> None:
    assert is_this_machine(host)
    assert is_loopback(host)
    assert not leads_somewhere(host)
    if "%" not in host and not host.startswith("["):
        assert on_this_machine(f"http://[{host}]:1/v1" if ":" in host else f"http://{host}:1/v1")


@pytest.mark.parametrize("host", OTHERS)
def test_other_machines_are_others(host: str) -> None:
    assert not is_this_machine(host)
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("written", "leads_to"),
    [
        ("::ffff:192.168.1.20", "192.168.1.20"), ("fe80::1%eth0", "fe80::1"), ("64:ff9b::c0a8:114", "192.168.1.20"),
        ("2002:c0a8:114::5", "192.168.1.20"), ("2001:db8::1", "2001:db8::1"), ("::1", "::1"), ("::", "::"),
        ("::ffff:192.168.1.20%eth0", "192.168.1.20"), ("192.168.276", "192.168.1.20"),
    ],
)  # fmt: skip
def test_address_counts_as_what_it_leads_to(written: str, leads_to: str) -> None:
    assert counts_as(written) == ip_address(leads_to)
    assert source_text(written) == leads_to


@pytest.mark.parametrize("written", ["2002:c0a8:114::5", "64:ff9b::c0a8:114", "::192.168.1.20"])
def test_rule_that_allows_leaves_tunnels_what_they_are(written: str) -> None:
    assert counts_as(written, translated=False) == ip_address(written)
    assert counts_as("::ffff:192.168.1.20", translated=False) == ip_address("192.168.1.20")


@pytest.mark.parametrize(
    "text", ["", "pi", "1.2.3.4.5", "256.1.1.1", "1..2", "08", "0x", "4294967296", "-1", "1" * 70]
)
def test_what_is_no_address_stays_a_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"IP address|invalid literal"):
        counts_as(text)
    assert source_text(text) == text


@given(st.ip_addresses(v=4))
def test_every_wrapping_of_an_ipv4_address_is_that_address(address: object) -> None:
    number = int(address)  # type: ignore[call-overload]
    high, low = number >> 16, number & 0xFFFF
    for written in (f"::ffff:{address}", f"64:ff9b::{address}", f"2002:{high:x}:{low:x}::1", f"{number}"):
        assert counts_as(written) == address


def test_pairing_counts_a_machine_once_however_it_comes() -> None:
    assert {_source(host) for host in LOOPBACK} == {"loopback"}
    assert _source("::ffff:10.0.0.9") == _source("10.0.0.9")
    assert _source("fe80::1%eth0") == _source("fe80::1%eth1")


def test_address_to_call_back_keeps_its_link() -> None:
    assert dialled_text("::ffff:10.0.0.9") == "10.0.0.9"
    assert dialled_text("fe80::1%eth0") == "fe80::1%eth0"
    assert dialled_text("pi") == "pi"


@pytest.mark.parametrize(
    "text", ["::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::/48", "::ffff:0.0.0.0", "::1"]
)
def test_legacy_listener_lists_no_form_of_this_machine(text: str) -> None:
    with pytest.raises(RefusedError):
        network(text)


def test_legacy_listener_lists_a_mapped_address_as_what_it_is() -> None:
    assert str(network("::ffff:192.168.1.20")) == "192.168.1.20/32"
    assert str(network("::ffff:192.168.1.0/120")) == "192.168.1.0/24"
    with pytest.raises(RefusedError):
        network("::ffff:192.168.0.0/104")
