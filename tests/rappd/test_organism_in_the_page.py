"""The organism in the page: threads as trees, a listener's fields as a form, and the picture of what is here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, calls
from fixtures.page_questions import NAMELESS, SIDEWAYS, SMALL
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]

RESEARCH = '''
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Optional
from agents.listener import listener


@dataclass
class Place:
    """Where it is."""

    town: str
    """The town."""
    height: float = 0.0


@listener(category="research")
@dataclass
class Research:
    """Has a sum looked up."""

    a: Decimal
    """The first number."""
    operation: Literal["add", "subtract"]
    """The way."""
    often: int = 1
    """Times that it is done."""
    loud: bool = False
    """Also say it aloud."""
    place: Optional[Place] = None
    """Where to look."""


@listener(category="calculator", name="calculator", root="calculate")
@dataclass
class Calculate:
    """Of the calculator."""

    a: Decimal
    operation: Literal["add", "subtract"]
    b: Decimal


def research(payload: Research) -> list:
    return [Calculate(payload.a, payload.operation, Decimal(2))] * payload.often


def calculate(payload: Calculate) -> str:
    return f"{payload.a} and {payload.b}"
'''


def started(home: Path, model: FakeModel) -> RunningDaemon:
    daemon = RunningDaemon(home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="small")
    daemon.drop("research_listener.py", RESEARCH)
    return daemon.start()


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    server = FakeModel()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def research(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    daemon = started(tmp_path_factory.mktemp("research") / "home", model)
    yield daemon
    daemon.stop()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the operator's page; scripts that throw fail the test."""
    wrong: list[str] = []
    opened: list[Page] = []

    def open_(daemon: RunningDaemon, path: str) -> Page:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(daemon.post("/operator/key", control=True).json()["url"])
        expect(page.locator("#write")).to_be_visible()
        page.goto(f"http://127.0.0.1:{daemon.port}/{path}")
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()
    assert wrong == []


def faults(page: Page) -> list[object]:
    """Findings of axe in both themes and sizes; controls that are too small or nameless; boxes that are too wide."""
    page.evaluate(axe_core())
    found: list[object] = []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        found += violations(page)
        found += [one for question in (SIDEWAYS, SMALL, NAMELESS) for one in page.evaluate(question)]
    return found


def test_thread_is_a_tree_that_grows_while_it_is_looked_at(
    research: RunningDaemon, model: FakeModel, open_page: Callable[..., Page]
) -> None:
    wanted = {"a": "1.5", "operation": "add", "often": 2}
    model.will(calls(("research", wanted), text="Let me look."), {"content": "It is done."})
    answer = research.post("/chat", {"user_input": "look it up", "session_id": "s"}).json()
    assert answer["response"] == "It is done."
    thread = research.get("/threads", control=True).json()["threads"][0]["id"]
    page = open_page(research, f"#/activity/thread/{thread}")
    said = page.locator(".call.round")
    said.get_by_text("Round 1").click()
    expect(said.get_by_text("Let me look.")).to_be_visible()
    page.get_by_role("link", name="Tree").click()
    turn = page.locator(".stale-list > .thread-steps > .thread-step")
    expect(turn).to_contain_text("look it up")
    expect(turn.locator("[data-kind=round]")).to_contain_text("Let me look.")
    asked = turn.locator("[data-kind=call]", has_text="research")
    expect(asked.first.locator("[data-kind=call]")).to_have_count(2)
    expect(asked.first.locator("[data-kind=call] .step-answer")).to_have_text(["1.5 and 2", "1.5 and 2"])
    expect(asked.first.locator(".step-path")).to_have_text(
        [re.compile("^Thread .{8} › calculator$"), re.compile("› calculator-1$")]
    )
    turn.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(turn.locator("[data-kind=round]")).to_be_hidden()
    model.will({"content": "Again."})
    research.post("/chat", {"user_input": "and again", "session_id": "s"})
    expect(turn.nth(1)).to_contain_text("Again.")
    expect(turn.first.locator("[data-kind=round]")).to_be_hidden()
    turn.locator("summary").first.click()
    assert faults(page) == []


def test_fields_of_a_listener_are_a_form_that_tries_it(
    research: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(research, "#/agents/calculator")
    page.get_by_label("A (needed)").fill("0.1000000000000000000001")
    page.get_by_label("Operation (needed)").select_option("add")
    page.get_by_label("B (needed)").fill("two")
    page.get_by_role("button", name="Run calculator").click()
    expect(page.locator(":invalid:focus")).to_have_attribute("inputmode", "decimal")
    page.get_by_label("B (needed)").fill("2")
    page.get_by_role("button", name="Run calculator").click()
    expect(page.get_by_role("region", name="Answer")).to_have_text("0.1000000000000000000001 and 2")
    page.locator("summary", has_text="In XML").click()
    namespace = "https://xml-pipeline.org/ns/calculator/calculator/v1"
    expect(page.get_by_role("region", name="Example in XML")).to_contain_text(
        f'<calculate xmlns="{namespace}">'
    )

    page.goto(page.url.replace("calculator", "research"))
    expect(page.locator(".told:visible")).to_have_text("Has a sum looked up.")
    page.get_by_label("A (needed)").fill("1")
    page.get_by_label("Operation (needed)").select_option("add")
    page.get_by_label("Height").fill("12")
    page.get_by_role("button", name="Run research").click()
    expect(page.locator(":invalid:focus")).to_have_count(1)
    page.get_by_label("Town (needed)").fill("Graz")
    page.get_by_role("button", name="Run research").click()
    expect(page.get_by_role("region", name="Answer")).to_have_text("1 and 2")
    page.locator("summary", has_text="In XML").click()
    expect(page.get_by_role("region", name="Schema")).to_contain_text("xs:decimal")
    assert faults(page) == []


def test_picture_tells_by_shape_words_and_keys_who_asked_whom(
    tmp_path: Path, model: FakeModel, open_page: Callable[..., Page]
) -> None:
    research = started(tmp_path / "home", model)
    research.drop("broken_listener.py", "x = 1\n")
    research.wait_for(lambda: "broken_listener.py" in research.get("/agents", control=True).body.decode())
    model.will(calls(("research", {"a": "1", "operation": "add", "often": 2})), {"content": "Done."})
    research.post("/chat", {"user_input": "look it up", "session_id": "s"})
    said = research.post("/timers", {"text": "call mum", "at": "tomorrow at 9"}, control=True)
    assert said.status == 200, said.body
    page = open_page(research, "#/activity/organism")
    expect(page.get_by_role("img", name="call mum, timer", exact=True)).to_have_count(1)
    name = research.get("/health").json()["name"]
    part = page.locator(".organism .part")
    own = page.get_by_role(
        "link", name=f"{name}, this machine, asked once by People and programs", exact=True
    )
    asked = page.get_by_role("link", name=f"research, listener, asked once by {name}", exact=True)
    below = page.get_by_role("link", name="calculator, listener, asked 2 times by", exact=False)
    for one in (own, asked, below):
        expect(one).to_have_count(1)
    expect(page.locator(".organism .idle", has_text="broken_listener.py")).to_contain_text(
        "listener, quarantined"
    )
    expect(page.locator(".organism .used")).to_have_count(3)

    page.get_by_text("Show as a table").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="calculator listener"))
    expect(row.get_by_role("cell").first).to_contain_text("2 times")
    expect(page.get_by_role("rowheader")).to_have_count(part.count())

    part.first.focus()
    page.keyboard.press("ArrowRight")
    expect(own).to_be_focused()
    expect(page.locator(".organism .unused.on").first).to_be_visible()
    page.keyboard.press("End")
    expect(part.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".part.timer")).to_be_focused()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelectorAll('.organism [tabindex=\"0\"]').length") == 1
    research.post("/chat", {"user_input": "hello", "session_id": "s"})
    later = page.get_by_role(
        "link", name=f"{name}, this machine, asked 2 times by People and programs", exact=True
    )
    expect(later).to_be_focused()
    assert faults(page) == []
    research.stop()


def test_new_listener_is_written_tested_and_run_in_the_editor(
    research: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(research, "#/agents")
    page.get_by_role("button", name="New agent").click()
    page.get_by_label("Name").fill("Rain gauge")
    page.get_by_role("switch", name="With typed fields").check()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="rain_gauge_listener.py")).to_be_visible()
    page.get_by_role("button", name="Test", exact=True).click()
    page.get_by_text("What passed").click()
    expect(page.locator(".test-results")).to_contain_text("It answers the example of its fields")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_label("Text (needed)").fill("how much?")
    page.get_by_role("button", name="Run rain_gauge").click()
    expect(page.locator(".run-result")).to_have_text("rain_gauge was asked: how much?")
    text = page.get_by_role("textbox", name="Text of rain_gauge_listener.py")
    text.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("\n@listener(name='other')\n@dataclass\nclass Other:\nwhat: complex\n")
    page.keyboard.press("Control+s")
    expect(page.locator(".editor-note")).to_contain_text(
        "line 22: no function of the file takes a Other first"
    )


def test_what_was_refused_for_security_stands_in_activity_at_once(
    research: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(research, "#/activity")
    expect(page.locator(".stale-list > *").first).to_be_visible()
    research.post("/chat", {"user_input": "hi", "ns": "https://xml-pipeline.org/privileged-msg"})
    row = page.locator(".rows .row")
    expect(row.first).to_contain_text("a privileged message came to the listener chat")
    expect(row.first).to_contain_text("Refused for security")
    research.post("/chat", {"user_input": "later", "session_id": "later"})
    expect(row.first).not_to_contain_text("Refused for security")
