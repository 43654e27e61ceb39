"""A reminder in a real browser: it comes by itself into the conversation that is open, and as news."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.browser, needs_chromium]


def test_a_reminder_comes_into_the_open_conversation(
    browser: Browser, make_daemon: Callable[..., RunningDaemon]
) -> None:
    daemon = make_daemon().start()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#write").fill("remind me in 2 seconds to call mum")
    page.locator("#write").press("Enter")
    expect(page.locator(".turn").first).to_contain_text("Reminder set: call mum")
    last = page.locator(".turn").nth(1)
    expect(last).to_contain_text("Reminder: call mum.", timeout=20_000)
    expect(last.locator(".who").first).to_have_text("Timer")
    page.goto(f"http://127.0.0.1:{daemon.port}/#/waiting")
    expect(page.locator("main")).to_contain_text("Reminder: call mum.")
    page.close()
