"""Accessibility of the page: screen readers, keyboard alone, small screens, both themes."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.page_questions import SIDEWAYS, SMALL
from fixtures.screen_reader import HEARD, LISTEN, assert_as_shown
from playwright.async_api import expect

from tests.rappd.page.test_page_twins import drop, hatched, opened_egg, planned

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


SHOW_TOAST = """async () => {
    const { toast } = await import(new URL("components/ui/toast.js", document.querySelector("script[type=module]").src));
    const run = () => document.body.dataset.undone = "yes";
    toast("Clock was removed.", { actions: [{ label: "Undo", run }], seconds: 60 });
}"""
ON_TOP = """selector => {
    const it = document.querySelector(selector);
    const { left, top, width, height } = it.getBoundingClientRect();
    return it.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""
APART = """() => {
    const [toast, dialog] = [".toast", "dialog"].map(it => document.querySelector(it).getBoundingClientRect());
    return toast.bottom <= dialog.top || toast.top >= dialog.bottom;
}"""


async def test_screen_readers_hear_a_finished_answer_once(site: Any) -> None:
    site.daemon.script["hi"] = [{"type": "delta", "text": "half"}, site.HOLD, site.ending("whole **words**")]
    async with site.opened() as page:
        await page.evaluate(
            "window.heard = []; new MutationObserver(() => heard.push(live.textContent)).observe(live, {childList: true})"
        )
        await site.ask(page, "hi")
        await expect(page.locator(".answer")).to_have_text("half")
        assert await page.evaluate("heard.filter(Boolean)") == []
        site.daemon.released.set()
        await expect(page.locator("#live")).to_have_text("desk: whole words")
        assert await page.evaluate("heard.filter(Boolean)") == ["desk: whole words"]
        assert (
            await page.locator(".turns").evaluate("list => list.closest('[aria-live], [role=log]')") is None
        )


async def test_what_is_read_aloud_stands_on_the_screen_once(site: Any) -> None:
    changed = {"error": "The plan is another one by now.", "do": "", "code": "plan_changed"}
    site.daemon.script["hi"] = site.answer("whole **words**", *site.call())
    site.daemon.script["no"] = [{"type": "error", "error": "Ollama does not answer.", "do": "Start it."}]
    site.daemon.scripted["POST /agents/run"] = [
        (200, {"ok": True, "result": "noon", "seconds": 0.2, "thread": "7c1e"})
    ]
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(planned("one")))]
    site.daemon.scripted["POST /eggs/hatch"] = [(409, changed), (200, hatched())]
    site.daemon.scripted["POST /eggs/plan"] = [(200, {"plan": planned("later")})]
    site.daemon.scripted["POST /eggs/signers"] = [(200, {"message": "kitchen is trusted."})]
    async with site.opened() as page:
        await page.evaluate(LISTEN)
        await site.ask(page, "hi")
        await expect(page.locator("#live")).to_have_text("desk: whole words")
        await site.ask(page, "no")
        await expect(page.locator("#live")).to_contain_text("Ollama does not answer.")
        await page.evaluate("location.hash = '#/agents'")
        await page.focus("[aria-label='Remove clock_agent.py']")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast")).to_contain_text("Clock removed.")
        await page.evaluate("location.hash = '#/waiting'")
        await expect(page.locator("main [role=status]").first).to_be_visible()
        await page.evaluate("location.hash = '#/twins'")
        await expect(page.locator("main h1")).to_have_text("Twins")
        await drop(page, "rose.egg")
        await expect(page.locator("#live")).to_contain_text("Rose: New 1, Unchanged 2, Needs your approval 1")
        await page.get_by_role("button", name="Hatch 2 files").click()
        await expect(page.locator("#live")).to_contain_text("Something changed")
        await page.click("dialog >> text=I know who this egg is from")
        await page.get_by_label("Whose key is it?").fill("kitchen")
        await page.get_by_role("button", name="Trust this key").click()
        await expect(page.locator(".toast").last).to_have_text("kitchen is trusted.")
        await expect(page.locator("#live")).to_have_text("New 1, Unchanged 2, Needs your approval 1")
        await page.get_by_role("button", name="Hatch 2 files").click()
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(page.locator(".toast").last).to_contain_text("hatched")
        await page.evaluate("location.hash = '#/agents/Clock'")
        heard = await page.evaluate(HEARD)
    assert len(heard) >= 7, heard
    assert_as_shown(heard)


async def test_everything_by_keyboard_alone(site: Any) -> None:
    site.daemon.script["long"] = [{"type": "delta", "text": "so far"}, site.HOLD]
    async with site.opened() as page:
        await expect(page.locator("#write")).to_be_focused()
        await page.keyboard.type("a?/g")
        await page.keyboard.press("Shift+Enter")
        await expect(page.locator("#write")).to_have_value("a?/g\n")
        await page.fill("#write", "long")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_have_text("so far")
        await page.keyboard.press("Escape")
        await expect(page.locator(".after")).to_contain_text("Stopped.")
        await page.keyboard.press("Escape")
        for key, title in (
            ("a", "Agents"),
            ("w", "Twins"),
            ("y", "Activity"),
            ("s", "Settings"),
            ("c", "Chat"),
            ("s", "Settings"),
            ("t", "Chat"),
        ):
            await page.keyboard.press("g")
            await page.keyboard.press(key)
            await expect(page.locator("main h1")).to_have_text(title)
            await expect(page.locator("main h1")).to_be_focused()
        await page.keyboard.press("?")
        await expect(page.locator("dialog h2")).to_have_text("Keyboard shortcuts")
        await page.keyboard.press("Escape")
        await expect(page.locator("main h1")).to_be_focused()
        await page.keyboard.press("/")
        await expect(page.get_by_role("combobox", name="Search everything")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("c")
        await expect(page.locator("#write")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("?")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Space")
        await page.keyboard.press("Escape")
        await page.keyboard.press("?")
        await page.keyboard.press("g")
        await page.keyboard.press("a")
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(page.locator("main h1")).to_have_text("Chat")


async def test_removing_by_keyboard_leads_to_undo(site: Any) -> None:
    async with site.opened("#/agents") as page:
        await page.focus("[aria-label='Remove clock_agent.py']")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast button")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("[data-file='clock_agent.py']")).to_have_count(1)


async def test_wide_answers_scroll_in_themselves_and_tabs_have_their_place(site: Any) -> None:
    site.daemon.script["wide"] = site.answer(
        "w" * 300 + "\n\n```\n" + "c" * 300 + "\n```\n\n|a|b|\n|-|-|\n|" + "t" * 90 + "|x|",
        *site.call(ok=False),
    )
    async with site.opened(viewport={"width": 320, "height": 700}) as page:
        await site.ask(page, "u" * 200)
        await expect(page.locator(".foot")).to_have_count(1)
        await site.ask(page, "wide")
        await expect(page.locator(".code-block")).to_have_count(1)
        tabs = page.locator("nav[aria-label=Pages]")
        for width in (320, 1280):
            await page.set_viewport_size({"width": width, "height": 700})
            assert await page.evaluate(SIDEWAYS) == [], width
            assert await page.evaluate(SMALL) == [], width
            place = await tabs.bounding_box()
            assert place is not None
            assert (place["y"] > 600 and place["height"] >= 56) if width < 820 else place["width"] <= 216


async def test_twins_views_share_one_row_on_a_phone(site: Any) -> None:
    async with site.opened("#/twins/archived", viewport={"width": 390, "height": 844}) as page:
        links = page.locator("nav.views a")
        await expect(links).to_have_count(5)
        for width in (390, 320):
            await page.set_viewport_size({"width": width, "height": 844})
            assert len(set(await links.evaluate_all("all => all.map(link => link.offsetTop)"))) == 1, width
            assert await page.evaluate(SIDEWAYS) == [], width


async def test_colours_follow_the_system_and_are_readable(site: Any) -> None:
    pairs = [
        (ink, ground) for ink in ("ink", "soft", "act", "good", "warn", "bad") for ground in ("paper", "card")
    ]
    pairs.append(("on-act", "act"))
    for scheme, paper in (("light", "rgb(250, 247, 240)"), ("dark", "rgb(24, 22, 19)")):
        async with site.opened(color_scheme=scheme) as page:
            assert await page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == paper
            names = ["paper", "card", "ink", "soft", "edge", "act", "on-act", "good", "warn", "bad"]
            read = "names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`))"
            token = dict(zip(names, await page.evaluate(read, names), strict=True))
        for one, other in pairs:
            assert contrast(token[one], token[other]) >= 4.5, (scheme, one, other)
        assert min(contrast(token["edge"], token["paper"]), contrast(token["edge"], token["card"])) >= 3


async def test_reduced_motion_stops_animations(site: Any) -> None:
    site.daemon.script["wait"] = [site.HOLD]
    moving = "document.getAnimations({subtree: true}).length"
    for wish, moves in (("no-preference", True), ("reduce", False)):
        async with site.opened(reduced_motion=wish) as page:
            await site.ask(page, "wait")
            await expect(page.locator(".waiting")).to_be_visible()
            assert (await page.evaluate(moving) > 0) is moves


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("size", [(320, 568), (1280, 800), (1280, 500)], ids=str)
async def test_toast_of_an_open_dialog_is_read_and_pressed(site: Any, size: tuple[int, int]) -> None:
    async with site.opened("#/agents", viewport={"width": size[0], "height": size[1]}) as page:
        await page.keyboard.press("?")
        await expect(page.locator("dialog h2")).to_be_focused()
        await page.evaluate(SHOW_TOAST)
        undo = page.locator(".toast button")
        await expect(page.get_by_role("status", name="Done just now")).to_contain_text("Clock was removed.")
        await page.wait_for_function(ON_TOP, arg=".toast button")
        await page.wait_for_function(ON_TOP, arg="dialog [aria-label=Close]")
        await page.wait_for_function(APART)
        await page.focus("dialog [type=checkbox]")  # the last of the dialog's own
        await page.keyboard.press("Tab")
        await expect(undo).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.locator(".toast")).to_have_count(0)
        await expect(page.locator("dialog h2")).to_be_focused()

        await page.evaluate(SHOW_TOAST)
        await undo.click()
        assert await page.evaluate("document.body.dataset.undone") == "yes"
        await page.evaluate(SHOW_TOAST)
        await page.locator("dialog [aria-label=Close]").click()
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(page.locator("body > #toasts .toast")).to_be_visible()
        await expect(page.locator("body > #live")).to_have_count(1)
