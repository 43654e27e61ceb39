"""A session on two screens: a phone's page and the computer's Chat page, each in a Chromium on its own machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from envelopes.codecs import emergence
from envelopes.envelope import DONE, HELP, THREAD, Envelope, new_id
from lan.daemons import Daemon
from lan.network import Lan, require
from lan.phones import Phone, chromium_on, launched_on
from rappd.sessions.recorded_sessions import SESSION_CALLER
from rappd.store.records import Record
from rappd.store.store import Store

pytestmark = pytest.mark.browser


SAID = """[...document.querySelectorAll(".session-events .line")].map(
    line => line.innerText.trim().split(/\\n+/).join(": "))"""


class Screens(NamedTuple):
    """The computer, and a browser on each side."""

    desk: Daemon
    phones: Browser
    page: Page
    errors: list[str]


@pytest.fixture
def screens(tmp_path: Path) -> Iterator[Screens]:
    require()
    with Lan() as lan:
        desk, phone = Daemon(lan.machine("desk"), tmp_path), lan.machine("phone")
        desk.start()
        with chromium_on(phone, tmp_path) as browser:
            local = launched_on(desk.machine, tmp_path, browser.browser_type)
            page = local.new_page(viewport={"width": 1100, "height": 800})
            page.set_default_timeout(60_000)
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(desk.ask("POST", "/operator/key")["url"])
            yield Screens(desk, browser, page, errors)
            assert errors == []
            local.close()


def open_session(page: Page, title: str) -> None:
    page.get_by_role("link", name=title).click()
    expect(page.get_by_role("status").filter(has_text=title)).to_be_visible()


def said(page: Page) -> list[str]:
    """Speakers and texts on the computer's page."""
    found: list[str] = page.evaluate(SAID)
    return found


def test_both_screens_of_a_session_stay_the_same(screens: Screens) -> None:
    phone = Phone(screens.phones, screens.desk)
    phone.pair(name="Android")
    phone.write("from the phone")
    phone.is_answered(1)
    page = screens.page
    open_session(page, "Session with Android — open")
    expect(page.get_by_text("fake-llm: from the phone")).to_be_visible()
    with phone.more():
        expect(phone.page.get_by_text("also here: Owner")).to_be_visible()
    phone.page.reload()  # it tells that it writes every other second, and did just now
    phone.is_connected()
    phone.page.get_by_role("textbox", name="Message").fill("and")
    expect(page.get_by_text("Android is writing…")).to_be_visible()
    box = page.get_by_role("textbox", name="Write to the session")
    box.fill("from the computer")
    box.press("Enter")
    expect(phone.page.get_by_text("fake-llm: from the computer")).to_be_visible()
    phone.write("and back")
    phone.is_answered(2)
    expect(page.get_by_text("fake-llm: and back")).to_be_visible()
    assert phone.bubbles() == [
        "from the phone", "fake-llm: from the phone", "from the computer", "fake-llm: from the computer",
        "and back", "fake-llm: and back",
    ]  # fmt: skip
    assert said(page) == [
        "Android: from the phone", "desk: fake-llm: from the phone", "you: from the computer",
        "desk: fake-llm: from the computer", "Android: and back", "desk: fake-llm: and back",
    ]  # fmt: skip
    page.set_viewport_size({"width": 390, "height": 800})
    name = page.locator(".session-events .who", has_text="Android").last.bounding_box()
    assert name is not None and name["width"] > 20
    page.set_viewport_size({"width": 1100, "height": 800})
    second = Phone(screens.phones, screens.desk)
    second.pair(name="iPad")
    with phone.more():
        expect(phone.page.get_by_text("also here: Owner, iPad")).to_be_visible()
    expect(page.get_by_text("Session with Android, iPad — open")).to_be_visible()
    second.page.get_by_text("fake-llm: and back").wait_for()
    assert second.bubbles() == phone.bubbles()
    with phone.more():
        phone.page.get_by_role("button", name="Clear the conversation for everyone").click()
    assert "Android cleared the screen." not in page.inner_text("main"), "it is asked first"
    phone.page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_text("Android cleared the screen.")).to_be_visible()
    expect(second.page.get_by_text("Android cleared the screen.")).to_be_visible()
    assert said(page) == []
    page.get_by_role("button", name="Close session").click()
    expect(page.get_by_text("Session with Android, iPad — closed")).to_be_visible()
    expect(second.page.get_by_text("This session is closed.")).to_be_visible()
    expect(second.page.get_by_role("textbox", name="Message")).to_be_hidden()
    expect(box).to_be_hidden()
    screens.desk.ask("POST", "/sessions")
    expect(second.page.get_by_text("The computer opened another session.")).to_be_visible()
    expect(second.page.get_by_role("textbox", name="Message")).to_be_visible()
    assert phone.errors == second.errors == []


def test_page_brings_phones_back_and_chooses_who_answers(screens: Screens) -> None:
    desk, page = screens.desk, screens.page
    desk.ask("POST", "/twins", {"name": "gardener"})
    phone = Phone(screens.phones, desk)
    phone.pair(name="Android")
    phone.write("in the first")
    phone.is_answered(1)
    first = desk.ask("GET", "/sessions/current")["session"]["id"]
    desk.ask("POST", "/sessions")
    expect(phone.page.get_by_text("The computer opened another session.")).to_be_visible()
    assert phone.bubbles() == []
    page.get_by_role("link", name="Devices").click()
    older = page.locator(f"[data-session='{first}']")
    older.get_by_role("button", name="Bring phones to").click()
    expect(older.get_by_text("phones join here")).to_be_visible()
    expect(phone.page.get_by_text("fake-llm: in the first")).to_be_visible()
    older.get_by_role("link", name="Show").click()
    page.get_by_text("Who answers: desk").click()
    page.get_by_role("combobox", name="Who answers what is addressed to nobody").select_option("gardener")
    expect(page.get_by_text("Who answers: gardener")).to_be_visible()
    phone.page.get_by_text("gardener answers here.").wait_for()
    expect(phone.page.get_by_role("combobox", name="Whom to ask")).to_have_value("gardener")
    phone.write("to whom?")
    phone.is_answered(2)
    assert said(page)[-1].startswith("gardener: ")
    assert phone.errors == []


async def add_sentences(desk: Daemon, texts: list[str], *, answered: bool) -> None:
    """Writes sentences into the event log of a daemon that is stopped; unanswered ones as one that was killed does."""
    store = await Store.open(desk.home / "rappd.db")
    (thread,) = await store.threads_by(SESSION_CALLER)
    (start,) = await store.thread_events(thread.id)
    for text in texts:
        data = {"user_input": text, "by": "Android"}
        asked = Envelope(new_id(), "guid", start.recipient, HELP, data, {THREAD: thread.id})
        for one in (asked, asked.reply(DONE, {"response": f"answer to {text}"})) if answered else (asked,):
            at = time.time_ns() // 1000
            store.queue(
                Record(thread.id, one.verb, one.sender, one.recipient, one.id, emergence.encode(one), at)
            )
    await store.flush()
    await store.close()


def restart_with(desk: Daemon, texts: list[str], *, answered: bool) -> None:
    desk.crash()
    with ThreadPoolExecutor(1) as pool:  # Playwright's loop runs in this thread
        pool.submit(asyncio.run, add_sentences(desk, texts, answered=answered)).result()
    desk.start()


def test_session_of_5000_events_opens_on_both(screens: Screens) -> None:
    phone, page = Phone(screens.phones, screens.desk), screens.page
    phone.pair(name="Android")
    restart_with(screens.desk, [f"sentence {number}" for number in range(2500)], answered=True)
    phone.is_connected()
    for screen, opened in (
        (phone.page, phone.page.reload),
        (page, page.get_by_role("link", name="Session with Android — open").click),
    ):
        opened()
        expect(screen.get_by_text("answer to sentence 2499", exact=True)).to_be_visible(timeout=60_000)
        assert screen.get_by_text("sentence 1250", exact=True).count() == 1
    phone.write("and now")
    phone.page.get_by_text("fake-llm: and now").wait_for()
    expect(page.get_by_text("fake-llm: and now")).to_be_visible()
    assert phone.errors == []


def test_sentence_cut_off_is_offered_to_be_asked_again(screens: Screens) -> None:
    phone, page = Phone(screens.phones, screens.desk), screens.page
    phone.pair(name="Android")
    restart_with(screens.desk, ["take long"], answered=False)
    open_session(page, "Session with Android — open")
    expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    phone.page.get_by_role("button", name="Ask again").click()
    expect(phone.page.get_by_text("fake-llm: take long")).to_be_visible()
    expect(phone.page.get_by_role("button", name="Ask again")).to_have_count(0)
    expect(page.get_by_role("button", name="Ask again")).to_have_count(0)
    assert [text.split(".")[0] for text in phone.bubbles()] == [
        "take long", "This was cut off before it was done", "take long", "fake-llm: take long",
    ]  # fmt: skip
    assert phone.errors == []
