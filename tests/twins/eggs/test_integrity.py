"""The integrity layer: it says who packed what, and no change to either goes unseen."""

from __future__ import annotations

import hashlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.identity.keys import IdentityKey
from twins.eggs import integrity
from twins.errors import BadEggError

AT = "2026-11-22T04:34:00Z"
KEY = IdentityKey.generate()
FILES = {"soul.md": "a" * 64, "agents/x_agent.py": "b" * 64, "ünïcode ✓": "0" * 64}
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name != integrity.MEMBER
)
hashes = st.binary().map(lambda octets: hashlib.sha256(octets).hexdigest())


@given(st.dictionaries(names, hashes), st.booleans())
def test_what_is_sealed_is_read_back(files: dict[str, str], signed: bool) -> None:
    key = KEY if signed else None
    sealed = integrity.check(integrity.seal(files, at=AT, key=key))
    assert (dict(sealed.files), sealed.signed_at) == (files, AT)
    assert sealed.signer == (KEY.fingerprint if signed else "")
    sealed.compare(files)


def test_the_same_is_sealed_into_the_same_bytes_in_any_order() -> None:
    other = dict(reversed(FILES.items()))
    assert integrity.seal(FILES, at=AT, key=KEY) == integrity.seal(other, at=AT, key=KEY)


def test_it_says_exactly_what_was_agreed_on() -> None:
    said = orjson.loads(integrity.seal(FILES, at=AT, key=KEY))
    signature = bytes.fromhex(said.pop("signature"))
    assert said == {
        "schema": "rappd-integrity/1.0",
        "files": FILES,
        "signed_at": AT,
        "signer": {"fingerprint": KEY.fingerprint, "public_key": KEY.public.hex()},
    }
    message = b"rappd/egg-integrity\n" + orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
    assert KEY.sign(message) == signature
    assert orjson.loads(integrity.seal(FILES, at=AT, key=None)).keys() == {"schema", "files", "signed_at"}


@given(st.data())
def test_no_changed_octet_is_taken(data: st.DataObject) -> None:
    octets = integrity.seal(FILES, at=AT, key=KEY)
    at = data.draw(st.integers(0, len(octets) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda octet: octet != octets[at]))
    with pytest.raises(BadEggError):
        integrity.check(octets[:at] + bytes((other,)) + octets[at + 1 :])


@given(st.binary(max_size=300) | st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", AT, "a" * 64, "rappd-integrity/1.0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["schema", "files", "signed_at", "signer", "signature", "fingerprint", "public_key", "x"]),
        inner, max_size=5),
    max_leaves=12,
).map(lambda value: orjson.dumps(value, option=orjson.OPT_SORT_KEYS)))  # fmt: skip
def test_other_bytes_are_refused_and_never_crash(octets: bytes) -> None:
    try:
        sealed = integrity.check(octets)
    except BadEggError:
        return
    assert sealed.signer == ""
    assert orjson.loads(octets)["files"] == sealed.files


def changed(**keys: object) -> bytes:
    said = orjson.loads(integrity.seal(FILES, at=AT, key=KEY)) | keys
    said = {name: value for name, value in said.items() if value is not None}
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS)


@pytest.mark.parametrize(
    "octets",
    [
        changed(files={**FILES, "soul.md": "c" * 64}),
        changed(files={"soul.md": "a" * 64}),
        changed(signed_at="2026-11-22T04:34:01Z"),
        changed(signature=None),
        changed(signer=None),
        changed(signature="0" * 128),
        changed(signature="A" * 128),
        changed(signer={"fingerprint": IdentityKey.generate().fingerprint, "public_key": KEY.public.hex()}),
        changed(extra=1),
        changed(schema="rappd-integrity/2.0"),
        changed(files={"integrity.json": "a" * 64}),
        changed(files={"": "a" * 64}),
        changed(files={"x": "A" * 64}),
        changed(files=[]),
        changed(signed_at="yesterday"),
        integrity.seal(FILES, at=AT, key=KEY) + b"\n",
        integrity.seal(FILES, at=AT, key=None).replace(b'{"files"', b'{"files":{},"files"'),
    ],
)
def test_a_layer_that_was_tampered_with_is_refused(octets: bytes) -> None:
    with pytest.raises(BadEggError):
        integrity.check(octets)


def test_another_key_cannot_sign_in_the_name_of_the_first() -> None:
    thief = IdentityKey.generate()
    said = orjson.loads(integrity.seal(FILES, at=AT, key=KEY))
    said.pop("signature")
    said["signature"] = thief.sign(integrity.DOMAIN + orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hex()
    with pytest.raises(BadEggError, match="signature"):
        integrity.check(orjson.dumps(said, option=orjson.OPT_SORT_KEYS))


@pytest.mark.parametrize(
    ("actual", "name"),
    [
        ({**FILES, "soul.md": "c" * 64}, "soul.md"),
        ({**FILES, "more": "c" * 64}, "more"),
        ({"soul.md": "a" * 64}, "agents/x_agent.py"),
    ],
)
def test_one_file_more_less_or_other_is_damage_and_is_named(actual: dict[str, str], name: str) -> None:
    sealed = integrity.check(integrity.seal(FILES, at=AT, key=KEY))
    with pytest.raises(BadEggError, match=f"damaged .{name}."):
        sealed.compare(actual)


def test_signature_beside_file_moves_with_new_name() -> None:
    sealed = integrity.check(integrity.seal({"old name.egg": "a" * 64}, at=AT, key=KEY))
    sealed.covers("a" * 64)
    with pytest.raises(BadEggError):
        sealed.covers("b" * 64)
    with pytest.raises(BadEggError):
        integrity.check(integrity.seal(FILES, at=AT, key=KEY)).covers("a" * 64)


def test_what_would_not_be_read_is_not_sealed() -> None:
    for files, at in (({"integrity.json": "a" * 64}, AT), ({"x": "short"}, AT), (FILES, "now")):
        with pytest.raises(ValueError):
            integrity.seal(files, at=at, key=KEY)
