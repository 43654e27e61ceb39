"""Reminders on a phone in a real browser: at once while its page is open, and at its next visit with how late."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, expect

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_browser import PhonePage

pytestmark = [pytest.mark.browser, needs_chromium]
CLOSED_PAGE = "If this phone's page is closed then, it says so at your next visit."
LATE = "Reminder: call mum. This is 2 h late: it was due "


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    return make_daemon("desk", **reachable()).start()


def passes_two_hours(desk: RunningDaemon) -> None:
    """The one timer was due two hours ago, while the computer was off; it is told by now."""
    desk.stop()
    with closing(sqlite3.connect(desk.home / "rappd.db")) as store, store:
        store.execute("UPDATE timers SET next = ? WHERE kind = 'turn'", (time.time() - 7205,))
    desk.start()
    desk.wait_for(lambda: not desk.get("/timers", control=True).json()["timers"], what="the timer to fire")


def test_own_conversation_shows_it_at_once_and_at_the_next_visit(
    browser: Browser, desk: RunningDaemon
) -> None:
    phone = PhonePage(browser, desk)
    page = phone.pair("Anna")
    phone.ask("remind me in 1 second to stretch")
    expect(page.locator(".turn").first).to_contain_text(CLOSED_PAGE)
    told = page.locator(".turn").nth(1)
    expect(told.locator(".answer")).to_have_text("Reminder: stretch.")
    expect(told.locator(".who").first).to_have_text("Timer")
    phone.ask("remind me tomorrow at 9 to call mum")
    expect(page.locator(".turn").nth(2)).to_contain_text("Reminder set: call mum")
    address = page.url
    page.goto("about:blank")
    passes_two_hours(desk)
    page.goto(address)
    late = page.locator(".turn").nth(3)
    expect(late.locator(".answer")).to_contain_text(LATE)
    expect(late.locator(".who").first).to_have_text("Timer")
    expect(page.locator(".turn")).to_have_count(4)
    phone.looks_right("phone-timer")
    assert phone.errors == []


def test_session_shows_it_at_the_next_visit(browser: Browser, desk: RunningDaemon) -> None:
    phone = PhonePage(browser, desk)
    page = phone.pair("Anna", session=True)
    page.get_by_role("textbox", name="Message").fill("remind me tomorrow at 9 to call mum")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".events")).to_contain_text(CLOSED_PAGE)
    address = page.url
    page.goto("about:blank")
    passes_two_hours(desk)
    page.goto(address)
    rows = page.locator(".events > li")
    expect(rows.last).to_contain_text(LATE)
    expect(rows.nth(-2).locator(".by")).to_have_text("Timer")
    phone.looks_right("phone-session-timer")
    assert phone.errors == []
