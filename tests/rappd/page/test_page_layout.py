"""Layout: tabs keep their place, names keep their words whole, and what is not saved is said where one reads."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG = "Slow_archivist_of_the_northern_allotments"
TABS = "[...document.querySelectorAll('.views a')].map((one) => Math.round(one.getBoundingClientRect().x))"
BROKEN = """(name) => {
  const found = [];
  const texts = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const range = new Range();
    range.selectNodeContents(texts.currentNode);
    const shown = texts.currentNode.parentElement.closest("h3, li, a");
    if (shown?.textContent.includes(name) && range.getClientRects().length > 1) found.push(texts.currentNode.data);
  }
  return found;
}"""
COLUMNS = "getComputedStyle(document.querySelector('.column .cards')).gridTemplateColumns.split(' ').length"
SCROLLED = """(top) => {
  const main = document.getElementById("main");
  main.scrollTop = top;
  return main.scrollTop > 50;
}"""


async def test_tabs_keep_their_place(site: Any) -> None:
    for page_id, views in (("agents", ["", "/memory"]), ("twins", ["", "/eggs", "/archived"])):
        async with site.opened(f"#/{page_id}") as page:
            places = []
            for view in views:
                await page.goto(f"http://127.0.0.1:{site.port}/#/{page_id}{view}")
                await page.locator(".views a[aria-current]").first.wait_for()
                places.append(await page.evaluate(TABS))
            assert all(one == places[0] for one in places), page_id


async def test_not_saved_stands_beside_save_wherever_one_reads(site: Any) -> None:
    async with site.opened("#/agents/edit/clock_agent.py", viewport={"width": 1280, "height": 400}) as page:
        await page.get_by_role("textbox", name="Text of").click()
        await page.keyboard.type("# mine")
        state, save = page.locator(".editor-state"), page.get_by_role("button", name="Save", exact=True)
        await expect(state).to_contain_text("Not saved")
        for top in (0, 9999):
            assert await page.evaluate(SCROLLED, top) == bool(top)
            for one in (state, save):
                await expect(one).to_be_in_viewport(ratio=1)
            words, button = await state.bounding_box(), await save.bounding_box()
            assert words is not None and button is not None
            assert 0 <= button["x"] - (words["x"] + words["width"]) < 40
            assert words["y"] < button["y"] + button["height"] and button["y"] < words["y"] + words["height"]


async def test_no_name_is_broken_inside_a_word(site: Any) -> None:
    row = {
        "key": "aa" * 32, "rappid": "rappid:@x/x:aa", "name": LONG, "kind": "personal", "state": "asleep", "port": None,
        "memories": 0, "last_talk": None, "buddy": None,
    }  # fmt: skip
    site.daemon.scripted["GET /twins"] = [(200, {"twins": [row], "unreadable": []})]
    async with site.opened("#/twins", viewport={"width": 390, "height": 800}) as page:
        await page.get_by_text(LONG).first.wait_for()
        for width in (390, 1280, 1920):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate(BROKEN, LONG) == [], width


async def test_cards_stand_in_columns_where_there_is_room(site: Any) -> None:
    async with site.opened("#/settings", viewport={"width": 1280, "height": 900}) as page:
        await page.locator(".server-card").first.wait_for()
        for width, columns in ((1280, 1), (1920, 2)):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await page.evaluate(COLUMNS) == columns, width
