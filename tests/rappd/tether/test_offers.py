"""The fields in place of session descriptions: strict, of the local network alone, with one certificate for all readers."""

from __future__ import annotations

import json
from ipaddress import IPv6Network
from typing import Any

import pytest
from aiortc.sdp import SessionDescription
from hypothesis import given
from hypothesis import strategies as st

from neighborhoods.auth.allowed_networks import LocalNetworks
from rappd.tether.connection_offer import read_offer
from rappd.tether.errors import BadOfferError
from rappd.tether.webrtc_parameters import checked, description, reachable
from tests.rappd.tether.hostile_fields import BREAKS, GOOD, PHONE, TEXTS, hostile, placed

NAMED = {
    **GOOD,
    "candidates": [{**GOOD["candidates"][0], "address": "3c1d-4e.local"}, *GOOD["candidates"]],
}
COMMIT = "A" * 43
HOSTILE = hostile()


def addresses(fields: dict[str, Any], client: str) -> list[str]:
    return [one.address for one in reachable(checked(fields), client).candidates]


def prints(text: str) -> list[tuple[str, str]]:
    """All certificates that the library finds in a description."""
    read = SessionDescription.parse(text)
    assert [media.kind for media in read.media] == ["application"]
    return [(one.algorithm, one.value) for media in read.media for one in media.dtls.fingerprints]


def test_offer_is_described_with_its_one_certificate() -> None:
    fields = checked({**GOOD, "fingerprint": PHONE.lower()})
    text = description(fields)
    assert fields.print == bytes([0xAB] * 32)
    assert prints(text) == [("sha-256", PHONE)] and text.count("fingerprint") == 1
    read = SessionDescription.parse(text).media[0]
    assert (read.ice.usernameFragment, read.ice.password, read.dtls.role) == (
        GOOD["ufrag"],
        GOOD["pwd"],
        "client",
    )
    assert [(one.ip, one.port) for one in read.ice_candidates] == [("192.168.1.20", 50001)]  # fmt: skip


@pytest.mark.parametrize("form", HOSTILE)
def test_offer_of_hostile_fields_is_refused(form: str) -> None:
    with pytest.raises(BadOfferError):
        checked(HOSTILE[form])


@pytest.mark.parametrize(
    ("client", "found"),
    [
        ("192.168.1.31", ["192.168.1.31", "192.168.1.20"]),
        ("::ffff:192.168.1.31", ["192.168.1.31", "192.168.1.20"]),
        ("8.8.8.8", ["192.168.1.20"]),
        ("127.0.0.1", ["192.168.1.20"]),
        ("fe80::1%eth0", ["192.168.1.20"]),
        ("", ["192.168.1.20"]),
    ],
)
def test_offer_names_become_the_clients_local_address(client: str, found: list[str]) -> None:
    assert addresses(NAMED, client) == found


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "8.8.8.8", "0.0.0.0", "224.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::1", "::", "2001:4860::1",
     "192.168.1", "192.168.001.020", "1.2.3.4.5", ":::", "ffff"],
)  # fmt: skip
def test_offer_candidates_outside_the_local_network_are_dropped(address: str) -> None:
    assert addresses(placed(NAMED, address=address), "10.0.0.5") == ["192.168.1.20"]


@pytest.mark.parametrize(
    ("client", "found"),
    [("2001:470:1::7", ["2001:470:1::7", "192.168.1.20"]), ("2001:470:2::7", ["192.168.1.20"])],
)
def test_offer_of_a_phone_in_an_own_ipv6_network_leads_there(client: str, found: list[str]) -> None:
    own = LocalNetworks((), lambda: (IPv6Network("2001:470:1::/64"),))
    assert [one.address for one in reachable(checked(NAMED), client, own.holds).candidates] == found
    there = placed(NAMED, address=client)
    assert [one.address for one in reachable(checked(there), "", own.holds).candidates] == found


def test_offer_addresses_have_one_form() -> None:
    assert addresses(placed(GOOD, address="FD00:0:0::0002"), "") == ["fd00::2"]


@pytest.mark.parametrize(
    "body",
    [
        {}, {"commit": COMMIT}, {"transport": GOOD}, {"commit": COMMIT, "transport": GOOD, "sdp": "v=0"},
        {"commit": COMMIT + "\n", "transport": GOOD}, {"commit": COMMIT[:-1], "transport": GOOD},
        {"commit": COMMIT, "transport": GOOD, "window": "w", "device": "ab"},
        {"commit": COMMIT, "transport": GOOD, "window": ["w"]}, {"commit": COMMIT, "transport": GOOD, "device": None},
        {"commit": COMMIT, "transport": GOOD, "device": "ab\n"}, {"commit": COMMIT, "transport": [GOOD]},
        {"commit": COMMIT, "transport": None}, {"commit": COMMIT, "transport": "v=0"},
    ],
)  # fmt: skip
def test_offer_that_is_no_data_channel_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(BadOfferError):
        read_offer(body, transport=True)


def test_offer_over_a_websocket_has_no_transport() -> None:
    assert read_offer({"commit": COMMIT, "device": "ab"}, transport=False).transport is None
    with pytest.raises(BadOfferError):
        read_offer({"commit": COMMIT, "transport": GOOD}, transport=False)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
pieces = st.sampled_from(
    [
        PHONE,
        "a=fingerprint:sha-256 ",
        "active",
        "p" * 22,
        "aB+/",
        "x.local",
        "fe80::1",
        "%",
        "10.0.0.1",
        *BREAKS,
    ]
)
texts = st.lists(pieces | st.text(max_size=6), max_size=4).map("".join)


@given(
    st.dictionaries(
        st.sampled_from([*GOOD, "sdp"]),
        anything
        | texts
        | st.lists(
            st.fixed_dictionaries({"address": texts, "port": st.integers(), "priority": st.integers()}),
            max_size=3,
        ),
    ),
    st.sampled_from([*TEXTS, "candidates", ""]),
)
def test_any_fields_are_refused_or_described_with_their_one_certificate(
    found: dict[str, Any], kept: str
) -> None:
    fields = {**GOOD, kept: found.get(kept, GOOD.get(kept))} if kept else found
    try:
        read = checked(json.loads(json.dumps(fields)))
    except BadOfferError:
        return
    text = description(reachable(read, "10.0.0.5"))
    assert prints(text) == [("sha-256", read.print.hex(":").upper())]
    assert text.isascii() and text.count("fingerprint") == 1 and text.splitlines() == text.split("\r\n")[:-1]
