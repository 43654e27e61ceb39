"""docs/wire.md says how machines talk, byte for byte: its examples are taken, its recipes give what the code gives.

What is computed here by hashlib and cryptography alone follows the page, as somebody would who has nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib
import json
import pkgutil
import re
import uuid
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from daemon_under_test import REPO
from spake2 import SPAKE2_Symmetric
from spake2.ed25519_basic import L
from spake2.parameters.ed25519 import ParamsEd25519

import envelopes
import neighborhoods
import rappd
from envelopes import (
    capability_tokens,
    certificates,
    extensions,
    introduction,
    pairing_proof,
    signatures,
    tokens,
    wire,
)
from envelopes.capabilities import capability, check, covers
from envelopes.errors import BadCapability
from envelopes.introduction import Introduction
from envelopes.keys import IdentityKey, fingerprint_of
from envelopes.pairing_words import WORDS
from envelopes.problem import Problem
from neighborhoods.carriers import line, ways
from neighborhoods.delivery import carrier, lane, outbox, retrying
from neighborhoods.discovery import addresses, announcement, ladder, sightings
from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.legacy import twin_chat
from neighborhoods.pairing import answering, asking, codes, steps
from rappd.doors.federation import bodies, eggs, entrance, streaming
from rappd.doors.federation import envelopes as envelopes_door
from rappd.doors.federation import line as line_door
from rappd.doors.federation import pairing as pairing_door
from rappd.machines import receiving, under_way
from rappd.operations import arrived_eggs
from tests.rappd.federation.conftest import House
from tests.rappd.federation.plain_machine import PlainMachine

PAGE = (REPO / "docs" / "wire.md").read_text()
SECTION = PAGE[PAGE.index("\n## Between machines\n") : PAGE.index("\n## A2A and MCP\n")]
NOW = 1_800_000_000

Json = dict[str, Any]

_FENCE = re.compile(r"^```(\S*)(?: +(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(mark: str) -> list[str]:
    """Every block with a mark, or with one that begins so (`step-*`)."""
    found = [text for _, name, text in _FENCE.findall(SECTION) if re.fullmatch(mark.replace("*", ".+"), name)]
    assert found, mark
    return found


def shown(mark: str) -> Any:
    """The only JSON with that mark, introductions whole."""
    (text,) = blocks(mark)
    return whole(json.loads(text))


@cache
def introductions() -> dict[str, Json]:
    return {found["name"]: found for found in map(json.loads, blocks("introduction"))}


def whole(found: Any) -> Any:
    if isinstance(found, dict):
        if "…" in found:
            return introductions()[found["name"]]
        return {key: whole(value) for key, value in found.items()}
    return [whole(one) for one in found] if isinstance(found, list) else found


def rows(*heads: str) -> list[list[str]]:
    """The cells of the tables that have these heads, backticks taken off."""
    found: list[list[str]] = []
    for table in re.findall(r"(?:^\|.*\|\n)+", SECTION, re.MULTILINE):
        lines = [
            [cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")]
            for line in table.splitlines()
        ]
        if lines[0][: len(heads)] == list(heads) or [cell.strip("| ") for cell in lines[0]] == list(heads):
            found += [[cell.strip("| ") for cell in line] for line in lines[2:]]
    assert found, heads
    return found


def in_words() -> str:
    """The section as one line, for sentences that were wrapped."""
    return " ".join(_FENCE.sub("", SECTION).split())


# Nothing on the page is unlooked at.


def test_every_example_is_looked_at() -> None:
    source = Path(__file__).read_text()
    for language, mark, _ in _FENCE.findall(SECTION):
        assert mark, f"a {language} block without a mark"
        family = mark.partition("-")[0] + "-*"
        assert f'"{mark}"' in source or f'"{family}"' in source, mark


# Envelopes.


@pytest.mark.parametrize("mark", ["request-help", "response-help-200", "response-malformed-400", "request-hello",
                                  "response-hello-200", "vector-signed"])  # fmt: skip
def test_envelopes_are_taken_and_sent_as_they_stand(mark: str) -> None:
    found = shown(mark)
    envelope = wire.decode(json.dumps(found).encode())
    assert json.loads(wire.encode(envelope)) == found
    status = mark.rpartition("-")[2]
    if status.isdecimal():
        assert wire.http_status(envelope) == int(status)


def test_batches_and_events_are_too() -> None:
    for mark in ("request-batch", "response-batch-200"):
        records = wire.decode_batch(json.dumps(shown(mark)).encode())
        assert json.loads(wire.encode_batch(records)) == shown(mark)  # type: ignore[arg-type]
    (text,) = blocks("events")
    events = [dict(row.split(": ", 1) for row in one.splitlines()) for one in text.strip().split("\n\n")]
    assert [event["id"] for event in events] == [str(number + 1) for number in range(len(events))]
    first, last = (wire.decode(event["data"].encode()) for event in events)
    assert (first.verb, first.data["n"], last.verb) == ("STREAM", 1, "DONE")


def test_extensions_are_those_that_the_code_knows() -> None:
    named = {key for row in rows("Key", "Shape", "Meaning") for key in row[0].split(", ")}
    assert set(extensions._KNOWN) | {"_x_slush"} == named


def test_the_reasons_have_the_statuses_that_the_code_gives_them() -> None:
    known = reasons() | {("400", "unknown_verb"), ("500", "interrupted"), ("500", "failed")}
    known |= {("503", "busy"), ("500", "answer_too_large")}  # said without an exception of their own
    for status, reason, *_ in [*rows("code", "reason", "When"), *rows("Status", "code", "When")]:
        assert (status, reason) in known
    source = "".join(
        path.read_text() for floor in ("rappd", "neighborhoods") for path in (REPO / floor).rglob("*.py")
    )
    for word in ("unknown_verb", "interrupted", "busy", "answer_too_large"):
        assert f'"{word}"' in source


def reasons() -> set[tuple[str, str]]:
    """Of every error that the code has: its status and its slug."""
    for package in (envelopes, neighborhoods, rappd):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in module.name:
                importlib.import_module(module.name)
    found, ahead = set(), [Problem]
    while ahead:
        one = ahead.pop()
        ahead += one.__subclasses__()
        if isinstance(one.code, str):
            found.add((str(one.status), one.code))
    return found


def test_the_routes_are_those_of_the_door() -> None:
    tables = (envelopes_door.routes, line_door.routes, pairing_door.routes, eggs.routes)
    served = {f"{route.method} {route.path}" for table in tables for route in table}  # type: ignore[attr-defined]
    assert {row[0] for row in rows("Route", "Who", "What")} == served


def test_the_figures_are_those_of_the_code() -> None:
    pace, text = lane.Pace(), in_words()
    for said in (
        f"`t` is at most {signatures.WINDOW} s away",
        f"at most {tokens.LONGEST} characters",
        f"`exp` at most {tokens.PEER_SECONDS} s after `iat`",
        f"may be {tokens.LEEWAY} s ahead",
        f"all that it allows, {tokens.MOST_CAPABILITIES} at most",
        f"{certificates.MOST_BYTES} bytes at most",
        f"`name` is 1 to {introduction.LONGEST_NAME} characters",
        f"`from` and `to` are 1 to {wire.MAX_ID} visible characters",
        f"`verb` is 1 to {wire.MAX_VERB} letters",
        f"more than {wire.MAX_BATCH} records",
        f"more than {envelopes_door.FOR_BATCHES >> 20} MiB",
        f"at most {wire.MAX_BYTES >> 20} MiB and {wire.MAX_DEPTH} levels deep",
        f"{envelopes_door.FOR_STRANGERS >> 10} KiB of a stranger",
        f"did not come to its end in {bodies.BODY_SECONDS:g} s",
        f"A stranger's connection lives {entrance.STRANGER_SECONDS:g} s at most",
        f"A lone `:` every {streaming.BEAT:g} s",
        f"above 0, at most {extensions.LONGEST_WAIT}",
        f"16 hex digits, {extensions.LONGEST_PATH} at most",
        f"seconds, {receiving.WAIT:g} without one",
        f"holds a request {receiving.LONGEST_WAIT:g} s at most",
        "after {:g}, {:g} and {:g} s, each a fifth longer or shorter".format(*retrying.PAUSES),
        "the status was {}, {}, {}, {}, {} or {}".format(*sorted(carrier.RETRIABLE)),
        f"up to {pace.batch} envelopes or {pace.batch_octets >> 10} KiB in a batch",
        f"again in {pace.first_pause:g} s, doubling to {pace.longest_pause:g} s",
        f"A ping goes every {line.HEARTBEAT:g} s",
        f"{line.MOST_AT_ONCE} under way at most",
        "the subprotocol `{}` or `{}`".format(*line.PROTOCOLS),
        f"with `{line.SEVERAL}` it may be an array of up to {wire.MAX_BATCH}",
        f"`{asking.WORDS_SECONDS:g} s passed",
        f"{pairing_door.MOST_BYTES >> 10} KiB at most",
        f"a nonce of {pairing_proof.NONCE_BYTES} random bytes",
        f"{arrived_eggs.MOST_BYTES >> 30} GiB at most, and {arrived_eggs.MOST_OF_ONE_PEER} of one peer",
        f"Nothing came for {arrived_eggs.SILENT_SECONDS:g} s",
        f"is tried {ways.HEAD_START:g} s before the others",
        f"(port {addresses.DOOR})",
        f"{announcement.MOST_ADDRESSES} addresses at most",
    ):
        assert said.replace("`120", "120") in text, said
    assert pace.ask_every == 60 and "is asked for every minute" in text
    assert outbox.DAY == 86_400 and "a day unless told otherwise" in text
    assert under_way.KEPT_SECONDS == 300 and "five minutes after the end" in text
    assert receiving.DEEPEST == 6 and "more than six machines" in text
    assert capability_tokens.MOST_LINKS == 8 and "a chain of JWTs, eight at most" in text
    assert answering.MOST_PENDING == 8 and "B keeps eight attempts at a time" in text
    assert codes.CODE_SECONDS == 600 and "good for ten minutes and one try" in text
    assert retrying.SPREAD == 0.2


# Identity.


def test_the_first_bytes_are_those_of_the_code() -> None:
    named = {row[0].replace("\\n", "\n").encode() for row in rows("Begins with", "What follows", "Made with")}
    used = (pairing_proof._NONCE, pairing_proof._WORDS, pairing_proof._VERDICT, pairing_proof._CODE)
    assert named == {certificates.BINDING, introduction.SEALING, signatures.DOMAIN, *used}


def test_the_keys_are_what_their_seeds_make() -> None:
    for made in shown("vector-keys").values():
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(made["seed"]))
        public = key.public_key().public_bytes_raw()
        assert (public.hex(), hashlib.sha256(public).hexdigest()) == (made["public"], made["fingerprint"])
        assert fingerprint_of(public) == made["fingerprint"]
        if made["fingerprint"][:16] not in SECTION:
            raise AssertionError("an agent id that is nobody's")


def key_of(name: str) -> IdentityKey:
    seed = bytes.fromhex(shown("vector-keys")[name]["seed"])
    return IdentityKey(Ed25519PrivateKey.from_private_bytes(seed))


@pytest.mark.parametrize("name", ["desk", "pi"])
def test_introductions_hold_and_have_one_form(name: str) -> None:
    said = introductions()[name]
    assert Introduction.from_json(said).check().to_json() == said
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
    peer = tokens.read_token(given["peer"], key_of=keys.get, audience=pi.fingerprint, now=NOW)
    assert claims_of(given["peer"]) == shown("claims-peer")
    assert peer.sub == f"brainstem_{desk.fingerprint[:16]}"
    thumbprint = base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).rstrip(b"=").decode()
    assert shown("claims-peer")["cnf"] == {"x5t#S256": thumbprint}
    issued = tokens.read_token(given["issued"], key_of=keys.get, audience=pi.fingerprint, now=NOW)
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


def claims_of(token: str) -> Json:
    found: Json = json.loads(unb64(token.split(".")[1]))
    return found


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


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
        with pytest.raises(BadCapability):
            check(text)
    assert capability("HELP", "brainstem", "Clock") == "HELP.brainstem.Clock"


# Pairing.


def test_every_step_and_answer_is_read() -> None:
    kinds: dict[str, type[Any]] = {
        "answer-offer": steps.OfferAnswer,
        "answer-standing": steps.Standing,
        "answer-code": steps.CodeAnswer,
        "answer-confirm": steps.ConfirmAnswer,
    }
    stepped = {json.loads(text)["step"] for text in blocks("step-*")}
    assert stepped == {kind.__struct_config__.tag for kind in steps.Step.__args__} - {"stop"}  # type: ignore[attr-defined]
    for text in blocks("step-*"):
        assert steps.as_json(steps.read_step(whole(json.loads(text)))) == whole(json.loads(text))
    for mark, kind in kinds.items():
        for text in blocks(mark):
            assert steps.as_json(steps.read_answer(whole(json.loads(text)), kind)) == whole(json.loads(text))
    states = {row[0] for row in rows("state", "Means")}
    assert states == set(steps.State.__args__)  # type: ignore[attr-defined]


def plain(said: Json) -> bytes:
    """RFC 8785 for what has texts and whole numbers of ASCII alone."""
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


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
    one, other = (Introduction.from_json(said) for said in (desk, pi))
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
    one, other = (Introduction.from_json(said) for said in (desk, pi))
    assert pairing_proof.code_transcript(one, other, found["asks"], found["answers"]) == seen
    for role, name in (("asks", "desk"), ("answers", "pi")):
        over = b"rappd/pairing-code\n" + role.encode() + b"\n" + seen
        assert hmac.digest(key, over, "sha256").hex() == made[f"proof_{role}"]
        assert key_of(name).sign(over).hex() == made[f"signature_{role}"]


def test_the_code_of_another_implementation_of_spake2_is_understood() -> None:
    there = pairing_proof.CodeExchange("417-copper-otter-violin")
    here = SPAKE2_Symmetric(b"417-copper-otter-violin", idSymmetric=b"rappd/pairing-code\n")
    message = here.start()
    assert here.finish(there.message) == there.key(message)


# Announcements, addresses, published brainstems.


def test_announcements_have_the_form_that_the_page_says() -> None:
    said = dict(row[:2] for row in rows("Record", "Value"))
    made = announcement.Announcement("desk", "56475aa7" * 8, 7443)
    assert said["service"] == announcement.SERVICE
    assert made.instance == f"desk_{made.fingerprint[:16]}.{announcement.SERVICE}"
    assert made.server == f"{made.fingerprint[:12]}.local."
    assert {f"TXT {key}" for key in made.properties()} == {name for name in said if name.startswith("TXT ")}
    assert (said["TXT v"], made.properties()["v"]) == ("1", "1")
    dotted = announcement.Announcement("a.b\\c" + "x" * 60, made.fingerprint, 7443).instance
    label = dotted.removesuffix(f"_{made.fingerprint[:16]}.{announcement.SERVICE}")
    assert label.startswith("a-b-c") and len(label.encode()) == 40
    txt: dict[bytes, bytes | None] = {
        key.encode(): value.encode() for key, value in made.properties().items()
    }
    found = announcement.read({**txt, b"door": b"7777"}, 7443, ["192.168.1.12"], at=0)
    assert found is not None and found.port == 7777
    assert announcement.read({**txt, b"v": b"2"}, 7443, ["192.168.1.12"], at=0) is None


async def test_the_file_of_peers_is_read_and_its_entries_are_told_apart(tmp_path: Path) -> None:
    (text,) = blocks("peers-file")
    path = tmp_path / "peers.json"
    path.write_text(text)
    file = PeersFile(path, environment="https://pi.local,http://localhost:7071")
    found = [(one.name, one.address, one.legacy, one.rung) for one in await file.entries()]
    assert found == [
        ("", "192.168.1.20:7071", True, "list"),
        ("attic", "attic.local:7071", True, "list"),
        ("shed", "192.168.1.13:7443", False, "typed"),
        ("", "pi.local:7443", False, "list"),
    ]
    assert file.trouble == ""
    assert sightings.RUNGS == ("nearby", "last address", "list", "typed")
    assert ladder.RUNGS == sightings.RUNGS


def test_a_published_brainstem_is_sent_what_the_page_shows() -> None:
    said = shown("twin-chat")
    made = twin_chat(said["payload"]["text"], from_rappid=said["from_rappid"], nonce=said["nonce"])
    assert {**made, "utc": said["utc"]} == said
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["utc"])


# A machine that has read the page, and a daemon.


@pytest.fixture(scope="module")
def mine(house: House) -> PlainMachine:
    return house.peer("mine")


@pytest.fixture
def filled(house: House) -> Callable[[str, PlainMachine], Any]:
    """An example with the keys of the two that talk."""

    def fill(mark: str, machine: PlainMachine) -> Any:
        (text,) = blocks(mark)
        desk, pi = (introductions()[name]["fingerprint"][:16] for name in ("desk", "pi"))
        text = text.replace(desk, machine.fingerprint[:16]).replace(pi, house.fingerprint[:16])
        return json.loads(text)

    return fill


Filled = Callable[[str, PlainMachine], Any]


def test_the_call_on_the_page_is_answered_as_it_stands_there(mine: PlainMachine, filled: Filled) -> None:
    asked = filled("request-help", mine)
    got = mine.post(asked)
    assert (got.status, got.json) == (200, filled("response-help-200", mine))
    assert mine.request("GET", f"/envelopes/{asked['id']}").json == got.json
    assert mine.post(asked).json == got.json


def test_the_malformed_one_is_refused_as_it_stands_there(mine: PlainMachine, filled: Filled) -> None:
    got = mine.post({**filled("request-help", mine), "data2": 1})
    assert (got.status, got.json) == (400, filled("response-malformed-400", mine))


def test_the_batch_is_answered_as_it_stands_there(mine: PlainMachine, filled: Filled) -> None:
    asked = filled("request-batch", mine)
    got = mine.request("POST", "/envelopes/batch", asked)
    assert (got.status, got.json) == (200, filled("response-batch-200", mine))
    assert mine.waits_for(asked[0]["id"])["data"]["result"]


def test_a_strangers_hello_is_answered_with_the_card_that_stands_there(house: House, filled: Filled) -> None:
    who = house.stranger()
    got = who.post(filled("request-hello", who), certificate=False)
    told = filled("response-hello-200", who)
    assert got.status == 200
    assert {**got.json, "data": 0} == {**told, "data": 0}
    assert {**got.data, "introduction": 0} == {**told["data"], "introduction": 0}
    assert got.data["introduction"].keys() == introductions()["pi"].keys()


def test_capabilities_and_unknown_ids_are_answered_as_they_stand_there(
    mine: PlainMachine, filled: Filled
) -> None:
    told = filled("response-capabilities-200", mine)
    got = mine.request("GET", f"/agents/{told['id']}/capabilities")
    assert (got.status, got.json) == (200, told)
    got = mine.request("GET", f"/envelopes/{uuid.uuid4()}")
    assert (got.status, got.json) == (404, filled("error", mine))


def test_progress_comes_as_events_that_end_with_the_answer(mine: PlainMachine) -> None:
    asked = mine.envelope("HELP", {"prompt": "how are you"})
    got = mine.post(asked, headers={"Accept": "text/event-stream"})
    assert got.headers["content-type"].startswith("text/event-stream")
    events = [
        dict(row.split(": ", 1) for row in one.splitlines() if not row.startswith(":"))
        for one in got.body.decode().strip().split("\n\n")
    ]
    assert [event["id"] for event in events] == [str(number + 1) for number in range(len(events))]
    *pieces, last = (wire.decode(event["data"].encode()) for event in events)
    assert [piece.data["n"] for piece in pieces] == [number + 1 for number in range(len(pieces))]
    assert {piece.verb for piece in pieces} == {"STREAM"}
    assert (last.verb, last.id) == ("DONE", asked["id"])
    again = mine.request("GET", f"/envelopes/{asked['id']}/stream", headers={"Last-Event-ID": "1"})
    assert again.body.startswith(b"id: 2\n")


def test_an_egg_arrives_as_the_page_says(house: House, mine: PlainMachine) -> None:
    assert house.daemon.cli("twins", "new", "Rose").returncode == 0
    egg = house.folder / "rose.egg"
    packed = house.daemon.cli("egg", "pack", "Rose", "--output", str(egg))
    assert packed.returncode == 0, packed.stderr
    octets = egg.read_bytes()
    headers = {"Content-Type": "application/octet-stream", "X-Rappd-Name": "rose%20of%20mine.egg"}
    got = mine.request("POST", "/eggs", octets, headers=headers)
    assert got.status == 200, got.body
    assert got.json["arrived"].keys() == shown("response-eggs-200")["arrived"].keys()
    assert got.json["arrived"] == {
        "id": hashlib.sha256(octets).hexdigest(),
        "name": "rose of mine.egg",
        "size": len(octets),
    }
    friend = house.peer("friend", scopes=[])
    refused = friend.request("POST", "/eggs", octets, headers=headers)
    assert (refused.status, refused.json["code"]) == (403, "refused")


def test_a_machine_that_follows_the_page_pairs_by_words(house: House) -> None:
    who = house.stranger()
    met = who.post(who.envelope("HELLO", {"capabilities": []}, to="broadcast"), certificate=False)
    theirs = met.data["introduction"]
    attempt, nonce = str(uuid.uuid4()), hashlib.sha256(who.public).digest()
    promise = b"rappd/pairing-nonce\n" + nonce + f"{who.fingerprint}{theirs['fingerprint']}".encode()

    def step(name: str, **more: Any) -> Json:
        body = {"step": name, "attempt": attempt, **more}
        got = who.request("POST", "/pairing", body, certificate=False)
        assert got.status == 200, got.body
        found: Json = got.json
        return found

    offered = step("offer", introduction=who.introduction, commitment=hashlib.sha256(promise).hexdigest())
    assert offered["introduction"] == theirs
    assert step("reveal", nonce=nonce.hex()) == {"state": "words"}
    said = plain(who.introduction) + plain(theirs) + nonce + bytes.fromhex(offered["nonce"])
    seen = hashlib.sha256(b"rappd/pairing-words\n" + said).digest()
    (listed,) = blocks("words")
    shown_there = house.owner("GET", f"/pairings/{attempt}")[1]["pairing"]
    assert shown_there["words"] == [listed.split()[byte] for byte in seen[:4]]
    status, _ = house.owner("POST", f"/pairings/{attempt}", {"same": True, "whose": "mine"})
    assert status == 200
    assert step("poll")["state"] == "waiting"
    yes = who.key.sign(b"rappd/pairing-verdict\n" + seen + b"1")
    ended = step("verdict", same=True, signature=yes.hex())
    assert ended["state"] == "paired"
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(theirs["public_key"]))
    key.verify(bytes.fromhex(ended["verdict"]["signature"]), b"rappd/pairing-verdict\n" + seen + b"1")
    assert who.post(who.help(args={"zone": "UTC"})).data["result"] == "it is UTC"


def test_a_machine_that_follows_the_page_pairs_by_code(house: House) -> None:
    who = house.stranger()
    status, found = house.owner("POST", "/pairings", {"offer_code": True, "whose": "mine"})
    assert status == 200, found
    met = who.post(who.envelope("HELLO", {"capabilities": []}, to="broadcast"), certificate=False)
    theirs, attempt = met.data["introduction"], str(uuid.uuid4())
    side = SPAKE2_Symmetric(found["pairing"]["code"].encode(), idSymmetric=b"rappd/pairing-code\n")
    message = side.start()
    begun = {"step": "code", "attempt": attempt, "introduction": who.introduction, "message": message.hex()}
    got = who.request("POST", "/pairing", begun, certificate=False)
    assert got.status == 200, got.body
    answer = bytes.fromhex(got.json["message"])
    key = side.finish(answer)
    seen = hashlib.sha256(
        b"rappd/pairing-code\n" + plain(who.introduction) + plain(theirs) + message + answer
    ).digest()
    over = b"rappd/pairing-code\nasks\n" + seen
    proof = {"proof": hmac.digest(key, over, "sha256").hex(), "signature": who.key.sign(over).hex()}
    got = who.request("POST", "/pairing", {"step": "confirm", "attempt": attempt, **proof}, certificate=False)
    assert got.status == 200, got.body
    assert got.json["state"] == "paired"
    back = b"rappd/pairing-code\nanswers\n" + seen
    assert got.json["proof"] == hmac.digest(key, back, "sha256").hex()
    assert who.post(who.help(args={"zone": "UTC"})).data["result"] == "it is UTC"


def test_the_page_says_nothing_of_a_door_that_is_not_there() -> None:
    """A2A and MCP map onto routes and verbs that exist."""
    mapped = PAGE[PAGE.index("\n## A2A and MCP\n") :]
    served = {row[0].partition(" ")[2] for row in rows("Route", "Who", "What")}
    for route in re.findall(r"`(?:GET|POST) (/(?:envelopes|agents/\{id\}|eggs)[^`]*)`", mapped):
        assert route in served, route
