from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.errors import BadNodeCardError
from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey, verify
from envelopes.identity.node_card import NodeCard, introduce

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ME = IdentityKey.generate()
THEM = IdentityKey.generate()
CERTIFICATE = make_certificate(ME, now=NOW).certificate_der
RECIPIENT = "age1qudzzcqcgnm7wx0y7v33rrdljux6yvsg9pqjtldfgltqe4mlsfkstcteh7"
OTHER_RECIPIENT = "age1" + "q" * 58
MINE = introduce(ME, CERTIFICATE, RECIPIENT, "Anna's laptop", 7443)
THEIRS = introduce(THEM, make_certificate(THEM, now=NOW).certificate_der, RECIPIENT, "büro", 7443)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def changed(**fields: Any) -> dict[str, Any]:
    return {**MINE.to_json(), **fields}


def test_it_travels_as_json_and_comes_back_checked() -> None:
    for one in (MINE, THEIRS):
        over = json.loads(json.dumps(one.to_json()))
        back = NodeCard.from_json(over).check()
        assert back == one
        assert back.to_json() == over


def test_a_machine_without_listener_and_without_sealed_eggs_introduces_itself() -> None:
    over = changed(sealing_key="", sealing_signature="", port=0)
    one = NodeCard.from_json(over).check()
    assert (one.sealing_key, one.sealing_signature, one.port) == ("", b"", 0)
    assert one.to_json() == over


def test_its_form_on_the_wire() -> None:
    over = MINE.to_json()
    assert over["schema"] == "rappd-introduction/1.0"
    assert over["fingerprint"] == ME.fingerprint
    assert over["public_key"] == ME.public.hex()
    assert base64.b64decode(over["certificate"]) == CERTIFICATE
    signed = b"rappd/sealing-key\n" + RECIPIENT.encode()
    assert verify(ME.public, bytes.fromhex(over["sealing_signature"]), signed)
    assert (over["name"], over["port"], over["sealing_key"]) == ("Anna's laptop", 7443, RECIPIENT)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"fingerprint": THEM.fingerprint}, "fingerprint"),
        ({"public_key": THEM.public, "fingerprint": THEM.fingerprint}, "connections"),
        ({"public_key": THEM.public}, "fingerprint"),
        ({"certificate": THEIRS.certificate}, "connections"),
        ({"certificate": CERTIFICATE[:-1] + bytes([CERTIFICATE[-1] ^ 1])}, "shows as its identity"),
        ({"certificate": b"nothing"}, "cannot be read"),
        ({"sealing_key": OTHER_RECIPIENT}, "sealed with"),
        ({"sealing_signature": THEIRS.sealing_signature}, "sealed with"),
        ({"port": -1}, "port"),
        ({"sealing_key": ""}, "without its signature"),
        ({"sealing_signature": b""}, "without its signature"),
        ({"name": ""}, "name"),
    ],
)
def test_what_another_key_stands_behind_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(BadNodeCardError, match=why):
        msgspec.structs.replace(MINE, **fields).check()


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": "rappd-introduction/2.0"},
        {"schema": None},
        {"name": ""},
        {"name": "x" * 61},
        {"name": " padded"},
        {"name": "two\nlines"},
        {"name": "red\x1b[31m"},
        {"name": "turned \u202e round"},
        {"name": "half \ud800"},
        {"name": 5},
        {"fingerprint": ME.fingerprint.upper()},
        {"fingerprint": ME.fingerprint[:16]},
        {"fingerprint": ME.fingerprint + "\n"},
        {"public_key": ME.public.hex().upper()},
        {"public_key": ME.public.hex()[:-2]},
        {"public_key": " " + ME.public.hex()[1:]},
        {"public_key": "zz" * 32},
        {"certificate": ""},
        {"certificate": "%%%"},
        {"certificate": "é" * 8},
        {"certificate": base64.b64encode(CERTIFICATE).decode() + "\n"},
        {"certificate": base64.urlsafe_b64encode(b"\xff" * 30).decode()},
        {"certificate": "QQ==" * 5},
        {"certificate": "QR=="},
        {"certificate": "A" * 20_000},
        {"sealing_key": RECIPIENT.upper()},
        {"sealing_key": RECIPIENT + "\n"},
        {"sealing_key": "age1"},
        {"sealing_signature": "00" * 63},
        {"sealing_key": ""},
        {"sealing_signature": ""},
        {"port": 65536},
        {"port": -1},
        {"port": True},
        {"port": 7443.0},
        {"port": "7443"},
        {"port": 10**40},
        {"more": 1},
    ],
)
def test_another_form_is_refused_before_anything_is_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(BadNodeCardError):
        NodeCard.from_json(changed(**fields))


@pytest.mark.parametrize("key", sorted(MINE.to_json()))
def test_every_key_is_needed(key: str) -> None:
    without = MINE.to_json()
    del without[key]
    with pytest.raises(BadNodeCardError, match=key):
        NodeCard.from_json(without)


@given(anything, st.sampled_from([*MINE.to_json(), "", "x"]))
def test_whatever_comes_is_read_or_refused(value: Any, key: str) -> None:
    for candidate in (value, changed(**{key: value})):
        try:
            one = NodeCard.from_json(candidate)
        except BadNodeCardError:
            continue
        assert one.to_json() == candidate


@pytest.mark.parametrize(
    ("certificate", "sealing_key", "name", "port"),
    [
        (THEIRS.certificate, RECIPIENT, "a", 1),
        (CERTIFICATE, "age1", "a", 1),
        (CERTIFICATE, RECIPIENT, "", 1),
        (CERTIFICATE, RECIPIENT, "a", -1),
    ],
)
def test_a_machine_does_not_introduce_itself_wrongly(
    certificate: bytes, sealing_key: str, name: str, port: int
) -> None:
    with pytest.raises(BadNodeCardError):
        introduce(ME, certificate, sealing_key, name, port)
