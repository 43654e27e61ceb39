"""Machines in Chromium: cards, discovery, listeners, screens of all widths, and hostile names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.rappd.page.machine_rows import (
    KITCHEN,
    OTHER,
    PI,
    SHED,
    SOURCES,
    answer_and_then,
    asks,
    bodies,
    found,
    legacy,
    listing,
    paired,
    sent,
    waiting,
)

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_machines_have_cards_and_navigation_counts_peers(site: Any) -> None:
    away = paired("shed", SHED, presence="away", since=1_000_000_000.0, reached="last address", waiting=4)
    rows = (paired("pi", PI), away, found("kitchen"), legacy("barn"))
    sent(site, "GET", "/peers", 200, listing(*rows))
    sent(site, "POST", "/peers/forget", 200, {"removed": {}})
    async with site.opened("#/machines") as page:
        pi, shed = page.locator(f"[data-key='{PI}']"), page.locator(f"[data-key='{SHED}']")
        await expect(pi).to_contain_text("● here, 2 ms")
        await expect(pi.locator("code")).to_contain_text("91c3")
        await expect(pi).to_contain_text("nearby · yours · 3 agents")
        await expect(shed).to_contain_text("○ last seen ")
        await expect(shed).to_contain_text("last address · yours · 4 in the outbox")
        await expect(page.locator(f"[data-key='{KITCHEN}']")).to_contain_text("· found")
        await expect(page.get_by_role("button", name="Pair with kitchen")).to_have_count(1)
        await expect(page.get_by_role("button", name="Pair with pi")).to_have_count(0)
        await expect(page.locator("nav a[href='#/machines'].place")).to_contain_text("2 machines")
        await page.get_by_role("button", name="Forget barn").click()
        await expect(page.locator(".toast")).to_contain_text("barn is forgotten.")
    assert bodies(site, "/peers/forget") == [{"address": "http://192.168.1.50:7071"}]


async def test_no_machines_shows_actions_and_discovery(site: Any) -> None:
    sources = [{**SOURCES[0], "found": 0, "trouble": "A VPN (tun0) hides this machine."}, *SOURCES[1:]]
    sent(site, "GET", "/peers", 200, listing(sources=sources, listener={"port": 0, "open": False}))
    refusal = {"error": '"ftp://x" is no address.', "do": "192.168.1.31", "code": "mistyped"}
    sent(site, "POST", "/peers", 400, refusal)
    async with site.opened("#/machines") as page:
        await expect(page.locator("#main")).to_contain_text("Run make start on another machine")
        await expect(page.locator(".no-twins .ways")).to_contain_text("! A VPN (tun0) hides this machine.")
        await expect(page.locator(".no-twins .ways")).to_contain_text("Added by handnothing found")
        await expect(page.locator("#main")).to_contain_text(
            "Other machines cannot reach this one: it does not listen"
        )
        await page.get_by_role("button", name="Add by address").click()
        await page.get_by_role("textbox", name="Address").fill("ftp://x")
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog .problem")).to_contain_text("is no address")
        added = {"address": "192.168.1.31:7443", "legacy": False, "name": "pi", "fingerprint": PI}
        sent(site, "POST", "/peers", 200, {"added": added})
        await page.get_by_role("textbox", name="Address").fill(" 192.168.1.31 ")
        await page.get_by_role("button", name="Add it").click()
        await expect(page.locator(".toast")).to_contain_text("pi answers at 192.168.1.31:7443.")
    assert bodies(site, "/peers")[-1] == {"address": "192.168.1.31"}


HELD_PEERS = """
const { fetch: send } = window;
const asked = new Promise((resolve) => (window.letPeersAnswer = resolve));
window.fetch = async (path, ...more) => (path === "/peers" && (await asked), send(path, ...more));
"""


async def test_machines_refresh_keeps_buttons_and_open_menu(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing())
    async with site.opened("#/machines", script=HELD_PEERS) as page:
        buttons = page.get_by_role("button", name=re.compile("Pair with a code|Add by address"))
        await page.wait_for_timeout(300)
        await expect(buttons).to_have_count(0)
        await expect(page.locator("#main")).not_to_contain_text("No other machine yet.")
        await page.evaluate("letPeersAnswer()")
        await expect(buttons).to_have_count(2)
        await page.get_by_role("button", name="Pair with a code").click()
        sources = [{**SOURCES[0], "trouble": "A VPN (tun0) hides this machine."}, *SOURCES[1:]]
        sent(site, "GET", "/peers", 200, listing(sources=sources, listener={"port": 0, "open": False}))
        await page.evaluate(
            "import('/web/components/machines/machines-state.js').then(({ machines }) => machines.touch())"
        )
        await expect(page.locator(".no-twins .ways")).to_contain_text("A VPN (tun0) hides this machine.")
        await expect(page.locator(".no-twins .discovery-problem")).to_contain_text(
            "Other machines cannot reach this one"
        )
        await expect(page.get_by_role("menuitem", name="Show a code")).to_be_focused()


async def test_discovery_problems_stand_above_list(site: Any) -> None:
    sources = [{**SOURCES[0], "trouble": "A VPN (tun0) hides this machine."}, *SOURCES[1:]]
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI), sources=sources))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".discovery-problem")).to_have_text(
            "! Local network: A VPN (tun0) hides this machine."
        )
        await expect(page.locator(".ways")).to_be_hidden()
        await page.click("text=How machines are found")
        await expect(page.locator(".ways")).to_contain_text("2 machines")


@pytest.mark.parametrize("width", [320, 1280])
async def test_hostile_names_stay_words(site: Any, width: int) -> None:
    names = [
        "<img src=x onerror=alert(1)><b>bold</b>",
        "\u202egnp.exe\u2066 pi\u2069\u200b",
        "n" * 60,
        "🥧👩‍👩‍👧 \U000e0041pi",
        "\u0007\u001b[31m",
    ]
    rows = [found(name, f"{at}" * 64) for at, name in enumerate(names, 1)]
    sent(site, "GET", "/peers", 200, listing(*rows, asking=[asks() | {"peer": names[0] + names[1]}]))
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks() | {"peer": names[1]}})
    async with site.opened("#/machines", viewport={"width": width, "height": 700}) as page:
        await expect(page.locator(".machine")).to_have_count(6)
        assert await page.locator("main :is(img, b, script)").count() == 0
        text = await page.locator("#main").inner_text()
        assert "<b>bold</b>" in text
        assert not re.search("[\u0000-\u0008\u001b\u200b\u202a-\u202e\u2066-\u2069]", text)
        assert "n" * 50 not in text
        await expect(page.locator(".machine", has_text="a machine")).to_have_count(0)
        await expect(page.locator(f"[data-key='{'2' * 64}'] bdi")).to_have_text("gnp.exe pi")
        assert await page.evaluate(SIDEWAYS) == []
        await page.locator(".asks").get_by_role("button", name="Pair with").click()
        await expect(page.locator(".four-words")).to_be_visible()
        assert await page.evaluate(SIDEWAYS) == []
        assert "\u202e" not in await page.locator("dialog").inner_text()


TO_THE_END = """() => {
    const more = [...document.querySelectorAll(".more-rows")].filter(one => one.checkVisibility());
    more.forEach(one => one.scrollIntoView());
    return more.length === 0;
}"""
"""Scrolls on in each frame: more rows come a moment after the end of those before is seen."""


async def test_a_thousand_machines_come_in_pieces(site: Any) -> None:
    rows = [paired(f"peer-{at:04}", f"{at:064x}", presence="away") for at in range(1000)]
    sent(site, "GET", "/peers", 200, listing(*rows))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".machine").first).to_contain_text("peer-0000")
        assert await page.locator(".machine").count() <= 240
        await page.get_by_label("Find a machine").fill("peer-0777")
        await expect(page.locator(".machine")).to_have_count(1)
        await expect(page.locator("[role=status]", has_text="1 of 1000")).to_have_count(1)
        await page.get_by_label("Find a machine").fill("")
        before = await page.locator(".machine").count()
        await page.locator(".more-rows:visible").press("Enter")
        await expect(page.locator(".machine a:focus")).to_have_count(1)
        assert await page.locator(".machine").count() > before
        await page.wait_for_function(TO_THE_END)
        await expect(page.locator(".machine", has_text="peer-0999")).to_have_count(1)


async def test_legacy_listener_names_its_callers(site: Any) -> None:
    door = {"open": True, "listening": ["x"], "addresses": ["192.168.1.20", "192.168.1.21"], "scopes": []}
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI)))
    sent(site, "GET", "/legacy", 200, {"legacy": door})
    closed = {"legacy": door | {"open": False}}
    sent(site, "DELETE", "/legacy", 200, answer_and_then(site, closed, "/legacy", closed))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".legacy")).to_contain_text("open to 192.168.1.20, 192.168.1.21.")
        await page.get_by_role("button", name="Close the legacy listener").click()
        await expect(page.locator(".legacy")).to_be_hidden()


async def test_a_phone_has_five_tabs_and_the_rest_under_more(site: Any) -> None:
    async with site.opened(viewport={"width": 320, "height": 700}) as page:
        await page.get_by_role("button", name="More pages").click()
        await expect(page.get_by_role("menuitem")).to_have_text(
            ["Devices", "Waiting", "Activity", "Settings"]
        )
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        await expect(page.locator("main h1")).to_have_text("Settings")
        await page.locator("nav a.place", has_text="Machines").click()
        await expect(page.locator("main h1")).to_have_text("Machines")
        assert await page.evaluate(SIDEWAYS) == []
    async with site.opened() as page:
        await page.keyboard.press("Escape")
        await page.keyboard.press("g")
        await page.keyboard.press("m")
        await expect(page.locator("main h1")).to_have_text("Machines")
        await expect(page.get_by_role("button", name="More pages")).to_be_hidden()


async def test_only_the_operator_sees_machines(site: Any) -> None:
    site.daemon.operator = False
    async with site.opened("#/machines") as page:
        await expect(page.locator(".operator-line")).to_contain_text("To see and pair other machines")
        assert site.daemon.requests("/peers") == []


async def test_while_the_daemon_is_away_the_list_stays_dimmed(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI), found("kitchen")))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".machine")).to_have_count(2)
        await site.close()
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator(".old .machine")).to_have_count(2)
        await expect(page.locator(".machine .problem")).to_contain_text("isn't answering")
        await site.open()
        await expect(page.locator(".old")).to_have_count(0)


async def test_everything_fits_and_can_be_hit(site: Any) -> None:
    long = "a-very-long-name-of-a-machine-that-goes-on"
    row = paired(long[:40], PI, trouble="pi's key has changed; nothing was sent.")
    agents = [{"name": "W" * 64, "description": "d" * 400}]
    sent(site, "GET", f"/peers/{PI}", 200, {"peer": row | {"agents_here": agents}})
    rows = (row, found(long + long), legacy("barn"))
    sent(site, "GET", "/peers", 200, listing(*rows, asking=[asks() | {"peer": long}]))
    sent(site, "GET", "/outbox", 200, {"outbox": [waiting(what="w" * 120, trouble="t" * 200)]})
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks()})
    door = {"open": True, "listening": ["x"], "addresses": ["192.168.1.20"] * 9, "scopes": []}
    sent(site, "GET", "/legacy", 200, {"legacy": door})
    async with site.opened("#/machines", reduced_motion="reduce") as page:
        await expect(page.locator(".machine")).to_have_count(4)
        await page.click("text=How machines are found")
        await fits(page, "all")
        for opening in ("Pair with a-very", "Add by address", "Ask barn"):
            await page.get_by_role("button", name=opening).first.click()
            await expect(page.locator("dialog h2")).to_be_visible()
            await fits(page, opening)
            await page.keyboard.press("Escape")
            await expect(page.locator("dialog")).to_have_count(0)
        for place in ("outbox", f"peer/{PI}"):
            await page.evaluate("place => { location.hash = `#/machines/${place}` }", place)
            await page.wait_for_timeout(300)
            if place != "outbox":
                await page.get_by_label("What is ticked").check()
            await fits(page, place)


async def fits(page: Page, where: str) -> None:
    for width in (320, 390, 1280):
        await page.set_viewport_size({"width": width, "height": 640})
        for wrong in (SIDEWAYS, SMALL, NAMELESS):
            assert await page.evaluate(wrong) == [], (where, width)
        assert await page.evaluate("document.getAnimations({subtree: true}).length") == 0, where


SIDEWAYS = """[document.documentElement, ...document.querySelectorAll("main, .page, dialog, .dialog-body")]
    .filter(box => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0).map(box => box.className || box.tagName)"""
SMALL = """[...document.querySelectorAll("button, .button, nav a, summary, select, textarea, label.switch, " +
    "input[type=text], input[type=search], .choice-line")]
    .filter(it => it.checkVisibility() && it.getBoundingClientRect().height < 43.5).map(it => it.outerHTML)"""
NAMELESS = """[...document.querySelectorAll("button, a[href], input:not([type=file]), select, textarea, dialog, nav")]
    .filter(it => it.checkVisibility() && !(it.textContent.trim() || it.ariaLabel || it.title || it.labels?.[0]?.textContent.trim()))
    .map(it => it.outerHTML)"""
