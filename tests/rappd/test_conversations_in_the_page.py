"""Conversations in a real browser on a real daemon: the list, the search, versions, stopping, and the keyboard."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, calls
from fixtures.page_questions import NAMELESS, SIDEWAYS, SMALL
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Locator, Page, Route, expect

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]

GAPS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(it => Number(it.tagName[1]))
    .filter((level, at, all) => at > 0 && level > all[at - 1] + 1).length"""
SEEN_BELOW = """top => {
    const box = document.querySelector(".chat-scroll");
    box.scrollTop = top;
    const seen = [...document.querySelectorAll(".written")].find(it => it.getBoundingClientRect().top > box.getBoundingClientRect().top);
    return [seen.textContent, seen.getBoundingClientRect().top];
}"""
"""Scrolls there; the first sentence to be seen, and where it is."""
OUT_OF_SIGHT_IS_NOT_DRAWN = """() => {
    const drawn = [...document.querySelectorAll(".written")].map(one => one.checkVisibility({contentVisibilityAuto: true}));
    return !drawn.at(0) && drawn.at(-1);
}"""
SCROLLED_TO = """([top, text]) => {
    document.querySelector(".chat-scroll").scrollTop = top;
    return [...document.querySelectorAll(".written")].at(top && -1).textContent === text;
}"""
"""Scrolls on and on, to the top or the end, until the sentence is the first or the last one drawn."""
SLOW = agent_source(
    "Slow", "import time\n        time.sleep(30)\n        return 'late'", "Waits for a long time."
)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the operator's page; scripts that throw, and what the policy blocks, fail the test."""
    wrong: list[str] = []
    opened: list[Page] = []

    def open_(daemon: RunningDaemon, path: str = "", width: int = 1280, **more: Any) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 800}, **more)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto(daemon.post("/operator/key", control=True).json()["url"])
        expect(page.locator("#write")).to_be_visible()
        if path:
            page.goto(f"http://127.0.0.1:{daemon.port}/{path}")
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()
    assert [text for text in wrong if "Failed to load" not in text] == []


def say(daemon: RunningDaemon, session: str, *texts: str, path: str = "") -> None:
    for text in texts:
        assert daemon.post(f"{path}/chat", {"user_input": text, "session_id": session}).status == 200


def thread_of(daemon: RunningDaemon, session: str) -> str:
    rows = daemon.get("/conversations?limit=200", control=True).json()["conversations"]
    return next(str(row["id"]) for row in rows if row["session"] == session)


def ask(page: Page, text: str) -> None:
    page.locator("#write").fill(text)
    page.locator("#write").press("Enter")


def rows(page: Page, text: str) -> Locator:
    return page.locator(".conversation-link", has_text=text)


def test_old_conversation_is_opened_continued_and_still_there_after_a_reload(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    say(fake_daemon, "walnut", "what grows under a walnut tree?", "and in the sun?")
    say(fake_daemon, "party", "plan a party")
    page = open_page(fake_daemon)
    expect(rows(page, "walnut tree")).to_contain_text(re.compile(r"\d\d:\d\d, "))
    rows(page, "walnut tree").click()
    expect(page.locator(".written")).to_have_text(["what grows under a walnut tree?", "and in the sun?"])
    expect(rows(page, "walnut tree")).to_have_attribute("aria-current", "page")
    ask(page, "and in winter?")
    expect(page.locator(".answer").nth(2)).to_have_text("fake-llm: and in winter?")
    expect(page.locator(".conversation-link").first).to_contain_text("walnut")
    page.reload()
    expect(page.locator(".written")).to_have_count(3)
    turns = fake_daemon.get(f"/conversations/{thread_of(fake_daemon, 'walnut')}", control=True).json()[
        "turns"
    ]
    assert [turn["user"] for turn in turns][2] == "and in winter?"
    page.get_by_role("button", name="New", exact=True).click()
    expect(page.locator(".turn")).to_have_count(0)
    ask(page, "something else")
    expect(rows(page, "something else")).to_have_attribute("aria-current", "page")


def test_new_conversation_stays_when_one_that_was_opened_before_comes_late(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    say(fake_daemon, "late", "what comes late?")
    page = open_page(fake_daemon)
    ask(page, "what comes first?")
    expect(page.locator(".answer")).to_have_text("fake-llm: what comes first?")
    expect(page.locator(".turns.busy")).to_have_count(0)
    held: list[Route] = []
    page.route("**/conversations/*", lambda route: held.append(route))
    with page.expect_request("**/conversations/*"):
        rows(page, "what comes late?").click()
    page.get_by_role("button", name="New", exact=True).click()
    expect(page.locator(".turn")).to_have_count(0)
    with page.expect_response("**/conversations/*"):
        held[0].continue_()
    ask(page, "and what is new?")
    expect(page.locator(".written")).to_have_text(["and what is new?"])


def test_twin_conversation_opens_with_that_twin(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    key = fake_daemon.post("/twins", {"name": "Rose"}, control=True).json()["key"]
    say(fake_daemon, "roses", "how are the roses?", path=f"/twins/{key}")
    page = open_page(fake_daemon)
    expect(rows(page, "how are the roses?")).to_contain_text("Rose")
    rows(page, "how are the roses?").click()
    expect(page.locator("h1")).to_have_text("Chat with Rose")
    expect(page.locator("#write")).to_have_attribute("placeholder", "Ask Rose…")
    expect(page.locator(".written")).to_have_text("how are the roses?")


def test_search_leads_to_the_sentence_and_marks_the_words(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    say(fake_daemon, "pump", *[f"question {number}" for number in range(70)])
    say(fake_daemon, "hidden", "an armadillo <b>eats</b> ants")
    say(fake_daemon, "hidden", *[f"after it {number}" for number in range(60)])
    page = open_page(fake_daemon)
    page.get_by_role("searchbox").fill("ARMADILLO ants")
    found = page.locator(".excerpt", has_text="you,")
    expect(found).to_have_text(re.compile(r"^you, \d\d:\d\d: an armadillo <b>eats</b> ants$"))
    expect(found.locator("mark")).to_have_text(["armadillo", "ants"])
    found.click()
    turn = page.locator(".turn.shown-now")
    expect(turn.locator(".written")).to_have_text("an armadillo <b>eats</b> ants")
    expect(turn).to_be_in_viewport()
    expect(page.get_by_role("searchbox")).to_have_value("ARMADILLO ants")
    page.get_by_role("searchbox").fill("nobody said this")
    expect(page.locator(".conversations-search [role=status]")).to_have_text("Nothing was found.")


def test_renaming_and_removing_by_keyboard_alone(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    say(fake_daemon, "keys", "words to begin with")
    page = open_page(fake_daemon)
    page.get_by_role("button", name="More for words to begin with").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    page.keyboard.type("The <i>garden</i>")
    page.keyboard.press("Enter")
    expect(rows(page, "The <i>garden</i>")).to_be_visible()
    page.get_by_role("button", name="More for The <i>garden</i>").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(rows(page, "garden")).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("The log still has what was said.")
    expect(page.locator(".toast button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(rows(page, "garden")).to_be_visible()
    page.get_by_role("button", name="More for The <i>garden</i>").click()
    rows_high = "all => all.map(one => one.offsetHeight)"
    expect(page.get_by_role("menuitem").first).to_be_visible()
    assert len(set(page.get_by_role("menuitem").evaluate_all(rows_high))) == 1, "each on one line"
    page.get_by_role("menuitem", name="Remove from the list").click()
    page.get_by_role("button", name="Removed conversations").click()
    page.get_by_role("button", name="Put back The <i>garden</i>").click()
    page.get_by_role("button", name="Back to the list").click()
    expect(rows(page, "garden")).to_be_visible()


def test_editing_and_answering_again_keep_the_older_versions(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(fake_daemon)
    for number, text in enumerate(("first words", "second words", "third words"), 1):
        ask(page, text)
        expect(page.locator(".answer").nth(number - 1)).to_have_text(f"fake-llm: {text}")
        expect(page.locator(".turns.busy")).to_have_count(0)
    second = page.locator(".turn").nth(1)
    second.get_by_role("button", name="Edit what you wrote").click()
    second.get_by_role("textbox").fill("better words")
    page.keyboard.press("Enter")
    expect(page.locator(".written")).to_have_text(["first words", "better words"])
    expect(page.locator(".answer").nth(1)).to_have_text("fake-llm: better words")
    expect(page.locator(".versions")).to_contain_text("2 of 2")
    page.get_by_role("button", name="Answer again").nth(1).click()
    expect(page.locator(".versions")).to_contain_text("3 of 3")
    tops = "all => all.map(one => Math.round(one.getBoundingClientRect().top))"
    assert len(set(page.locator(".versions button").evaluate_all(tops))) == 1, "‹ 3 of 3 › is one row"
    page.get_by_role("button", name="Older version").click()
    page.get_by_role("button", name="Older version").click()
    expect(page.locator(".written")).to_have_text(["first words", "second words", "third words"])
    page.evaluate("localStorage.removeItem('rappd.conversation')")
    page.reload()  # another browser knows only what was recorded
    rows(page, "first words").click()
    expect(page.locator(".versions")).to_contain_text("3 of 3")
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if "?at=" in request.url else None)
    pressed_twice = "one => (one.click(), one.click())"  # before the first answer is there
    page.get_by_role("button", name="Older version").evaluate(pressed_twice)
    expect(page.locator(".versions")).to_contain_text("2 of 3")  # asked of the daemon
    assert len(fetched) == 1
    page.get_by_role("button", name="Older version").click()
    expect(page.locator(".written")).to_have_text(["first words", "second words", "third words"])
    ask(page, "fourth words")
    expect(page.locator(".written")).to_have_count(4)
    expect(page.locator(".answer").nth(3)).to_have_text("fake-llm: fourth words")
    page.reload()
    expect(page.locator(".written")).to_have_text(
        ["first words", "second words", "third words", "fourth words"]
    )


def test_stopped_answer_stays_stopped_in_list_and_after_reload(
    make_daemon: Callable[..., RunningDaemon], model: FakeModel, open_page: Callable[..., Page]
) -> None:
    model.will(calls(("Slow", {})) | {"content": "Let me wait."})
    daemon = make_daemon(OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_API_KEY="k", OPENAI_MODEL="small")
    daemon.drop("slow_agent.py", SLOW)
    daemon.start()
    page = open_page(daemon)
    ask(page, "wait for me")
    expect(page.locator(".call:not(.round)")).to_be_visible()
    page.get_by_role("button", name="New", exact=True).click()  # the answer goes on without being looked at
    expect(page.locator(".turn")).to_have_count(0)
    rows(page, "wait for me").click()
    expect(page.locator(".call:not(.round)")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".after")).to_contain_text("Stopped.")
    expect(rows(page, "wait for me")).to_contain_text("stopped")
    page.evaluate("localStorage.removeItem('rappd.conversation')")
    page.reload()
    rows(page, "wait for me").click()
    expect(page.locator(".after")).to_contain_text("Stopped.")
    expect(page.locator(".answer")).to_have_text("Let me wait.")


def test_long_conversation_loads_earlier_turns_where_one_scrolls(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    say(fake_daemon, "scroll", *[f"sentence {number}" for number in range(150)])
    page = open_page(fake_daemon)
    rows(page, "sentence 0").first.click()
    expect(page.locator(".written").last).to_have_text("sentence 149")
    expect(page.locator(".written").last).to_be_in_viewport()
    page.wait_for_function(OUT_OF_SIGHT_IS_NOT_DRAWN)
    text, top = page.evaluate(SEEN_BELOW, 900)
    expect(page.locator(".written").first).not_to_have_text("sentence 110")
    page.wait_for_timeout(500)
    seen = page.locator(".written", has_text=re.compile(f"^{text}$"))
    assert abs(seen.evaluate("it => it.getBoundingClientRect().top") - top) <= 1, "nothing jumps"
    page.wait_for_function(SCROLLED_TO, arg=[0, "sentence 0"])
    expect(page.locator(".earlier").first).to_be_hidden()
    page.wait_for_function("() => document.querySelectorAll('.turn').length <= 128")
    written = page.locator(".written").all_text_contents()
    assert written == [f"sentence {number}" for number in range(len(written))]
    page.wait_for_function(SCROLLED_TO, arg=[1e9, "sentence 149"])
    written = page.locator(".written").all_text_contents()
    assert written == [f"sentence {number}" for number in range(150 - len(written), 150)]


def test_thread_is_shown_as_a_conversation_and_exported_with_names(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    say(fake_daemon, "thread", "## what is this?")
    thread = thread_of(fake_daemon, "thread")
    page = open_page(fake_daemon, f"#/activity/thread/{thread}")
    name = fake_daemon.get("/health").json()["name"]
    expect(page.locator(".turns .who")).to_have_text(["you", name])
    expect(page.locator(".written")).to_have_text("## what is this?")
    expect(page.locator("main")).not_to_contain_text("c0p110t0")
    page.get_by_role("link", name="Go on with this conversation").click()
    expect(page.locator("#write")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Records").click()
    expect(page.locator(".rows .row").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export Markdown").click()
    download.value.save_as(tmp_path / "thread.md")
    exported = (tmp_path / "thread.md").read_text()
    assert re.findall(r"^\*\*(.+?)\*\*", exported, re.MULTILINE) == ["you", name.replace("_", "\\_")]


def test_every_view_of_conversations_is_accessible_at_320_px(
    fake_daemon: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    session = str(uuid.uuid4())
    text = f"# Big\n\n#### small {'w' * 90}\n\n## middle"
    say(fake_daemon, session, text, "two")
    page = open_page(fake_daemon, width=320)
    thread = thread_of(fake_daemon, session)
    for place, ready in (
        (f"chat/conversation/{thread}", ".turn .foot"),
        ("chat/conversations", ".conversation-link"),
        (f"activity/thread/{thread}", ".turn .who"),
        ("chat/conversation/00000000-0000-4000-8000-000000000000", ".problem"),
    ):
        page.evaluate("place => { location.hash = `#/${place}` }", place)
        expect(page.locator(ready).first).to_be_visible()
        page.evaluate(axe_core())
        assert violations(page) == [], place
        for fault in (SIDEWAYS, SMALL, NAMELESS):
            assert page.evaluate(fault) == [], place
        assert page.evaluate(GAPS) == 0, place


def test_page_without_the_session_chats_and_shows_no_list(
    fake_daemon: RunningDaemon, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{fake_daemon.port}/")
    ask(page, "hello there")
    expect(page.locator(".answer")).to_have_text("fake-llm: hello there")
    expect(page.locator(".conversations")).to_have_count(0)
    page.get_by_role("button", name="Edit what you wrote").click()
    page.locator(".sentence-form textarea").fill("hello again")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_text("fake-llm: hello again")
    page.get_by_role("button", name="Older version").click()
    expect(page.locator(".answer")).to_have_text("fake-llm: hello there")
    page.goto(f"http://127.0.0.1:{fake_daemon.port}/#/chat/conversations")
    expect(page.locator("main")).to_contain_text("To see what was said, run")
    page.close()


def test_rounds_of_a_model_stand_between_its_calls_now_and_later(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, open_page: Callable[..., Page]
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small")
    daemon.drop("zeta_agent.py", agent_source("Zeta", 'return "of zeta"', "Does zeta."))
    daemon.start()
    fake_model.will(
        {**calls(("Zeta", {})), "content": "Let me look."}, {"role": "assistant", "content": "Done."}
    )
    page = open_page(daemon)
    page.fill("#write", "surprise me")
    page.keyboard.press("Enter")
    for _ in range(2):
        steps = page.locator(".turn .calls > details")
        expect(steps.locator(".call-name")).to_have_text(["Round 1", "Zeta"])
        steps.first.locator("summary").click()
        expect(steps.first).to_contain_text("Let me look.")
        expect(page.locator(".turn .answer")).to_contain_text("Done.")
        page.reload()
