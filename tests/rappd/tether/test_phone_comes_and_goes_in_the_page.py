"""Phones that leave, are removed, or go on in another tab: what stays on them, and what the next person finds."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Page, expect

from tests.rappd.tether.phone_browser import PhonePage

pytestmark = [pytest.mark.browser, needs_chromium]
KEPT = """() => Object.keys(localStorage).filter(name => name.startsWith("rappd."))"""


def shows_code(desk: RunningDaemon, name: str) -> Any:
    """The window for a phone that will have that name."""
    return desk.post("/devices/window", {"name": name, "session": True}, control=True).json()


def joins_by_code(page: Page, desk: RunningDaemon, window: Any) -> None:
    """A person types the code on the phone that lies there."""
    page.get_by_role("textbox", name="Code").fill(window["code"])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Same number").click()
    desk.post("/devices/window/answer", {"id": window["id"], "same": True, "kind": "guest"}, control=True)
    page.get_by_role("button", name="Start talking").click()
    expect(page.locator(".bar .state")).to_have_text("● connected")


def test_phone_removed_in_mid_answer_keeps_nothing_for_the_next_person(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.will(says("Well hidden."), says("never said whole"))
    phone.ask("where is the key?")
    expect(page.locator(".turn .answer")).to_have_text("Well hidden.")
    fake_model.pieces, fake_model.pause = [f"word{n} " for n in range(400)], 0.05
    phone.ask("tell me a lot")
    expect(page.locator(".turn .answer").last).to_contain_text("word5 ")
    (anna,) = thinking.get("/devices", control=True).json()["devices"]
    thinking.request("DELETE", f"/devices/{anna['id']}", None, control=True)
    page.get_by_role("button", name="Type a code").click()
    expect(page.locator(".sentence")).to_have_text("The computer cannot be reached.")  # it has no phone left
    fake_model.pieces, fake_model.pause = [], 0
    window = shows_code(thinking, "Ben")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("textbox", name="Code").wait_for()
    assert page.evaluate(KEPT) == []
    joins_by_code(page, thinking, window)
    phone.opens().get_by_role("button", name="New", exact=True).click()
    expect(page.get_by_text("Talk with desk.")).to_be_visible()
    assert page.locator(".turn").count() == 0
    phone.opens().get_by_text("What you talk about appears here.").wait_for()
    (ben,) = thinking.get("/devices", control=True).json()["devices"]
    assert ben["user"] != anna["user"], "neither conversations nor memory are handed on"


def test_sentence_that_never_went_is_not_said_by_the_next_person(
    browser: Browser, thinking: RunningDaemon
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna", session=True)
    page.get_by_role("textbox", name="Message").wait_for()
    thinking.stop()
    expect(page.locator(".bar .state")).to_have_text("○ not connected")
    page.get_by_role("textbox", name="Message").fill("said by Anna")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".events .unsent")).to_have_count(1)
    phone.opens().get_by_role("button", name="Disconnect this phone").click()
    page.get_by_role("button", name="Disconnect", exact=True).click()
    page.get_by_text("You left.").wait_for()
    thinking.start()
    window = shows_code(thinking, "Ben")
    page.reload()
    joins_by_code(page, thinking, window)
    page.get_by_role("textbox", name="Message").fill("said by Ben")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".events .mine .mark")).to_have_text("answered")
    expect(page.locator(".events .mine p")).to_have_text("said by Ben")


def test_tab_that_goes_on_opens_conversations_and_keeps_what_was_written(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    thinking.post("/twins", {"name": "Rose"}, control=True)
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna", session=True)
    page.get_by_role("textbox", name="Message").fill("half a sen")
    other = phone.context.new_page()
    other.goto(page.url)
    expect(other.locator(".bar .state")).to_have_text("● connected")
    page.get_by_role("button", name="Go on here").click()
    expect(page.locator(".bar .state")).to_have_text("● connected")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a sen")
    other.close()
    fake_model.will(says("I am the desk."), says("I am Rose."))
    for name, answer in (("desk", "I am the desk."), ("Rose", "I am Rose.")):
        phone.opens().get_by_role("button", name="New", exact=True).click()
        page.get_by_role("dialog", name="Talk with").get_by_role("button", name=name).click()
        phone.ask(f"are you {name}?")
        expect(page.locator(".turn .answer")).to_have_text(answer)
    steps = page.evaluate("history.length")
    for name, answer in (("desk", "I am the desk."), ("Rose", "I am Rose.")):
        phone.opens().locator(".conversation-link", has_text=f"are you {name}?").click()
        expect(page.locator(".bar h1")).to_have_text(name)
        expect(page.locator(".turn .answer")).to_have_text(answer)
    assert page.evaluate("history.length") == steps, "a step back leads out of the talk, not to nothing"
    assert phone.errors == []


def test_answer_goes_on_in_the_tab_that_took_over(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.pieces, fake_model.pause = [f"word{n} " for n in range(60)], 0.05
    fake_model.will(says("never said whole"))
    phone.ask("tell me a lot")
    expect(page.locator(".turn .answer")).to_contain_text("word5 ")
    other = phone.context.new_page()
    other.goto(page.url)
    expect(other.locator(".turn .answer")).to_contain_text("word59 ")
    expect(other.locator(".turn .foot")).to_be_visible()
    page.get_by_role("button", name="Go on here").click()
    expect(page.locator(".turn .answer")).to_contain_text("word59 ")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    assert phone.errors == []


def test_stop_while_the_computer_is_away_stops_and_the_page_goes_on(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.hang = True
    phone.ask("tell me a lot")
    thinking.wait_for(fake_model.reached.is_set)
    thinking.stop()
    expect(page.locator(".bar .state")).to_have_text("○ not connected")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".turn .after")).to_contain_text("Stopped.")
    fake_model.hang = False
    fake_model.will(says("I am back."))
    thinking.start()
    expect(page.locator(".bar .state")).to_have_text("● connected")
    phone.ask("and now?")
    expect(page.locator(".turn .answer").last).to_have_text("I am back.")
