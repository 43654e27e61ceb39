"""Session eggs in a real browser: replayed with a scrubber, continued, and kept from everything around them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, FrameLocator, Page, expect, sync_playwright

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]

PATIENCE = 30_000
SIZES = [(390, 844), (1280, 800)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        expect.set_options(timeout=PATIENCE)
        yield browser
        expect.set_options(timeout=None)
        browser.close()


def opened(browser: Browser, desk: RunningDaemon, egg: Path, size: tuple[int, int] = (1280, 800)) -> Page:
    """The page with the replay of an egg, by the link that the command line prints."""
    told = desk.cli("sessions", "open", str(egg), "--json")
    assert told.returncode == 0, told.stderr
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.set_default_timeout(PATIENCE)
    page.goto(json.loads(told.stdout)["egg"]["url"])
    return page


def recorded(desk: RunningDaemon, folder: Path) -> Path:
    """An egg of a session of two questions."""
    for words in (("open",), ("say", "first words"), ("say", "second words")):
        assert desk.cli("sessions", *words).returncode == 0
    egg = folder / "session.egg"
    done = desk.cli("sessions", "export", "--format", "egg", "--output", str(egg))
    assert done.returncode == 0, done.stderr
    return egg


def keep_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("RAPPD_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def frame_of(page: Page) -> FrameLocator:
    return page.frame_locator(".replay-frame iframe")


@pytest.mark.parametrize("size", SIZES)
def test_replay_scrubs_through_the_session(
    browser: Browser, desk: RunningDaemon, tmp_path: Path, size: tuple[int, int]
) -> None:
    page = opened(browser, desk, recorded(desk, tmp_path), size)
    events = frame_of(page).locator(".events li:visible")
    expect(page.get_by_text("Page and transcript are what their hashes say.")).to_be_visible()
    expect(events.last).to_have_text("deskfake-llm: second words")  # at the captured event
    keep_picture(page, f"replay-{size[0]}")
    slider = page.get_by_role("slider", name="Event")
    slider.press("Home")
    expect(page.get_by_text("1 of 7")).to_be_visible()
    expect(events).to_have_count(0)  # the beginning of a session has no words
    slider.press("ArrowRight")
    expect(events).to_have_text(["Ownerfirst words"])
    keep_picture(page, f"replay-{size[0]}-scrubbed")
    slider.press("Home")
    page.get_by_role("button", name="Play").click()
    expect(events.last).to_have_text("deskfake-llm: second words")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_replay_goes_on_as_a_live_session(browser: Browser, desk: RunningDaemon, tmp_path: Path) -> None:
    page = opened(browser, desk, recorded(desk, tmp_path))
    slider = page.get_by_role("slider", name="Event")
    slider.press("Home")
    for _ in range(3):
        slider.press("ArrowRight")
    expect(page.get_by_text("4 of 7")).to_be_visible()
    page.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".session-events")).to_contain_text("Branches from the session egg")
    expect(page.locator(".session-events")).to_contain_text("fake-llm: first words")
    expect(page.locator(".session-events")).not_to_contain_text("second words")
    page.close()
