"""Model servers in the page: cards, Test with its reason, saving, and the picker, on a real daemon and real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp.web import HTTPBadRequest
from fixtures.axe import RULES, STILL, VIOLATIONS, axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.free_ports import free_port
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Locator, Page, Route, TimeoutError, expect

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]
KEY = "sk-quite-secret-0123456789"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield page
    page.close()
    assert [text for text in wrong if "status of 4" not in text] == []


def _settings(page: Page, daemon: RunningDaemon) -> Page:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#main h1").wait_for(state="attached")
    page.goto(f"http://127.0.0.1:{daemon.port}/#/settings")
    expect(page.locator(".server-card")).to_have_count(4)
    return page


def _card(page: Page, title: str) -> Locator:
    return page.locator(".server-card").filter(has=page.get_by_role("heading", name=title))


def _fill(page: Page, card: str, **fields: str) -> None:
    form = page.get_by_role("form", name=card)
    if not form.is_visible():
        _card(page, card).locator("summary").click()
    for label, text in fields.items():
        form.get_by_label(label).fill(text)


def test_server_is_tested_corrected_saved_and_answers(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    daemon = make_daemon().start()
    _settings(page, daemon)
    form = page.get_by_role("form", name="Another server")
    trial = form.locator(".trial")
    for address, reason in (
        (f"http://127.0.0.1:{free_port()}", "Nothing listens at"),
        (f"http://127.0.0.1:{daemon.port}/#", "rappd itself"),
        ("no web address", "That is not a web address."),
    ):
        _fill(page, "Another server", Address=address, Key=KEY)
        form.get_by_role("button", name="Test").click()
        expect(trial).to_contain_text(reason)
        expect(trial).to_contain_text("→")
    _fill(page, "Another server", Address=f"{fake_model.url}/api")
    form.get_by_role("button", name="Test").click()
    form.get_by_role("button", name=f"Use {fake_model.url}/v1").click()
    expect(trial).to_contain_text("It works: small answered")
    _fill(page, "Another server", Model="huge")
    form.get_by_role("button", name="Test").click()
    expect(trial).to_contain_text('no model "huge"')
    _fill(page, "Another server", Model="big")
    form.get_by_role("button", name="Save and use").click()
    expect(page.locator(".toast")).to_contain_text("big answers from now on.")
    expect(_card(page, "Another server").locator(".badge")).to_have_text("✓ in use")
    fake_model.will(says("I am big"))
    assert daemon.chat("hello")["response"] == "I am big"
    assert fake_model.keys[-1] == f"Bearer {KEY}"
    page.reload()
    _fill(page, "Another server")
    assert KEY not in page.content()
    assert form.get_by_label("Key").input_value() == ""
    assert "A key is kept here" in str(form.get_by_label("Key").get_attribute("placeholder"))


def test_card_opens_only_with_what_is_set_up(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small").start()
    held: list[Route] = []
    page.route("**/models/servers", lambda route: held.append(route))
    card = _card(_settings(page, daemon), "Another server")
    with pytest.raises(TimeoutError):
        card.locator("summary").click(timeout=500)
    (asked,) = held
    asked.continue_()
    card.locator("summary").click()
    assert card.get_by_label("Address").input_value() == fake_model.url


def test_found_server_is_used_with_the_model_that_was_chosen(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    daemon = make_daemon(RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=str(fake_model.port)).start()
    card = _card(_settings(page, daemon), "On this computer")
    expect(card).to_contain_text("A model server runs here.")
    card.get_by_label("Model").select_option("big")
    card.get_by_role("button", name="Use it").click()
    expect(card.locator(".badge")).to_have_text("✓ in use")
    assert daemon.get("/health").json()["provider"]["model"] == "big"
    page.get_by_role("button", name="Use no model").click()
    expect(page.locator(".answers-now")).to_contain_text("No model answers")


def test_computer_without_a_model_is_told_how_to_get_one(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    port = fake_model.port
    fake_model.stop_serving()
    daemon = make_daemon(RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=str(port)).start()
    card = _card(_settings(page, daemon), "On this computer")
    expect(card.get_by_role("link", name="ollama.com/download")).to_be_visible()
    expect(card).to_contain_text("ollama pull llama3.2")
    later = FakeModel()
    later.port, later.listed = port, []
    later.start()
    try:
        card.get_by_role("button", name="Look again").click()
        expect(card).to_contain_text("runs here, but has no model yet")
    finally:
        later.stop()


def test_look_that_is_overtaken_by_a_later_one_changes_nothing(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    port = fake_model.port
    fake_model.stop_serving()
    daemon = make_daemon(RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=str(port)).start()
    with page.expect_response("**/models/servers") as first:
        card = _card(_settings(page, daemon), "On this computer")
    nothing_found = first.value.json()
    expect(card.get_by_role("link", name="ollama.com/download")).to_be_visible()
    held: list[Route] = []
    page.route("**/models/servers", lambda route: route.continue_() if held else held.append(route))
    again = card.get_by_role("button", name="Look again")
    again.click()
    later = FakeModel()
    later.port, later.listed = port, []
    later.start()
    try:
        again.click()
        expect(card).to_contain_text("runs here, but has no model yet")
        held[0].fulfill(json=nothing_found)
        page.wait_for_timeout(300)
        expect(card).to_contain_text("runs here, but has no model yet")
    finally:
        later.stop()


def test_picker_chooses_another_model_by_keyboard(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    fake_model.listed = [{"id": f"model-{number}"} for number in range(40)]
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="model-0").start()
    page.goto(f"http://127.0.0.1:{daemon.port}/")
    picker = page.locator(".model-picker")
    expect(picker).to_have_text("model-0")
    picker.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox", name="Search models")).to_be_focused()
    expect(page.get_by_role("link", name="Set up another server")).to_have_count(0)
    page.keyboard.type("model-3")
    expect(page.locator(".model-row:not([hidden])")).to_have_count(11)
    page.keyboard.type("1")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("model-31 answers here from now on.")
    expect(picker).to_have_text("model-31")
    expect(picker).to_be_focused()
    expect(_ask(page, "hello")).to_contain_text("model-31")
    assert fake_model.asked[-1]["model"] == "model-31"
    picker.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox", name="Search models")).to_be_focused()
    page.keyboard.type("model-7")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # from this conversation to everybody
    page.keyboard.press("Enter")
    expect(page.locator(".toast").last).to_contain_text("model-7 answers from now on.")
    daemon.chat("hello")
    assert fake_model.asked[-1]["model"] == "model-7"


def test_cards_and_picker_pass_axe(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    daemon = make_daemon(
        OPENAI_BASE_URL=fake_model.url,
        OPENAI_MODEL="small",
        RAPPD_LOCAL_MODELS="ask",
        RAPPD_LOCAL_PORTS=str(fake_model.port),
    ).start()
    _settings(page, daemon)
    for card in ("Another server", "Azure OpenAI"):
        _fill(page, card)
    page.get_by_role("form", name="Another server").get_by_role("button", name="Test").click()
    expect(page.locator(".trial").first).to_contain_text("It works")
    page.evaluate(axe_core())
    assert violations(page) == []
    page.get_by_role("button", name="Choose another model").click()
    expect(page.locator(".model-row")).to_have_count(2)
    assert violations(page) == []


def _talk(page: Page, daemon: RunningDaemon, path: str = "") -> None:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#main h1").wait_for(state="attached")
    page.goto(f"http://127.0.0.1:{daemon.port}/#/chat{path}")


def _pick(page: Page, model: str, whom: str) -> None:
    page.locator(".model-picker").click()
    page.locator(".model-row").filter(has_text=model).click()
    page.get_by_label(whom).check()
    page.get_by_role("button", name="Use it").click()


def _ask(page: Page, text: str) -> Locator:
    page.locator("#write").fill(text)
    page.keyboard.press("Enter")
    return page.locator(".answered-by").last


def test_model_is_chosen_for_a_conversation_for_a_twin_and_for_everybody(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    fake_model.listed = [{"id": name} for name in ("usual", "here", "of the twin", "of all")]
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="usual").start()
    key = daemon.post("/twins", {"name": "gardener"}, control=True).json()["key"]
    _talk(page, daemon, f"/{key}")
    picker = page.locator(".model-picker")
    expect(picker).to_have_text("usual")
    _pick(page, "here", "This conversation")
    expect(page.locator(".toast")).to_contain_text("here answers here from now on.")
    expect(picker).to_have_text("here")
    expect(_ask(page, "hello")).to_contain_text("here, on this computer")
    _pick(page, "of the twin", "gardener, in every conversation")
    expect(page.locator(".toast").last).to_contain_text("of the twin answers for gardener from now on.")
    expect(picker).to_have_text("here")  # this conversation keeps its own
    page.reload()
    expect(picker).to_have_text("here")
    page.get_by_role("button", name="New", exact=True).click()
    expect(picker).to_have_text("of the twin")
    page.goto(f"http://127.0.0.1:{daemon.port}/#/chat")
    expect(picker).to_have_text("usual")
    _pick(page, "of all", "Everybody who asks")
    expect(picker).to_have_text("of all")
    page.locator(".toast").last.get_by_role("button", name="Undo").click()
    expect(picker).to_have_text("usual")


def test_who_answered_how_long_and_how_many_tokens_stay_with_a_conversation_that_is_opened_again(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small").start()
    _talk(page, daemon)
    line = _ask(page, "hello")
    expect(line).to_contain_text("small, on this computer")
    expect(line).to_contain_text("7 tokens in, 3 out")
    said = line.inner_text()
    page.evaluate("localStorage.clear()")
    (found,) = daemon.get("/conversations", control=True).json()["conversations"]
    page.goto(f"http://127.0.0.1:{daemon.port}/#/chat/conversation/{found['id']}")
    page.reload()
    expect(page.locator(".answered-by")).to_have_text(said)


def test_what_a_model_was_found_not_to_do_stands_at_its_card_and_in_the_picker(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, page: Page
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small").start()

    def without_tools(body: dict[str, Any]) -> dict[str, Any]:
        fake_model.script.insert(0, says("I talk"))
        text = '{"error": {"message": "this model does not support tools"}}'
        raise HTTPBadRequest(text=text, content_type="application/json")

    fake_model.will(without_tools)
    _talk(page, daemon)
    expect(_ask(page, "hello")).to_contain_text("small")
    page.locator(".model-picker").click()
    expect(page.locator(".model-row").filter(has_text="small")).to_contain_text("Cannot use agents.")
    expect(page.locator(".model-row").filter(has_text="big")).not_to_contain_text("agents")
    page.evaluate(axe_core())
    page.evaluate(STILL)
    assert page.evaluate(VIOLATIONS, RULES) == []
    page.keyboard.press("Escape")
    _settings(page, daemon)
    expect(_card(page, "Another server").locator(".model-limits")).to_have_text("small: cannot use agents.")
