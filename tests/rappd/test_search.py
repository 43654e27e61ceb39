"""Search over everything: by a route that shows a caller what it may see, and on the page by the keyboard alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.axe import STILL, axe_core, violations
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Page, Route, expect

from rappd.settings.wording import WORDING
from rappd.transcript.excerpts import excerpt

SCHEMES = {"As this device": "light dark", "Light": "light", "Dark": "dark"}
ADA = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A daemon with a conversation, an agent, a twin and memories."""
    made = make_daemon(LLM_FAKE="1")
    made.drop("weather_agent.py", agent_source("Weather", 'return "rain"', "Tells of rain and tomatoes."))
    remember(made, "", "The tomatoes are watered at six.")
    made.start()
    made.post("/chat", {"user_input": "Where do <b>tomatoes</b> grow?"}, control=True)
    made.cli("twins", "new", "Tomatoes")
    [twin] = made.get("/twins", control=True).json()["twins"]
    remember(made, twin["key"], "Tomatoes hate frost.")
    return made


def remember_for_ada(daemon: RunningDaemon) -> None:
    folder = daemon.home / "brainstem/.brainstem_data/memory" / ADA
    folder.mkdir(parents=True)
    memory = {"one": {"message": "Ada's tomatoes are yellow.", "type": "fact"}}
    (folder / "user_memory.json").write_text(json.dumps(memory))


def daemon_name(daemon: RunningDaemon) -> str:
    return str(daemon.get("/health").json()["name"])


def remember(daemon: RunningDaemon, twin: str, text: str) -> None:
    home = daemon.home / ("brainstem" if not twin else f"twins/{twin}")
    folder = home / ".brainstem_data/shared_memories"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.json").write_text(json.dumps({"one": {"message": text, "type": "fact"}}))


def found(daemon: RunningDaemon, words: str, *, control: bool = True) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = daemon.get(f"/search?words={words}", control=control).json()["found"]
    return rows


def test_operator_finds_every_kind_and_others_agents_alone(daemon: RunningDaemon) -> None:
    rows = found(daemon, "TOMATOES")
    assert [(row["kind"], row["title"]) for row in rows] == [
        ("conversation", "Where do <b>tomatoes</b> grow?"),
        ("agent", "Weather"),
        ("twin", "Tomatoes"),
        ("memory", "Tomatoes hate frost."),
        ("memory", "The tomatoes are watered at six."),
    ]
    [setting] = [
        row for row in found(daemon, WORDING["port"].title.replace(" ", "%20")) if row["kind"] == "setting"
    ]
    assert (setting["key"], setting["title"]) == ("port", WORDING["port"].title)
    assert {row["kind"] for row in found(daemon, "tomatoes", control=False)} == {"agent"}
    assert found(daemon, "") == found(daemon, "%20" * 500) == []
    assert found(daemon, "x" * 5000) == []
    assert len([row for row in found(daemon, "e") if row["kind"] == "setting"]) == 6, (
        "of each kind the best six"
    )


def test_memories_of_single_users_are_found_by_the_operator(daemon: RunningDaemon) -> None:
    remember_for_ada(daemon)
    rows = [row for row in found(daemon, "yellow") if row["kind"] == "memory"]
    assert [(row["key"], row["detail"]) for row in rows] == [
        (f"/{ADA}", f"{daemon_name(daemon)} remembers for {ADA[:8]}")
    ]
    assert "yellow" in rows[0]["title"]
    assert found(daemon, "yellow", control=False) == []


def test_memories_behind_a_link_are_not_found(daemon: RunningDaemon) -> None:
    outside = daemon.home / "outside"
    outside.mkdir()
    folder = daemon.home / "brainstem/.brainstem_data/shared_memories"
    shutil.move(folder / "memory.json", outside / "memory.json")
    folder.rmdir()
    folder.symlink_to(outside)
    assert "The tomatoes are watered at six." not in [row["title"] for row in found(daemon, "tomatoes")]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield page
    page.close()
    assert wrong == []


@pytest.mark.browser
def test_search_is_opened_used_and_left_by_the_keyboard_alone(daemon: RunningDaemon, page: Page) -> None:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    box = page.get_by_role("combobox", name="Search everything")
    expect(page.locator("#write")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    page.keyboard.type("tomatoes")
    options = page.get_by_role("option")
    expect(options).to_have_count(5)
    expect(options.first).to_contain_text("Where do <b>tomatoes</b> grow?")
    expect(page.locator(".search-kind")).to_have_text(["Conversations", "Agents", "Twins", "Memories"])
    page.evaluate(axe_core())
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    selected = page.locator("[role=option][aria-selected=true]")
    expect(selected).to_have_text("Tomatoes, personal")
    assert box.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    page.keyboard.press("Enter")
    expect(page).to_have_url(
        f"http://127.0.0.1:{daemon.port}/#/twins/twin/{found(daemon, 'tomatoes')[2]['key']}"
    )
    expect(page.locator("dialog")).to_have_count(0)

    expect(page.get_by_role("heading", name="Twins", level=1)).to_be_focused()
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.type("rappd peers pair")
    page.keyboard.press("Enter")  # before the pause is over: what was typed counts
    expect(page.locator(".toast")).to_contain_text("rappd peers pair")
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.evaluate(STILL)
    place = box.bounding_box()
    page.keyboard.type("nothing of the kind")
    expect(page.get_by_text("Nothing is called “nothing of the kind”.").first).to_be_visible()
    assert box.bounding_box() == place, "the field stays while results come and go"
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


@pytest.mark.browser
def test_found_memory_of_a_user_opens_with_that_user(daemon: RunningDaemon, page: Page) -> None:
    remember_for_ada(daemon)
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    expect(page.locator("#write")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search everything")).to_be_focused()
    page.keyboard.type("yellow")
    expect(page.get_by_role("option").first).to_contain_text("Ada's tomatoes are yellow.")
    page.keyboard.press("Enter")
    expect(page.locator(".memories li")).to_contain_text(["Ada's tomatoes are yellow."])
    expect(page.get_by_label("About whom")).to_have_value(ADA)


@pytest.mark.browser
def test_search_is_opened_by_key_while_the_daemon_is_slow(daemon: RunningDaemon, page: Page) -> None:
    held: list[Route] = []
    page.route("**/health", lambda route: held.append(route))
    page.goto(f"http://127.0.0.1:{daemon.port}/")
    page.locator(".search-open:not([aria-disabled])").wait_for()  # drawn by what listens to the keys
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    assert held  # the page still waits for its first answer
    for waiting in held:
        waiting.continue_()


@pytest.mark.browser
def test_search_at_320_px_is_a_button_and_fits(daemon: RunningDaemon, page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(f"http://127.0.0.1:{daemon.port}/")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("tomatoes")
    expect(page.get_by_role("option")).to_have_text(["Weather, Tells of rain and tomatoes."])
    wide = "[document.documentElement, document.querySelector('dialog')].map(box => box.scrollWidth - box.clientWidth)"
    assert page.evaluate(wide) == [0, 0]
    page.get_by_role("option").click()
    expect(page).to_have_url(f"http://127.0.0.1:{daemon.port}/#/agents/Weather")


@pytest.mark.browser
def test_found_setting_and_conversation_are_opened_at_the_hit(daemon: RunningDaemon, page: Page) -> None:
    text = f"{'It was late. ' * 30}Then we came to the pumpkins."
    for sentence in (text, *("Let us talk. " * 20 for _ in range(5))):
        daemon.post("/chat", {"user_input": sentence, "session_id": ADA}, control=True)
    [hit] = [row for row in found(daemon, "pumpkins") if row["kind"] == "conversation"]
    assert "pumpkins" in hit["detail"]
    assert (hit["yours"], hit["with"], bool(hit["turn"]), bool(hit["at"])) == (False, "brainstem", True, True)
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator(".search-open:not([aria-disabled])").wait_for()  # drawn by what listens to the keys
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("notify.command")
    page.keyboard.press("Enter")
    expect(page.locator("[id='setting-notify.command']")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("pumpkins")
    expect(page.get_by_role("option", selected=True).locator("mark")).to_have_text("pumpkins")
    page.keyboard.press("Enter")
    expect(page.locator(".turn.shown-now .written")).to_contain_text(text)
    expect(page.locator(".turn.shown-now .written")).to_be_in_viewport()
    marked = "[...CSS.highlights.get('found-words') ?? []].map(String)"
    page.wait_for_function(f"() => {marked}.length > 1")
    assert page.evaluate(marked) == ["pumpkins", "pumpkins"], "in the sentence and in its answer"


@pytest.mark.browser
def test_colours_are_chosen_and_an_agent_is_begun_from_the_search(daemon: RunningDaemon, page: Page) -> None:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.get_by_role("link", name="Settings").first.click()
    expect(page.get_by_role("radio", name="As this device")).to_be_checked()
    for words, chosen in (("dark", "Dark"), ("light colours", "Light"), ("colours as", "As this device")):
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox")).to_be_focused()
        page.keyboard.type(words)
        page.keyboard.press("Enter")
        expect(page.get_by_role("radio", name=chosen)).to_be_checked()
        expect(page.locator("html")).to_have_css("color-scheme", SCHEMES[chosen])
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("new agent")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="New agent")).to_be_visible()


LONG = "road " * 100


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        ("Where do tomatoes grow?", ["tomatoes"], "Where do tomatoes grow?"),
        ("Late.\n\nThen the\tpumpkins.", ["pumpkins"], "Late. Then the pumpkins."),
        (f"mill {LONG}church", ["mill", "church"], None),
        (f"İİİİ {LONG}mill {LONG}", ["mill"], None),
        (f"{LONG}MILL", ["mill"], None),
        ("x" * 400, ["x" * 300], None),
        ("nothing of it", ["mill"], ""),
        ("mill alone", ["mill", "church"], ""),
    ],
)
def test_excerpt_holds_each_word(text: str, words: list[str], shown: str | None) -> None:
    found = excerpt(text, words)
    if shown is not None:
        assert found == shown
        return
    assert all(word in found.lower() for word in words)
    assert len(found) < 330
    assert "…" in found


def test_excerpt_cuts_no_word() -> None:
    found = excerpt(f"{'wander ' * 40}pumpkins {'orange ' * 40}", ["pumpkins"], 60)
    assert set(found.split()) == {"…", "wander", "pumpkins", "orange"}
    assert found.startswith("… wander") and found.endswith("orange …")
