"""Machines › Neighborhood in Chromium: hostile names, narrow screens, work that somebody else began."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fixtures.page_questions import NAMELESS, SIDEWAYS, SMALL
from playwright.async_api import expect

from tests.rappd.page.machine_rows import PI, SHED, listing, paired, sent, waiting

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROBE = {"reachable": True, "detail": "", "free_bytes": 12_000_000_000, "twins": 1}
SNAPSHOT = {"path": "/e/home.egg", "name": "home", "taken_at": "2026-11-21T10:00:00Z", "size": 9, "sha256": "a",
            "machines": 2, "twins": 3, "missing": [], "restorable": True, "there": True,
            "drill": {"at": "2026-11-21T10:00:00Z", "files": 9, "problem": ""}}  # fmt: skip


def member(name: str, **more: Any) -> dict[str, Any]:
    row = {"name": name, "fingerprint": "", "paired": False, "presence": "", "self": False, "way": "ssh"}
    return row | {"trouble": "", "probe": PROBE | {"named": ["gardener"]}} | more


def shown(site: Any, *members: dict[str, Any], work: Any = None, snapshots: Any = (SNAPSHOT,)) -> None:
    rows = [member("desk", self=True), *members]
    sent(site, "GET", "/peers", 200, listing())
    sent(site, "GET", "/neighborhood", 200, {"members": rows, "snapshots": list(snapshots), "work": work})
    sent(site, "POST", "/neighborhood/probe", 200, {"members": rows})


@pytest.mark.parametrize("width", [320, 1280])
async def test_hostile_names_stay_words(site: Any, width: int) -> None:
    names = ["<img src=x onerror=alert(1)><b>bold</b>", "\u202egnp.exe\u2066 pi\u2069", "n" * 60]
    twins = PROBE | {"named": ["<script>alert(1)</script>", "\u202eesor", "w" * 90] + ["x"] * 20}
    drill = {"at": "2026-11-21T10:00:00Z", "files": 0, "problem": "<b>\u202e" + "p" * 200}
    bad = SNAPSHOT | {"name": "<i>" + "s" * 90, "drill": drill, "restorable": False}
    shown(site, *(member(name, probe=twins) for name in names), snapshots=[bad])
    async with site.opened("#/machines/neighborhood", viewport={"width": width, "height": 700}) as page:
        await expect(page.locator(".nb-other")).to_have_count(3)
        await expect(page.locator(".nb-other").first).to_contain_text("and 11 more")
        await expect(page.locator(".nb-snapshot")).to_contain_text("✗ cannot be restored: <b>ppp")
        assert await page.locator("main :is(img, b, i, script)").count() == 0
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", await page.locator("#main").inner_text())
        for wrong in (SIDEWAYS, SMALL, NAMELESS):
            assert await page.evaluate(wrong) == []


async def test_work_that_somebody_else_began_is_followed_to_its_end(site: Any) -> None:
    machines = [{"name": "pi", "state": "reading", "done": 61, "whole": 100}]
    parts = {"done": 0, "whole": 0, "last": "", "problems": []}
    work = {"id": "w", "kind": "snapshot", "phase": "reading", "machines": machines, "parts": parts}
    work |= {"can_cancel": True}
    shown(site, member("pi"), work=work, snapshots=[])
    sent(site, "GET", "/neighborhood/work", 200, {"work": work})
    async with site.opened("#/machines/neighborhood") as page:
        bars = page.get_by_role("group", name="Progress")
        await expect(bars.locator("li")).to_contain_text("61 %")
        await expect(page.get_by_role("button", name="Take a snapshot")).to_be_disabled()
        shown(site, member("pi"))
        sent(site, "GET", "/neighborhood/work", 200, {"work": None})
        await expect(page.locator(".nb-snapshot")).to_contain_text("✓ restorable, tried 21 Nov")
        await expect(bars).to_be_hidden()
        await expect(page.get_by_role("button", name="Take a snapshot")).to_be_enabled()


async def test_only_the_operator_sees_the_neighborhood(site: Any) -> None:
    site.daemon.operator = False
    async with site.opened("#/machines/neighborhood") as page:
        await expect(page.locator(".operator-line")).to_be_visible()
        assert site.daemon.requests("/neighborhood/probe") == []


async def test_picture_tells_who_is_here_what_waits_and_what_is_backed_up(site: Any) -> None:
    partly = SNAPSHOT | {"taken_at": "2026-11-22T10:00:00Z", "holds": ["desk", "pi"], "missing": ["pi/rose"]}
    older = SNAPSHOT | {"holds": ["desk", "pi"]}
    broken = SNAPSHOT | {"holds": ["desk", "pi", "shed"], "restorable": False}
    pi, shed = member("pi", paired=True, fingerprint=PI), member("shed", paired=True, fingerprint=SHED)
    away = {"presence": "away", "ms": None, "since": 0}
    shown(
        site,
        pi,
        shed | {"probe": {"reachable": False, "detail": "no answer"}},
        snapshots=[broken, partly, older],
    )
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI), paired("shed", SHED, **away)))
    sent(site, "GET", "/outbox", 200, {"outbox": [waiting("81aa"), waiting("81ab")]})
    egg = {"key": "egg:1", "kind": "egg", "at": 1.0, "what": "pi sent rose.egg.", "do": "", "news": False}
    sent(site, "GET", "/waiting", 200, {"waiting": [egg]})
    async with site.opened("#/machines/neighborhood") as page:
        glance = page.locator(".nb-glance")
        await expect(glance).to_have_text(
            "2 of 3 machines are here. Calls or eggs wait for shed. shed is not backed up."
        )
        here = page.get_by_role("region", name="This machine")
        await expect(here).to_contain_text("✓ backed up 22 Nov")
        await expect(here.get_by_role("link", name="1 waits for you")).to_have_attribute("href", "#/waiting")
        rows = page.locator(".nb-other")
        await expect(rows.nth(0)).to_contain_text("● here, 2 ms")
        await expect(rows.nth(0)).to_contain_text("✓ backed up 21 Nov")
        await expect(rows.nth(1)).to_contain_text("○ away, never seen")
        await expect(rows.nth(1)).to_contain_text("! not backed up")
        link = rows.nth(1).get_by_role("link", name="2 wait for shed")
        await link.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("link", name="Outbox 2")).to_have_attribute("aria-current", "page")


async def test_restore_that_only_starts_twins_is_offered_and_a_settled_one_starts_none(site: Any) -> None:
    none = dict.fromkeys(("created", "overwritten", "skipped"), 0)
    plan = {"egg": {"size": 9}, "seal": {"standing": "self", "whole": True}, "peers": [], "boot": ["gardener"],
            "categories": dict.fromkeys(("agents", "core", "data", "global_state", "twins", "peer_twins"), none),
            "local": [none | {"name": "gardener"}], "left_archived": 0, "problems": [], "notes": [],
            "nothing_to_do": False, "digest": "d"}  # fmt: skip
    shown(site, member("pi"))
    starts, settled = {"status": "ok", "plan": plan}, {"status": "ok", "plan": plan | {"nothing_to_do": True}}
    sent(site, "POST", "/neighborhood/plan", 200, starts)
    async with site.opened("#/machines/neighborhood") as page:
        await page.get_by_role("button", name="Restore home").click()
        dialog = page.locator("dialog")
        await expect(dialog).to_contain_text("1 twin will be started again, as before.")
        await expect(dialog.get_by_role("button", name="Restore", exact=True)).to_be_visible()
        await expect(dialog).to_contain_text("Nothing is written yet.")
        sent(site, "POST", "/neighborhood/plan", 200, settled)
        await dialog.get_by_label("As a simulation").check()
        await expect(dialog).to_contain_text("Nothing would be written")
        await expect(dialog.get_by_text("Close", exact=True)).to_be_visible()
        await expect(dialog.get_by_role("button", name="Restore", exact=True)).to_have_count(0)
        await expect(dialog).not_to_contain_text("started again")
