"""docs/wire.md on identity: keys, introductions, certificates, signatures, tokens and capabilities.

What is computed here by hashlib and cryptography alone follows the page, as somebody would who has nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import pairwise

import pyrage
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from envelopes.codecs import wire
from envelopes.errors import BadCapabilityError
from envelopes.identity import (
    caller_tokens,
    capability_tokens,
    certificates,
    node_card,
    pairing_proof,
    signatures,
)
from envelopes.identity.capabilities import capability, check, covers
from envelopes.identity.keys import fingerprint_of
from envelopes.identity.node_card import NodeCard
from tests.fixtures import bech32
from tests.rappd.federation.wire_page import (
    NOW,
    SECTION,
    blocks,
    claims_of,
    introductions,
    key_of,
    rows,
    shown,
    unb64,
)

# Identity.


def test_the_first_bytes_are_those_of_the_code() -> None:
    named = {row[0].replace("\\n", "\n").encode() for row in rows("Begins with", "What follows", "Made with")}
    used = (pairing_proof._NONCE, pairing_proof._WORDS, pairing_proof._VERDICT, pairing_proof._CODE)
    assert named == {certificates.BINDING, node_card.SEALING, signatures.DOMAIN, *used}


def test_the_keys_are_what_their_seeds_make() -> None:
    for made in shown("vector-keys").values():
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(made["seed"]))
        public = key.public_key().public_bytes_raw()
        assert (public.hex(), hashlib.sha256(public).hexdigest()) == (made["public"], made["fingerprint"])
        assert fingerprint_of(public) == made["fingerprint"]
        if made["fingerprint"][:16] not in SECTION:
            raise AssertionError("an agent id that is nobody's")


@pytest.mark.parametrize("name", ["desk", "pi"])
def test_introductions_hold_and_have_one_form(name: str) -> None:
    said = introductions()[name]
    assert NodeCard.from_json(said).check().to_json() == said
    assert said["fingerprint"] == shown("vector-keys")[name]["fingerprint"]
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["public_key"]))
    public.verify(
        bytes.fromhex(said["sealing_signature"]), b"rappd/sealing-key\n" + said["sealing_key"].encode()
    )


def test_the_certificate_is_bound_as_the_page_says() -> None:
    made = shown("vector-certificate")
    tls = ec.derive_private_key(int(made["tls_key"], 16), ec.SECP256R1())
    spki = tls.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    pi = shown("vector-keys")["pi"]
    signature = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(pi["seed"])).sign(
        b"rappd/tls-key\n" + spki
    )
    assert made == {
        "tls_key": made["tls_key"],
        "spki": spki.hex(),
        "signed": (b"rappd/tls-key\n" + spki).hex(),
        "signature": signature.hex(),
        "extension": pi["public"] + signature.hex(),
    }
    der = base64.b64decode(introductions()["pi"]["certificate"], validate=True)
    certificate = x509.load_der_x509_certificate(der)
    (oid,) = [row[0] for row in rows("Part", "Value") if row[0].startswith("2.25.")]
    assert oid == certificates.EXTENSION
    found = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier(oid))
    assert isinstance(found.value, x509.UnrecognizedExtension)
    assert (found.critical, found.value.value.hex()) == (False, made["extension"])
    assert certificate.subject == certificate.issuer
    assert [each.value for each in certificate.subject] == [pi["fingerprint"]]
    assert certificates.identity_of(der).hex() == pi["public"]


# Signatures, tokens, capabilities.


def test_the_signature_is_over_the_bytes_that_the_page_shows() -> None:
    signed, (text,) = shown("vector-signed"), blocks("vector-canonical")
    said = signed["_x_sig"]
    over = {**signed, "_x_sig": {key: value for key, value in said.items() if key != "s"}}
    assert json.loads(text) == over
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["key"]))
    public.verify(bytes.fromhex(said["s"]), b"rappd/envelope\n" + text.rstrip("\n").encode())
    envelope = wire.decode(json.dumps(signed).encode())
    desk = key_of("desk")
    assert signatures.verify(envelope, NOW) == desk.fingerprint
    again = signatures.sign(envelope, desk, NOW)
    assert again.extensions["_x_sig"] == said


def test_the_tokens_hold_when_and_where_the_page_says() -> None:
    given, pi, desk, shed = shown("vector-tokens"), key_of("pi"), key_of("desk"), key_of("shed")
    certificate = base64.b64decode(introductions()["desk"]["certificate"])
    keys = {one.fingerprint: one.public for one in (pi, desk)}
    peer = caller_tokens.read_token(given["peer"], key_of=keys.get, audience=pi.fingerprint, now=NOW)
    assert claims_of(given["peer"]) == shown("claims-peer")
    assert peer.sub == f"brainstem_{desk.fingerprint[:16]}"
    thumbprint = base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).rstrip(b"=").decode()
    assert shown("claims-peer")["cnf"] == {"x5t#S256": thumbprint}
    issued = caller_tokens.read_token(given["issued"], key_of=keys.get, audience=pi.fingerprint, now=NOW)
    assert claims_of(given["issued"]) == shown("claims-issued")
    assert issued.caps == ("HELP.brainstem.Clock",)
    grant = capability_tokens.verify_chain(given["chain"], audience=pi.fingerprint, now=NOW, root=pi.public)
    assert claims_of(given["chain"][1]) == shown("claims-link")
    assert (grant.holder, grant.caps) == (shed.fingerprint, ("HELP.brainstem.Clock",))


def test_each_link_follows_from_the_one_before_as_the_page_says() -> None:
    chain = shown("vector-tokens")["chain"]
    read = [claims_of(one) for one in chain]
    assert read[0]["iss"] == read[0]["aud"]
    for (parent, child), text in zip(pairwise(read), chain, strict=False):
        assert child["iss"] == parent["sub"]
        assert child["parent"] == hashlib.sha256(text.encode()).hexdigest()
        assert child["aud"] == parent["aud"]
        assert child["exp"] <= parent["exp"]
        assert child["uses"] <= parent["uses"]
    for text, claims in zip(chain, read, strict=True):
        header = json.loads(unb64(text.split(".")[0]))
        assert hashlib.sha256(bytes.fromhex(header["key"])).hexdigest() == claims["iss"] == header["kid"]
        assert claims["cnf"] == {"kid": claims["sub"]}


def test_capabilities_cover_what_the_page_says() -> None:
    table = rows("Held", "Wanted", "")
    assert len(table) > 5
    for held, wanted, answer in table:
        assert covers([held], wanted) == {"yes": True, "no": False}[answer], (held, wanted)


def test_the_grammar_admits_what_the_code_does() -> None:
    (grammar,) = blocks("grammar")
    named = [row.split()[0] for row in grammar.splitlines()]
    assert named == ["capability", "verb", "segment"]
    verb, segment = r"[A-Z][A-Z0-9_-]*", r"[A-Za-z0-9_-]+"
    stated = re.compile(rf"\*|{verb}(?:\.{segment}){{0,2}}(?:\.\*)?")
    for text in ("*", "HELP", "HELP.*", "HELP.a", "HELP.a.b", "HELP.a.*", "HELP.a.b.*", "EGG", "A-1.x_-9"):
        assert stated.fullmatch(text) and check(text) == text
    for text in ("", "help", "HELP.", ".a", "HELP.a.b.c", "HELP.*.b", "*.a", "HELP.ä", "HELP a", "HELP.a*"):
        assert not stated.fullmatch(text)
        with pytest.raises(BadCapabilityError):
            check(text)
    assert capability("HELP", "brainstem", "Clock") == "HELP.brainstem.Clock"


def test_the_sealing_key_on_the_page_is_ages() -> None:
    told = shown("vector-sealing")
    pair = X25519PrivateKey.from_private_bytes(bytes.fromhex(told["secret"]))
    assert pair.public_key().public_bytes_raw().hex() == told["public"]
    assert bech32.decode(told["recipient"]) == ("age", bytes.fromhex(told["public"]))
    assert str(pyrage.x25519.Identity.from_str(told["identity"]).to_public()) == told["recipient"]
    assert key_of("pi").sign(b"rappd/sealing-key\n" + told["recipient"].encode()).hex() == told["signature"]
