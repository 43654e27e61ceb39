"""The list of waiting matters on a phone: seen only with the right, news dismissed there, and nothing else answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, ClassVar

import pytest
from fixtures.axe import THEMES, VIOLATIONS, axe_core
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import expect

from rappd.tether.devices import Device
from rappd.tether.phone_session import Dismiss, Hang, PhoneSession
from rappd.tether.phone_waiting import PhoneWaiting
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from twins.trust.quarantine import QuarantineList


def holding(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    daemon = make_daemon("desk", **reachable(), LLM_FAKE="1")
    place, source = daemon.home / "brainstem/agents/oven_agent.py", agent_source("Oven")
    place.parent.mkdir(parents=True)
    place.write_text(source)
    digest = hashlib.sha256(source.encode()).hexdigest()
    QuarantineList(daemon.home / "held.json", daemon.home).hold(place, digest, "Unsigned.", "kitchen.egg")
    return daemon.start()


def with_news(daemon: RunningDaemon) -> RunningDaemon:
    """As an earlier start left it: something failed, and nobody has read of it."""
    daemon.stop()
    row = ("timer:x", "schedule", time.time(), "Scheduled snapshot failed: no <b>room</b>.", "", "", 1)
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as store, store:
        store.execute(
            "INSERT INTO notices(key, kind, at, what, do, subject, told) VALUES(?,?,?,?,?,?,?)", row
        )
    return daemon.start()


async def test_phone_sees_what_waits_only_with_the_right_and_dismisses_news(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    desk = with_news(holding(make_daemon))
    phone = await AiortcClient(desk).pair(name="Anna")
    try:
        await phone.send_text(json.dumps({"type": "dismiss", "key": "code::agents/oven_agent.py"}))
        await phone.sees(lambda: "--notices" in phone.refused.get("", ""))
        assert phone.waiting == {}, "nothing is told to a phone without the right"
        desk.post("/devices/Anna", {"notices": True}, control=True)
        await phone.sees(lambda: len(phone.waiting.get("rows", ())) == 2)
        news, row = sorted(phone.waiting["rows"], key=lambda one: not one["news"])
        assert (set(row), row["news"]) == ({"key", "what", "at", "news"}, False)
        await phone.send_text(json.dumps({"type": "dismiss", "key": news["key"]}))
        await phone.sees(lambda: phone.waiting["rows"] == [row])
        await phone.send_text(json.dumps({"type": "dismiss", "key": row["key"]}))
        await phone.sees(lambda: "answered on the computer" in phone.refused.get("", ""))
        assert desk.get("/agents/held", control=True).json()["held"], "a phone approves and refuses nothing"
        desk.post("/agents/approve", {"filename": "oven_agent.py"}, control=True)
        await phone.sees(lambda: phone.waiting["rows"] == [])
        desk.post("/devices/Anna", {"notices": False}, control=True)
        await phone.sees(lambda: phone.waiting["may"] is False)
    finally:
        await phone.leave()


@pytest.mark.parametrize(("key", "action"), [("n:1", Dismiss("n:1")), (5, Hang("malformed key"))])
def test_frame_that_dismisses_news_is_checked(key: object, action: object) -> None:
    session = PhoneSession(0.0, may_talk=False)
    session.on_frame({"type": "hello"}, 0.0)
    assert session.on_frame({"type": "dismiss", "key": key}, 1.0) == [action]


async def test_change_while_the_list_is_read_is_shown_too() -> None:
    shown: list[int] = []
    read = asyncio.Event()

    class Owners:
        found: ClassVar[list[dict[str, Any]]] = [{"key": "n:1"}]

        async def rows(self) -> list[dict[str, Any]]:
            found = list(self.found)
            await read.wait()
            return found

        async def dismiss(self, key: str) -> None: ...

    class Anna:
        speaker = Device(id="a", name="Anna", secret="", notices=True, created_at=0.0)

        def withholds(self, right: str) -> bool:
            return False

        def show(self, message: dict[str, Any]) -> None:
            shown.append(len(message["rows"]))

    owners, phone = Owners(), Anna()
    waiting = PhoneWaiting(owners)
    waiting.show(phone)
    await asyncio.sleep(0)
    owners.found.append({"key": "n:2"})
    waiting.show(phone)
    read.set()
    async with asyncio.timeout(100):
        while len(shown) < 2:
            await asyncio.sleep(0.001)
    assert shown == [1, 2]
    await waiting.close()


@pytest.mark.browser
@needs_chromium
def test_phone_page_lists_what_waits_and_dismisses_news(make_daemon: Callable[..., RunningDaemon]) -> None:
    desk = with_news(holding(make_daemon))
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        window = desk.post("/devices/window", {"name": "Anna", "session": True}, control=True).json()
        page.goto(window["links"][0])
        page.get_by_role("button", name="Same number").click()
        desk.post("/devices/window/answer", {"id": window["id"], "same": True}, control=True)
        page.get_by_role("button", name="Start talking").wait_for()
        assert desk.post("/devices/Anna", {"notices": True}, control=True).status == 200
        page.get_by_role("button", name="Start talking").click()
        page.get_by_label("Conversations and more, 2 waiting").click()
        expect(page.locator("details.owners summary")).to_have_text("Waiting for you: 2", timeout=60_000)
        page.get_by_text("Waiting for you: 2").click()
        expect(page.get_by_text("Only on the computer.")).to_be_visible()
        page.evaluate(axe_core())
        for theme, rules in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            assert page.evaluate(VIOLATIONS, rules) == [], theme
            if folder := os.environ.get("RAPPD_SHOTS"):
                page.screenshot(path=f"{folder}/phone-waiting-{theme}.png")
        page.get_by_role("button", name="Dismiss: Scheduled snapshot failed: no <b>room</b>.").click()
        expect(page.get_by_text("Waiting for you: 1")).to_be_visible()
        page.reload()
        page.get_by_label("Conversations and more, 1 waiting").click()
        page.get_by_text("Waiting for you: 1").wait_for()
