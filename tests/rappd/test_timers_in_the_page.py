"""A reminder in a real browser: it comes by itself into the conversation that is open, and as news."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from fixtures.chromium import FULL_CHROMIUM, needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.browser, needs_chromium]
BROWSER = FULL_CHROMIUM
"""The headless shell refuses notices from the start."""


TELLS = """
    window.told = [];
    window.Notification = class { constructor(text) { window.told.push(text); } };
    window.Notification.permission = "default";
    window.Notification.requestPermission = async () => (window.Notification.permission = "granted");
"""


def test_a_late_reminder_is_told_by_the_browser_the_command_and_in_waiting(
    browser: Browser, make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    daemon = make_daemon().start()
    command = f"""sh -c 'printf "%s|" "$1" >> {told}' tell"""
    assert daemon.cli("config", "set", "notify.command", command).returncode == 0
    timer = overdue(daemon, "remind me tomorrow at 9 to call mum", hours=2)
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(TELLS)
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.goto(f"http://127.0.0.1:{daemon.port}/#/waiting")
    page.get_by_role("button", name="Let this browser tell me what happens").click()
    page.get_by_role("button", name="No notices by this browser").wait_for()
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    assert daemon.post(f"/timers/{timer}/resume", {}, control=True).status == 200
    page.wait_for_function("() => window.told.length > 0")
    daemon.wait_for(lambda: told.exists() and told.read_text().endswith("|"), what="the command to run")
    news = page.get_by_role("region", name="News").get_by_role("listitem")
    expect(news).to_have_count(1)
    expect(news).to_contain_text("Reminder: call mum. This is 2 h late: it was due ")
    for said in (*page.evaluate("window.told"), told.read_text()):
        assert said.startswith("Reminder: call mum. This is 2 h late: it was due ")
    assert page.evaluate("window.told.length") == told.read_text().count("|") == 1
    assert daemon.cli("notices", "dismiss", "--all").returncode == 0
    expect(news).to_have_count(0)
    page.close()


def overdue(daemon: RunningDaemon, sentence: str, *, hours: int) -> str:
    """A paused timer whose moment is past: it is told once it is resumed."""
    timer = str(daemon.post("/timers", {"text": sentence}, control=True).json()["timer"]["id"])
    assert daemon.post(f"/timers/{timer}/pause", {}, control=True).status == 200
    daemon.stop()
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as store, store:
        store.execute("UPDATE timers SET next = ? WHERE id = ?", (time.time() - hours * 3600 - 5, timer))
    daemon.start()
    return timer


def test_a_reminder_comes_into_the_open_conversation(
    browser: Browser, make_daemon: Callable[..., RunningDaemon]
) -> None:
    daemon = make_daemon().start()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#write").fill("remind me in 2 seconds to call mum")
    page.locator("#write").press("Enter")
    expect(page.locator(".turn").first).to_contain_text("Reminder set: call mum")
    last = page.locator(".turn").nth(1)
    expect(last).to_contain_text("Reminder: call mum.")
    expect(last.locator(".who").first).to_have_text("Timer")
    page.goto(f"http://127.0.0.1:{daemon.port}/#/waiting")
    expect(page.locator("main")).to_contain_text("Reminder: call mum.")
    daemon.post("/timers", {"text": "remind me tomorrow at 9 to call dad"}, control=True)
    page.reload()
    reminders = page.get_by_role("region", name="Reminders").get_by_role("listitem")
    expect(reminders).to_contain_text("call dad")
    reminders.get_by_role("button", name="Pause").click()
    expect(reminders).to_contain_text("Paused · tomorrow")
    reminders.get_by_role("button", name="Resume").click()
    reminders.get_by_role("button", name="More for call dad").click()
    page.get_by_role("menuitem", name="Change the time…").click()
    page.get_by_label("When").fill("ten")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(reminders).to_contain_text("10:00")
    reminders.get_by_role("button", name="More for call dad").click()
    page.get_by_role("menuitem", name="Cancel it…").click()
    page.get_by_role("button", name="Cancel it", exact=True).click()
    expect(reminders).to_have_count(0)
    assert daemon.get("/timers", control=True).json()["timers"] == []
    page.close()
