"""Pairing two machines in Chromium: four words, a code, who asks, and how it ends."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import expect

from tests.rappd.page.machine_rows import (
    ATTEMPT,
    KITCHEN,
    OTHER,
    asks,
    attempt,
    bodies,
    ended,
    found,
    listing,
    paired,
    peer_shown,
    sent,
)

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_pairing_shows_four_words_without_default_owner(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt("asking", words=[])})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt("asking", words=[])})

    def verdict() -> Any:  # what the page asks for meanwhile is as it was until this
        site.daemon.scripted[f"GET /pairings/{ATTEMPT}"] = [(200, {"pairing": attempt("waiting")})]
        return {"pairing": attempt("waiting")}

    sent(site, "POST", f"/pairings/{ATTEMPT}", 200, verdict)
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        dialog = page.get_by_role("dialog", name="Pair with kitchen")
        await expect(dialog).to_contain_text("Asking kitchen…")
        sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt()})
        await expect(dialog.locator(".four-words li")).to_have_text(["copper", "lantern", "otter", "violin"])
        heard = dialog.locator(".dialog-inside [aria-live=polite]")
        await expect(heard).to_contain_text("copper. lantern. otter. violin.")
        await expect(dialog).to_contain_text(re.compile(r"Closes in 1:5\d"))
        assert (
            await dialog.get_by_role("radio").evaluate_all("all => all.some(({checked}) => checked)") is False
        )
        await expect(dialog.locator(".verdicts :focus")).to_have_count(0)
        differ, same = (dialog.get_by_role("button", name=name) for name in ("Different", "Same words"))
        looks = """it => {
            const {width, height} = it.getBoundingClientRect();
            const {backgroundColor, color, fontWeight} = getComputedStyle(it);
            return [Math.round(width), height, backgroundColor, color, fontWeight];
        }"""
        await page.mouse.move(0, 0)
        assert await differ.evaluate(looks) == await same.evaluate(looks)
        said = (await dialog.inner_text()).lower()
        assert not re.search(r"token|certificate|node|fingerprint|handshake|tenant|envelope|endpoint", said)
        await same.click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Choose one of the two")
        await expect(dialog.get_by_label("Mine")).to_be_focused()
        await dialog.get_by_label("A friend's").check()
        await same.click()
        await expect(dialog).to_contain_text("Now say yes on kitchen.")
        await expect(dialog.locator("h2")).to_be_focused()
        site.daemon.scripted[f"GET /pairings/{ATTEMPT}"] = [ended("paired", "")]
        await expect(dialog).to_contain_text("kitchen is paired.")
        await expect(dialog).not_to_contain_text("Closes in")
        peer_shown(site, paired("kitchen", KITCHEN))
        await dialog.get_by_role("button", name="See it").click()
        await expect(page).to_have_url(re.compile(f"#/machines/peer/{KITCHEN}$"))
    assert bodies(site, "/pairings") == [{"peer": KITCHEN}]
    assert bodies(site, f"/pairings/{ATTEMPT}") == [{"same": True, "whose": "friend"}]


async def test_words_that_differ_pair_nothing(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt()})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt()})
    says = "The words differ; nothing was paired.", "Retry once, then change network."
    site.daemon.scripted[f"POST /pairings/{ATTEMPT}"] = [ended("differ", *says)]
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        await page.get_by_role("button", name="Different").click()
        await expect(page.locator("dialog")).to_contain_text("✗ The words differ; nothing was paired.")
        await expect(page.locator("dialog")).to_contain_text("→ Retry once, then change network.")
        await expect(page.locator(".dialog-inside [aria-live=polite]")).to_contain_text("The words differ")
        await page.get_by_role("button", name="Close", exact=True).last.press("Enter")
        await expect(page.locator("dialog")).to_have_count(0)
    assert bodies(site, f"/pairings/{ATTEMPT}") == [{"same": False}]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("expired", "Time is up; nothing was paired."),
        ("stopped", "The pairing was stopped; nothing was paired."),
    ],
)
async def test_pairing_ended_elsewhere_shows_reason(site: Any, state: str, says: str) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt()})
    site.daemon.scripted[f"GET /pairings/{ATTEMPT}"] = [ended(state, says, "Start anew on both machines.")]
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator("dialog .outcome")).to_have_text(f"✗ {says}")
        await expect(page.locator(".verdicts")).to_have_count(0)


@pytest.mark.parametrize("mark", [60, 30, 10])
async def test_the_countdown_is_spoken(site: Any, mark: int) -> None:
    row = attempt(seconds_left=mark + 2)
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": row})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": row})
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator(".dialog-inside [aria-live=polite]")).to_have_text(f"{mark} seconds left.")


async def test_pairing_dialog_close_stops_own_keeps_incoming(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen"), asking=[asks()]))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt()})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt()})
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks()})
    for one in (ATTEMPT, OTHER):
        site.daemon.scripted[f"DELETE /pairings/{one}"] = [ended("stopped", "Stopped.")]

    def told_no() -> Any:
        # From then on the list is without it, and not before: the page looks by itself, too.
        sent(site, "GET", "/peers", 200, listing(found("kitchen")))
        return ended("stopped", "Stopped.")[1]

    async with site.opened("#/machines") as page:
        first = page.locator("#main .cards li").first
        await expect(first).to_have_text(re.compile(r"^pi \(192\.168\.1\.12\) wants to pair\."))
        await page.get_by_role("button", name="Pair with pi").click()
        await expect(page.locator(".four-words")).to_be_visible()
        await expect(page.locator("dialog")).to_contain_text("pi (192.168.1.12) wants to pair.")
        await page.keyboard.press("Escape")
        await expect(first).to_contain_text("pi (192.168.1.12) wants to pair.")
        await expect(page.locator(".toast")).to_have_count(0)
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator(".four-words")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator(".toast")).to_contain_text("Stopped; nothing was paired.")
        sent(site, "DELETE", f"/pairings/{OTHER}", 200, told_no)
        await page.get_by_role("button", name="Decline pi").click()
        await expect(page.locator(".toast").last).to_contain_text("pi was told no; nothing was paired.")
        await expect(first).not_to_contain_text("wants to pair")


async def test_who_asks_is_told_wherever_one_is(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(asking=[asks()]))
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks()})
    async with site.opened("#/agents") as page:
        await page.click(".toast:has-text('pi (192.168.1.12) wants to pair.') >> text=Look")
        await expect(page.get_by_role("dialog", name="Pair with pi")).to_contain_text("lantern")


async def test_notice_of_who_asks_goes_once_it_is_answered_elsewhere(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(asking=[asks()]))
    async with site.opened("#/agents") as page:
        await expect(page.locator(".toast")).to_contain_text("wants to pair.")
        sent(site, "GET", "/peers", 200, listing())
        await page.evaluate(
            "import('/web/components/machines/machines-state.js').then(({machines}) => machines.touch())"
        )
        await expect(page.locator(".toast")).to_have_count(0)


async def test_a_code_is_shown_and_typed(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    code = attempt("asking", role="answers", peer="", words=[], code="417-copper-otter-violin")
    sent(site, "POST", "/pairings", 200, {"pairing": code})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": code})
    site.daemon.scripted[f"DELETE /pairings/{ATTEMPT}"] = [ended("stopped", "Stopped.")]
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with a code").press("Enter")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Show it").click()
        await expect(page.locator("dialog")).to_contain_text("Choose one of the two")
        await page.get_by_label("Mine").check()
        await page.get_by_role("button", name="Show it").click()
        await expect(page.locator(".shown-code")).to_have_text("417-copper-otter-violin")
        await page.keyboard.press("Escape")
        await expect(page.locator(".toast")).to_contain_text("Stopped; nothing was paired.")
        typed = attempt("asking", words=[], code="417-copper-otter-violin")
        sent(site, "POST", "/pairings", 200, {"pairing": typed})
        wrong = "That was not the code; nothing was paired."
        site.daemon.scripted[f"GET /pairings/{ATTEMPT}"] = [ended("stopped", wrong)]
        await page.get_by_role("button", name="Pair with a code").click()
        await page.get_by_role("menuitem", name="Type a code").click()
        await page.get_by_label("Machine", exact=True).fill("192.168.1.40")
        await page.get_by_role("textbox", name="Code").fill("417 copper otter violin")
        await page.get_by_label("A friend's").check()
        await page.get_by_role("button", name="Pair", exact=True).click()
        await expect(page.locator("dialog .outcome")).to_contain_text(wrong)
    shown, given = bodies(site, "/pairings")
    assert shown == {"offer_code": True, "whose": "mine"}
    assert given == {"peer": "192.168.1.40", "code": "417 copper otter violin", "whose": "friend"}
