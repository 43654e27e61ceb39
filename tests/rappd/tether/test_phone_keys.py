"""A phone over a WebSocket: with a key of its own it has its owner's memory and talks; by its secret alone it is a guest's."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import expect

from envelopes.envelope import new_id
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_browser import PhonePage
from tests.rappd.tether.phone_client import PhoneClient

OWNERS = "what the owner said"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon that serves phones over https, whose owner has said something."""
    folder = tmp_path_factory.mktemp("keys")
    found = RunningDaemon(folder / "home", **reachable(), LLM_FAKE="1", RAPPD_TETHER_TLS="on").start()
    assert found.post("/chat", {"user_input": OWNERS}).status == 200
    yield found
    found.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def anna(desk: RunningDaemon) -> AsyncIterator[PhoneClient]:
    """The owner's own phone, in a browser without WebRTC."""
    phone = PhoneClient(desk)  # type: ignore[arg-type]
    phone.key = ec.generate_private_key(ec.SECP256R1())
    await phone.pair("mine", name="Anna")
    yield phone
    await phone.leave()
    await asyncio.to_thread(desk.request, "DELETE", f"/devices/{phone.name}", None, control=True)


async def conversations(phone: PhoneClient) -> list[str]:
    status, found = await phone.ask("GET", "/conversations")
    assert status == 200
    return [row["title"] for row in found["conversations"]]


async def test_own_phone_with_a_key_has_its_owners_conversations_and_only_talks(anna: PhoneClient) -> None:
    await anna.leave()
    await anna.resume()
    assert anna.standing["kind"] == "mine" and OWNERS in await conversations(anna)
    asked = {"user_input": "and this?", "turn_id": new_id()}
    assert (await anna.ask("POST", "/chat/stream", asked))[1][-1][1]["type"] == "done"
    assert await anna.egg_token() == "" and "not over a WebSocket" in anna.refused["egg_token"]
    for frame in (
        {"type": "workflow", "action": "start", "name": "x"},
        {"type": "answer", "key": "code::x", "sha256": "ab", "yes": True},
        {"type": "dismiss", "key": "x"},
    ):
        anna.refused = {}
        await anna.send(frame)
        await anna.sees(lambda: "not over a WebSocket" in anna.refused.get("", ""))


@pytest.mark.parametrize("key", [None, ec.generate_private_key(ec.SECP256R1())], ids=["none", "another"])
async def test_stolen_secret_without_the_key_is_a_guests(
    anna: PhoneClient, desk: RunningDaemon, key: Any
) -> None:
    await anna.leave()
    anna.key = key
    await anna.resume()
    assert anna.standing["kind"] == "guest" and await conversations(anna) == []
    news = await asyncio.to_thread(desk.get, "/notices", control=True)
    assert any("Anna came back by its secret alone" in one["what"] for one in news.json()["notices"])


async def test_key_that_was_not_there_at_the_pairing_counts_for_nothing(desk: RunningDaemon) -> None:
    phone = await PhoneClient(desk).pair("mine", name="Carl")  # type: ignore[arg-type]
    try:
        await phone.leave()
        phone.key = ec.generate_private_key(ec.SECP256R1())
        await phone.resume()
        assert phone.standing["kind"] == "guest"
    finally:
        await phone.leave()


async def test_phone_of_a_certificate_falls_back_to_its_key(desk: RunningDaemon) -> None:
    phone = AiortcClient(desk)  # type: ignore[arg-type]
    phone.key = ec.generate_private_key(ec.SECP256R1())
    await phone.pair("mine", name="Dora")
    await phone.leave()
    other = PhoneClient(desk)  # type: ignore[arg-type]
    other.key, other._scheme, other._address = phone.key, phone._scheme, phone._address
    other._device = phone._device
    await other.resume()
    assert other.standing["kind"] == "mine" and OWNERS in await conversations(other)
    await other.leave()


async def test_key_over_a_line_that_others_read_counts_for_nothing(tmp_path: Any) -> None:
    desk = RunningDaemon(tmp_path / "home", **reachable(), LLM_FAKE="1").start()
    phone = PhoneClient(desk)  # type: ignore[arg-type]
    phone.key = ec.generate_private_key(ec.SECP256R1())
    try:
        await phone.pair("mine", name="Anna")
        assert phone.standing["kind"] == "guest"
        await phone.leave()
    finally:
        await asyncio.to_thread(desk.stop)


@pytest.mark.browser
@needs_chromium
def test_browser_without_webrtc_makes_a_key_and_comes_back_by_it(desk: RunningDaemon) -> None:
    with chromium() as browser:
        phone = PhonePage(browser, desk, ignore_https_errors=True)
        phone.page.add_init_script("delete window.RTCPeerConnection;")
        page = phone.pair("Emma", "mine")
        for _ in range(2):
            phone.opens()
            expect(page.locator(".conversation-title", has_text=OWNERS)).to_have_count(1)
            page.reload()
            expect(page.locator(".bar .state")).to_have_text("● connected")
        (row,) = [
            one for one in desk.get("/devices", control=True).json()["devices"] if one["name"] == "Emma"
        ]
        assert row["way"] == "websocket"
        assert phone.errors == []
