"""Agents as their owner writes them: made, edited, tested and run in a real browser on a real daemon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    needs_chromium,
]

POLICY_BREAKS = """addEventListener("securitypolicyviolation",
    event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`))"""
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
PROPERTIES = """{
    "place": {"type": "string", "description": "A town."},
    "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 2},
    "unit": {"type": "string", "enum": ["C", "F"]},
    "words": {"type": "array", "items": {"type": "string"}},
    "loud": {"type": "boolean"}}"""
ECHO = "import json; return json.dumps(kwargs, sort_keys=True)"

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("agents") / "home")
    daemon.drop("weather_agent.py", agent_source("Weather", ECHO, "Tells whether it rains.", PROPERTIES))
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """The tab that all tests here share: it keeps what it has fetched and compiled."""
    page = browser.new_page()
    page.add_init_script(POLICY_BREAKS)
    yield page
    page.context.close()


@pytest.fixture
def opened(tab: Page, daemon: RunningDaemon) -> Iterator[Open]:
    """Opens a place as the operator, to a tab that forgot; consoles stay clean, the content policy included."""
    said: list[str] = []

    def thrown(error: Error) -> None:
        said.append(str(error))

    def told(message: ConsoleMessage) -> None:
        if message.type == "error":
            said.append(message.text)

    def open_(place: str, *, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Page:
        tab.set_viewport_size({"width": width, "height": 800})
        tab.emulate_media(color_scheme=scheme)
        tab.goto(daemon.post("/operator/key", control=True).json()["url"])
        tab.get_by_role("link", name="Agents").first.click()
        tab.evaluate("place => { location.hash = `#/${place}` }", place)
        return tab

    tab.on("console", told)
    tab.on("pageerror", thrown)
    yield open_
    forget(tab, f"http://127.0.0.1:{daemon.port}")
    tab.remove_listener("console", told)
    tab.remove_listener("pageerror", thrown)
    assert [text for text in said if "Failed to load" not in text] == []


def forget(tab: Page, origin: str) -> None:
    """Leaves the page, and clears what ``origin`` has put into the browser but for its cached files."""
    tab.goto(f"{origin}/web/css/base.css")  # of the origin, and nothing runs there
    tab.evaluate("sessionStorage.clear()")
    protocol = tab.context.new_cdp_session(tab)
    protocol.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    protocol.detach()
    tab.context.clear_cookies()


def editor(page: Page) -> Locator:
    """The element in which the text is typed."""
    return page.get_by_role("textbox", name="Text of")


def write(page: Page, text: str) -> None:
    """Puts ``text`` in place of all."""
    editor(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def drop(daemon: RunningDaemon, name: str, text: str) -> str:
    """Lays a new agent and waits until it answers; returns its file's name."""
    daemon.drop(f"{name.lower()}_agent.py", text)
    daemon.wait_for(lambda: name in daemon.agent_names())
    return f"{name.lower()}_agent.py"


def test_own_agents_come_first_and_shipped_ones_are_folded(opened: Open) -> None:
    page = opened("agents")
    expect(page.get_by_role("heading", name="Yours, ")).to_be_visible()
    expect(page.locator("[data-file='weather_agent.py']")).to_be_visible()
    shipped = page.locator("[data-file='manage_memory_agent.py']")
    expect(shipped).to_be_hidden()
    page.locator(".shipped > summary").click()
    expect(shipped).to_be_visible()
    expect(shipped.get_by_role("link", name="Edit")).to_have_count(0)


def test_new_agent_is_made_changed_tested_and_run_by_keyboard(opened: Open, daemon: RunningDaemon) -> None:
    page = opened("agents")
    page.get_by_role("button", name="New agent").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("Rain gauge")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="rain_gauge_agent.py")).to_be_visible()
    expect(editor(page)).to_contain_text("RainGauge")
    editor(page).focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("# g/?")
    expect(page.locator(".editor-state")).to_contain_text("Not saved")
    page.keyboard.press("Control+s")
    expect(page.locator(".editor-state")).to_contain_text("Saved at")
    assert (daemon.agents / "rain_gauge_agent.py").read_text().rstrip().endswith("# g/?")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert not editor(page).evaluate("text => text.matches(':focus')"), "Esc, then Tab leaves the text"
    page.get_by_role("button", name="Test", exact=True).press("Enter")
    expect(page.locator(".test-results")).to_contain_text("The test found nothing wrong.")
    page.get_by_role("button", name="Run", exact=True).press("Enter")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.type("how much?")
    page.get_by_role("button", name="Run RainGauge").press("Enter")
    expect(page.locator(".run-result")).to_have_text("RainGauge was asked: how much?")


def test_form_of_parameters_gives_typed_arguments(opened: Open) -> None:
    page = opened("agents/Weather")
    form = page.get_by_role("form", name="Run Weather")
    form.get_by_label("Place").fill("<b>Tokyo</b>")
    form.get_by_label("Days").fill("9")
    form.get_by_role("button").click()
    expect(page.locator(".run-result")).to_have_count(0)
    form.get_by_label("Days").fill("3")
    form.get_by_label("Unit").select_option("F")
    form.get_by_label("Words").fill("dry\n\nwarm")
    form.get_by_label("Loud").check()
    form.get_by_role("button").click()
    expect(page.locator(".run-result")).to_have_text(
        '{"days": 3, "loud": true, "place": "<b>Tokyo</b>", "unit": "F", "words": ["dry", "warm"]}'
    )


def test_faulty_text_is_shown_with_its_line_and_loses_nothing(opened: Open, daemon: RunningDaemon) -> None:
    good = agent_source("Bells", 'return "ring"')
    file = drop(daemon, "Bells", good)
    page = opened(f"agents/edit/{file}")
    expect(editor(page)).to_contain_text("Bells")
    write(page, "x = 1\nclass A(:\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".editor-note")).to_contain_text(f"Not saved. {file} line 2:")
    assert (daemon.agents / file).read_text() == good
    page.get_by_role("button", name="Go to line 2").click()
    expect(editor(page)).to_be_focused()
    page.evaluate("location.hash = '#/agents'")
    page.get_by_role("link", name=f"Go on with {file}").click()
    expect(page.locator(".editor-note")).to_contain_text("not saved yet")
    page.reload()
    expect(page.locator(".editor-note")).to_contain_text("not saved yet")
    expect(editor(page)).to_contain_text("class A(:")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Save anyway").click()
    expect(page.locator(".editor-state")).to_contain_text("Saved, not running")
    assert (daemon.agents / file).read_text() == "x = 1\nclass A(:\n"
    assert daemon.post("/agents/run", {"agent": "Bells"}, control=True).json()["result"] == "ring"
    page.get_by_role("button", name="Versions").click()
    page.get_by_role("button", name="Look at version 1").click()
    expect(page.locator("dialog .sides")).to_contain_text("ring")
    page.get_by_role("button", name="Take version 1").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".editor-state")).to_contain_text("Saved at")
    assert (daemon.agents / file).read_text() == good


DRAFT_OF = (
    "file => Object.keys(localStorage).some(name => name.includes('agent-draft.') && name.endsWith(file))"
)


def test_change_on_disk_shows_both_texts_and_lets_one_choose(opened: Open, daemon: RunningDaemon) -> None:
    file = drop(daemon, "Clash", agent_source("Clash", 'return "first"'))
    page = opened(f"agents/edit/{file}")
    expect(editor(page)).to_contain_text("first")
    theirs, mine = agent_source("Clash", 'return "theirs"'), agent_source("Clash", 'return "mine"')
    write(page, mine)
    daemon.drop(file, theirs)
    note = page.get_by_label("Two versions")
    expect(note.locator(".sides")).to_contain_text("theirs")
    expect(note.locator(".sides")).to_contain_text("mine")
    page.wait_for_function(DRAFT_OF, arg=file)
    page.reload()
    expect(note.locator(".sides")).to_contain_text("theirs")
    note.get_by_role("button", name="Take the text on the disk").click()
    expect(editor(page)).to_contain_text("theirs")
    page.keyboard.press("Control+z")
    expect(editor(page)).to_contain_text("mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".editor-state")).to_contain_text("Saved at")
    assert (daemon.agents / file).read_text() == mine
    write(page, mine + "# more\n")
    (daemon.agents / file).unlink()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(note).to_contain_text("was removed from the disk")
    note.get_by_role("button", name="Save it again").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".editor-state")).to_contain_text("Saved at")
    assert (daemon.agents / file).read_text() == mine + "# more\n"


def test_faulty_drop_is_kept_and_opens_in_the_editor(
    opened: Open, daemon: RunningDaemon, tmp_path: Path
) -> None:
    page = opened("agents")
    bad = tmp_path / "storm_agent.py"
    bad.write_text("import nothing_like_it_anywhere.at_all\n\n\ndef f(:\n")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add a file").click()
    chooser.value.set_files(bad)
    card = page.locator("[data-file='storm_agent.py']")
    expect(card).to_contain_text("Not running. storm_agent.py line 4:")
    card.get_by_role("link", name="Edit storm_agent.py").click()
    expect(editor(page)).to_contain_text("nothing_like_it_anywhere")
    expect(page.locator(".editor-note")).to_contain_text("This does not run. Line 4:")
    expect(page.get_by_role("button", name="Go to line 4")).to_be_visible()


def test_files_of_others_are_read_only_and_can_be_copied(opened: Open, daemon: RunningDaemon) -> None:
    page = opened("agents/edit/hacker_news_agent.py")
    expect(page.locator(".editor-note")).to_contain_text("It is built in.")
    expect(page.get_by_role("button", name="Save", exact=True)).to_have_count(0)
    editor(page).focus()
    page.keyboard.type("x")
    expect(page.locator(".editor-state")).to_have_text("Read only")
    page.get_by_role("button", name="Make a copy").click()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_visible()
    assert (daemon.agents / "hacker_news_agent.py").exists()


def test_closing_details_does_not_undo_a_later_navigation(opened: Open) -> None:
    page = opened("agents/Weather", width=320)
    expect(page.get_by_role("dialog", name="Weather")).to_be_visible()
    page.evaluate("""() => {
        document.querySelector("dialog").close()
        location.hash = "#/agents/edit/weather_agent.py"
    }""")
    expect(editor(page)).to_be_visible()
    page.wait_for_timeout(300)
    expect(page).to_have_url(re.compile("#/agents/edit/weather_agent.py$"))


def test_wide_screen_is_used_for_cards_details_and_text(opened: Open, daemon: RunningDaemon) -> None:
    drop(daemon, "Lamp", agent_source("Lamp"))
    page = opened("agents/Weather", width=1920)
    expect(page.locator("aside.detail")).to_be_visible()
    expect(page.locator("[data-file='lamp_agent.py']")).to_be_visible()
    box = "one => [one.getBoundingClientRect().top, one.getBoundingClientRect().width].map(Math.round)"
    tops = [one.evaluate(box)[0] for one in page.locator("[data-file]:visible").all()]
    assert len(set(tops)) < len(tops), "cards stand beside each other"
    free = page.locator("#main").evaluate(box)[1]
    taken = sum(page.locator(f"#main {part}").evaluate(box)[1] for part in (".column", "aside.detail"))
    assert taken > 0.8 * free
    page.evaluate("location.hash = '#/agents/edit/weather_agent.py'")
    assert editor(page).evaluate(box)[1] > 0.75 * free
    assert not page.evaluate(SIDEWAYS)


def test_outcome_of_a_test_is_seen_on_a_phone(opened: Open, daemon: RunningDaemon) -> None:
    page = opened(f"agents/edit/{drop(daemon, 'Kettle', agent_source('Kettle'))}", width=390)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("What passed")).to_be_in_viewport()
    expect(page.get_by_text("The test found")).to_be_in_viewport()


def test_editor_is_accessible_and_fits_a_phone(opened: Open, daemon: RunningDaemon) -> None:
    wrong = {}
    page = opened("agents", width=320)
    page.evaluate(axe_core())
    for place in ("agents", "agents/Weather", "agents/edit/weather_agent.py"):
        page.keyboard.press("Escape")
        page.evaluate("place => { location.hash = `#/${place}` }", place)
        if place == "agents":
            expect(page.locator("#main h1")).to_be_visible()
        if place == "agents/Weather":  # not while axe looks
            expect(page.get_by_role("dialog", name="Weather")).to_be_visible()
        if "edit" in place:
            expect(editor(page)).to_be_visible()
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.get_by_role("form", name="Run Weather")).to_be_visible()
        page.wait_for_timeout(300)
        wrong[place] = violations(page)
        assert not page.evaluate(SIDEWAYS), place
    assert {place: found for place, found in wrong.items() if found} == {}


def test_card_tells_that_an_agent_can_use_the_owners_ssh_keys(
    browser: Browser, make_daemon: Callable[..., RunningDaemon]
) -> None:
    daemon = make_daemon(RAPPD_AGENTS_MAY_READ="~/.ssh")
    daemon.drop("weather_agent.py", agent_source("Weather"))
    daemon.start()
    page = browser.new_page()
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.get_by_role("link", name="Agents").first.click()
    weather = page.get_by_text("weather_agent.py").first
    expect(weather).to_contain_text("can use your SSH keys")
    expect(page.get_by_text("context_memory_agent.py").first).not_to_contain_text("SSH keys")
    page.close()
