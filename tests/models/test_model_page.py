"""A real model of 135 M parameters behind the page: talk, stop, the agents that were used, and the help that is shown."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]
PATIENCE = 100_000


@pytest.fixture
def page(browser: Browser, desk: RunningDaemon) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(desk.post("/operator/key", control=True).json()["url"])
    page.locator("#write").wait_for()
    yield page
    if folder := os.environ.get("RAPPD_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{page.url.rpartition('/')[2] or 'talk'}.png")
    page.close()


def _say(page: Page, text: str) -> None:
    page.locator("#write").fill(text)
    page.locator("#write").press("Enter")


def test_talk_names_the_agent_or_says_that_none_was_used(page: Page) -> None:
    _say(page, "remember that the boiler is serviced in May")
    expect(page.locator(".agents-used").nth(0)).to_have_text("Used ManageMemory", timeout=PATIENCE)
    _say(page, "when is the boiler serviced?")
    expect(page.locator(".agents-used").nth(1)).to_have_text("Used ContextMemory", timeout=PATIENCE)
    expect(page.locator(".turn .answer").nth(1)).to_contain_text("May")
    _say(page, "Say hello in five words.")
    expect(page.locator(".agents-used").nth(2)).to_have_text("No agent was used", timeout=PATIENCE)
    page.reload()
    expect(page.locator(".agents-used")).to_have_text(
        ["Used ManageMemory", "Used ContextMemory", "No agent was used"], timeout=PATIENCE
    )


def test_stop_ends_a_long_answer(page: Page) -> None:
    _say(page, "Tell me a long story about a ship.")
    expect(page.locator(".turn .answer").last).not_to_be_empty(timeout=PATIENCE)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".turn").last).to_contain_text("Stopped.", timeout=PATIENCE)


def test_settings_say_that_the_model_is_helped(page: Page, desk: RunningDaemon) -> None:
    page.goto(f"http://127.0.0.1:{desk.port}/#/settings")
    expect(page.locator(".helped")).to_contain_text("Helped by keyword matching", timeout=PATIENCE)
