"""Messages in XML: bytes to an envelope and back, beside what lxml alone needs for the same bytes; and signed."""

from __future__ import annotations

import time
from collections.abc import Callable

from lxml import etree

from envelopes.codecs import xml_message
from envelopes.envelope import Envelope, brainstem_id, new_id
from envelopes.identity.keys import IdentityKey
from envelopes.identity.keys import verify as verify_bytes
from envelopes.identity.signatures import sign, verify

_ROUNDS = 3000
_BODY = '<add xmlns="https://xml-pipeline.org/ns/calc/add/v1"><a>1</a><b>2</b></add>'


def _rate(work: Callable[[], object]) -> float:
    """Runs of ``work`` in a second: the best of five."""
    best = 0.0
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(_ROUNDS):
            work()
        best = max(best, _ROUNDS / (time.perf_counter() - began))
    return best


def run() -> list[tuple[str, str]]:
    """Rates, and the ratios that count."""
    key, now = IdentityKey.generate(), time.time()
    data = {"ns": "https://xml-pipeline.org/ns/calc/add/v1", "root": "add", "body": _BODY}
    envelope = Envelope(new_id(), brainstem_id(key.fingerprint), "brainstem_24f6ed6acbfe1009", "HELP", data)
    raw = xml_message.encode(envelope)
    schema = etree.XMLSchema(etree.parse(xml_message.SCHEMA_FILE))
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)

    def alone() -> bytes:
        root = etree.fromstring(raw, parser)
        schema.assertValid(root)
        return etree.tostring(root, method="c14n", exclusive=True)

    def ours() -> bytes:
        return xml_message.encode(xml_message.decode(raw, recipient="core").envelope)

    signed = xml_message.encode(sign(envelope, key, now))

    def signing() -> bytes:
        found = xml_message.decode(signed, recipient="core").envelope
        verify(found, now)
        return xml_message.encode(sign(envelope, key, now))

    def bare() -> None:
        verify_bytes(key.public, key.sign(raw), raw)

    rates = [_rate(work) for work in (alone, ours, bare, signing)]
    return [
        ("lxml alone: parse, validate, canonicalise", f"{rates[0]:,.0f}/s"),
        ("bytes to envelope to bytes", f"{rates[1]:,.0f}/s, {rates[1] / rates[0]:.2f} of lxml alone (0.4)"),
        ("one Ed25519 signature and verification", f"{rates[2]:,.0f}/s"),
        (
            "signed: verified, and answered signed",
            f"{rates[3]:,.0f}/s, {rates[2] / rates[3]:.2f} times (2.5)",
        ),
    ]
