"""The phone's list of workflows and its step pill, in Chromium: start, pause, interrupt, stop."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import agent_source
from playwright.sync_api import Page, expect

from lan.daemons import Daemon
from lan.network import Lan, require
from lan.phones import Phone, chromium_on

pytestmark = pytest.mark.browser

WAITS = "import os, time\n        while not os.path.exists({go!r}): time.sleep(0.02)\n        return 'the lantern is lit'"
LANTERN = {
    "name": "lantern",
    "title": "Lantern",
    "participants": [{"name": "Keeper"}, {"name": "Editor"}],
    "steps": [
        {"participant": "Keeper", "cue": "light the lantern"},
        {"participant": "Editor", "cue": "Sum up.", "without_model": "Told: {Keeper}."},
    ],
}


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[Phone]:
    """A phone of a computer without a model, whose Lantern agent waits for a file ``go``."""
    require()
    with Lan() as lan:
        desk, machine = Daemon(lan.machine("desk"), tmp_path), lan.machine("phone")
        desk.environment["LLM_FAKE"] = "0"
        body = WAITS.format(go=str(desk.data / "go"))
        desk.drop("lantern_agent.py", agent_source("Lantern", body, "Lights the lantern."))
        folder = desk.home / "brainstem" / "workflows"
        folder.mkdir()
        (folder / "lantern.json").write_text(json.dumps(LANTERN))
        desk.start()
        with chromium_on(machine, tmp_path) as browser:
            made = Phone(browser, desk)
            made.pair(name="Anna")
            yield made


def shot(phone: Phone, name: str) -> None:
    """Keeps a picture where ``RAPPD_SHOTS`` names a folder."""
    if folder := os.environ.get("RAPPD_SHOTS"):
        phone.page.screenshot(path=f"{folder}/{name}.png")


def start(page: Page) -> None:
    page.get_by_role("button", name="Start Lantern").click()
    page.locator("dialog.starting").get_by_role("button", name="Start").click()


def test_phone_runs_pauses_and_interrupts_a_workflow(phone: Phone) -> None:
    page = phone.page
    with phone.more():
        assert not page.get_by_text("Workflows").is_visible()
    phone.daemon.ask("POST", "/devices/Anna", {"workflows": True})
    with phone.more():
        page.get_by_text("Workflows").click()
        start(page)
    page.get_by_text("step 1 of 2 · Keeper").wait_for()
    page.get_by_text("desk uses Lantern").wait_for()
    shot(phone, "running")
    page.get_by_role("textbox", name="Message").fill("what can you do?")
    page.get_by_role("button", name="Interrupt").click()
    page.get_by_text("Interrupted: step 1 is asked again afterwards.").wait_for()
    page.get_by_text("Lantern goes on with step 1.").wait_for()
    with phone.more():
        page.get_by_role("button", name="Pause Lantern").click()
    page.get_by_text("step 1 of 2 · Keeper · paused").wait_for()
    shot(phone, "paused")
    (phone.daemon.data / "go").write_text("")
    page.get_by_text("the lantern is lit").wait_for()
    with phone.more():
        page.get_by_role("button", name="Go on Lantern").click()
    page.get_by_text("Lantern is done.").wait_for()
    expect(page.get_by_text("Told: the lantern is lit.")).to_be_visible()
    expect(page.locator(".step")).to_be_hidden()
    shot(phone, "done")
    (phone.daemon.data / "go").unlink()
    with phone.more():
        start(page)
    page.get_by_text("step 1 of 2 · Keeper").wait_for()
    with phone.more():
        page.get_by_role("button", name="Stop Lantern").click()
        page.get_by_text("Lantern was stopped.").wait_for()
        phone.daemon.ask("POST", "/devices/Anna", {"workflows": False})
        page.get_by_role("button", name="Start Lantern").wait_for(state="hidden")
    assert phone.errors == []
