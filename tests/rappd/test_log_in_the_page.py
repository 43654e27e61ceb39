"""The log in the page on a real daemon: followed, sifted, without secrets, for the operator alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]
KEY = "plain-looking-azure-key-1"
LINE = "2026-11-26 10:00:00 {} rappd.trial: {}\n"


def _page(browser: Browser, daemon: RunningDaemon, scheme: str = "light") -> Page:
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.locator("#main h1").wait_for(state="attached")
    page.goto(f"http://127.0.0.1:{daemon.port}/#/activity/log")
    expect(page.locator(".log > p").first).to_be_visible()
    return page


def _write(daemon: RunningDaemon, level: str, text: str) -> None:
    with (daemon.home / "rappd.log").open("a") as file:
        file.write(LINE.format(level, text))


def test_log_follows_and_can_be_sifted(make_daemon: Callable[..., RunningDaemon], browser: Browser) -> None:
    daemon = make_daemon(AZURE_OPENAI_API_KEY=KEY).start()
    page = _page(browser, daemon)
    daemon.drop("weather_agent.py", agent_source("Weather"))
    expect(page.locator(".log")).to_contain_text("Weather is ready.")
    daemon.drop("broken_agent.py", "class A(:\n")
    expect(page.locator(".log .log-warn", has_text="broken_agent.py")).to_be_visible()
    _write(daemon, "ERROR  ", f"it says <b>{KEY}</b> and sk-abcdefghijklmnop\n    and a second line")
    wrong = page.locator(".log .log-bad")
    expect(wrong).to_contain_text("it says <b>[secret]</b> and [secret]\n    and a second line")
    page.get_by_label("Show").select_option("Errors only")
    expect(page.locator(".log > p:visible")).to_have_count(1)
    page.get_by_label("Show").select_option("Everything")
    page.get_by_role("searchbox", name="Search").fill("WEATHER is")
    expect(page.locator(".log > p:visible")).to_have_count(1)
    expect(page.locator(".log-foot")).to_contain_text("1 of")
    page.close()


def test_log_that_is_rotated_goes_on(make_daemon: Callable[..., RunningDaemon], browser: Browser) -> None:
    daemon = make_daemon().start()
    page = _page(browser, daemon)
    log = daemon.home / "rappd.log"
    log.rename(log.with_suffix(".log.1"))
    _write(daemon, "INFO   ", "of the new file")
    expect(page.locator(".log")).to_contain_text("of the new file")
    expect(page.locator(".log")).to_contain_text("is ready")
    page.get_by_role("switch", name="Follow").uncheck()
    _write(daemon, "INFO   ", "written meanwhile")
    page.wait_for_timeout(2500)
    expect(page.locator(".log")).not_to_contain_text("written meanwhile")
    page.get_by_role("switch", name="Follow").check()
    expect(page.locator(".log")).to_contain_text("written meanwhile")
    expect(
        page.locator(".log", has_text="of the new file").locator("p", has_text="of the new")
    ).to_have_count(1)
    page.close()


def test_log_is_for_the_operator_and_any_mark_is_harmless(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon().start()
    daemon.wait_for_log("Twin is ready")  # the last of its start: the log is written behind the daemon's back
    assert daemon.get("/log?after=1-0").status == 403
    for mark in ("", "x", "1-0", f"-{10**30}", "9" * 5000, "-1--1", "%00-5"):
        found = daemon.get(f"/log?after={mark}", control=True)
        assert found.status == 200
        assert found.json()["lines"], mark
    last = daemon.get("/log", control=True).json()["mark"]
    assert daemon.get(f"/log?after={last}", control=True).json() == {"lines": [], "mark": last}
