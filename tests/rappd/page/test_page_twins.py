"""Twins in Chromium: cards, eggs and their plans, lineage, two eggs side by side, who is set aside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.rappd.page.machine_rows import PI, SHED, bodies, listing, paired, sent
from twins.eggs.writers.unread_kinds import NEVER_READ

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SAME, DIFFERS = "the same is there", "yours differs and stays"


def group(*files: tuple[str, str, str]) -> dict[str, Any]:
    rows = [
        {"path": path, "role": role, "size": 10} | ({"why": why} if why else {}) for path, role, why in files
    ]
    roles = [role for _, role, _ in files]
    return {"count": len(files), "roles": {role: roles.count(role) for role in roles}, "files": rows}


def planned(digest: str, *, replaced: bool = False, **more: Any) -> dict[str, Any]:
    soul = ("soul.md", "soul", "" if replaced else DIFFERS)
    plan = {
        "egg": {"name": "Rose", "kind": "twin", "size": 3_100_000, "packed_by": "kitchen"},
        "seal": {
            "whole": True,
            "signer": "91c3" * 16,
            "signer_name": "",
            "standing": "unknown",
            "whose": "",
            "signed": 'signed by key 91c391c391c391c3 ("kitchen"), not paired',
        },
        "create": group(("memory.json", "memory", "")),
        "replace": group(*([soul] if replaced else [])),
        "keep": group(("rappid.json", "identity", SAME), *([] if replaced else [soul])),
        "quarantine": group(("agents/rain_agent.py", "agent", "")),
        "refuse": group(),
        "permissions": [
            {"path": "agents/rain_agent.py", "wants": ["the network"], "may": ["talks to rain.example"]}
        ],
        "notes": [],
        "answer": "",
        "digest": digest,
    }
    plan["egg"]["packed_at"] = "2026-11-20T10:00:00Z"
    return plan | more


def opened_egg(plan: dict[str, Any]) -> dict[str, Any]:
    egg = {"name": "Rose", "whole": True, "listed": 142, "parts": []}
    return {"id": "ab" * 32, "file": "rose.egg", "egg": egg, "plan": plan}


def hatched(**more: Any) -> dict[str, Any]:
    done = {"name": "Rose", "key": "rose-7e18", "destination": "twin", "receipt": "r1", "released": []}
    counts = {"create": {"count": 1}, "replace": {"count": 1}, "quarantine": {"count": 1}, "answer": ""}
    return {"hatched": done | counts | more}


async def drop(page: Page, *names: str) -> None:
    await page.evaluate(
        """names => {
            const carried = new DataTransfer();
            for (const name of names) carried.items.add(new File(["egg"], name));
            for (const type of ["dragenter", "dragover", "drop"])
                document.body.dispatchEvent(new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true}));
        }""",
        list(names),
    )


async def test_twins_have_cards_and_navigation_counts_them(site: Any) -> None:
    async with site.opened("#/twins") as page:
        rose = page.locator("[data-key='rose-7e18']")
        await expect(rose).to_contain_text("running on port 7081")
        await expect(rose).to_contain_text(re.compile(r"personal · 131 memories · talked [\d,]+ days ago"))
        await expect(page.locator("[data-key='fern-91c3']")).to_contain_text("memories cannot be read")
        await expect(page.locator("[data-key='pip-4f2a']")).to_contain_text("buddy, hatchling")
        await expect(page.locator("nav a[href='#/twins'].place")).to_contain_text("3 twins")
        await expect(page.locator(".unreadable")).to_contain_text("rappid.json is damaged.")


async def test_without_a_twin_it_says_what_to_do(site: Any) -> None:
    site.daemon.scripted["GET /twins"] = [(200, {"twins": [], "unreadable": []})]
    site.daemon.scripted["POST /twins"] = [(409, {"error": "It cannot be.", "do": "Wait.", "code": "no"})]
    async with site.opened("#/twins") as page:
        await expect(page.get_by_role("button", name="Open an egg")).to_have_count(1)
        await page.get_by_role("button", name="New twin").click()
        await expect(page.get_by_label("Name")).to_be_focused()
        await page.keyboard.type("Rose")
        await page.get_by_label("Kind").select_option("project")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="New twin").press("Enter")
        await page.get_by_label("Name").fill("Rose")
        await page.get_by_label("Kind").select_option("project")
        await page.get_by_role("button", name="Create").click()
        await expect(page.locator("dialog .problem")).to_contain_text("It cannot be.")
        await expect(page.get_by_label("Name")).to_have_value("Rose")
        await expect(page.locator(".toast")).to_have_count(0)
        born = {"key": "rose-7e18", "name": "Rose", "message": "Rose is created.", "namesakes": 0}
        site.daemon.scripted["POST /twins"] = [(200, born)]
        await page.get_by_role("button", name="Create").click()
        await page.click(".toast >> text=Chat")
        await expect(page).to_have_url(re.compile("#/chat/rose-7e18$"))
    assert bodies(site, "/twins")[-1] == {"name": "Rose", "kind": "project", "soul": ""}


async def test_the_menu_by_keyboard_alone(site: Any) -> None:
    site.daemon.scripted["POST /twins/rose-7e18/rename"] = [(200, {"message": "It is Rosa now."})]
    async with site.opened("#/twins") as page:
        more = page.get_by_role("button", name="More for Rose")
        await more.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
        await page.keyboard.press("End")
        await expect(page.get_by_role("menuitem", name="Archive")).to_be_focused()
        await page.keyboard.press("ArrowUp")
        await expect(page.get_by_role("menuitem", name="Stop")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(more).to_be_focused()
        await expect(page.get_by_role("menu")).to_have_count(0)
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog h2")).to_have_text("Rename Rose")
        await page.keyboard.type("Rosa")
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(more).to_be_focused()
        await page.click(".toast >> text=Undo")
        await expect(page.locator(".toast >> text=Undo")).to_have_count(0)
    assert bodies(site, "/twins/rose-7e18/rename") == [{"name": "Rosa"}, {"name": "Rose"}]


async def test_what_fails_on_a_card_is_told_on_that_card(site: Any) -> None:
    away = {"error": "All ports are taken.", "do": "Let another twin sleep.", "code": "no_port"}
    site.daemon.scripted["POST /twins/fern-91c3/boot"] = [(409, away)]
    async with site.opened("#/twins") as page:
        await page.get_by_role("button", name=re.compile("More for Fern")).click()
        await page.get_by_role("menuitem", name="Let programs reach it (own port)").click()
        await expect(page.locator("[data-key='fern-91c3'] .problem")).to_contain_text("All ports are taken.")
        await expect(page.locator(".problem")).to_have_count(1)


async def test_archive_undo_restores_running_state(site: Any) -> None:
    async with site.opened("#/twins") as page:
        await page.get_by_role("button", name="More for Rose").click()
        await page.get_by_role("menuitem", name="Archive").click()
        async with page.expect_response("**/twins/rose-7e18/boot"):
            await page.click(".toast >> text=Undo")
    asked = [path for path, _, _ in site.daemon.asked if path.startswith("/twins/rose-7e18/")]
    assert asked == [f"/twins/rose-7e18/{verb}" for verb in ("archive", "unarchive", "boot")]


async def test_the_soul_keeps_its_history(site: Any) -> None:
    site.daemon.scripted["PUT /twins/rose-7e18/soul"] = [(200, {"kept_as": 2, "message": "A new soul."})]
    async with site.opened("#/twins") as page:
        await page.get_by_role("button", name="More for Rose").click()
        await page.get_by_role("menuitem", name="Soul").click()
        await expect(page.get_by_label("Soul", exact=True)).to_have_value("You are Rose.")
        await page.click("dialog summary")
        await expect(page.locator("dialog .line-row")).to_contain_text("too curt")
        await page.get_by_label("Soul", exact=True).fill("You are kind.")
        await page.get_by_role("button", name="Put in force").click()
        await page.click(".toast >> text=Undo")
        await expect(page.locator(".toast >> text=Undo")).to_have_count(0)
    assert bodies(site, "/twins/rose-7e18/soul") == [{"soul": "You are kind.", "reason": ""}]
    assert bodies(site, "/twins/rose-7e18/soul/restore") == [{"number": 2}]


async def test_an_egg_shows_its_plan_before_the_yes(site: Any) -> None:
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(planned("one")))]
    site.daemon.scripted["POST /eggs/plan"] = [(200, {"plan": planned("two", replaced=True)})]
    site.daemon.scripted["POST /eggs/hatch"] = [(200, hatched())]
    site.daemon.scripted["POST /eggs/rollback"] = [(200, {"rolled_back": {"already": False, "aside": ""}})]
    async with site.opened("#/twins/lineage") as page:
        await drop(page, "rose.egg")
        dialog = page.locator("dialog")
        await expect(dialog.locator("h2")).to_have_text("Rose")
        for said in (
            re.compile(r'a twin, 3\.1 MB, packed .* by "kitchen"'),
            "✓ Complete: all 142 files match their hashes",
            '! Signed by key 91c391c391c391c3 ("kitchen"), not paired. Its code will not run until you approve it.',
            "Its code talks to rain.example",
        ):
            await expect(dialog).to_contain_text(said)
        verbs = await dialog.locator(".plan-verb, .plan-count").all_inner_texts()
        assert verbs == ["New", "1", "Unchanged", "2", "Needs your approval", "1"]
        await expect(dialog.locator(".keep summary")).to_contain_text(
            "1 of yours differs and stays, 1 is the same"
        )
        await dialog.locator(".keep summary").click()
        await expect(dialog.locator(".keep .path")).to_have_text(["rappid.json", "soul.md"])
        assert bodies(site, "/eggs/hatch") == []
        await dialog.get_by_label("soul").check()
        await expect(dialog.locator(".replace summary")).to_contain_text("yours are kept for an undo")
        await expect(dialog.get_by_label("soul")).to_be_focused()
        await dialog.get_by_role("button", name="Hatch 3 files").click()
        await expect(dialog).to_have_count(0)
        await expect(page.locator(".toast")).to_contain_text(
            "Rose hatched: 3 files. 1 code file waits for your approval."
        )
        await page.click(".toast >> text=Undo")
        await expect(page.locator(".toast")).to_contain_text("Rose is as it was before.")
    assert bodies(site, "/eggs/plan") == [{"id": "ab" * 32, "overwrite": ["soul"]}]
    (yes,) = bodies(site, "/eggs/hatch")
    assert yes.pop("work"), "what it may be cancelled by"
    assert yes == {"id": "ab" * 32, "approved": "two", "overwrite": ["soul"], "source": "rose.egg"}
    assert bodies(site, "/eggs/rollback") == [{"receipt": "r1", "even_if_changed": False}]


async def test_plan_with_nothing_to_do_says_so_and_offers_nothing(site: Any) -> None:
    nothing = {"create": group(), "quarantine": group(), "nothing_to_do": True}
    here = planned("one", **nothing, keep=group(("rappid.json", "identity", SAME)))
    site.daemon.scripted["POST /eggs"] = [
        (200, opened_egg(here)),
        (200, opened_egg(planned("two", **nothing))),
    ]
    async with site.opened("#/twins") as page:
        dialog = page.locator("dialog")
        for said in ("All of it is here already.", "Nothing would be written: what differs stays yours."):
            await drop(page, "rose.egg")
            await expect(dialog.locator(".dialog-foot")).to_contain_text(said)
            await expect(dialog.get_by_role("button", name="Hatch")).to_have_count(0)
            await dialog.locator(".dialog-foot").get_by_role("button", name="Close").click()
            await expect(dialog).to_have_count(0)
    assert site.daemon.requests("/eggs/hatch") == []


async def test_plan_with_env_shows_names_and_approves_file(site: Any) -> None:
    env = {"path": ".env", "names": ["WEATHER", "GREETING"], "never_taken": ["PATH"], "problem": ""}
    plan = planned("one", variables=[env], quarantine=group((".env", "env", "")))
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(plan))]
    held = {"path": ".env", "why": "It came in an egg.", "origin": "Rose", "at": "", "sha256": "", "file": ""}
    site.daemon.scripted["GET /agents/held"] = [(200, {"held": [held]})]
    site.daemon.scripted["GET /agents/source/.env"] = [(200, {"source": "WEATHER=sunny\n"})]
    async with site.opened("#/twins") as page:
        await drop(page, "rose.egg")
        dialog = page.locator("dialog")
        await expect(dialog).to_contain_text(".env sets WEATHER, GREETING")
        await expect(dialog).to_contain_text("! .env sets what is never taken from it: PATH")
        await expect(dialog.locator(".quarantine summary")).to_contain_text("kept, not used")
        await page.keyboard.press("Escape")
        await page.click("nav >> text=Agents")
        card = page.locator("[data-file='.env']")
        await expect(card).to_contain_text("Waits for your approval: kept, not used. It came in an egg.")
        await card.get_by_role("button", name="Read and approve").click()
        await expect(page.locator("dialog .listing")).to_contain_text("WEATHER=sunny")
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.locator("dialog")).to_have_count(0)
    assert bodies(site, "/agents/approve") == [{"filename": ".env", "waits": True}]


async def test_changed_plan_is_shown_again_before_hatching(site: Any) -> None:
    changed = {"error": "The plan is another one by now.", "do": "", "code": "plan_changed"}
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(planned("one")))]
    site.daemon.scripted["POST /eggs/hatch"] = [(409, changed), (200, hatched())]
    site.daemon.scripted["POST /eggs/plan"] = [(200, {"plan": planned("later")})]
    async with site.opened("#/twins") as page:
        await drop(page, "rose.egg")
        await page.get_by_role("button", name="Hatch 2 files").click()
        await expect(page.locator("dialog .note")).to_contain_text("Something changed since you saw the plan")
        await expect(page.locator(".toast")).to_have_count(0)
        await page.get_by_role("button", name="Hatch 2 files").click()
        await expect(page.locator("dialog")).to_have_count(0)
    assert [body["approved"] for body in bodies(site, "/eggs/hatch")] == ["one", "later"]


async def test_an_undo_that_would_touch_later_changes_asks_first(site: Any) -> None:
    changed = {"error": "soul.md changed since Rose hatched; nothing was touched.", "code": "changed_since"}
    done = {"rolled_back": {"already": False, "aside": "/x/undone"}}
    site.daemon.scripted["POST /eggs/rollback"] = [(409, changed), (200, done)]
    async with site.opened("#/twins/eggs") as page:
        await page.get_by_role("button", name="Undo the hatching of Rose").click()
        await expect(page.locator("dialog")).to_contain_text("soul.md changed since Rose hatched")
        await page.get_by_role("button", name="Undo all the same").click()
        await expect(page.locator(".toast")).to_contain_text("What had changed lies in /x/undone.")
    asked = [body["even_if_changed"] for body in bodies(site, "/eggs/rollback")]
    assert asked == [False, True]


async def test_a_refused_egg_says_why_and_the_next_one_opens(site: Any) -> None:
    unknown = {"error": "I don't know how to hatch this.\nThe cartridge family:\nA  B", "code": "unknown_egg"}
    site.daemon.scripted["POST /eggs"] = [(400, unknown), (200, opened_egg(planned("one")))]
    async with site.opened("#/twins") as page:
        await drop(page, "holiday.jpg", "rose.egg")
        await expect(page.locator("dialog h2")).to_have_text("holiday.jpg")
        await expect(page.locator("dialog .problem")).to_have_text("✗ I don't know how to hatch this.")
        await page.click("dialog summary")
        await expect(page.locator("dialog pre")).to_have_text("The cartridge family:\nA  B")
        await page.get_by_role("button", name="Close", exact=True).last.click()
        await expect(page.locator("dialog h2")).to_have_text("Rose")
        async with page.expect_request(lambda request: request.method == "DELETE"):
            await page.get_by_role("button", name="Cancel").click()


async def test_trusting_a_signer_shows_the_whole_key_and_plans_anew(site: Any) -> None:
    trusted = planned("two", quarantine=group(), seal={"standing": "trusted", "signed": "signed by kitchen"})
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(planned("one")))]
    site.daemon.scripted["POST /eggs/plan"] = [(200, {"plan": trusted})]
    site.daemon.scripted["POST /eggs/signers"] = [(200, {"message": "kitchen is trusted."})]
    async with site.opened("#/twins") as page:
        await drop(page, "rose.egg")
        await page.click("dialog >> text=I know who this egg is from")
        await expect(page.locator("dialog .fingerprint")).to_have_text(" ".join(["91c3"] * 16))
        await page.get_by_label("Whose key is it?").fill("kitchen")
        await page.get_by_role("button", name="Trust this key").click()
        await expect(page.locator("dialog")).to_contain_text("✓ Signed by kitchen")
        await expect(page.locator("dialog .fingerprint")).to_have_count(0)
    assert bodies(site, "/eggs/signers") == [{"fingerprint": "91c3" * 16, "name": "kitchen"}]


async def test_eggs_of_paired_machine_are_trusted_by_one_button(site: Any) -> None:
    key = "91c3" * 16
    seal = {"standing": "unknown", "signer": key, "signer_name": "vm", "whose": "mine"}
    first = planned("one", seal=seal | {"signed": "signed by vm (yours)"})
    trusted = planned("two", seal=seal | {"standing": "trusted", "signed": "signed by vm (yours)"})
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(first))]
    site.daemon.scripted["POST /eggs/plan"] = [(200, {"plan": trusted})]
    site.daemon.scripted["POST /eggs/signers"] = [(200, {"message": "vm is trusted."})]
    async with site.opened("#/twins") as page:
        await drop(page, "rose.egg")
        await expect(page.locator("dialog")).to_contain_text("! Signed by vm (yours). Its code will not run")
        await page.get_by_role("button", name="Trust vm's eggs").click()
        await expect(page.locator("dialog")).to_contain_text("✓ Signed by vm (yours)")
        await expect(page.get_by_role("button", name="Trust vm's eggs")).to_have_count(0)
    assert bodies(site, "/eggs/signers") == [{"fingerprint": key, "name": "vm"}]


async def test_packing_gives_file_and_draggable_egg(site: Any, tmp_path: Path) -> None:
    secret = {"error": "mail_agent.py line 9 holds a likely password; not packed.", "do": "Move it to .env."}
    egg = {"path": "/h/eggs/rose-7e18/now-twin.egg", "size": 3_100_000, "files": 142, "left_out": []}
    answer = {"packed": egg, "link": "/eggs/out/key/rose-7e18/now-twin.egg"}
    site.daemon.scripted["POST /eggs/pack"] = [(409, secret | {"code": "secret_found"}), (200, answer)]
    dragged = """([key]) => {
        const carried = new DataTransfer();
        const event = new DragEvent("dragstart", {dataTransfer: carried, bubbles: true, cancelable: true});
        const went = document.querySelector(`[data-key="${key}"]`).dispatchEvent(event);
        return [went, carried.getData("DownloadURL")];
    }"""
    async with site.opened("#/twins") as page:
        card = page.locator("[data-key='rose-7e18']")
        await page.evaluate("import('/web/lib/operator-key.js').then(({linkProof}) => linkProof('key'))")
        await page.get_by_role("button", name="Pack Rose").click()
        await expect(card.locator(".problem")).to_contain_text("line 9 holds a likely password")
        assert await page.evaluate(dragged, ["rose-7e18"]) == [False, ""]  # packs first
        await expect(card.locator(".egg-line")).to_contain_text("3.1 MB, 142 files")
        signed = (
            re.escape(f"http://127.0.0.1:{site.port}/eggs/out/key/") + r"[\w.=-]+/rose-7e18/now-twin\.egg"
        )
        went, carried = await page.evaluate(dragged, ["rose-7e18"])
        assert went
        assert re.fullmatch(f"application/octet-stream:Rose\\.egg:{signed}", carried), carried
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Save Rose.egg").click()
        assert (await download.value).suggested_filename == "Rose.egg"
    assert site.daemon.requests("/eggs/laid/rose-7e18/now-twin.egg")
    asked = bodies(site, "/eggs/pack")
    assert len({body.pop("work") for body in asked}) == 2
    assert asked == [{"twin": "rose-7e18"}] * 2


async def test_own_eggs_come_first_by_their_name_and_compare_last(site: Any) -> None:
    async with site.opened("#/twins/eggs") as page:
        own = page.locator("main .group").first
        await expect(own.locator("li p").first).to_have_text("Rose.egg")
        await expect(own).not_to_contain_text("2026-twin")  # as its file is called
        titles = ["Packed here", "Hatched here", "Senders you trust", "Compare two eggs"]
        await expect(page.locator("main .group h2")).to_have_text(titles)


async def test_a_twin_is_sent_from_its_own_card(site: Any) -> None:
    packed = {"path": "/h/eggs/rose-7e18/now-twin.egg", "size": 9, "files": 2, "left_out": []}
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI), paired("shed", SHED)))
    sent(site, "POST", "/eggs/pack", 200, {"packed": packed, "link": ""})
    sent(site, "POST", "/eggs/send", 200, {"sent": {"state": "done", "name": "Rose", "peer": "shed"}})
    async with site.opened("#/twins") as page:
        await page.get_by_role("button", name="More for Rose").click()
        await page.get_by_role("menuitem", name="Send").click()
        await page.get_by_label("To").select_option(label="shed")
        await page.locator("dialog").get_by_role("button", name="Send").click()
        await expect(page.locator(".toast")).to_have_text("Sent. Rose waits for approval on shed.")
    assert [body["twin"] for body in bodies(site, "/eggs/pack")] == ["rose-7e18"]
    assert bodies(site, "/eggs/send") == [{"path": packed["path"], "peer": SHED}]


async def test_limits_of_the_secret_scan_are_told_once(site: Any) -> None:
    packed = {"path": "/h/eggs/rose-7e18/now-twin.egg", "size": 9, "files": 2, "left_out": []}
    sent(site, "POST", "/eggs/pack", 200, {"packed": packed, "link": ""})
    held: list[Route] = []
    async with site.opened("#/twins", script="0") as page:  # a page of its own, for the route
        await page.route("**/eggs/pack", lambda route: held.append(route))
        limits = page.get_by_text(NEVER_READ)
        for name in ("Rose", "Pip"):
            await page.get_by_role("button", name=f"Pack {name}").click()
            await expect(page.get_by_text(f"Packing {name}.egg…")).to_be_visible()
            await expect(limits).to_have_count(1)
        for route in held:
            await route.continue_()
        await expect(page.get_by_role("button", name="Save Pip.egg")).to_be_visible()
        await page.get_by_role("button", name="Pack Fern").click()
        await expect(page.get_by_text("Packing Fern")).to_be_visible()
        await expect(limits).to_have_count(0)
        await page.unroute_all(behavior="ignoreErrors")


async def test_lineage_is_a_picture_a_walk_and_a_text(site: Any) -> None:
    async with site.opened("#/twins/lineage") as page:
        kin = page.locator(".kin")
        await expect(kin).to_have_count(6)
        labels = [await one.get_attribute("aria-label") for one in await kin.all()]
        assert labels[0] == "Old: not on this machine"
        assert str(labels[2]).startswith("Fern: fork of Rose, personal, born")
        assert str(labels[3]).startswith("Moss: fork of Fern, archived")
        assert str(labels[4]) == "Weed: fork of Rose, deleted, personal"
        assert str(labels[5]).startswith("Snake: its line ends in a circle")
        await expect(page.locator("text=6 twins in 2 families")).to_be_visible()
        await kin.first.focus()
        for key, at in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1), ("End", 5), ("Home", 0)):
            await page.keyboard.press(key)
            await expect(kin.nth(at)).to_be_focused()
        assert await page.locator(".kin[tabindex='0']").count() == 1
        await page.click("summary >> text=Show as text")
        nested = page.locator(".kin-list .kin-list .kin-list a")
        await expect(nested.first).to_have_text("Fern")
        await kin.nth(1).focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".twin-head h2")).to_have_text("Rose")


async def test_two_eggs_side_by_side(site: Any) -> None:
    text = ["--- before", "+++ after", "@@ -1,3 +1,3 @@", " one", "-two", "-three", "+2", " four"]
    changed = {
        "target": "soul.md",
        "role": "soul",
        "what": "changed",
        "before": 20,
        "after": 10,
        "text": text,
    }
    added = {"target": "new.txt", "role": "other", "what": "added", "before": None, "after": 9, "text": []}
    facts = [{"what": "signed by", "before": "", "after": "91c3" * 16}]
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(planned("one")))]
    site.daemon.scripted["POST /eggs/pack"] = [(200, {"packed": {"path": "/h/rose.egg", "size": 9}})]
    diff = {"facts": facts, "files": [changed, added], "same": 3}
    site.daemon.scripted["POST /eggs/diff"] = [(200, {"diff": diff})]
    async with site.opened("#/twins/eggs") as page:
        before, after = page.get_by_role("group", name="Before"), page.get_by_role("group", name="After")
        await before.locator("input[type=file]").set_input_files(
            {"name": "old.egg", "mimeType": "", "buffer": b"egg"}
        )
        await expect(before).to_contain_text("old.egg")
        await after.get_by_role("combobox").select_option("rose-7e18")
        await expect(page.locator(".diff-sum")).to_have_text("1 changed, 1 added; 3 files the same.")
        await expect(page.locator(".facts dd")).to_have_text([re.compile("^none"), re.compile("^91c391c3… ")])
        await page.click(".file-diff summary")
        await expect(page.locator(".sides .before.changed code")).to_have_text(["two", "three"])
        await expect(page.locator(".sides .after.changed code")).to_have_text(["2"])
        await expect(page.locator(".sides .same .after .number")).to_have_text(["1", "3"])
    assert bodies(site, "/eggs/diff") == [{"before": {"id": "ab" * 32}, "after": {"path": "/h/rose.egg"}}]


async def test_archived_twin_is_restored_or_deleted_after_question(site: Any) -> None:
    async with site.opened("#/twins/archived") as page:
        await expect(page.locator(".line-row")).to_contain_text("Weed")
        await page.get_by_role("button", name="Bring Moss back").click()
        await expect(page.locator(".toast")).to_contain_text("Moss is back, stopped.")
        await page.get_by_role("button", name="Delete Moss").click()
        losses = page.locator("dialog .losses")
        for said in ("soul", "memories", "rain_agent.py", "142 files, 3.1 MB in all"):
            await expect(losses).to_contain_text(said)
        await page.get_by_role("button", name="Cancel").click()
        assert bodies(site, "/twins/moss-1/purge") == []
        await page.get_by_role("button", name="Delete Moss").click()
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.locator("dialog")).to_have_count(0)
    assert bodies(site, "/twins/moss-1/purge") == [{"confirm": True}]


async def test_chat_with_twin_is_separate_conversation(site: Any) -> None:
    site.daemon.script["to rose"] = site.answer("I am Rose.")
    async with site.opened() as page:
        await site.ask(page, "to the desk")
        await expect(page.locator(".answer")).to_have_text("fine")
        await page.click("nav >> text=Twins")
        await page.get_by_role("link", name="Chat with Rose").click()
        await expect(page.locator("#write")).to_have_attribute("placeholder", "Ask Rose…")
        await expect(page.locator(".answer")).to_have_count(0)
        await site.ask(page, "to rose")
        await expect(page.locator(".answer")).to_have_text("I am Rose.")
        await expect(page.locator(".line.reply .who")).to_have_text("Rose")
        await page.fill("#write", "a draft")
        await page.keyboard.press("Escape")
        await page.keyboard.press("g")
        await page.keyboard.press("a")
        await expect(page.locator("main h1")).to_have_text("Agents")
        await page.keyboard.press("g")
        await page.keyboard.press("t")
        await expect(page.locator("#write")).to_have_value("a draft")
        await page.reload()
        await expect(page.locator(".written")).to_have_text("to rose")
        await page.get_by_role("link", name="Back to desk").click()
        await expect(page.locator(".written")).to_have_text("to the desk")
        await expect(page.locator("#write")).to_have_value("")
    _, body = site.daemon.requests("/twins/rose-7e18/chat/stream")[0]
    assert body["user_input"] == "to rose" and body["conversation_history"] == []
    assert [body["user_input"] for _, body in site.daemon.requests("/chat/stream")] == ["to the desk"]


async def test_an_answer_of_a_twin_goes_on_after_a_reload_elsewhere(site: Any) -> None:
    site.daemon.script["long"] = [{"type": "delta", "text": "half "}, site.HOLD, site.ending("half whole")]
    async with site.opened("#/chat/rose-7e18") as page:
        await site.ask(page, "long")
        await expect(page.locator(".answer")).to_have_text("half")
        await page.click("nav >> text=Settings")
        await expect(page.locator("main h1")).to_have_text("Settings")
        await page.reload()
        site.daemon.released.set()
        await expect(page.locator("#live")).to_have_text("Rose: half whole")


async def test_phone_selects_chat_target(site: Any) -> None:
    async with site.opened(viewport={"width": 390, "height": 844}) as page:
        await page.get_by_role("button", name="desk, choose another").click()
        await expect(page.locator("dialog [aria-current]")).to_contain_text("desk")
        await page.locator("dialog").get_by_role("button", name="Pip").click()
        await expect(page.locator("#write")).to_have_attribute("placeholder", "Ask Pip…")
        pick = page.get_by_role("button", name="Pip, choose another")
        box = await pick.bounding_box()
        assert box is not None and box["y"] < 48
        await pick.click()
        await page.locator("dialog").get_by_role("button", name="desk").click()
        await expect(page.locator("#write")).to_have_attribute("placeholder", "Ask desk…")


async def test_agents_that_came_in_an_egg_are_read_on_the_twins_page(site: Any) -> None:
    held = {
        "name": "",
        "origin": "yours",
        "quarantined": True,
        "held": True,
        "waits": True,
        "reason": "It came in an egg.",
    }
    files = {"files": [{"filename": "rain_agent.py", "agents": [], "cards": [held]}]}
    site.daemon.scripted["GET /twins/rose-7e18/agents"] = [(200, files)]
    source = {"source": "import os\n"}
    site.daemon.scripted["GET /twins/rose-7e18/agents/source/rain_agent.py"] = [(200, source)]
    async with site.opened("#/twins/twin/rose-7e18") as page:
        await page.click("text=Read and approve")
        await expect(page.locator("dialog .listing")).to_contain_text("import os")
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.locator("dialog")).to_have_count(0)
        async with page.expect_response("**/twins/rose-7e18/agents/import"):
            await drop(page, "weather_agent.py")
    assert bodies(site, "/twins/rose-7e18/agents/approve") == [{"filename": "rain_agent.py", "waits": True}]


async def test_a_buddy_is_fed_and_answers(site: Any) -> None:
    grown = {"name": "Pip", "content": "juvenile", "mood": 95, "energy": 85, "xp": 20, "feels": "happy"}
    answer = {"name": "Pip", "buddy": grown, "message": "Pip ate.", "found": []}
    site.daemon.scripted["POST /twins/pip-4f2a/buddy"] = [(200, answer)]
    async with site.opened("#/twins") as page:
        pip = page.locator("[data-key='pip-4f2a']")
        await expect(pip.locator("svg[role=img]")).to_have_attribute("aria-label", "a hatchling, happy")
        await page.get_by_role("button", name="Feed Pip").click()
        await expect(pip).to_contain_text("Pip ate.")
        await expect(page.locator("#live")).to_have_text("Pip ate.")
    assert bodies(site, "/twins/pip-4f2a/buddy") == [{"action": "feed"}]


async def test_while_the_daemon_is_away_the_twins_stay_dimmed(site: Any) -> None:
    async with site.opened("#/twins") as page:
        await expect(page.locator("[data-key]")).to_have_count(3)
        await site.close()
        await page.get_by_role("button", name="Pack Rose").click()
        await expect(page.locator(".old [data-key]")).to_have_count(3)
        await expect(page.locator("[data-key='rose-7e18'] .problem")).to_contain_text("isn't answering")
        await site.open()
        await expect(page.locator(".old")).to_have_count(0)


async def test_sheets_fit_a_small_phone(site: Any) -> None:
    site.daemon.scripted["POST /eggs"] = [(200, opened_egg(planned("one")))]
    async with site.opened("#/twins", viewport={"width": 320, "height": 640}) as page:
        for opening in ("plan", "new", "soul"):
            if opening == "plan":
                await drop(page, "a-very-long-name-" * 8 + ".egg")
                await page.click("dialog >> text=I know who this egg is from")
            elif opening == "new":
                await page.get_by_role("button", name="New twin").click()
            else:
                await page.get_by_role("button", name="More for Rose").click()
                await page.get_by_role("menuitem", name="Soul").click()
            await expect(page.locator("dialog .dialog-actions")).to_be_in_viewport()
            assert await page.evaluate(WIDE) == 0, opening
            assert await page.evaluate(LOW) == [], opening
            await page.keyboard.press("Escape")
            await expect(page.locator("dialog")).to_have_count(0)


WIDE = """[...document.querySelectorAll("dialog, .dialog-body")]
    .filter(box => box.scrollWidth > box.clientWidth + 1).length"""
LOW = """[...document.querySelectorAll("dialog :is(button, summary, input[type=text], select, .choice-line)")]
    .filter(it => it.checkVisibility() && it.getBoundingClientRect().height < 43.5).map(it => it.outerHTML)"""
