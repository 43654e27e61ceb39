"""A stranger who wants to pass for a registered phone: real sockets, aiortc with a certificate of its own, a running daemon."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiortc import RTCCertificate
from fixtures.running_daemon import RunningDaemon

from rappd.tether import proofs
from rappd.tether.rtc_worker import own_parameters
from rappd.tether.webrtc_parameters import TransportParameters, hex_pairs
from tests.rappd.tether.aiortc_client import AiortcClient, peer_with
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.hostile_fields import hostile, lines_of
from tests.rappd.tether.phone_client import PhoneClient

ENDED = "a phone's connection ended: certificate"
COMMIT = proofs.b64(proofs.commitment(bytes(16)))


class Thief(AiortcClient):
    """Knows the phone's id and its secret, and says that it has the phone's certificate."""

    def __init__(self, phone: AiortcClient) -> None:
        super().__init__(phone.daemon)
        self._address, self._device = phone._address, dict(phone._device)

    def _offered(self, own: TransportParameters) -> TransportParameters:
        return msgspec.structs.replace(own, fingerprint=hex_pairs(bytes.fromhex(self.id)))


@pytest.fixture
async def phone(desk: RunningDaemon) -> AsyncIterator[AiortcClient]:
    """A phone that is registered by its certificate, and away."""
    made = await AiortcClient(desk).pair(name="Anna", eggs=True)
    await owner(desk, "POST", "/devices/Anna", {"eggs": True, "workflows": True, "notices": True})
    await made.leave()
    yield made
    await made.leave()


async def owner(desk: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await asyncio.to_thread(desk.request, method, path, body, control=True)
    assert answer.status == 200, answer.body
    return answer.json()


async def refusals(phone: PhoneClient, bodies: dict[str, str]) -> dict[str, int]:
    """Statuses of offers, each as text; nine come from one address, which may send ten in a minute."""
    found, names = {}, list(bodies)
    for at in range(0, len(names), 9):
        local = aiohttp.TCPConnector(local_addr=(f"127.0.0.{10 + at // 9}", 0))
        async with aiohttp.ClientSession(connector=local) as http:
            for name in names[at : at + 9]:
                headers = {"Content-Type": "application/json"}
                url = f"http://{phone._address}/tether/v2/offer"
                async with http.post(url, data=bodies[name].encode(), headers=headers) as answer:
                    found[name] = answer.status
    return found


async def test_stranger_resumes_by_no_form_of_words(desk: RunningDaemon, phone: AiortcClient) -> None:
    theirs, own = hex_pairs(bytes.fromhex(phone.id)), RTCCertificate.generateCertificate()
    thief = next(one.value for one in own.getFingerprints() if one.algorithm == "sha-256")
    peer = peer_with(own)
    peer.createDataChannel("rapp")
    await peer.setLocalDescription(await peer.createOffer())
    good = {**msgspec.to_builtins(own_parameters(peer, "actpass")), "fingerprint": theirs}
    asked = {"device": phone.id, "commit": COMMIT}
    bodies = {name: json.dumps({**asked, "transport": it}) for name, it in hostile(good, thief).items()}
    sdp = peer.localDescription.sdp
    for number, line in enumerate(lines_of(theirs)):  # as it was offered once
        bodies[f"description {number}"] = json.dumps({**asked, "sdp": f"{sdp}{line}\r\n"})
        bodies[f"both {number}"] = json.dumps({**asked, "sdp": f"{sdp}{line}\r\n", "transport": good})
    inner = json.dumps({**good, "fingerprint": thief})[1:-1]
    whole = json.dumps({**asked, "transport": good})
    bodies["fields twice"] = whole.replace('"transport": {', '"transport": {' + inner + ", ")
    bodies["transport twice"] = whole[:-1] + ', "transport": {' + inner + "}}"
    own_fields = json.dumps({**asked, "transport": {**good, "fingerprint": thief}})
    found = await refusals(phone, bodies)
    assert set(found.values()) == {400}, {name: status for name, status in found.items() if status != 400}
    assert await refusals(phone, {"its own": own_fields}) == {"its own": 409}
    assert "resumes" not in desk.log
    await peer.close()
    await phone.resume()  # and it is the form that is refused, not the phone


async def test_stranger_who_offers_the_phones_certificate_gets_no_connection(
    desk: RunningDaemon, phone: AiortcClient
) -> None:
    thief = Thief(phone)
    going = asyncio.create_task(thief.resume())
    await asyncio.to_thread(desk.wait_for_log, "a phone's connection ended: closed")
    assert not going.done()
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    await thief.leave()
    await phone.resume()


BLIND = """
import sys
if "rappd" in sys.orig_argv:
    from agents.programs import programs
    python = programs.python
    def blind(*words):
        if words[:2] != ("-m", "rappd.tether.rtc_worker"):
            return python(*words)
        program = "import asyncio, sys, aiortc; from rappd.tether import rtc_worker;" \\
            "assert callable(aiortc.RTCDtlsTransport._validate_peer_identity);" \\
            "aiortc.RTCDtlsTransport._validate_peer_identity = lambda self, parameters: None;" \\
            "asyncio.run(rtc_worker.serve(int(sys.argv[1])))"
        return python("-c", program, words[2])
    programs.python = blind
"""
"""Starts the WebRTC process with a library that compares no certificate."""


async def test_certificate_of_the_open_channel_decides_not_the_offered_one(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLIND)
    desk = make_daemon("desk", **reachable(), LLM_FAKE="1", PYTHONPATH=str(tmp_path))
    await asyncio.to_thread(desk.start)
    phone = await AiortcClient(desk).pair(name="Anna")
    await phone.leave()
    thief = Thief(phone)
    going = asyncio.create_task(thief.resume())
    await asyncio.to_thread(desk.wait_for_log, ENDED)
    assert not going.done() or going.exception() is not None
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    (row,) = (await owner(desk, "GET", "/devices"))["devices"]
    assert not row["connected"]
    await thief.leave()
    window = await owner(desk, "POST", "/devices/window", {})
    pairing = Thief(phone)
    going = asyncio.create_task(pairing.proves(window))
    await asyncio.to_thread(desk.wait_for, lambda: desk.log.count(ENDED) == 2)
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    assert (await owner(desk, "GET", "/devices/window"))["state"] == "open"
    await pairing.leave()
    await phone.resume()
    await phone.leave()


async def test_phone_without_its_secret_resumes_nowhere(desk: RunningDaemon, phone: AiortcClient) -> None:
    phone._device["secret"] = proofs.b64(bytes(32))
    with pytest.raises(AssertionError, match="'reason': 'expired'"):
        await phone.resume()
    await phone.leave()
    other = PhoneClient(desk)
    other._address, other._device = phone._address, phone._device
    with pytest.raises(AssertionError, match="'reason': 'expired'"):
        await other.resume()
    await other.leave()


async def test_secret_is_sent_when_pairing_and_never_again(desk: RunningDaemon) -> None:
    phone = AiortcClient(desk)
    heard: list[str] = []

    async def listening(real: Callable[[], Any] = phone._receive) -> str | None:
        heard.append(await real() or "")
        return heard[-1]

    phone._receive = listening  # type: ignore[method-assign]
    await phone.pair()
    secret = phone._device["secret"]
    assert len([text for text in heard if secret in text]) == 1
    heard.clear()
    await phone.leave()
    await phone.resume()
    await phone.is_answered(await phone.say("hello"))
    await phone.leave()
    alone = PhoneClient(desk)
    alone._address, alone._device = phone._address, dict(phone._device)
    alone._receive, real = listening, alone._receive  # type: ignore[method-assign]
    listening.__defaults__ = (real,)
    await alone.resume()
    await alone.is_answered(await alone.say("hello"))
    await alone.leave()
    assert {"paired", "welcome", "events"} <= {json.loads(text)["type"] for text in heard if text}
    assert not [text for text in heard if secret in text or "secret" in text]


async def test_secret_alone_talks_over_a_websocket_without_rights_and_the_owner_hears_of_it(
    desk: RunningDaemon, phone: AiortcClient
) -> None:
    alone = PhoneClient(desk)
    alone._address, alone._device = phone._address, dict(phone._device)
    await alone.resume()
    assert (await alone.is_answered(await alone.say("hello")))["text"] == "fake-llm: hello"
    await alone.sees(lambda: alone.eggs)
    assert alone.eggs["may"] is False and alone.workflows == [] and alone.waiting == {}
    assert await alone.egg_token() == "" and "private line" in alone.refused["egg_token"]
    for frame in (
        {"type": "workflow", "action": "start", "name": "debate"},
        {"type": "dismiss", "key": "device:x"},
    ):
        alone.refused.clear()
        await alone._send(frame)
        await alone.sees(lambda: "private line" in alone.refused.get("", ""))
    (row,) = (await owner(desk, "GET", "/notices"))["notices"]
    assert row["what"] == "Anna came back by its secret alone, over a WebSocket from 127.0.0.1."
    assert row["do"].endswith(f"rappd devices revoke {phone.id[:8]}")
    await owner(desk, "POST", "/notices/dismiss", {"all": True})
    await alone.leave()
    await alone.resume()
    assert (await owner(desk, "GET", "/notices"))["notices"] == [], "told once for each address"
    await alone.leave()
    await phone.resume()
    await phone.sees(lambda: phone.eggs.get("may"))
    assert await phone.egg_token()


async def test_phone_that_joined_without_a_certificate_resumes_by_websocket_alone(
    desk: RunningDaemon,
) -> None:
    alone = await PhoneClient(desk).pair(name="Ben")
    await alone.leave()
    await alone.resume()
    assert (await owner(desk, "GET", "/notices"))["notices"] == [], "it joined from there"
    await alone.leave()
    other = AiortcClient(desk)
    other._address, other._device = alone._address, dict(alone._device)
    with pytest.raises(AssertionError, match="other_certificate"):
        await other.resume()
    await other.leave()


async def test_phone_registered_by_an_earlier_version_resumes(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    desk = make_daemon("desk", **reachable(), LLM_FAKE="1")
    phone = AiortcClient(desk)
    prints = {one.algorithm: one.value for one in phone.certificate.getFingerprints()}
    phone._device = {
        "device": prints["sha-256"].replace(":", "").lower(),
        "secret": proofs.b64(bytes(range(32))),
    }
    phone._address = f"127.0.0.1:{desk.environment['RAPPD_TETHER_PORT']}"
    kept = {
        "id": phone.id, "name": "iPhone", "secret": phone._device["secret"], "scope": "talk", "workflows": False,
        "eggs": True, "notices": False, "version": 7, "user": "", "certificate": True, "created_at": time.time(),
        "seen_at": time.time(), "seen_from": "192.168.1.31", "session": "",
    }  # fmt: skip
    desk.home.mkdir(parents=True)
    (desk.home / "devices.json").write_text(json.dumps({"devices": [kept]}))
    await asyncio.to_thread(desk.start)
    await asyncio.to_thread(desk.wait_for_log, "the listener for phones is open")
    await phone.resume()
    assert (await phone.is_answered(await phone.say("hello")))["text"] == "fake-llm: hello"
    await phone.sees(lambda: phone.eggs.get("may"))
    await phone.leave()
