"""Messages in XML: bytes to an envelope and back, beside what lxml alone needs; signed; and a listener asked in XML and JSON."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from lxml import etree

from benchmarks.daemon import free_port
from envelopes.codecs import emergence, xml_message
from envelopes.envelope import Envelope, brainstem_id, new_id
from envelopes.identity.keys import IdentityKey
from envelopes.identity.keys import verify as verify_bytes
from envelopes.identity.signatures import sign, verify

_ROUNDS = 3000
_BODY = '<add xmlns="https://xml-pipeline.org/ns/calc/add/v1"><a>1</a><b>2</b></add>'


_CALLS = 600
_SUM = {"a": "0.1", "operation": "add", "b": "0.2"}
_CALCULATE = '<calculate xmlns="https://xml-pipeline.org/ns/calculator/calculator/v1"><a>0.1</a><operation>add</operation><b>0.2</b></calculate>'


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
        *asyncio.run(_asked()),
    ]


async def _asked() -> list[tuple[str, str]]:
    """The calculator asked by a paired machine, through dispatcher, store and worker: bytes to bytes, one after the other."""
    from rappd.daemon.home import Home
    from rappd.daemon.open_home import open_home
    from rappd.dispatch.rights import Caller
    from rappd.settings.load import Settings

    peer = IdentityKey.generate()
    who = Caller("federation", peer=peer.fingerprint, caps=("*",), mine=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        home.create()
        ports = {
            "PORT": str(free_port()),
            "RAPPD_PEERS_PORT": str(free_port()),
            "RAPPD_PEERS_ADDRESS": "127.0.0.1",
        }
        quiet = {"RAPPD_LOCAL_MODELS": "off", "RAPPD_NEARBY": "off", "RAPPD_PEERS_LOOPBACK": "on"}
        settings = Settings.load(home, {**os.environ, **ports, **quiet})
        async with open_home(home, settings) as daemon:
            receiver = await daemon.machines.receiver.ready()
            own = daemon.machines.node.id
            sender = brainstem_id(peer.fingerprint)

            async def in_json() -> bytes:
                asked = Envelope(new_id(), sender, own, "HELP", {"agent": "calculator", "args": _SUM})
                envelope = emergence.decode(emergence.encode(asked))
                reply = await receiver.receive(envelope, who, stream=False)
                assert reply is not None and reply.verb == "DONE", reply
                return emergence.encode(reply)

            async def in_xml() -> bytes:
                raw = f'<message xmlns="{xml_message.ENVELOPE_NS}"><meta><from>{sender}</from><thread/></meta>{_CALCULATE}</message>'
                envelope = xml_message.decode(raw.encode(), recipient=own).envelope
                reply = await receiver.receive(envelope, who, stream=False)
                assert reply is not None and reply.verb == "DONE", reply
                return xml_message.encode(reply)

            best = {"json": 0.0, "xml": 0.0}
            for _ in range(5):
                for name, call in (("json", in_json), ("xml", in_xml)):
                    best[name] = max(best[name], await _calls(call))
    return [
        ("a listener asked in JSON", f"{best['json']:,.0f}/s"),
        ("the same in XML", f"{best['xml']:,.0f}/s, {best['xml'] / best['json']:.2f} of it (0.5)"),
    ]


async def _calls(call: Callable[[], Awaitable[bytes]]) -> float:
    began = time.perf_counter()
    for _ in range(_CALLS):
        await call()
    return _CALLS / (time.perf_counter() - began)
