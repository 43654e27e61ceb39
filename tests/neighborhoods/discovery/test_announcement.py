"""Announcements tell nothing private; those of strangers are read without harm."""

from __future__ import annotations

import socket
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighborhoods.discovery.announcement import Announcement, read, tame

ID = "ab" * 32


def announced(**changed: str | None) -> dict[bytes, bytes | None]:
    fields: dict[str, str | None] = {"v": "1", "id": ID, "name": "pi", "port": "7443", **changed}
    return {key.encode(): None if value is None else value.encode() for key, value in fields.items()}


def test_the_announcement_is_the_published_shape() -> None:
    mine = Announcement("pi", ID, 7443)
    assert mine.instance == f"pi_{ID[:16]}._rappd._tcp.local."
    assert mine.server == f"{ID[:12]}.local."
    assert mine.properties() == {"v": "1", "id": ID, "name": "pi", "port": "7443"}
    assert socket.gethostname() not in mine.server


def test_as_an_a2a_agent_it_says_where_its_card_is() -> None:
    told = Announcement("pi", ID, 7443, a2a=True).card_properties
    assert told == {"v": "1", "path": "/.well-known/agent-card.json", "version": "1.0", "id": ID}


@given(st.text(max_size=300))
def test_any_name_makes_an_instance_that_dns_can_carry(name: str) -> None:
    mine = Announcement(name, ID, 7443)
    label = mine.instance.removesuffix("._rappd._tcp.local.")
    assert len((label + "-99").encode()) <= 63
    assert "." not in label
    assert all(len(f"{key}={value}".encode()) <= 255 for key, value in mine.properties().items())


def test_a_sighting_is_what_was_announced() -> None:
    found = read(announced(), 7443, ["fe80::1%2", "10.0.0.1", "10.0.0.1", "127.0.0.1"], at=5)
    assert found is not None
    assert (found.fingerprint, found.name, found.port, found.source, found.at) == (
        ID,
        "pi",
        7443,
        "nearby",
        5,
    )
    assert found.addresses == ("10.0.0.1", "fe80::1%2")


@pytest.mark.parametrize(
    "changed",
    [{"v": "2"}, {"v": None}, {"v": "1 "}, {"id": ID.upper()}, {"id": ID + "a"}, {"id": ""}, {"id": None}],
)
def test_what_is_not_ours_is_no_sighting(changed: dict[str, str | None]) -> None:
    assert read(announced(**changed), 7443, ["10.0.0.1"], at=0) is None


def test_ports_are_checked() -> None:
    assert read(announced(port="0"), 1, ["10.0.0.1"], at=0).port == 1  # type: ignore[union-attr]
    assert read(announced(port="70000"), 7443, ["10.0.0.1"], at=0) is None
    assert read(announced(port="٧٤٤٣"), None, ["10.0.0.1"], at=0) is None
    assert read(announced(port="x"), 0, ["10.0.0.1"], at=0) is None


def test_the_former_key_of_the_port_is_read_where_the_new_one_is_missing() -> None:
    former = read(announced(port=None, door="7444"), 1, ["10.0.0.1"], at=0)
    both = read(announced(port="7443", door="7444"), 1, ["10.0.0.1"], at=0)
    assert former is not None and both is not None
    assert (former.port, both.port) == (7444, 7443)


def test_without_an_address_that_leads_somewhere_it_is_none() -> None:
    assert read(announced(), 7443, ["127.0.0.1", "fe80::1", "224.0.0.1"], at=0) is None
    assert read(announced(), 7443, ["127.0.0.1"], at=0, loopback=True) is not None


def test_many_addresses_are_cut_short() -> None:
    found = read(announced(), 7443, [f"10.0.{n // 256}.{n % 256}" for n in range(3000)], at=0)
    assert found is not None
    assert len(found.addresses) == 16


@given(
    st.dictionaries(
        st.sampled_from([b"v", b"id", b"name", b"port", b"door"]) | st.binary(max_size=8),
        st.none() | st.binary(max_size=300) | st.sampled_from([b"1", ID.encode(), b"7443"]),
    ),
    st.none() | st.integers(-1, 70000),
    st.lists(st.ip_addresses().map(str) | st.text(max_size=12), max_size=20),
)
def test_nothing_that_is_announced_can_raise(
    properties: dict[bytes, bytes | None], port: int | None, addresses: list[str]
) -> None:
    found = read(properties, port, addresses, at=0)
    if found is not None:
        assert found.name.isprintable()
        assert 1 <= found.port <= 65535


@given(st.text(max_size=500))
def test_names_are_harmless(name: str) -> None:
    tamed = tame(name)
    assert tamed.isprintable()
    assert not set(tamed) & set("<>[]`")
    assert len(tamed) <= 63
    assert tame(tamed) == tamed


def test_names_keep_what_people_write() -> None:
    assert tame("Zoë's 厨房") == "Zoë's 厨房"
    assert tame(unicodedata.normalize("NFD", "Zoë")) == "Zoë"
    assert tame("a\x1b[31mb\u202ec\nd") == "a 31mb c d"
    assert len(tame("Z" + "\u0336" * 50)) == 3
