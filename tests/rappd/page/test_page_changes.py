"""Agents and Settings in Chromium: what the operator may change, and what others are told."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from rappd.daemon.operator_sessions import link_proof
from rappd.daemon.request_signatures import RequestSignatures, Signature
from tests.rappd.page.conftest import file

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_dropped_files_become_agents_or_say_why_not(site: Any) -> None:
    async with site.opened() as page:
        await drop(page, "weather_agent.py")
        await expect(page.locator(".toast")).to_contain_text("Weather is ready. Try: will it rain?")
        await page.click(".toast button")
        await expect(page.locator("#write")).to_have_value("will it rain?")
        await page.click("nav >> text=Agents")
        await drop(page, "bad_agent.py")
        await expect(page.locator(".failed-files")).to_contain_text("bad_agent.py line 12: expected ':'")
        await expect(page.locator(".failed-files")).to_contain_text("fix and save")
        await expect(page.locator(".toast")).to_have_count(0)
        await page.click("nav >> text=Settings")
        await expect(page.locator("main h1")).to_have_text("Settings")
        await drop(page, "elsewhere_agent.py")
        await page.click("nav >> text=Chat")
        await expect(page.locator(".failed-files")).to_contain_text("bad_agent.py")
    assert len(site.daemon.requests("/agents/import")) == 2


async def test_news_of_a_file_that_broke_stays_inline(site: Any) -> None:
    broken = "✗ weather_agent.py line 12: expected ':'. The 13:40 version works on."
    site.daemon.news = [
        {"type": "agents", "ok": False, "message": broken},
        {"type": "agents", "ok": True, "message": "Rain is ready."},
    ]
    async with site.opened() as page:
        await expect(page.locator(".failed-files .problem")).to_contain_text("The 13:40 version works on.")
        await expect(page.locator(".toast")).to_have_text("Rain is ready.")


async def test_deferred_failure_stays_until_dismissed(site: Any) -> None:
    what = "The rollback of r1 was not done after Rose had answered: soul.md changed since."
    site.daemon.news = [{"type": "failed", "ok": False, "message": what, "do": "rappd egg rollback r1"}]
    async with site.opened() as page:
        trouble = page.locator(".failed-files .problem")
        await expect(trouble).to_contain_text(what)
        await expect(trouble.locator(".todo")).to_contain_text("rappd egg rollback r1")
        await expect(page.locator(".toast")).to_have_count(0)
        await trouble.locator("[aria-label='Dismiss']").click()
        await expect(trouble).to_have_count(0)


async def test_agent_card_shows_the_line_for_people(site: Any) -> None:
    site.daemon.files.append(file("note_agent.py", "Note", summary="Keeps notes.", **{"try": ""}))
    async with site.opened("#/agents") as page:
        await expect(page.locator("[aria-label='Try Note']")).to_have_count(0)
        card = page.locator("[data-file='note_agent.py']")
        await expect(card).to_contain_text("Keeps notes.")
        await expect(card).not_to_contain_text("Note does one thing")
        await expect(page.locator("[data-file='clock_agent.py']").first).to_contain_text(
            "Clock does one thing."
        )


async def test_things_to_try_work_in_any_home(site: Any) -> None:
    site.daemon.files = [file("news_agent.py", "News", origin="shipped")]
    async with site.opened("#/chat") as page:
        tries = page.locator(".tries li")
        await expect(tries).to_have_text(
            ["what can you do?", "what day is it in 10 days?", "remember that my car is red"]
        )


async def test_source_is_connected_switched_and_disconnected_in_the_page(site: Any) -> None:
    async with site.opened("#/settings") as page:
        await page.get_by_label("Connect a source").fill("ada/agents")
        await page.get_by_role("button", name="Connect", exact=True).click()
        await expect(page.locator(".toast")).to_contain_text("ada/agents connected.")
        await page.get_by_text("1 of 1 in use").click()
        await page.get_by_role("switch", name="Tides").click()
        await page.get_by_role("button", name="Disconnect owner/repo").click()
        await expect(page.locator(".toast").last).to_contain_text("owner/repo disconnected.")
    asked = [site.daemon.requests(f"/repos/{path}") for path in ("connect", "toggle", "disconnect")]
    assert [body for one in asked for _, body in one] == [
        {"url": "ada/agents"},
        {"url": "owner/repo", "agent_id": "t", "enable": False},
        {"url": "owner/repo"},
    ]


async def test_removing_an_agent_can_be_undone(site: Any) -> None:
    async with site.opened("#/agents") as page:
        await page.click("[aria-label='Remove clock_agent.py']")
        await expect(page.locator("[data-file='clock_agent.py']")).to_have_count(0)
        await page.click(".toast >> text=Undo")
        await expect(page.locator("[data-file='clock_agent.py']")).to_have_count(1)
    assert [body for _, body in site.daemon.requests("/agents/undo")] == [{"undo": "token"}]


async def test_undo_stays_ten_seconds_and_waits_under_the_pointer(site: Any) -> None:
    async with site.opened("#/agents") as page:
        await page.clock.install(time="2026-05-01T12:00:00")
        await page.clock.pause_at("2026-05-01T12:00:05")  # else its ten seconds pass on a busy machine
        await page.click("[aria-label='Remove clock_agent.py']")
        await page.mouse.move(5, 400)
        await expect(page.locator(".toast")).to_be_visible()
        await page.clock.run_for(9_000)
        await page.hover(".toast")
        await page.clock.run_for(20_000)
        await expect(page.locator(".toast")).to_be_visible()
        await page.mouse.move(5, 400)
        await page.clock.run_for(5_000)
        await expect(page.locator(".toast")).to_have_count(0)


async def test_a_memory_is_added_in_the_page(site: Any) -> None:
    refusal = {"error": "The memory is too long.", "do": "Shorten it.", "code": "usage"}
    site.daemon.scripted["POST /memories"] = [(400, refusal), (200, {"status": "ok"})]
    async with site.opened("#/agents/memory") as page:
        await page.get_by_label("About whom").select_option(label="Ada's phone, 3")
        await page.get_by_role("button", name="Add a memory").click()
        dialog = page.get_by_role("dialog", name="Add a memory")
        await expect(dialog.get_by_label("Memory", exact=True)).to_be_focused()
        await page.keyboard.type("The boiler is serviced in May.")
        await dialog.get_by_label("Words to file it under").fill("house, boiler ,")
        await dialog.get_by_role("button", name="Add").click()
        await expect(dialog.locator(".problem")).to_contain_text("The memory is too long.")
        seen = len(site.daemon.requests("/memories/people"))
        await dialog.get_by_role("button", name="Add").click()
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(page.locator(".toast")).to_have_text("The memory is added.")
        assert len(site.daemon.requests("/memories/people")) > seen, "the list is fetched anew"
    asked = [body for _, body in site.daemon.requests("/memories") if body]
    assert (
        asked[0]
        == asked[1]
        == {
            "message": "The boiler is serviced in May.",
            "theme": "fact",
            "tags": ["house", "boiler"],
            "user_guid": "11111111-2222-4333-8444-555555555555",
        }
    )


async def test_quarantined_code_is_read_before_it_is_approved(site: Any) -> None:
    async with site.opened("#/agents") as page:
        card = page.locator("[data-file='mail_agent.py']")
        await expect(card).to_contain_text("! Waits for your approval: kept, not run. It came in an egg.")
        await expect(page.locator("[data-file='old_agent.py']")).to_contain_text("clock_agent.py")
        await card.locator("text=Read and approve").click()
        await expect(page.locator("dialog .marked")).to_have_text("PASSWORD = 'hunter2'")
        await expect(page.locator("dialog .listing")).to_contain_text("<b>bold</b>")
        assert await page.evaluate("document.activeElement.textContent") != "Approve"
        assert site.daemon.requests("/agents/approve") == []
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(card.locator("text=Try")).to_be_visible()
    assert [body for _, body in site.daemon.requests("/agents/approve")] == [
        {"filename": "mail_agent.py", "waits": True}
    ]


async def test_the_link_makes_an_operator_and_leaves_the_address_bar(site: Any) -> None:
    site.daemon.operator = False
    signatures = RequestSignatures()
    async with site.opened(
        "#k=3f%2D9c", script="0"
    ) as page:  # a page of its own: the tab's clock may be a test's
        assert "3f" not in page.url
        await page.click("nav >> text=Agents")
        await page.click("[aria-label='Remove clock_agent.py']")
        await expect(page.locator(".toast")).to_contain_text("Clock removed.")
    (traded,) = [body for _, body in site.daemon.requests("/operator/session") if body]
    assert traded["proof"] == link_proof("3f-9c", traded["public_key"])
    assert "3f-9c" not in str(site.daemon.asked), "the link's key stays in the browser"
    (headers, _), *_ = site.daemon.requests("/agents/clock_agent.py")
    signatures.check(
        Signature.parse(headers["X-Rappd-Signature"]),
        public=traded["public_key"],
        method="DELETE",
        host=f"127.0.0.1:{site.port}",
        target="/agents/clock_agent.py",
    )


async def test_page_without_operator_chats_and_names_command(site: Any) -> None:
    site.daemon.operator = False
    async with site.opened() as page:
        await site.ask(page, "hello")
        await expect(page.locator(".answer")).to_have_text("fine")
        for place in ("agents", "twins", "activity", "settings"):
            await page.click(f"nav >> a[href='#/{place}']")
            await expect(page.locator(".operator-line code")).to_have_text("rappd open")
            structural = "text=/^(Remove|Export|Add a file|Read and approve|Install|Connect|Save)$/"
            await expect(page.locator(f"main >> {structural}")).to_have_count(0)


async def test_a_rapplication_opens_in_a_sandbox_of_another_origin(site: Any) -> None:
    async with site.opened("#/agents") as page:
        await page.click("[aria-label='Open Kanban']")
        frame = page.locator("iframe[title=Kanban]")
        assert await frame.get_attribute("sandbox") == "allow-scripts allow-forms allow-same-origin"
        await page.goto(f"http://localhost:{site.port}/#/agents/rapp/kanban")
        await expect(page.get_by_text("This page is kept apart from yours.")).to_be_visible()
        await expect(page.locator("iframe")).to_have_count(0)


async def test_settings_are_saved_and_can_be_undone(site: Any) -> None:
    async with site.opened("#/settings") as page:
        await page.click("summary >> text=This machine")
        await page.fill("#setting-name", "shed")
        await expect(page.locator("label[for='setting-name'] .raw-name")).to_have_text("name")
        await page.click("[aria-label='Save Name of this machine']")
        await page.click(".toast >> text=Undo")
        await expect(page.locator(".toast")).to_have_count(0)
    assert [body for _, body in site.daemon.requests("/settings") if body] == [
        {"name": "name", "value": "shed"},
        {"name": "name", "value": "desk"},
    ]


async def test_choices_have_words_and_their_raw_value_in_small_print(site: Any) -> None:
    words = {"auto": "By itself", "none": "No model"}
    row = {
        "name": "provider.use",
        "title": "Where answers come from",
        "about": "What thinks.",
        "value": "auto",
    }
    row |= {"from": "default", "kind": "choice", "choices": list(words), "choice_words": words, "live": True}
    site.daemon.scripted["GET /settings"] = [
        (200, {"settings": [row]}),  # for the list, and for programs
        (200, {"settings": [row]}),
        (200, {"settings": [row | {"value": "none"}]}),
    ]
    async with site.opened("#/settings") as page:
        await page.click("summary >> text=Model server")
        raw = page.locator("label[for='setting-provider.use'] .raw-name")
        await expect(raw).to_have_text("provider.use = auto")
        await page.get_by_label("Where answers come from").select_option(label="No model")
        await expect(raw).to_have_text("provider.use = none")
    sent = [body for _, body in site.daemon.requests("/settings") if body]
    assert sent == [{"name": "provider.use", "value": "none"}]


async def drop(page: Page, name: str) -> None:
    await page.evaluate(DROP, name)


DROP = """name => {
    const carried = new DataTransfer();
    carried.items.add(new File(["x = 1"], name));
    for (const type of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true}));
}"""


OFFERED = {
    "server": "Ollama http://127.0.0.1:11434",
    "name": "Ollama",
    "where": "127.0.0.1:11434",
    "model": "llama3",
}


async def test_found_model_server_is_used_after_a_yes(site: Any) -> None:
    def found() -> Any:
        used = any(body for _, body in site.daemon.requests("/models/local"))
        return {"offered": None if used else OFFERED, "refused": []}

    site.daemon.scripted["GET /models/local"] = [(200, found)]
    site.daemon.scripted["POST /models/local"] = [(200, {"status": "ok", "server": OFFERED["server"]})]
    async with site.opened() as page:
        question = page.locator("#offer .offer")
        await expect(question).to_contain_text("Ollama runs on this computer and can answer you")
        await expect(question).to_contain_text("llama3")
        await question.get_by_role("button", name="Use it").click()
        await expect(question).to_have_count(0)
        await expect(page.locator(".toast")).to_have_text("Ollama answers from now on.")
    assert [body for _, body in site.daemon.requests("/models/local") if body] == [
        {"server": OFFERED["server"]}
    ]


async def test_a_view_offers_a_model_once(site: Any) -> None:
    found: dict[str, Any] = {"offered": None, "refused": []}
    none = {"name": "no model", "model": "", "where": "here", "state": "no model"}
    health = {"name": "desk", "node": "desk_4f2a", "agents": ["Clock"], "voice_mode": False, "provider": none}
    site.daemon.scripted["GET /health"] = [(200, health)]
    site.daemon.scripted["GET /models/local"] = [(200, lambda: found)]
    connect = "\n\nFor open questions connect a model: rappd models connect"
    for said in ("one", "two"):
        site.daemon.script[said] = site.answer(f"(no model) {said}{connect}")
    async with site.opened() as page:
        offer = page.get_by_role("link", name="Connect a model")
        for said in ("one", "two"):
            await site.ask(page, said)
            await expect(page.locator(".answer").last).to_have_text(f"(no model) {said}")
            await expect(offer).to_have_count(1)
        await expect(page.locator(".turn").last).to_contain_text("Connect a model")
        found["offered"] = OFFERED
        await page.reload()
        await expect(page.locator("#offer").get_by_role("button", name="Use it")).to_be_visible()
        await expect(page.locator(".answer").last).to_have_text("(no model) two")
        await expect(offer).to_have_count(0)


async def test_local_model_postponed_can_be_chosen_in_settings(site: Any) -> None:
    site.daemon.scripted["GET /models/local"] = [(200, {"offered": OFFERED, "refused": []})]
    async with site.opened() as page:
        await page.locator("#offer").get_by_role("button", name="Cancel").click()
        await expect(page.locator("#offer .offer")).to_have_count(0)
        await page.reload()
        await expect(page.locator("main h1")).to_be_visible()
        await page.click("nav >> text=Settings")
        await expect(page.locator("main .server-card").first).to_contain_text("Ollama runs here.")
        await expect(page.locator("#offer .offer")).to_have_count(0)


async def test_local_model_is_offered_to_operator_alone(site: Any) -> None:
    site.daemon.operator = False
    site.daemon.scripted["GET /models/local"] = [(200, {"offered": OFFERED, "refused": []})]
    async with site.opened() as page:
        await expect(page.locator("main h1")).to_be_visible()
        await expect(page.locator("#offer .offer")).to_have_count(0)
    assert site.daemon.requests("/models/local") == []


async def test_agent_that_poses_as_a_model_is_told(site: Any) -> None:
    site.daemon.scripted["GET /models/local"] = [(200, {"offered": None, "refused": [OFFERED["server"]]})]
    async with site.opened() as page:
        await expect(page.locator("#offer .warning")).to_contain_text("An agent on this computer pretends")
