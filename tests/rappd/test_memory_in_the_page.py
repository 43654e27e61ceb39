"""Memories as their owner sees them: searched, corrected and deleted in a real browser on a real daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    needs_chromium,
]

SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
ADA = "11111111-2222-4333-8444-555555555555"

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon that remembers four things, and a twin that remembers one."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("memory") / "home").start()
    for text in ("The boiler is serviced in May.", "The door is green.", "The cat is called <b>Mia</b>."):
        remember(daemon, text)
    daemon.chat("remember that Ada likes tea", user_guid=ADA)
    assert daemon.cli("twins", "new", "gardener").returncode == 0
    remember(daemon, "The roses want water.", f"/twins/{key_of_twin(daemon)}")
    yield daemon
    daemon.stop()


@pytest.fixture
def opened(browser: Browser, daemon: RunningDaemon) -> Iterator[Open]:
    """Opens a place of the page, as the operator unless told otherwise; consoles must stay clean."""
    pages: list[Page] = []
    said: list[str] = []

    def open_(place: str, *, width: int = 1280, scheme: str = "light", operator: bool = True) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        pages.append(page)
        link = daemon.post("/operator/key", control=True).json()["url"]
        page.goto(link if operator else f"http://127.0.0.1:{daemon.port}/")
        page.get_by_role("link", name="Agents").first.click()
        page.evaluate("place => { location.hash = `#/${place}` }", place)
        return page

    yield open_
    for page in pages:
        page.close()
    assert [text for text in said if "Failed to load" not in text] == []


def key_of_twin(daemon: RunningDaemon) -> str:
    return str(daemon.get("/twins", control=True).json()["twins"][0]["key"])


def remember(daemon: RunningDaemon, content: str, twin: str = "") -> None:
    args = {"memory_type": "fact", "content": content}
    body = {"agent": "ManageMemory", "args": args}
    assert daemon.post(f"{twin}/agents/run", body, control=True).json()["ok"]


def stored(daemon: RunningDaemon) -> list[str]:
    found: dict[str, Any] = json.loads((daemon.data / "shared_memories" / "memory.json").read_text())
    return [memory["message"] for memory in found.values()]


def texts(page: Page) -> Locator:
    return page.locator(".memory-text")


def test_memories_are_seen_as_text_and_searched(opened: Open) -> None:
    page = opened("agents")
    page.get_by_role("navigation", name="Agents").get_by_role("link", name="Memory").click()
    expect(texts(page)).to_have_text(
        ["The cat is called <b>Mia</b>.", "The door is green.", "The boiler is serviced in May."]
    )
    page.get_by_role("searchbox", name="Search memories").fill("GREEN door")
    expect(texts(page)).to_have_text(["The door is green."])
    expect(page.locator("main")).to_contain_text("1 of 3 memories")
    page.get_by_role("searchbox", name="Search memories").fill("nothing like it")
    expect(page.locator("main")).to_contain_text("No memory has these words.")


def test_twins_and_people_have_memories_of_their_own(opened: Open, daemon: RunningDaemon) -> None:
    page = opened(f"twins/twin/{key_of_twin(daemon)}")
    page.get_by_role("link", name="See and correct what gardener remembers").click()
    expect(texts(page)).to_have_text(["The roses want water."])
    page.get_by_label("Who remembers").select_option("")
    expect(texts(page)).to_have_count(3)
    page.get_by_label("About whom").select_option(ADA)
    expect(texts(page)).to_have_text(["Ada likes tea"])


def test_memory_is_corrected_and_deleted_by_keyboard_and_deletion_undone(
    opened: Open, daemon: RunningDaemon
) -> None:
    remember(daemon, "The safe opens to the left.")
    page = opened("agents/memory")
    page.get_by_role("button", name="Edit: The safe opens").press("Enter")
    expect(page.get_by_label("Memory", exact=True)).to_be_focused()
    page.keyboard.type(" Or not.")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(texts(page).first).to_have_text("The safe opens to the left. Or not.")
    assert "The safe opens to the left. Or not." in stored(daemon)
    page.get_by_role("button", name="Delete: The safe opens").press("Enter")
    expect(page.locator(".toast button")).to_be_focused()
    assert not any("safe" in text for text in stored(daemon))
    page.keyboard.press("Enter")
    expect(texts(page).first).to_contain_text("The safe opens")
    page.get_by_role("button", name="Delete: The safe opens").click()
    expect(page.locator("main")).not_to_contain_text("The safe opens")


def test_agents_change_meanwhile_is_shown_before_it_is_replaced(opened: Open, daemon: RunningDaemon) -> None:
    remember(daemon, "The car is red.")
    page = opened("agents/memory")
    page.get_by_role("button", name="Edit: The car is red.").click()
    one = daemon.get("/memories?query=car+red", control=True).json()["memories"][0]
    body = {"version": one["version"], "message": "The car is blue."}
    assert daemon.request("PUT", f"/memories/{one['key']}", body, control=True).status == 200
    page.get_by_label("Memory", exact=True).fill("The car is black.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("dialog .meanwhile")).to_have_text("The car is blue.")
    assert "The car is blue." in stored(daemon)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("dialog")).to_have_count(0)
    assert "The car is black." in stored(daemon) and "The car is blue." not in stored(daemon)


def test_without_operators_link_nothing_is_shown(opened: Open) -> None:
    page = opened("agents/memory", operator=False)
    expect(page.locator("main")).to_contain_text("To see what is remembered")
    expect(texts(page)).to_have_count(0)


def test_memory_is_accessible_and_fits_a_phone(opened: Open) -> None:
    wrong = {}
    page = opened("agents/memory", width=320)
    page.evaluate(axe_core())
    expect(texts(page).first).to_be_visible()
    wrong["list"] = violations(page)
    assert not page.evaluate(SIDEWAYS)
    page.get_by_role("button", name="Edit").first.click()
    wrong["dialog"] = violations(page)
    assert {place: found for place, found in wrong.items() if found} == {}
