"""Addresses as people write them and as announcements claim them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighborhoods.discovery.address_text import (
    BadAddressError,
    is_listened_on,
    is_loopback,
    join,
    kind_of,
    leads_somewhere,
    preference,
    split,
)


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("192.168.1.12", "192.168.1.12", 7443),
        (" 192.168.1.12:8000 ", "192.168.1.12", 8000),
        ("Pi.Local", "pi.local", 7443),
        ("pi:1", "pi", 1),
        ("[fe80::1%eth0]:7443", "fe80::1%eth0", 7443),
        ("FE80::1%Lan0P1", "fe80::1%Lan0P1", 7443),
        ("fe80::1%25", "fe80::1%25", 7443),
        ("[2001:db8::1]", "2001:db8::1", 7443),
        ("2001:db8::1", "2001:db8::1", 7443),
        ("my_host-2.lan.", "my_host-2.lan.", 7443),
    ],
)
def test_what_people_write_is_understood(written: str, host: str, port: int) -> None:
    assert split(written) == (host, port)


@pytest.mark.parametrize(
    "written",
    ["", " ", ":7443", "pi:", "pi:0", "pi:65536", "pi:x", "a b", "user@pi", "pi/x", "[::1", "[pi]:1", "::x", "é.lan",
     "-pi", "a..b", "x" * 64, "a." * 130, "pi\n:1", "[fe80::1]x",
     "fe80::1%", "fe80::1%a b", "fe80::1%$(id)", "fe80::1%a%b", "fe80::1%e\nth0", "fe80::1%" + "x" * 16],
)  # fmt: skip
def test_what_is_no_address_is_said_to_be_none(written: str) -> None:
    with pytest.raises(BadAddressError) as refused:
        split(written)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)


@given(st.ip_addresses().map(str), st.integers(1, 65535))
def test_ip_addresses_go_there_and_back(host: str, port: int) -> None:
    assert split(join(host, port)) == (host, port)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        host, port = split(text)
    except BadAddressError:
        return
    assert split(join(host, port)) == (host, port)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
    ],
)
def test_this_machine_by_any_name_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["pi.local", "10.0.0.1", "fe80::1", "localhost.example"])
def test_others_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "leads"),
    [
        ("192.168.1.2", True),
        ("169.254.3.4", True),
        ("2001:db8::2", True),
        ("fe80::2%3", True),
        ("fe80::2", False),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.251", False),
        ("255.255.255.255", False),
        ("ff02::fb", False),
        ("::ffff:10.0.0.1", False),
        ("pi.local", False),
    ],
)
def test_announced_addresses_that_lead_nowhere_are_known(host: str, leads: bool) -> None:
    assert leads_somewhere(host) == leads


@pytest.mark.parametrize(
    ("host", "listening", "taken"),
    [
        ("192.168.1.2", ("0.0.0.0", "::"), True),
        ("fd77::2", ("0.0.0.0", "::"), True),
        ("fd77::2", ("0.0.0.0",), False),
        ("192.168.1.2", ("::",), False),
        ("2002:c0a8:102::1", ("0.0.0.0",), False),
        ("192.168.1.2", ("192.168.1.2",), True),
        ("192.168.1.3", ("192.168.1.2",), False),
        ("fe80::2", ("fe80::2%eth0",), True),
        ("192.168.1.2", ("127.0.0.1",), False),
        ("192.168.1.2", (), False),
    ],
)
def test_own_address_is_known_to_be_listened_on_or_not(
    host: str, listening: tuple[str, ...], taken: bool
) -> None:
    assert is_listened_on(host, listening) is taken


def test_loopback_leads_somewhere_only_on_request() -> None:
    assert leads_somewhere("127.0.0.1", loopback=True)
    assert not leads_somewhere("0.0.0.0", loopback=True)


def test_the_likeliest_address_goes_first() -> None:
    hosts = ["fe80::1%2", "169.254.1.1", "2001:db8::1", "10.0.0.1"]
    assert sorted(hosts, key=preference) == ["10.0.0.1", "2001:db8::1", "169.254.1.1", "fe80::1%2"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://pi", "machine"),
        ("https://pi:7443/", "machine"),
        ("http://pi:7071", "brainstem"),
        ("https://cloud.example/api/businessinsightbot_function", "tier2"),
        ("http://pi:7071/api/businessinsightbot_function", "tier2"),
        ("https://tea.example/.well-known/agent-card.json", "agent"),
        ("http://127.0.0.1:9000/agents/tea/agent-card.json", "agent"),
        ("https://tea.example/.well-known/agent.json", "agent"),
    ],
)
def test_the_form_of_a_url_says_what_is_there(url: str, kind: str) -> None:
    assert kind_of(url) == kind


@pytest.mark.parametrize(
    "url",
    [
        "http://pi:7071/chat",
        "https://pi/api/a/b",
        "https://pi/api/",
        "https://pi/agent-card.json?x=1",
        "https://pi/agent-card.json#x",
        "file:///agent-card.json",
        "http://[",
    ],
)
def test_any_other_form_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|names|holds) "):
        kind_of(url)
