"""Bad input on a running daemon: the device that sends it is refused or closed, the others stay."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from rappd.tether import proofs
from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]

MEDIA = '"sdp": "v=0\\r\\no=- 1 1 IN IP4 127.0.0.1\\r\\ns=-\\r\\nt=0 0\\r\\nm=audio 9 UDP/TLS/RTP/SAVPF 111"'
CHUNK = {"type": "chunk", "id": "a", "total": 257, "data": "x"}
PRIVILEGED = "https://xml-pipeline.org/privileged-msg"
BAD_FRAMES = {
    "frame above 16 KiB": [json.dumps({"type": "typing", "pad": "x" * 16_400})],
    "257th chunk": [json.dumps({**CHUNK, "n": n}) for n in range(257)],
    "unknown kind": [json.dumps({"type": "install", "name": "agent"})],
    "no JSON": ["{"],
    "a privileged message": [json.dumps({"type": "say", "data": {"ns": PRIVILEGED, "root": "shutdown"}})],
}


@pytest.mark.parametrize("kind", BAD_FRAMES)
async def test_bad_frame_closes_that_device_and_no_other(
    desk: RunningDaemon, phone: MakePhone, kind: str
) -> None:
    bad, good = await phone(name="bad"), await phone(name="good")
    await good.sees(lambda: "bad" in good.here)
    for frame in BAD_FRAMES[kind]:
        await bad.send_text(frame)
    await good.sees(lambda: good.here == ["good"])
    assert (await good.is_answered(await good.say("still here")))["text"] == "fake-llm: still here"
    if kind == "a privileged message":
        await asyncio.to_thread(
            desk.wait_for_log, "security: a privileged message came to the listener for phones"
        )


async def test_event_before_confirmation_closes_that_device_and_no_other(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    good = await phone(name="good")
    window = (await asyncio.to_thread(desk.request, "POST", "/devices/window", {}, control=True)).json()
    early = PhoneClient(desk)
    await early.proves(window)
    await early.send_text(json.dumps({"type": "say", "event_id": new_id(), "text": "early", "to": ""}))
    assert await early.is_closed()
    shown = (await asyncio.to_thread(desk.request, "GET", "/devices", control=True)).json()["devices"]
    assert [one["name"] for one in shown] == ["good"]
    assert "early" not in good.texts()
    assert (await good.is_answered(await good.say("still here")))["text"] == "fake-llm: still here"


BAD_OFFERS: dict[str, tuple[str, dict[str, str], int]] = {
    "a session description": (MEDIA, {}, 400),
    "a name twice": ('"transport": {}, "transport": {}', {}, 400),
    "above 16 KiB": (f'"transport": "{"x" * (17 << 10)}"', {}, 413),
    "far above": (f'"transport": "{"x" * (80 << 10)}"', {}, 413),
    "foreign Origin": (MEDIA, {"Origin": "http://evil.example"}, 403),
    "foreign Host": (MEDIA, {"Host": "evil.example"}, 403),
}


@pytest.mark.parametrize("case", BAD_OFFERS)
async def test_bad_offer_is_refused(desk: RunningDaemon, case: str) -> None:
    more, headers, status = BAD_OFFERS[case]
    window = (await asyncio.to_thread(desk.request, "POST", "/devices/window", {}, control=True)).json()
    address = re.findall(r"http://([^/]+)/t#", window["links"][0])[0]
    body = f'{{"window": "{window["id"]}", "commit": "{proofs.b64(bytes(32))}", {more}}}'
    headers = {"Content-Type": "application/json", **headers}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"http://{address}/tether/v2/offer", data=body, headers=headers) as answer,
    ):
        found: Any = await answer.json()
        assert (answer.status, set(found)) == (status, {"error", "do", "code"}), found
    state = (await asyncio.to_thread(desk.request, "GET", "/devices/window", control=True)).json()
    assert state["state"] == "open", "a bad offer does not burn the code"


@pytest.mark.parametrize("last_seq", [0, 3, 1_000_000])
async def test_phone_that_lost_its_place_gets_what_it_lacks_without_a_gap(
    desk: RunningDaemon, phone: MakePhone, last_seq: int
) -> None:
    android = await phone()
    for text in ("one", "two"):
        await android.is_answered(await android.say(text))
    before = list(android.events)
    await android.leave()
    android.last_seq = last_seq
    android.events = [one for one in before if one["seq"] <= last_seq] if last_seq < 1_000_000 else []
    await android.resume()
    await android.sees(lambda: len(android.events) >= len(before))
    assert android.events == before
