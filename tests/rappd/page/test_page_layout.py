"""Layout: what is read is as wide as one reads well, tabs stay, toasts cover nothing, names keep their words whole."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

LONG = "Slow_archivist_of_the_northern_allotments"
TABS = "[...document.querySelectorAll('.views a')].map((one) => Math.round(one.getBoundingClientRect().x))"
COVERED = """async () => {
  const covered = () => {
    const over = document.querySelector(".toast").getBoundingClientRect();
    return [...document.querySelectorAll("#main button, #main a")].filter((one) => {
      const at = one.getBoundingClientRect();
      const seen = one.closest(".chat-scroll, #main").getBoundingClientRect();
      const bottom = Math.min(at.bottom, seen.bottom);
      return at.right > over.left && at.left < over.right && bottom > over.top && at.top < over.bottom;
    }).map((one) => one.textContent);
  };
  // The page makes room once the toast is measured.
  for (let frame = 0; frame < 120 && covered().length; frame += 1) await new Promise(requestAnimationFrame);
  return covered();
}"""
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
LONGEST_LINE = """() => {
  const lines = [];
  for (const one of document.querySelectorAll("#main p")) {
    if (!one.checkVisibility() || one.getBoundingClientRect().width < 10) continue;
    const size = parseFloat(getComputedStyle(one).fontSize);
    lines.push(Math.round(one.getBoundingClientRect().width / (0.47 * size)));
  }
  return Math.max(...lines);
}"""
SCROLLED = """(top) => {
  const main = document.getElementById("main");
  main.scrollTop = top;
  return main.scrollTop > 50;
}"""
FULL = {
    "chat/conversation/7c1e": ".turn",
    "agents": "[data-file]",
    "agents/memory": ".memory",
    "agents/edit/clock_agent.py": ".editor-actions button",
    "twins": ".twin",
    "twins/eggs": ".line-row",
    "twins/archived": "[aria-label='Delete Moss']",
    "machines/neighborhood": ".nb-snapshot",
    "activity": ".row",
    "settings": ".server-card",
}
"""Pages, and what stands there once they are drawn."""
TOAST = "async () => (await import('/web/components/ui/toast.js')).toast('Ready.', {actions: [{label: 'Try', run() {}}]})"


async def test_tabs_keep_their_place(site: Any) -> None:
    for page_id, views in (("agents", ["", "/memory"]), ("twins", ["", "/eggs", "/archived"])):
        async with site.opened(f"#/{page_id}") as page:
            places = []
            for view in views:
                await page.goto(f"http://127.0.0.1:{site.port}/#/{page_id}{view}")
                await page.locator(".views a[aria-current]").first.wait_for()
                places.append(await page.evaluate(TABS))
            assert all(one == places[0] for one in places), page_id


@pytest.mark.parametrize("size", [(390, 500), (1280, 500)])
async def test_toast_covers_no_button(site: Any, size: tuple[int, int]) -> None:
    viewport = {"width": size[0], "height": size[1]}
    async with site.opened(viewport=viewport) as page:
        for page_id, shown in FULL.items():
            await page.evaluate("place => { location.hash = `#/${place}` }", page_id)
            await page.locator(shown).first.wait_for()
            await page.evaluate(TOAST)
            await page.locator(".toast").wait_for()
            assert await page.evaluate(COVERED) == [], page_id


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


@pytest.mark.parametrize("width", [390, 1280, 1920])
async def test_no_name_is_broken_inside_a_word(site: Any, width: int) -> None:
    row = {
        "key": "aa" * 32, "rappid": "rappid:@x/x:aa", "name": LONG, "kind": "personal", "state": "asleep", "port": None,
        "memories": 0, "last_talk": None, "buddy": None,
    }  # fmt: skip
    site.daemon.scripted["GET /twins"] = [(200, {"twins": [row], "unreadable": []})]
    async with site.opened("#/twins", viewport={"width": width, "height": 800}) as page:
        await page.get_by_text(LONG).first.wait_for()
        assert await page.evaluate(BROKEN, LONG) == []


@pytest.mark.parametrize(("width", "columns"), [(1280, 1), (1920, 2)])
async def test_lines_are_as_long_as_one_reads_well(site: Any, width: int, columns: int) -> None:
    async with site.opened("#/settings", viewport={"width": width, "height": 900}) as page:
        for page_id in FULL:  # Settings last, whose cards are counted
            if width > 1280 and page_id.startswith("chat"):
                continue  # below an answer stands one short line in all the width there
            await page.evaluate("place => { location.hash = `#/${place}` }", page_id)
            await page.locator(FULL[page_id]).first.wait_for()
            assert 70 <= await page.evaluate(LONGEST_LINE) <= 100, page_id
        grid = (
            "getComputedStyle(document.querySelector('.column .cards')).gridTemplateColumns.split(' ').length"
        )
        assert await page.evaluate(grid) == columns
