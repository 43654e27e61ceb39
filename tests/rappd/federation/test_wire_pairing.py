"""docs/wire.md on pairing: its steps are read, its recipes give the words and codes that the code gives.

What is computed here by hashlib and cryptography alone follows the page, as somebody would who has nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, get_args

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from spake2 import SPAKE2_Symmetric
from spake2.ed25519_basic import L
from spake2.parameters.ed25519 import ParamsEd25519

from envelopes.identity import pairing_proof
from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import WORDS
from neighborhoods.pairing import messages
from tests.rappd.federation.wire_page import SECTION, blocks, introductions, key_of, plain, rows, shown, whole


def test_every_step_and_answer_is_read() -> None:
    kinds: dict[str, type[Any]] = {
        "answer-offer": messages.OfferAnswer,
        "answer-standing": messages.StatusReply,
        "answer-code": messages.CodeAnswer,
        "answer-confirm": messages.ConfirmAnswer,
    }
    stepped = {json.loads(text)["step"] for text in blocks("step-*")}
    assert stepped == {kind.__struct_config__.tag for kind in get_args(messages.Step)} - {"stop"}
    for text in blocks("step-*"):
        assert messages.as_json(messages.read_step(whole(json.loads(text)))) == whole(json.loads(text))
    for mark, kind in kinds.items():
        for text in blocks(mark):
            assert messages.as_json(messages.read_answer(whole(json.loads(text)), kind)) == whole(
                json.loads(text)
            )
    states = {row[0] for row in rows("state", "Means")}
    assert states == set(get_args(messages.State))


def test_the_words_come_out_as_the_page_says() -> None:
    (text,) = blocks("words")
    assert tuple(text.split()) == WORDS
    made, desk, pi = shown("vector-words"), introductions()["desk"], introductions()["pi"]
    asks, answers = bytes.fromhex(made["nonce_asks"]), bytes.fromhex(made["nonce_answers"])
    promised = b"rappd/pairing-nonce\n" + asks + desk["fingerprint"].encode() + pi["fingerprint"].encode()
    assert made["commitment"] == hashlib.sha256(promised).hexdigest() == shown("step-offer")["commitment"]
    seen = hashlib.sha256(b"rappd/pairing-words\n" + plain(desk) + plain(pi) + asks + answers).digest()
    assert made["transcript"] == seen.hex()
    assert made["words"] == [text.split()[byte] for byte in seen[:4]]
    one, other = (NodeCard.from_json(said) for said in (desk, pi))
    assert pairing_proof.transcript(one, other, asks, answers) == seen
    assert list(pairing_proof.pairing_words(seen)) == made["words"]
    assert pairing_proof.keeps(made["commitment"], asks, desk["fingerprint"], pi["fingerprint"])
    for name, key, said in (
        ("yes_asks", "desk", b"1"),
        ("no_asks", "desk", b"0"),
        ("yes_answers", "pi", b"1"),
    ):
        signature = key_of(key).sign(b"rappd/pairing-verdict\n" + seen + said)
        assert made[name] == signature.hex()
        assert pairing_proof.verdict_holds(key_of(key).public, seen, said == b"1", signature)


def test_the_code_comes_out_as_the_page_says() -> None:
    made, desk, pi = shown("vector-code"), introductions()["desk"], introductions()["pi"]
    code = made["code"].encode()
    assert pairing_proof.normal_code(made["code"].upper().replace("-", " ")) == made["code"]
    wide = HKDF(hashes.SHA256(), 48, salt=b"", info=b"SPAKE2 pw").derive(code)
    assert (int.from_bytes(wide, "big") % L).to_bytes(32, "little").hex() == made["w"]
    assert ParamsEd25519.S.to_bytes().hex() == made["S"]
    assert f"`{made['S']}`" in SECTION
    group, found = ParamsEd25519.group, {}
    for role, scalar in (("asks", "x"), ("answers", "y")):
        number = group.bytes_to_scalar(bytes.fromhex(made[scalar]))
        blinded = group.Base.scalarmult(number).add(
            ParamsEd25519.S.scalarmult(int.from_bytes(wide, "big") % L)
        )
        found[role] = b"S" + blinded.to_bytes()
        assert made[f"message_{role}"] == found[role].hex()
    x = group.bytes_to_scalar(bytes.fromhex(made["x"]))
    theirs = group.bytes_to_element(found["answers"][1:])
    shared = theirs.add(ParamsEd25519.S.scalarmult(-(int.from_bytes(wide, "big") % L))).scalarmult(x)
    first, second = sorted((found["asks"][1:], found["answers"][1:]))
    hashed = [hashlib.sha256(part).digest() for part in (code, b"rappd/pairing-code\n")]
    key = hashlib.sha256(b"".join([*hashed, first, second, shared.to_bytes()])).digest()
    assert key.hex() == made["key"]
    seen = hashlib.sha256(
        b"rappd/pairing-code\n" + plain(desk) + plain(pi) + found["asks"] + found["answers"]
    ).digest()
    assert seen.hex() == made["transcript"]
    one, other = (NodeCard.from_json(said) for said in (desk, pi))
    assert pairing_proof.code_transcript(one, other, found["asks"], found["answers"]) == seen
    for role, name in (("asks", "desk"), ("answers", "pi")):
        over = b"rappd/pairing-code\n" + role.encode() + b"\n" + seen
        assert hmac.digest(key, over, "sha256").hex() == made[f"proof_{role}"]
        assert key_of(name).sign(over).hex() == made[f"signature_{role}"]


def test_foreign_spake2_code_is_understood() -> None:
    there = pairing_proof.CodeExchange("417-copper-otter-violin")
    here = SPAKE2_Symmetric(b"417-copper-otter-violin", idSymmetric=b"rappd/pairing-code\n")
    message = here.start()
    assert here.finish(there.message) == there.key(message)
