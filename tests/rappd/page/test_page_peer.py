"""A machine in Chromium: what it may do, what it is asked and answers, its name, and what waits for it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import expect

from tests.rappd.page.machine_rows import (
    PI,
    SHED,
    THREAD,
    answer_and_then,
    bodies,
    listing,
    paired,
    peer_shown,
    sent,
    waiting,
)

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MANUAL = """<img src=x onerror=alert(1)>\u202eWarm, as the one that asks
feels it. Call it with a place, or with none for the room where it hangs.

Units: Celsius."""


async def test_what_a_peer_may_do_is_chosen_and_undone(site: Any) -> None:
    row = paired("pi", PI, scopes=["EGG", "HELP.gardener.*"])
    peer_shown(site, row)
    site.daemon.files[0]["cards"].append(
        site.daemon.files[0]["cards"][0] | {"name": "Twin", "structural": True}
    )
    sent(site, "POST", f"/peers/{PI}/scopes", 200, {"peer": row})
    async with site.opened(f"#/machines/peer/{PI}") as page:
        part = page.locator(".scopes")
        await expect(part.get_by_label("What is ticked")).to_be_checked()
        await expect(part.get_by_label("HELP.gardener.*")).to_be_checked()
        await expect(part.get_by_role("button", name="Save")).to_be_disabled()
        await expect(part.get_by_label("Twin")).to_have_count(0)  # nobody's from elsewhere
        await part.get_by_label("Clock").check()
        await part.get_by_label("Send eggs").uncheck()
        await part.get_by_role("button", name="Save").click()
        await page.click(".toast >> text=Undo")
        await part.get_by_label("Everything approved").check()
        await expect(part.get_by_label("Clock")).to_be_hidden()
        await part.get_by_role("button", name="Save").click()
        await expect(page.locator(".toast").last).to_contain_text("pi may use everything approved here.")
    first, undone, second = (sorted(body["scopes"]) for body in bodies(site, f"/peers/{PI}/scopes"))
    assert first == ["HELP.brainstem.Clock", "HELP.gardener.*"]
    assert undone == ["EGG", "HELP.gardener.*"]
    assert second == ["*"]


async def test_a_peer_is_asked_and_its_answer_is_text(site: Any) -> None:
    agents = [{"name": "Thermo<b>meter", "description": MANUAL}]
    peer_shown(site, paired("pi", PI), agents_here=agents, twins_here=["Gardener"])
    call = {"id": "x", "peer": "pi", "state": "done", "thread": THREAD, "seconds": 0.2}
    sent(site, "POST", "/call", 200, {"call": call | {"result": "<script>alert(1)</script>\n18.4 °C\u202e"}})
    async with site.opened(f"#/machines/peer/{PI}") as page:
        brief = page.locator(".peer-agents p")
        await expect(brief).to_have_text("<img src=x onerror=alert(1)>Warm, as the one that asks feels it.")
        await page.get_by_label("Who answers").select_option(label="Thermo<b>meter")
        await page.get_by_label("What to ask").fill("how warm is it?")
        await page.keyboard.press("Enter")
        result = page.locator(".peer-result")
        await expect(result).to_have_text("<script>alert(1)</script>\n18.4 °C")
        await expect(page.locator(".peer-call")).to_contain_text("done on pi in 0.2 s, thread 7c1e")
        await expect(page.locator("#live")).to_have_text("pi: <script>alert(1)</script> 18.4 °C")
        await expect(page.locator(".peer-call a")).to_have_attribute("href", f"#/activity/thread/{THREAD}")
        refused = {"state": "failed", "error": "pi refused this call.", "code": "scope", "thread": THREAD}
        refused["do"] = "Its owner can allow it: `rappd peers show desk`."
        sent(site, "POST", "/call", 200, {"call": call | refused})
        await page.get_by_label("Who answers").select_option(label="Gardener, a twin")
        await page.get_by_label("What to ask").fill("water?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator(".peer-call .problem")).to_contain_text("✗ pi refused this call.")
        await expect(page.locator(".peer-call .problem code")).to_have_text("rappd peers show desk")
        assert await page.locator("main :is(img, script, b)").count() == 0
    first, second = bodies(site, "/call")
    assert (first["peer"], first["agent"], first["text"]) == (PI, "Thermo<b>meter", "how warm is it?")
    assert (second["twin"], second["id"] != first["id"]) == ("Gardener", True)


async def test_a_call_that_waits_is_answered_later(site: Any) -> None:
    peer_shown(site, paired("shed", SHED, presence="away"))
    call = {"id": "x", "peer": "shed", "state": "queued", "thread": THREAD, "seconds": 0.1}
    sent(site, "POST", "/call", 200, {"call": call})
    async with site.opened(f"#/machines/peer/{SHED}") as page:
        await page.get_by_label("What to ask").fill("rain?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".peer-call")).to_contain_text("Queued: shed is away. Goes by itself.")
        id = bodies(site, "/call")[0]["id"]
        done = {"id": id, "verb": "DONE", "from": "x", "to": "y", "data": {"result": "12 mm"}}
        site.daemon.scripted[f"GET /threads/{THREAD}"] = [(200, {"events": [done | {"thread": THREAD}]})]
        await site.close()
        await page.get_by_role("button", name="Ask", exact=True).click()
        await page.get_by_label("What to ask").fill("x")
        await page.keyboard.press("Enter")
        await site.open()
        await expect(page.locator(".peer-result")).to_have_text("12 mm")


async def test_its_agents_are_used_here_or_not(site: Any) -> None:
    peer_shown(site, paired("pi", PI))
    refusal = {"error": "It cannot be.", "do": "Wait.", "code": "no"}
    site.daemon.scripted[f"POST /peers/{PI}/offer"] = [(409, refusal), (200, {"peer": {}})]
    async with site.opened(f"#/machines/peer/{PI}") as page:
        await page.get_by_role("switch", name="Use its agents here").click()
        await expect(page.locator("#main .problem")).to_contain_text("It cannot be.")
        await expect(page.get_by_role("switch", name="Use its agents here")).not_to_be_checked()
        await page.get_by_role("switch", name="Use its agents here").press("Space")
        await expect(page.locator(".toast")).to_contain_text("desk may use pi's agents now.")
    assert bodies(site, f"/peers/{PI}/offer") == [{"on": True}, {"on": True}]


async def test_a_peer_is_renamed_and_revoked_after_a_question(site: Any) -> None:
    peer_shown(site, paired("pi", PI))
    sent(site, "POST", f"/peers/{PI}/rename", 200, {"peer": paired("raspi", PI)})
    revoked = {"revoked": {"name": "pi", "fingerprint": PI}}
    sent(site, "POST", f"/peers/{PI}/revoke", 200, answer_and_then(site, revoked, "/peers", listing()))
    async with site.opened(f"#/machines/peer/{PI}") as page:
        await page.get_by_role("button", name="Rename").click()
        await expect(page.get_by_label("Name here")).to_be_focused()
        await page.keyboard.type("raspi")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast")).to_contain_text("It is called raspi here.")
        await page.get_by_role("button", name="Revoke…").click()
        dialog = page.get_by_role("dialog", name="End the trust in pi?")
        await expect(dialog).to_contain_text("may do nothing here any more, at once")
        await page.keyboard.press("Escape")
        assert bodies(site, f"/peers/{PI}/revoke") == []
        await page.get_by_role("button", name="Revoke…").click()
        await dialog.get_by_role("button", name="Revoke", exact=True).click()
        await expect(page).to_have_url(re.compile("#/machines$"))
        await expect(page.locator("#main")).to_contain_text("No other machine yet.")
    assert bodies(site, f"/peers/{PI}/rename") == [{"name": "raspi"}]


async def test_the_outbox_in_words_retried_and_dropped(site: Any) -> None:
    rows = [
        waiting("1", "done", what="old one"),
        waiting("2", "failed", what="bad one", trouble="shed refused."),
        waiting("3", "accepted", what="long one"),
        waiting(),
    ]
    sent(site, "GET", "/peers", 200, listing(paired("shed", SHED, presence="away", waiting=2)))
    sent(site, "GET", "/outbox", 200, {"outbox": rows})
    sent(site, "POST", "/outbox/81aa/retry", 200, {"retried": rows[3]})
    async with site.opened("#/machines") as page:
        await page.get_by_role("link", name="Outbox 2").click()
        queued = page.locator("[data-id='81aa']")
        await expect(queued).to_contain_text(re.compile("shed is away; your call waits until (tomorrow|\\d)"))
        await expect(queued).to_contain_text("3 tries · goes by itself · ends in 22 h · thread 7c1e")
        await expect(page.locator("[data-id='3']")).to_contain_text("shed works on it")
        await expect(page.locator("[data-id='2']")).to_contain_text("✗ failed: shed refused.")
        await expect(page.locator("[data-id='1']")).to_contain_text("✓ done")
        await expect(page.locator("[data-id='1'] button")).to_have_count(0)
        await page.get_by_role("button", name="Retry read the rain gauge").click()
        await expect(page.locator(".toast")).to_contain_text('Tried now: "read the rain gauge" to shed.')
        sent(site, "DELETE", "/outbox/3", 409, {"error": "That is over already.", "code": "conflict"})
        await page.get_by_role("button", name="Drop long one").click()
        await expect(page.locator("[data-id='3'] .problem")).to_contain_text("That is over already.")
        dropped = answer_and_then(site, {"dropped": rows[3]}, "/outbox", {"outbox": rows[:3]})
        sent(site, "DELETE", "/outbox/81aa", 200, dropped)
        await page.get_by_role("button", name="Drop read the rain gauge").click()
        await expect(queued).to_have_count(0)
        await page.evaluate("location.hash = '#/activity'")
        await expect(page.locator(".in-progress")).to_contain_text(["long one"])
    assert len(site.daemon.requests("/outbox/81aa/retry")) == 1


async def test_eggs_in_the_outbox_are_told_apart_from_calls(site: Any) -> None:
    egg = {"kind": "egg", "what": "garden.egg", "thread": ""}
    rows = [waiting("1", "done", **egg), waiting("2", "delivered", **egg), waiting(**egg)]
    sent(site, "GET", "/peers", 200, listing(paired("shed", SHED, presence="away", waiting=2)))
    sent(site, "GET", "/outbox", 200, {"outbox": rows})
    sent(site, "POST", "/outbox/81aa/retry", 200, {"retried": rows[2]})
    async with site.opened("#/machines/outbox") as page:
        queued = page.locator("[data-id='81aa']")
        await expect(queued).to_contain_text("Egg garden.egg to shed")
        await expect(queued).to_contain_text(
            re.compile("waiting: shed is away; it keeps until (tomorrow|\\d)")
        )
        await expect(page.locator("[data-id='2']")).to_contain_text("on its way")
        await expect(page.locator("[data-id='1']")).to_contain_text(
            "✓ delivered; it waits on shed to be hatched"
        )
        await queued.get_by_role("button", name="Retry Egg garden.egg").click()
        await expect(page.locator(".toast")).to_contain_text("Tried now: Egg garden.egg to shed.")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nearby", "nearby"),
        ("last address", "last address"),
        ("list", "the list in peers.json"),
        ("typed", "an address added by hand"),
    ],
)
async def test_peer_card_names_its_address_source(site: Any, source: str, words: str) -> None:
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI, reached=source)))
    async with site.opened("#/machines") as page:
        await expect(page.locator(f"[data-key='{PI}'] .soft").last).to_contain_text(words)


async def test_a_line_about_a_peer_is_kept(site: Any) -> None:
    peer_shown(site, paired("pi", PI, note="in the shed"))
    sent(site, "POST", f"/peers/{PI}/note", 200, {"peer": paired("pi", PI, note="in the attic")})
    async with site.opened(f"#/machines/peer/{PI}") as page:
        await expect(page.locator("#main .about")).to_contain_text("in the shed")
        await page.get_by_role("button", name="Note", exact=True).click()
        dialog = page.get_by_role("dialog", name="Note")
        await dialog.get_by_label("Note", exact=True).fill("in the attic")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
    assert bodies(site, f"/peers/{PI}/note") == [{"text": "in the attic"}]
