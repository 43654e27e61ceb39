"""Phones of one address, and two tabs of one phone: none keeps the other out, and strangers are still counted."""

from __future__ import annotations

import json
import os
import secrets
import time
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from rappd.daemon.rate_limit import RateLimit, RateLimitedError
from rappd.listeners import tether_listener
from rappd.tether import proofs
from rappd.tether.phones import Phones
from tests.rappd.tether.conftest import MakePhone
from tests.rappd.tether.phone_client import PhoneClient


async def reason(phone: PhoneClient, device: str) -> str:
    """The reason why an offer for that device is refused."""
    host, port = phone.address
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"http://{host}:{port}/tether/v2/socket") as line,
    ):
        await line.send_str(json.dumps({"device": device, "commit": proofs.b64(secrets.token_bytes(32))}))
        return str(json.loads((await line.receive()).data).get("reason", ""))


async def test_phones_of_one_address_are_counted_apart_and_strangers_together(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    phones = [await phone(name=name) for name in ("Anna", "Ben", "Carla")]
    for _ in range(5):  # fifteen times from one address within the minute
        for one in phones:
            await one.leave()
            await one.resume()
    answered = await phones[0].say("still here")
    await phones[0].is_answered(answered)
    told = [await reason(phones[0], new_id()) for _ in range(12)]
    assert told[0] == "unknown_device" and told[-1] == "too_many", told
    await phones[1].leave()
    await phones[1].resume()  # the strangers' address is the phones' own
    for _ in range(40):
        if await reason(phones[0], phones[2].id) == "too_many":
            break
    else:
        pytest.fail("one device may try without end")
    await phones[0].leave()
    await phones[0].resume()


def test_stranger_who_names_a_device_from_elsewhere_leaves_it_its_share() -> None:
    app = web.Application()
    app[tether_listener.PHONES] = cast("Phones", SimpleNamespace(registered=lambda device: device))
    app[tether_listener.DEVICE_OFFERS] = RateLimit(3, 60)
    elsewhere, home = (
        make_mocked_request("POST", "/", app=app).clone(remote=address)
        for address in ("10.9.9.9", "192.168.1.20")
    )
    with pytest.raises(RateLimitedError):
        for _ in range(4):
            tether_listener._count(elsewhere, {"device": "anna"})
    tether_listener._count(home, {"device": "anna"})


@pytest.mark.browser
@needs_chromium
def test_two_tabs_of_one_phone_do_not_end_each_other(desk: RunningDaemon) -> None:
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 390, "height": 844})
        context.set_default_timeout(60_000)
        first = context.new_page()
        window = desk.post("/devices/window", {"name": "Anna", "session": True}, control=True).json()
        first.goto(window["links"][0])
        first.get_by_role("button", name="Same number").click()
        desk.post("/devices/window/answer", {"id": window["id"], "same": True}, control=True)
        first.get_by_role("button", name="Start talking").click()
        first.get_by_text("● connected").wait_for()
        second = context.new_page()
        second.goto(window["links"][0].partition("#")[0])
        second.get_by_text("● connected").wait_for()
        first.get_by_text("desk is open in another tab of this phone.").wait_for()
        if folder := os.environ.get("RAPPD_SHOTS"):
            first.screenshot(path=f"{folder}/phone-two-tabs.png")
        desk.wait_for_log("a phone's connection ended")
        connected = desk.log.count("a phone's connection ended")
        time.sleep(3)  # the first would have come back after one second
        assert desk.log.count("a phone's connection ended") == connected
        second.get_by_label("Message").fill("from the second")
        second.get_by_label("Message").press("Enter")
        second.get_by_text("fake-llm: from the second").wait_for()
        first.get_by_role("button", name="Go on here").click()
        first.get_by_text("fake-llm: from the second").wait_for()
        second.get_by_text("desk is open in another tab of this phone.").wait_for()
