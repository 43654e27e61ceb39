"""The list of waiting matters in Chromium: counted, listed, answered, and shown by the browser when its owner wants it."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.chromium import FULL_CHROMIUM
from fixtures.page_questions import SIDEWAYS
from playwright.async_api import expect

from tests.rappd.page.machine_rows import bodies, sent

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


BROWSER = FULL_CHROMIUM
"""The headless shell refuses notices from the start."""


def news(key: str, what: str, at: float) -> dict[str, Any]:
    row = {"key": key, "kind": "failed", "at": at, "what": what, "do": "rappd logs"}
    return row | {"news": True, "subject": ""}


LATE, EARLY = (
    news("n:2", "Backup <b>failed</b>.", 1764000001.0),
    news("n:1", "pi did not answer.", 1764000000.0),
)
EGG = {
    "key": "egg:1",
    "kind": "egg",
    "at": 1764000000.0,
    "what": "pi sent rose.egg.",
    "do": "rappd egg arrived",
    "news": False,
    "id": "aa11",
    "path": "/eggs/rose.egg",
    "name": "rose.egg",
    "size": 2048,
}
SHOWN = """() => {
    window.told = [];
    window.Notification = class { constructor(text, more) { window.told.push([text, more.body]); } };
    window.Notification.permission = "default";
    window.Notification.requestPermission = async () => (window.Notification.permission = "granted");
}"""


async def test_matters_are_counted_listed_and_answered(site: Any) -> None:
    sent(site, "GET", "/waiting", 200, {"waiting": [EGG, LATE, EARLY]})

    def dismissed() -> Any:
        sent(site, "GET", "/waiting", 200, {"waiting": [EGG, EARLY]})
        return {"dismissed": 1}

    def thrown_away() -> Any:
        sent(site, "GET", "/waiting", 200, {"waiting": [EARLY]})
        return {"discarded": {}}

    sent(site, "POST", "/notices/dismiss", 200, dismissed)
    sent(site, "DELETE", "/eggs/arrived/aa11", 200, thrown_away)
    async with site.opened("#/waiting") as page:
        await expect(page.get_by_role("link", name="Waiting 3 matters")).to_be_visible()
        read = page.get_by_role("region", name="News")
        await expect(read.get_by_role("listitem")).to_have_count(2)
        await expect(read).to_contain_text("Backup <b>failed</b>.")
        await read.get_by_role("button", name="Dismiss: Backup <b>failed</b>.").press("Enter")
        await expect(read.get_by_role("listitem")).to_have_count(1)
        await expect(page.get_by_role("link", name="Waiting 2 matters")).to_be_visible()
        assert await page.evaluate("document.activeElement.closest('li') !== null"), (
            "the next one has the keyboard"
        )
        asks = page.get_by_role("region", name="Needs your answer")
        await asks.get_by_role("button", name="Throw away: pi sent rose.egg.").click()
        await page.get_by_role("dialog").get_by_role("button", name="Throw away").click()
        await expect(asks).to_be_hidden()
        await page.reload()
        await expect(page.get_by_role("link", name="Waiting 1 matter")).to_be_visible()
    assert bodies(site, "/notices/dismiss") == [{"key": "n:2"}]


async def test_phone_width_shows_the_count_at_more(site: Any) -> None:
    sent(site, "GET", "/waiting", 200, {"waiting": [EGG, LATE]})
    async with site.opened(viewport={"width": 390, "height": 844}) as page:
        await page.get_by_role("button", name="More pages, 2 waiting for you").click()
        await page.get_by_role("menuitem", name="Waiting 2").click()
        await expect(page.locator("main h1")).to_have_text("Waiting for you")


async def test_long_count_at_more_makes_no_narrow_page_wider(site: Any) -> None:
    many = [{**LATE, "key": f"news:{number}"} for number in range(120)]
    sent(site, "GET", "/waiting", 200, {"waiting": many})
    async with site.opened(viewport={"width": 320, "height": 568}) as page:
        await expect(page.get_by_role("button", name="More pages, 120 waiting for you")).to_be_visible()
        assert await page.evaluate(SIDEWAYS) == []


async def test_browser_tells_what_happens_once_it_may(site: Any) -> None:
    sent(site, "GET", "/waiting", 200, {"waiting": []})
    async with site.opened("#/waiting") as page:
        await page.evaluate(SHOWN)
        await page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        told = """async detail => {
            const {daemonEvents} = await import("/web/lib/event-stream.js");
            daemonEvents.dispatchEvent(new CustomEvent("notice", {detail}));
            return window.told;
        }"""
        told_by = {"message": LATE["what"], "do": LATE["do"], "key": LATE["key"]}
        assert await page.evaluate(told, told_by) == [], "nothing before the owner wanted it"
        await page.get_by_role("button", name="Let this browser tell me what happens").click()
        await expect(page.get_by_role("button", name="No notices by this browser")).to_be_visible()
        assert await page.evaluate(told, told_by) == [[LATE["what"], LATE["do"]]]
        await page.get_by_role("button", name="No notices by this browser").click()
        await expect(page.get_by_role("button", name="Let this browser tell me what happens")).to_be_visible()
        assert len(await page.evaluate(told, told_by)) == 1
