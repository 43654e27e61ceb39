"""News for the owner in Chromium: counted, listed, dismissed, and told by the browser when its owner wants it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from tests.rappd.page.machine_rows import bodies, sent

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

EGG = {
    "key": "egg:1",
    "kind": "egg",
    "at": 1764000000.0,
    "what": "pi sent <b>rose.egg</b>.",
    "do": "rappd egg plan it",
}
PAIRING = {
    "key": "pairing:1",
    "kind": "pairing",
    "at": 1764000001.0,
    "what": "pi wants to pair.",
    "do": "rappd peers pair pi",
}
SHOWN = """() => {
    window.told = [];
    window.Notification = class { constructor(text, more) { window.told.push([text, more.body]); } };
    window.Notification.permission = "default";
    window.Notification.requestPermission = async () => (window.Notification.permission = "granted");
}"""


async def test_notices_are_counted_listed_and_dismissed(site: Any) -> None:
    sent(site, "GET", "/notices", 200, {"notices": [PAIRING, EGG]})

    def dismissed() -> Any:
        sent(site, "GET", "/notices", 200, {"notices": [PAIRING]})
        return {"dismissed": 1}

    sent(site, "POST", "/notices/dismiss", 200, dismissed)
    async with site.opened("#/activity") as page:
        await expect(page.get_by_role("link", name="Activity 2 notices")).to_be_visible()
        waiting = page.get_by_role("region", name="Waiting for you")
        await expect(waiting.get_by_role("listitem")).to_have_count(2)
        await expect(waiting).to_contain_text("pi sent <b>rose.egg</b>.")
        await expect(waiting.get_by_role("link", name="Compare words")).to_have_attribute(
            "href", "#/machines"
        )
        await waiting.get_by_role("button", name="Dismiss: pi sent <b>rose.egg</b>.").click()
        await expect(waiting.get_by_role("listitem")).to_have_count(1)
        await expect(page.get_by_role("link", name="Activity 1 notice")).to_be_visible()
    assert bodies(site, "/notices/dismiss") == [{"key": "egg:1"}]


async def test_browser_tells_what_happens_once_it_may(site: Any) -> None:
    sent(site, "GET", "/notices", 200, {"notices": []})
    async with site.opened("#/activity") as page:
        await page.evaluate(SHOWN)
        await page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        told = """async detail => {
            const {daemonEvents} = await import("/web/lib/event-stream.js");
            daemonEvents.dispatchEvent(new CustomEvent("notice", {detail}));
            return window.told;
        }"""
        news = {"message": EGG["what"], "do": EGG["do"], "key": EGG["key"]}
        assert await page.evaluate(told, news) == [], "nothing before the owner wanted it"
        await page.get_by_role("button", name="Let this browser tell me what happens").click()
        await expect(page.get_by_role("button", name="No notices by this browser")).to_be_visible()
        assert await page.evaluate(told, news) == [[EGG["what"], EGG["do"]]]
        await page.get_by_role("button", name="No notices by this browser").click()
        await expect(page.get_by_role("button", name="Let this browser tell me what happens")).to_be_visible()
        assert len(await page.evaluate(told, news)) == 1
