"""From the first answer without a model to one with it, in the page: the button, the card, a download that is asked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from fixtures.chromium import keep_picture
from fixtures.loopback_server import says
from fixtures.running_daemon import RunningDaemon
from fixtures.scripted_ollama import WAIT, WHOLE, ScriptedOllama, part
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]


@pytest.fixture
def ollama() -> Iterator[ScriptedOllama]:
    server = ScriptedOllama()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


def _open(page: Page, daemon: RunningDaemon) -> None:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#main h1, #write").first.wait_for(state="attached")


def _ask(page: Page, text: str) -> None:
    page.locator("#write").fill(text)
    page.locator("#write").press("Enter")


def test_answer_without_a_model_leads_to_the_card(
    make_daemon: Callable[..., RunningDaemon], page: Page
) -> None:
    _open(page, make_daemon().start())
    for text in ("what can you do?", "what day is it in 10 days?", "remember that my car is red"):
        expect(page.get_by_role("button", name=text)).to_be_visible()
    _ask(page, "write me a poem")
    expect(page.locator(".answer")).to_contain_text("None of my agents does that.")
    expect(page.locator(".answer")).not_to_contain_text("rappd models connect")
    keep_picture(page, "first-hour-answer")
    page.get_by_role("link", name="Connect a model").click()
    form = page.get_by_role("form", name="Another server")
    expect(form.get_by_label("Address")).to_be_focused()
    keep_picture(page, "first-hour-card")


def test_sum_is_answered_without_a_model(make_daemon: Callable[..., RunningDaemon], page: Page) -> None:
    _open(page, make_daemon().start())
    _ask(page, "17% of 80")
    expect(page.locator(".answer")).to_contain_text("17% of 80 = 13.6")
    expect(page.get_by_role("link", name="Connect a model")).to_have_count(0)


def test_missing_model_is_downloaded_from_the_failed_turn(
    make_daemon: Callable[..., RunningDaemon], ollama: ScriptedOllama, page: Page
) -> None:
    ollama.pulls = [part(400, 1000), WAIT, *WHOLE]
    _open(page, make_daemon(OPENAI_BASE_URL=f"{ollama.url}/v1", OPENAI_MODEL="llama3.2").start())
    _ask(page, "write me a poem")
    expect(page.locator(".notice")).to_contain_text("not found, try pulling it first")
    assert ollama.pulled == [], "never by itself"
    button = page.get_by_role("button", name="Download llama3.2")
    keep_picture(page, "first-hour-notice")
    button.click()
    expect(page.locator(".model-download")).to_contain_text("40 %")
    keep_picture(page, "first-hour-bar")
    page.locator(".model-download").get_by_role("button", name="Cancel").click()
    expect(page.locator(".model-download")).to_contain_text("Cancelled.")
    assert ollama.left.wait(100)
    ollama.pulls = [{"error": "write: no space left on device"}]
    button.click()
    expect(page.locator(".model-download")).to_contain_text("Ollama said: “write: no space left on device”")
    ollama.pulls = WHOLE
    button.click()
    expect(page.locator(".model-download")).to_contain_text("llama3.2 is here.")
    ollama.will(says("Roses are red"))
    page.get_by_role("button", name="Ask again").or_(page.get_by_role("button", name="Answer again")).click()
    expect(page.locator(".answer").last).to_contain_text("Roses are red")


def test_card_of_an_empty_ollama_downloads_its_first_model(
    make_daemon: Callable[..., RunningDaemon], ollama: ScriptedOllama, page: Page
) -> None:
    ollama.listed = []
    ollama.pulls = [part(400, 1000), WAIT, *WHOLE]
    daemon = make_daemon(RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=str(ollama.port)).start()
    _open(page, daemon)
    page.goto(f"http://127.0.0.1:{daemon.port}/#/settings")
    card = page.locator(".server-card").filter(has=page.get_by_role("heading", name="On this computer"))
    expect(card).to_contain_text("Ollama runs here, but has no model yet.")
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    keep_picture(page, "first-hour-narrow")
    card.get_by_label("Model to download").fill("tiny")
    card.get_by_role("button", name="Download", exact=True).click()
    expect(card).to_contain_text("40 %")
    keep_picture(page, "first-hour-empty")
    page.reload()
    expect(card).to_contain_text("Downloading tiny 40 %")
    ollama.go_on.set()
    expect(card.get_by_label("Model", exact=True)).to_have_value("tiny")
    keep_picture(page, "first-hour-arrived")


def test_model_of_a_conversation_that_is_gone_is_answered_for_and_can_be_downloaded(
    make_daemon: Callable[..., RunningDaemon], ollama: ScriptedOllama, page: Page
) -> None:
    _open(page, make_daemon(OPENAI_BASE_URL=f"{ollama.url}/v1", OPENAI_MODEL="small").start())
    page.locator(".model-picker").click()
    page.locator(".model-row").filter(has_text="big").click()
    page.get_by_role("button", name="Use it").click()
    expect(page.locator(".model-picker")).to_have_text("big")
    del ollama.listed[1]
    ollama.will(says("Roses are red"))
    _ask(page, "write me a poem")
    expect(page.locator(".answer")).to_contain_text("Roses are red")
    expect(page.locator(".notice")).to_contain_text(
        "small answered — ollama pull big, or choose another model"
    )
    expect(page.locator(".answered-by")).to_contain_text("small, Ollama")
    expect(page.get_by_role("button", name="Download big")).to_be_visible()
