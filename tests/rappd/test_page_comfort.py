"""Comfort of the page on a real daemon: colours, installing it, the keyboard sheet, tabs of a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import FULL_CHROMIUM, needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, BrowserContext, Page, expect

BROWSER = FULL_CHROMIUM
"""The headless shell knows nothing of installing a page."""
pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]
PAPER = "getComputedStyle(document.documentElement).backgroundColor"
LIGHT, DARK = "rgb(250, 247, 240)", "rgb(24, 22, 19)"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    yield context
    context.close()


def _at(context: BrowserContext, daemon: RunningDaemon, path: str = "") -> Page:
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{daemon.port}/{path}")
    page.locator("#main h1").wait_for(state="attached")
    return page


def test_chosen_colours_stay_from_the_first_byte_and_in_other_tabs(
    fake_daemon: RunningDaemon, context: BrowserContext
) -> None:
    page, other = _at(context, fake_daemon, "#/settings"), _at(context, fake_daemon)
    assert page.evaluate(PAPER) == LIGHT
    page.get_by_role("radio", name="Dark").check()
    assert page.evaluate(PAPER) == DARK
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.locator("meta[name=theme-color]").first.get_attribute("content") == "#181613"
    context.route("**/*.js", lambda route: route.abort())
    page.reload()
    assert page.evaluate(PAPER) == DARK, "before any script"
    context.unroute("**/*.js")
    page.reload()
    page.get_by_role("radio", name="As this device").check()
    assert page.evaluate(PAPER) == LIGHT
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(PAPER) == DARK
    page.get_by_role("radio", name="Light").check()
    assert page.evaluate(PAPER) == LIGHT
    unknown = fake_daemon.get("/", headers={"Cookie": 'rappd_theme="><script>'})
    assert b"data-theme" not in unknown.body


def test_page_can_be_installed_as_an_app(fake_daemon: RunningDaemon, context: BrowserContext) -> None:
    page = _at(context, fake_daemon)
    protocol = context.new_cdp_session(page)
    found = protocol.send("Page.getAppManifest")
    assert found["errors"] == []
    manifest = json.loads(found["data"])
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    folder = found["url"].rpartition("/")[0].partition(f":{fake_daemon.port}")[2]
    for icon in manifest["icons"]:
        answer = fake_daemon.get(f"{folder}/{icon['src']}")
        width = int.from_bytes(answer.body[16:20])
        assert (answer.body[:8], f"{width}x{width}") == (PNG, icon["sizes"])
    errors = protocol.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [error["errorId"] for error in errors] == ["in-incognito"], "as every window of these tests is"


def test_keyboard_sheet_opens_by_its_key_and_passes_axe(
    fake_daemon: RunningDaemon, context: BrowserContext
) -> None:
    page = _at(context, fake_daemon, "#/agents")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet.locator("dd")).to_contain_text(["send", "choose the model", "Settings"])
    page.evaluate(axe_core())
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name="Which model answers?")).to_be_visible()


def test_tabs_of_a_phone_stay_in_one_row(fake_daemon: RunningDaemon, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 700})
    page = _at(context, fake_daemon, "#/settings")
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 700})
        tabs = page.locator("nav[aria-label=Pages] > *:visible")
        expect(tabs).to_have_count(5)
        boxes = tabs.evaluate_all("all => all.map(tab => tab.getBoundingClientRect().toJSON())")
        assert len({box["top"] for box in boxes}) == 1
        assert max(box["right"] for box in boxes) <= width
        lines = "all => all.map(name => name.getClientRects().length)"
        names = page.locator("nav[aria-label=Pages] .place:visible > span:first-of-type")
        assert set(names.evaluate_all(lines)) == {1}
    context.close()
