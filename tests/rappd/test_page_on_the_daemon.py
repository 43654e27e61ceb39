"""The newcomer's first minutes, in a real browser on a real daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]

WEATHER = agent_source("Weather", 'return "Rain from four, 18 degrees."', "Tells whether it will rain today.")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    page.close()
    unexpected = [
        text for text in said if "ERR_CONNECTION_REFUSED" not in text and "Failed to load" not in text
    ]
    assert unexpected == [], "the console stays clean, the content policy included"


def _link(daemon: RunningDaemon) -> str:
    url: str = daemon.post("/operator/key", control=True).json()["url"]
    return url


def _ask(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Ask")
    box.fill(text)
    box.press("Enter")


def test_chat_drop_a_file_and_use_it_a_moment_later(
    make_daemon: Callable[..., RunningDaemon], page: Page, tmp_path: Path
) -> None:
    daemon = make_daemon().start()
    page.goto(_link(daemon))
    expect(page).to_have_url(f"http://127.0.0.1:{daemon.port}/")
    _ask(page, "what can you do?")
    expect(page.locator("main")).to_contain_text("(no model)")
    file = tmp_path / "weather_agent.py"
    file.write_text(WEATHER)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("link", name="Agents").click()
        page.get_by_role("button", name="Add a file").click()
    chooser.value.set_files(file)
    expect(page.get_by_text("Weather is ready.").first).to_be_visible()
    page.get_by_role("link", name="Chat").click()
    _ask(page, "will it rain?")
    expect(page.locator("main")).to_contain_text("Rain from four")
    call = page.locator("details", has_text="Weather").last
    expect(call).not_to_have_attribute("open", "")


def test_agent_broken_save_shows_failure(make_daemon: Callable[..., RunningDaemon], page: Page) -> None:
    daemon = make_daemon()
    daemon.drop("weather_agent.py", WEATHER)
    daemon.start()
    page.goto(_link(daemon) + "")
    page.get_by_role("link", name="Agents").click()
    expect(page.get_by_text("Tells whether it will rain today").first).to_be_visible()
    daemon.drop("weather_agent.py", "class A(:\n")
    expect(page.get_by_text("works on").first).to_be_visible()


def test_code_of_an_egg_waits_and_is_approved_on_page(
    make_daemon: Callable[..., RunningDaemon], page: Page, tmp_path: Path
) -> None:
    kitchen = make_daemon("kitchen")  # not started: its command line packs alone
    kitchen.drop("weather_agent.py", WEATHER)
    egg = tmp_path / "weather.egg"
    assert (
        kitchen.cli("egg", "pack", "--form", "agent", "--item", "weather_agent.py", "-o", egg).returncode == 0
    )
    daemon = make_daemon()
    daemon.drop("broken_agent.py", "class A(:\n")
    daemon.start()
    page.goto(_link(daemon))
    page.get_by_role("link", name="Agents").click()
    expect(page.get_by_role("heading", name="Not running, 1")).to_be_visible()
    expect(page.locator("[data-file='broken_agent.py'] .sign.bad")).to_be_visible()
    expect(page.locator("[data-file='broken_agent.py']")).not_to_contain_text("approve")
    assert daemon.cli("egg", "hatch", egg).returncode == 0
    expect(page.get_by_role("heading", name="Waiting for your approval, 1")).to_be_visible()
    card = page.locator("[data-file='weather_agent.py']")
    expect(card).to_contain_text("! Waits for your approval: kept, not run. It came in an egg")
    expect(card.locator(".sign.warn")).to_be_visible()
    expect(card.locator(".sign.bad")).to_have_count(0)
    expect(page.locator(".failed-files")).not_to_contain_text("weather")
    card.get_by_role("button", name="Read and approve").click()
    expect(page.locator("dialog .listing")).to_contain_text("Rain from four")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("heading", name="Waiting for your approval")).to_have_count(0)
    expect(card.get_by_role("button", name="Try Weather")).to_be_visible()


@pytest.mark.own_process
def test_draft_survives_daemon_restart(make_daemon: Callable[..., RunningDaemon], page: Page) -> None:
    daemon = make_daemon().start()
    page.goto(f"http://127.0.0.1:{daemon.port}/")
    page.get_by_role("textbox", name="Ask").fill("hello there")
    daemon.kill()
    page.get_by_role("textbox", name="Ask").press("Enter")
    expect(page.get_by_text("isn't answering. Trying again; your text is kept.").first).to_be_visible()
    daemon.start()
    expect(page.locator("main")).to_contain_text("(no model)")


def test_a_rapplication_runs_on_an_origin_of_its_own(
    make_daemon: Callable[..., RunningDaemon], page: Page
) -> None:
    daemon = make_daemon().start()
    assert daemon.post("/rapps/install", {"id": "kanban"}, control=True).status == 200
    page.goto(_link(daemon))
    page.goto(f"http://127.0.0.1:{daemon.port}/rapps/kanban/")
    expect(page).to_have_url(f"http://localhost:{daemon.port}/rapps/kanban/")
    assert page.context.cookies(f"http://localhost:{daemon.port}") == []
    status = page.evaluate(
        "fetch('/settings').then(answer => answer.status)",
    )
    assert status == 403


def test_activity_marks_titles_that_are_cut(fake_daemon: RunningDaemon) -> None:
    fake_daemon.chat("tell me " + "everything " * 30)
    thread = fake_daemon.get("/threads", control=True).json()["threads"][0]
    assert thread["title"].endswith("…")
    assert len(thread["title"]) <= 80
    titles = [event["title"] for event in fake_daemon.get("/activity", control=True).json()["events"]]
    assert any(title.endswith("…") and len(title) <= 120 for title in titles)


def test_settings_name_every_group(fake_daemon: RunningDaemon, page: Page) -> None:
    page.goto(_link(fake_daemon))
    page.get_by_role("link", name="Settings").click()
    groups = page.locator("main details.source > summary")
    expect(groups.nth(5)).to_be_visible()
    names = [name.strip() for name in groups.all_inner_texts()]
    assert [name for name in names if not name[0].isupper()] == []
