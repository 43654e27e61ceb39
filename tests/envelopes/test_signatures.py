from __future__ import annotations

import copy
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs import wire
from envelopes.codecs.canonical import canonical
from envelopes.envelope import Envelope, agent_id
from envelopes.errors import BadKeyError, BadSignatureError, MalformedError
from envelopes.identity.keys import IdentityKey, fingerprint_of, verify
from envelopes.identity.signatures import sign
from envelopes.identity.signatures import verify as signer_of

KEY, OTHER = IdentityKey.generate(), IdentityKey.generate()
NOW = 1_800_000_000.5
ASKED = Envelope(
    "77f7b6d2-5e44-4a71-9bcb-5ddc21019f24",
    agent_id("brainstem", KEY.fingerprint),
    agent_id("brainstem", OTHER.fingerprint),
    "HELP",
    {
        "prompt": "Fasse zusammen: 0.1, 1.0 und \N{SNOWMAN}",
        "n": [1, 0.1, 2.0, None, True],
        "b": {"z": 0, "a": 1},
    },
    {"_x_thread": "5cd83448-232a-523f-8098-5b4c1915476a", "_x_ours": {"kept": 1}},
)
SIGNED = sign(ASKED, KEY, NOW)


def _with(**changes: Any) -> Envelope:
    """The signed record, its signature changed in these keys."""
    return msgspec.structs.replace(
        SIGNED, extensions={**SIGNED.extensions, "_x_sig": {**SIGNED.extensions["_x_sig"], **changes}}
    )


def _refused(envelope: Envelope, now: float = NOW, **more: Any) -> BadSignatureError:
    with pytest.raises(BadSignatureError) as caught:
        signer_of(envelope, now, **more)
    assert caught.value.status == 401
    return caught.value


def test_the_signature_is_over_the_canonical_record() -> None:
    said = SIGNED.extensions["_x_sig"]
    unsigned = orjson.loads(wire.encode(SIGNED))
    del unsigned["_x_sig"]["s"]
    assert verify(KEY.public, bytes.fromhex(said["s"]), b"rappd/envelope\n" + canonical(unsigned))
    assert {**said, "s": ""} == {
        "alg": "Ed25519",
        "kid": KEY.fingerprint,
        "key": KEY.public.hex(),
        "t": 1_800_000_000,
        "s": "",
    }
    assert msgspec.structs.replace(SIGNED, extensions=ASKED.extensions) == ASKED
    assert "_x_sig" not in ASKED.extensions


def test_signer_is_known_after_transfer() -> None:
    assert signer_of(SIGNED, NOW) == KEY.fingerprint
    assert signer_of(wire.decode(wire.encode(SIGNED)), NOW) == KEY.fingerprint
    shuffled = dict(sorted(orjson.loads(wire.encode(SIGNED)).items(), reverse=True))
    assert signer_of(wire.decode(orjson.dumps(shuffled, option=orjson.OPT_INDENT_2)), NOW) == KEY.fingerprint


def test_signing_again_replaces_the_signature() -> None:
    again = sign(SIGNED, OTHER, NOW + 60)
    assert signer_of(again, NOW + 60) == OTHER.fingerprint
    assert again.extensions["_x_ours"] == {"kept": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "77f7b6d2-5e44-4a71-9bcb-5ddc21019f25"},
        {"id": ASKED.id.upper()},
        {"sender": "brainstem_0000000000000000"},
        {"recipient": "brainstem_0000000000000000"},
        {"recipient": "broadcast"},
        {"verb": "DONE"},
        {"data": {}},
        {"data": {**ASKED.data, "prompt": "Gib alles her"}},
        {"data": {**ASKED.data, "more": None}},
        {"extensions": {**SIGNED.extensions, "_x_thread": "5cd83448-232a-523f-8098-5b4c1915476b"}},
        {"extensions": {**SIGNED.extensions, "_x_cap": "stolen"}},
        {"extensions": {key: SIGNED.extensions[key] for key in ("_x_sig", "_x_thread")}},
    ],
)
def test_anything_changed_breaks_it(changes: dict[str, Any]) -> None:
    assert "not over this record" in str(_refused(msgspec.structs.replace(SIGNED, **changes)))


@pytest.mark.parametrize("seconds", [301, 3600, -301, -1e9, float("nan")])
def test_old_and_future_signatures_are_refused(seconds: float) -> None:
    assert "clock" in _refused(SIGNED, NOW + seconds).do


def test_clocks_may_differ_by_the_window() -> None:
    assert signer_of(SIGNED, NOW + 299) == signer_of(SIGNED, NOW - 300) == KEY.fingerprint
    assert signer_of(SIGNED, NOW + 9, window=10) == KEY.fingerprint
    _refused(SIGNED, NOW + 11, window=10)


@pytest.mark.parametrize(
    "changes",
    [
        {"kid": OTHER.fingerprint},
        {"key": OTHER.public.hex()},
        {"key": OTHER.public.hex(), "kid": OTHER.fingerprint},
        {"s": OTHER.sign(b"anything").hex()},
        {"s": "00" * 64},
        {"alg": "none"},
        {"alg": "ed25519"},
        {"t": str(int(NOW))},
        {"t": NOW},
        {"t": True},
        {"kid": None},
        {"kid": KEY.fingerprint.upper()},
        {"key": KEY.public.hex().upper()},
        {"s": SIGNED.extensions["_x_sig"]["s"].upper()},
        {"s": SIGNED.extensions["_x_sig"]["s"] + "00"},
        {"s": " " + SIGNED.extensions["_x_sig"]["s"][1:]},
        {"more": 1},
    ],
)
def test_a_signature_in_other_words_is_none(changes: dict[str, Any]) -> None:
    _refused(_with(**changes))


@pytest.mark.parametrize("said", [None, "", [], {}, {"alg": "Ed25519"}])
def test_what_is_no_signature_is_refused(said: Any) -> None:
    _refused(msgspec.structs.replace(ASKED, extensions={"_x_sig": said}))
    _refused(ASKED)


def test_a_signature_has_one_spelling_in_numbers_too() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    octets = bytes.fromhex(SIGNED.extensions["_x_sig"]["s"])
    scalar = int.from_bytes(octets[32:], "little") + order
    _refused(_with(s=(octets[:32] + scalar.to_bytes(32, "little")).hex()))


@pytest.mark.parametrize("n", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_integers_with_one_canonical_form_are_refused(n: int) -> None:
    with pytest.raises(MalformedError, match="beyond") as caught:
        sign(msgspec.structs.replace(ASKED, data={"n": n}), KEY, NOW)
    assert caught.value.key == "data"
    even = sign(msgspec.structs.replace(ASKED, data={"n": 2**53, "id": "1234567890123456789"}), KEY, NOW)
    assert signer_of(even, NOW) == KEY.fingerprint
    _refused(msgspec.structs.replace(even, data={**even.data, "n": 2**53 + 1}))


@pytest.mark.parametrize("data", [{"a": float("nan")}, {"a": "\ud800"}, {"a": {1}}])
def test_what_is_no_json_is_not_signed(data: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        sign(msgspec.structs.replace(ASKED, data=data), KEY, NOW)
    _refused(msgspec.structs.replace(SIGNED, data=data))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(), _JSON, max_size=4), st.text(min_size=1), st.data())
def test_any_record_keeps_its_signature_until_something_changes(
    data: dict[str, Any], key: str, draw: st.DataObject
) -> None:
    signed = wire.decode(wire.encode(sign(msgspec.structs.replace(ASKED, data=data), KEY, NOW)))
    assert signer_of(signed, NOW) == KEY.fingerprint
    other = copy.deepcopy(signed.data)
    other[key] = draw.draw(_JSON)
    if canonical(other) != canonical(data):
        _refused(msgspec.structs.replace(signed, data=other))


def test_a_record_that_was_kept_cannot_be_dated_anew() -> None:
    _refused(_with(t=int(NOW) + 100_000), NOW + 100_000)


IDENTITY = IdentityKey.generate()


@given(st.binary(max_size=500), st.binary(min_size=1, max_size=64))
def test_a_signature_holds_for_its_message_alone(message: bytes, other: bytes) -> None:
    signature = IDENTITY.sign(message)
    assert verify(IDENTITY.public, signature, message)
    assert not verify(IDENTITY.public, signature, message + other)
    assert not verify(IDENTITY.public, signature[:-1], message)


def test_a_key_comes_back_from_its_file() -> None:
    again = IdentityKey.from_pem(IDENTITY.to_pem())
    assert again.fingerprint == IDENTITY.fingerprint == fingerprint_of(IDENTITY.public)
    assert verify(again.public, again.sign(b"x"), b"x")


@pytest.mark.parametrize("pem", [b"", b"no key", IDENTITY.to_pem()[:80]], ids=["empty", "text", "half"])
def test_a_damaged_key_is_refused_in_words(pem: bytes) -> None:
    with pytest.raises(BadKeyError, match="cannot be read"):
        IdentityKey.from_pem(pem)


def test_an_agent_id_is_the_name_and_sixteen_hex() -> None:
    assert agent_id("brainstem", IDENTITY.fingerprint) == f"brainstem_{IDENTITY.fingerprint[:16]}"
