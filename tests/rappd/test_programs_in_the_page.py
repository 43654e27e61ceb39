"""Settings > Programs in the page: who connected, what was asked and refused, which agents, and each protocol's switch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]

CHAT = "/ollama/api/chat"


@pytest.fixture
def page(browser: Browser, fake_daemon: RunningDaemon) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(fake_daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#main h1, #write").first.wait_for(state="attached")
    yield page
    page.close()
    assert wrong == []


def asks(daemon: RunningDaemon, text: str, model: str = "brainstem") -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": False}
    return daemon.post(CHAT, body, headers={"User-Agent": "kettle/2"})


def section(page: Page) -> Any:
    page.goto(f"{page.url.partition('#')[0]}#/settings")
    return page.locator("section.group").filter(has=page.get_by_role("heading", name="Programs", exact=True))


def test_who_connected_and_what_was_asked_is_shown(fake_daemon: RunningDaemon, page: Page) -> None:
    assert asks(fake_daemon, "boil two litres").status == 200
    assert asks(fake_daemon, "hi", "llama3").status == 404
    found = section(page)
    row = found.get_by_role("listitem").filter(has_text="kettle").first
    expect(row).to_contain_text("over Ollama")
    expect(row).to_contain_text("1 answer")
    expect(row).to_contain_text('There is no "llama3" here')
    row.get_by_text("What was asked").click()
    row.get_by_role("link", name="boil two litres").click()
    expect(page.locator(".recorded")).to_contain_text("boil two litres")


def test_a_switch_and_the_agents_of_a_protocol_take_effect_at_once(
    fake_daemon: RunningDaemon, page: Page
) -> None:
    found = section(page)
    found.get_by_text("What programs may use").click()
    switch = found.get_by_role("switch", name="Answer like Ollama")
    switch.uncheck()
    expect(page.get_by_text("Answer like Ollama saved.")).to_be_visible()
    assert asks(fake_daemon, "hi").status == 404
    found.get_by_role("switch", name="Answer like Ollama").check()
    expect(page.get_by_text("Answer like Ollama saved.").last).to_be_visible()
    field = found.get_by_role("textbox", name="Ollama: agents")
    field.fill("Clock")
    field.press("Enter")
    expect(page.get_by_text("Ollama: agents saved.")).to_be_visible()
    told = fake_daemon.request("GET", "/programs", control=True).json()["protocols"]
    assert next(one for one in told if one["name"] == "ollama")["agents"] == ["Clock"]


def test_a_programs_words_are_found_and_lead_to_its_record(fake_daemon: RunningDaemon, page: Page) -> None:
    asks(fake_daemon, "descale the samovar")
    page.goto(f"{page.url.partition('#')[0]}#/chat")
    page.get_by_label("Search what was said").fill("samovar")
    found = page.locator(".conversation.found").first
    expect(found).to_contain_text("a program over ollama")
    found.locator("a").first.click()
    expect(page.locator(".recorded")).to_contain_text("descale the samovar")
