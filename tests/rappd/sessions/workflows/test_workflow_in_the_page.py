"""Workflows on the computer's page: how far one is, its controls, and the Coordinator's questions folded to a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import keep_picture, needs_chromium
from playwright.sync_api import Browser, Page, expect

from tests.rappd.sessions.workflows.conftest import THREE, Desk
from tests.rappd.sessions.workflows.held_model import HeldModel
from tests.rappd.tether.phone_browser import PhonePage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900), needs_chromium]

SIZES = [(390, 844), (1280, 800)]


@pytest.fixture(params=SIZES, ids=["phone", "wide"])
def page(request: pytest.FixtureRequest, browser: Browser, desk: Desk) -> Iterator[Page]:
    """The page of the operator."""
    width, height = request.param
    made = browser.new_page(viewport={"width": width, "height": height})
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.goto(desk.post("/operator/key", control=True).json()["url"])
    expect(made.locator("#write")).to_be_visible()
    yield made
    made.close()
    assert wrong == []


def clean(page: Page, name: str) -> None:
    """Nothing that axe finds, in both themes; a picture."""
    keep_picture(page, f"{name}-{page.viewport_size['width']}")  # type: ignore[index]
    page.evaluate(axe_core())
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def show_session(page: Page, id: str) -> None:
    page.evaluate("id => { location.hash = `#/chat/session/${id}` }", id)


def test_owner_pauses_interrupts_and_stops_a_workflow(page: Page, desk: Desk, model: HeldModel) -> None:
    model.held |= {"one", "two"}
    show_session(page, desk.run()["session"])
    bar = page.get_by_role("group", name="Workflow")
    expect(bar.get_by_role("status")).to_have_text("Three · step 1 of 3 · Ann")
    bar.get_by_role("button", name="Pause").click()
    expect(bar.get_by_role("status")).to_have_text("Three · step 1 of 3 · Ann · paused")
    expect(page.get_by_role("button", name="Interrupt")).to_be_hidden()
    model.held.discard("one")
    model.wait_for("one")
    bar.get_by_role("button", name="Go on").click()
    model.let_go(but={"two"})
    expect(bar.get_by_role("status")).to_have_text("Three · step 2 of 3 · Bob")
    page.get_by_label("Write to the session").fill("what time is it")
    page.get_by_role("button", name="Interrupt").click()
    expect(page.get_by_text("answer to what time is it")).to_be_visible()
    expect(page.get_by_text("Interrupted by the operator; it is asked again.")).to_be_visible()
    cue = page.locator("details.cue", has_text="Coordinator asks Ann · step 1 of 3")
    expect(cue.get_by_text("one", exact=True)).to_be_hidden()
    cue.locator("summary").click()
    expect(cue.get_by_text("one", exact=True)).to_be_visible()
    clean(page, "workflow")
    bar.get_by_role("button", name="Stop").click()
    expect(bar).to_be_hidden()
    expect(page.get_by_text("Three was stopped.")).to_be_visible()


ABOUT: dict[str, Any] = {
    **THREE,
    "name": "about",
    "title": "About",
    "files": {"story": "story.txt"},
    "steps": [{"participant": "Ann", "cue": "one {file:story}"}, {"participant": "Bob", "cue": "and {Ann}"}],
}


def test_start_asks_what_it_is_about_and_who_plays_then_shows_its_session(
    page: Page, desk: Desk, model: HeldModel
) -> None:
    desk.write(ABOUT)
    desk.ask("POST", "/twins", {"name": "Rose", "text": "You are Rose, a gardener."})
    model.held.add("lantern")
    refused = desk.ask("POST", "/workflows/about/run", {}, 422)
    assert refused["error"] == "It needs a text for story."
    page.evaluate("() => { location.hash = '#/devices' }")
    page.get_by_role("button", name="Start: About").click()
    asked = page.get_by_role("dialog")
    asked.get_by_label("Bob").select_option("Rose")
    clean(page, "workflow-start")
    asked.get_by_label("Story").fill("a lantern")
    asked.get_by_role("button", name="Start").click()
    expect(page.get_by_role("group", name="Workflow").get_by_role("status")).to_have_text(
        "About · step 1 of 2 · Ann"
    )
    model.let_go()
    expect(page.get_by_text("About is done.")).to_be_visible()
    assert "one a lantern" in model.texts[0]
    assert "You are Rose, a twin" in str(model.asked[-1]["messages"])


def test_phone_is_asked_the_same(browser: Browser, desk: Desk, model: HeldModel) -> None:
    desk.write(ABOUT)
    desk.ask("POST", "/twins", {"name": "Rose", "text": "You are Rose, a gardener."})
    phone = PhonePage(browser, desk)
    phone.pair("Anna", "mine")
    page = phone.opens()
    page.get_by_text("Workflows").click()
    page.get_by_role("button", name="Start About").click()
    asked = page.locator("dialog.starting")
    asked.get_by_label("Bob").select_option("Rose")
    phone.looks_right("phone-workflow-start")
    asked.get_by_label("story").fill("a lantern")
    asked.get_by_role("button", name="Start").click()
    expect(page.get_by_text("About is done.")).to_be_visible()
    cue = page.locator("details.cue", has_text="Coordinator asks Bob · step 2 of 2")
    expect(cue).to_be_visible()
    phone.looks_right("phone-workflow-done")
    assert "one a lantern" in model.texts[0]
    assert "You are Rose, a twin" in str(model.asked[-1]["messages"])
    assert phone.errors == []
    phone.context.close()
