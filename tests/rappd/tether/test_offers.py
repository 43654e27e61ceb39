"""Session descriptions of phones: one data channel, no name to look up, one certificate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.tether import sdp
from rappd.tether.errors import BadOfferError

PRINT = ":".join(["AB"] * 32)
OFFER = "\r\n".join(
    [
        "v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        "c=IN IP4 0.0.0.0", "a=candidate:1 1 udp 2113937151 3c1d-4e.local 50000 typ host generation 0",
        "a=candidate:2 1 udp 2113937151 192.168.1.20 50001 typ host", f"a=fingerprint:sha-256 {PRINT}", "a=mid:0", "",
    ]
)  # fmt: skip


def candidates(offer: str) -> list[str]:
    return [line.split(" ")[4] for line in offer.splitlines() if line.startswith("a=candidate:")]


@pytest.mark.parametrize(
    ("client", "found"),
    [
        ("192.168.1.31", ["192.168.1.31", "192.168.1.20"]),
        ("8.8.8.8", ["192.168.1.20"]),
        ("127.0.0.1", ["192.168.1.20"]),
    ],
)
def test_offer_names_become_the_clients_local_address(client: str, found: list[str]) -> None:
    assert candidates(sdp.checked_offer(OFFER, client)) == found


@pytest.mark.parametrize("address", ["127.0.0.1", "8.8.8.8", "0.0.0.0", "224.0.0.1", "example.org"])
def test_offer_candidates_outside_the_local_network_are_dropped(address: str) -> None:
    assert candidates(sdp.checked_offer(OFFER.replace("192.168.1.20", address), "10.0.0.5")) == ["10.0.0.5"]


@pytest.mark.parametrize(
    "offer",
    [
        None, 5, "", OFFER + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n", OFFER.replace("m=application", "m=video"),
        OFFER + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", OFFER + "a=" + "x" * sdp.MOST_BYTES,
    ],
)  # fmt: skip
def test_offer_that_is_no_data_channel_is_refused(offer: object) -> None:
    with pytest.raises(BadOfferError):
        sdp.checked_offer(offer, "10.0.0.5")


def test_offer_fingerprint_is_the_only_one() -> None:
    assert sdp.fingerprint(OFFER) == bytes([0xAB] * 32)
    for other in (
        OFFER.replace("a=fingerprint", "a=other"),
        OFFER + f"a=fingerprint:sha-256 {PRINT.replace('AB', 'CD')}\r\n",
    ):
        with pytest.raises(BadOfferError):
            sdp.fingerprint(other)


@given(st.text(max_size=400))
def test_offer_of_any_text_is_refused_or_mended(text: str) -> None:
    try:
        sdp.checked_offer(text, "10.0.0.5")
    except BadOfferError:
        return
