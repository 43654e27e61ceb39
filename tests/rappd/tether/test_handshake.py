"""The host's side of the handshake as a state table: what each frame leads to in each state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from rappd.tether import proofs
from rappd.tether.handshake import Accept, Action, Ask, End, Handshake, HostProof, Send
from rappd.tether.proofs import Parts
from tests.rappd.tether.phone_client import signed_with

TOKEN, CODE, NONCE = bytes([5] * 16), bytes([6] * 32), bytes([4] * 16)
PARTS = Parts("window", bytes([1] * 32), bytes([2] * 32), bytes([3] * 16), b"", b"host key")
HOST = HostProof(lambda digest: b"signed " + digest, b"certificate")


def handshake(verified: bytes = PARTS.guest_print, **more: Any) -> Handshake:
    made = Handshake(PARTS, proofs.commitment(NONCE), (TOKEN, CODE), HOST, **more)
    assert made.on_open(verified) == []
    return made


def auth(
    key: bytes = TOKEN, *, nonce: bytes = NONCE, parts: Parts = PARTS, name: object = "Phone"
) -> dict[str, Any]:
    digest = replace(parts, guest_nonce=nonce).digest()
    mac = proofs.proof(key, "guest", digest)
    return {"type": "auth", "nonce": proofs.b64(nonce), "mac": proofs.b64(mac), "name": name}


def ends(actions: list[Action]) -> str:
    assert isinstance(actions[-1], End)
    return actions[-1].reason


def sent(actions: list[Action]) -> list[dict[str, Any]]:
    return [one.frame for one in actions if isinstance(one, Send)]


@pytest.mark.parametrize("key", [TOKEN, CODE], ids=["scanned", "typed"])
def test_handshake_proves_the_host_and_asks_for_the_digits(key: bytes) -> None:
    actions = handshake().on_frame(auth(key))
    digest = replace(PARTS, guest_nonce=NONCE).digest()
    answer = sent(actions)[0]
    assert answer["type"] == "auth_ok"
    assert proofs.unb64(answer["mac"]) == proofs.proof(key, "host", digest)
    assert proofs.unb64(answer["signature"]) == b"signed " + digest
    assert actions[1:] == [Ask(proofs.six_digits(digest), "Phone")]


@pytest.mark.parametrize("first", ["phone", "operator"])
def test_handshake_accepts_only_when_both_sides_agree(first: str) -> None:
    made = handshake()
    made.on_frame(auth())
    steps = [lambda: made.on_frame({"type": "confirm", "same": True}), lambda: made.on_operator(True)]
    if first == "operator":
        steps.reverse()
    assert steps[0]() == []
    assert made.state == "compare"
    assert steps[1]() == [Accept("Phone")]
    assert made.state == "done"


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (auth(bytes(16)), "bad_proof"),
        (auth(parts=replace(PARTS, guest_print=bytes(32))), "bad_proof"),
        (auth(parts=replace(PARTS, host_print=bytes(32))), "bad_proof"),
        (auth(nonce=bytes(16)), "differs"),
        ({"type": "auth"}, "protocol"),
        ({"type": "auth", "nonce": proofs.b64(NONCE), "mac": 5}, "protocol"),
        ({"type": "auth", "nonce": proofs.b64(NONCE)}, "protocol"),
        ({**auth(), "mac": ""}, "bad_proof"),
        ({"type": "confirm", "same": True}, "protocol"),
        ({"type": "say", "event_id": "x", "text": "hi"}, "protocol"),
        ({"type": "hello", "last_seq": 0}, "protocol"),
        ({}, "protocol"),
        ({"type": ["auth"]}, "protocol"),
        ({"type": "bye"}, "left"),
    ],
)
def test_handshake_without_proof_ends(frame: dict[str, Any], reason: str) -> None:
    made = handshake()
    assert ends(made.on_frame(frame)) == reason
    assert made.on_frame(auth()) == []
    assert made.on_operator(True) == []


@pytest.mark.parametrize("frame", [{"type": "say"}, {"type": "hello"}, auth(), {"type": "unheard"}])
def test_handshake_takes_no_event_before_confirmation(frame: dict[str, Any]) -> None:
    made = handshake()
    made.on_frame(auth())
    made.on_operator(True)
    assert ends(made.on_frame(frame)) == "protocol"


@pytest.mark.parametrize("same", [False, None, "true", 1])
def test_handshake_one_no_of_the_phone_ends(same: object) -> None:
    made = handshake()
    made.on_frame(auth())
    made.on_operator(True)
    assert ends(made.on_frame({"type": "confirm", "same": same})) == "differs"


def test_handshake_one_no_of_the_operator_ends_and_tells_the_phone() -> None:
    made = handshake()
    made.on_frame(auth())
    made.on_frame({"type": "confirm", "same": True})
    actions = made.on_operator(False)
    assert sent(actions) == [{"type": "stopped", "reason": "differs"}]
    assert ends(actions) == "differs"


def test_handshake_ends_when_the_window_closes() -> None:
    made = handshake()
    made.on_frame(auth())
    assert ends(made.on_timeout()) == "late"
    assert made.on_timeout() == []


OTHER = bytes([9] * 32)


@pytest.mark.parametrize("resumes", [False, True], ids=["pairing", "resuming"])
@pytest.mark.parametrize("verified", [OTHER, b"", PARTS.host_print])
def test_handshake_ends_where_dtls_verified_another_certificate(verified: bytes, resumes: bool) -> None:
    registered = PARTS.guest_print if resumes else b""
    made = Handshake(PARTS, proofs.commitment(NONCE), (TOKEN,), HOST, resumes=resumes, registered=registered)
    actions = made.on_open(verified)
    assert sent(actions) == [{"type": "stopped", "reason": "differs"}] and ends(actions) == "certificate"
    assert (
        made.on_frame(auth()) == [] and made.on_frame(auth(parts=replace(PARTS, guest_print=verified))) == []
    )


def test_handshake_of_a_device_needs_the_registered_certificate_whatever_was_offered() -> None:
    parts = replace(PARTS, guest_print=OTHER)
    made = Handshake(
        parts, proofs.commitment(NONCE), (TOKEN,), HOST, resumes=True, registered=PARTS.guest_print
    )
    assert ends(made.on_open(OTHER)) == "certificate"
    assert made.on_frame(auth(parts=parts)) == []


def test_handshake_takes_nothing_before_the_channel_is_open_and_opens_once() -> None:
    made = Handshake(PARTS, proofs.commitment(NONCE), (TOKEN,), HOST, resumes=True)
    assert ends(made.on_frame(auth())) == "protocol"
    assert ends(handshake().on_open(PARTS.guest_print)) == "protocol"


@pytest.mark.parametrize("registered", [PARTS.guest_print, b""], ids=["webrtc", "websocket"])
def test_handshake_of_a_device_needs_its_secret(registered: bytes) -> None:
    assert handshake(resumes=True, registered=registered).on_frame(auth())[-1] == Accept("Phone")
    for frame in ({**auth(), "mac": ""}, auth(bytes(16))):
        actions = handshake(resumes=True, registered=registered).on_frame(frame)
        assert sent(actions) == [{"type": "stopped", "reason": "expired"}] and ends(actions) == "bad_proof"


def signed(digest: bytes, by: ec.EllipticCurvePrivateKey | None = None) -> str:
    return signed_with(by or KEY, digest)["key_signature"]


KEY = ec.generate_private_key(ec.SECP256R1())
POINT = signed_with(KEY, b"")["key"]
DIGEST = replace(PARTS, guest_nonce=NONCE).digest()


def test_handshake_takes_the_key_that_signed_the_digest() -> None:
    made = handshake()
    assert isinstance(made.on_frame({**auth(), "key": POINT, "key_signature": signed(DIGEST)})[-1], Ask)
    assert made.key == POINT
    without = handshake()
    without.on_frame(auth())
    assert without.key == ""


@pytest.mark.parametrize(
    ("key", "signature"),
    [
        (POINT, signed(bytes(32))),
        (POINT, signed(DIGEST, ec.generate_private_key(ec.SECP256R1()))),
        (POINT, proofs.b64(bytes(64))),
        (POINT, ""),
        (POINT, None),
        (POINT[:-2], signed(DIGEST)),
        ("", signed(DIGEST)),
        (5, signed(DIGEST)),
    ],
    ids=["another digest", "another key", "zeros", "empty", "none", "no point", "no key", "a number"],
)
def test_handshake_with_a_key_that_signed_nothing_ends(key: object, signature: object) -> None:
    made = handshake()
    actions = made.on_frame({**auth(), "key": key, "key_signature": signature})
    assert sent(actions) == [{"type": "stopped", "reason": "differs"}] and ends(actions) == "bad_proof"
    assert made.key == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Anna's phone", "Anna's phone"),
        ("a\x1b[31mb\n c", "a[31mb c"),
        ("x" * 99, "x" * 40),
        (5, "phone"),
        ("\u202e", "phone"),
    ],
)
def test_handshake_shows_a_tame_name(name: object, shown: str) -> None:
    actions = handshake().on_frame(auth(name=name))
    assert isinstance(actions[1], Ask)
    assert actions[1].name == shown
