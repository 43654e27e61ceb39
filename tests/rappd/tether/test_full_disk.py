"""Sentences of phones while the disk is full: each is refused with the reason, or answered once there is room."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.full_disk import FillableDisk, fillable_disk
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import expect

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient

LONG = "x" * 12_000

pytestmark = pytest.mark.needs_root


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FillableDisk]:
    with fillable_disk(tmp_path) as made:
        yield made


@pytest.fixture
def desk(disk: FillableDisk) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(disk.root / "home", **reachable(), LLM_FAKE="1").start()
    yield daemon
    disk.empty()
    daemon.stop()


@pytest.fixture
async def android(desk: RunningDaemon) -> AsyncIterator[PhoneClient]:
    phone = await PhoneClient(desk).pair(name="Android")
    yield phone
    await phone.leave()


async def told(phone: PhoneClient, id: str) -> bool:
    """Waits until a sentence is refused or answered; True for refused."""
    await phone.sees(lambda: id in phone.refused or phone.answers(id))
    return id in phone.refused


def fits(desk: RunningDaemon) -> bool:
    """Says a sentence at the desk; False if there was no room for the sentence itself."""
    answer = desk.post("/sessions/current/say", {"text": LONG, "wait": True}, control=True)
    return answer.status == 200 or "It was done" in answer.json()["error"]


def recorded(phone: PhoneClient, id: str) -> int:
    return sum(one["event_id"] == id and one["kind"] == "operator_input" for one in phone.events)


async def test_sentences_on_a_full_disk_are_refused_or_answered_later(
    desk: RunningDaemon, disk: FillableDisk, android: PhoneClient
) -> None:
    await android.is_answered(await android.say("before"))
    disk.fill()
    said: list[str] = []
    for _ in range(400):  # the log has room of its own
        said.append(await android.say(LONG))
        if await told(android, said[-1]) and not recorded(android, said[-1]):
            break
    never = said[-1]
    assert android.refused[never] == "The disk is full; rappd.db cannot grow. What was answered is kept."
    late = [one for one in said[:-1] if one in android.refused]
    for one in late:  # was asked, and its answer is kept
        assert recorded(android, one) and android.refused[one].startswith("It was done, and the answer")
    disk.empty()
    for one in late:
        assert (await android.is_answered(one))["text"] == f"fake-llm: {LONG}"
    del android.refused[never]
    await android.say(LONG, id=never)  # as the page does once it is connected anew
    await android.is_answered(never)
    for one in said:
        assert (recorded(android, one), len(android.answers(one))) == (1, 1)
    assert desk.cli("threads", "verify").returncode == 0


async def test_invitation_and_end_count_only_once_recorded(
    desk: RunningDaemon, disk: FillableDisk, android: PhoneClient
) -> None:
    def change(path: str) -> int:
        return desk.post(f"/sessions/current/{path}", control=True).status

    def rose_answers() -> int:
        return desk.post("/sessions/current/backend", {"name": "Rose"}, control=True).status

    await asyncio.to_thread(desk.post, "/twins", {"name": "Rose"}, control=True)
    disk.fill()
    while not await told(android, await android.say(LONG)):
        pass
    while await asyncio.to_thread(change, "clear") == 200:
        pass
    assert await asyncio.to_thread(change, "close") == 503
    shown = await asyncio.to_thread(lambda: desk.get("/sessions/current", control=True).json())
    assert not shown["session"]["closed"], "it is open, and would be after a restart"
    assert await asyncio.to_thread(rose_answers) == 503
    answer = await asyncio.to_thread(lambda: desk.post("/sessions/current/say", {"text": LONG}, control=True))
    assert answer.status == 503 and "The disk is full" in answer.json()["error"]
    assert answer.json()["do"].endswith("then try again.")
    disk.empty()
    people = await asyncio.to_thread(lambda: desk.get("/sessions/current/participants", control=True).json())
    assert people["backend"] != "Rose", "that she answers was not recorded"
    assert await asyncio.to_thread(rose_answers) == 200
    assert await asyncio.to_thread(change, "close") == 200
    await android.sees(lambda: android.events[-1]["kind"] == "session_end")


@pytest.mark.browser
@needs_chromium
def test_phone_page_gives_the_words_back_and_says_why(desk: RunningDaemon, disk: FillableDisk) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        window = desk.post("/devices/window", {"name": "Anna", "session": True}, control=True).json()
        page.goto(window["links"][0])
        page.get_by_role("button", name="Same number").click()
        desk.post("/devices/window/answer", {"id": window["id"], "same": True}, control=True)
        page.get_by_role("button", name="Start talking").click()
        page.get_by_text("● connected").wait_for()
        box, notice = page.get_by_label("Message"), page.locator(".room .note")
        disk.fill()
        while fits(desk):
            pass
        box.fill("Water the tomatoes " + LONG)
        box.press("Enter")
        notice.filter(has_text="The disk is full").wait_for()
        expect(box).to_have_value(re.compile("^Water the tomatoes"))
        expect(page.locator(".unsent")).to_have_count(0)
        if folder := os.environ.get("RAPPD_SHOTS"):
            page.screenshot(path=f"{folder}/phone-full-disk.png")
        disk.empty()
        box.fill("Water the tomatoes")
        box.press("Enter")
        page.get_by_text("fake-llm: Water the tomatoes", exact=True).wait_for()
