"""The page of a browser without the operator's session: nothing is offered that the daemon would refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fixtures.chromium import FULL_CHROMIUM, chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Page, Request, Response, expect

from twins.cartridges import json_documents, lispy_file

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]

VIEWS = (
    "chat",
    "chat/conversations",
    "agents",
    "agents/Weather",
    "agents/memory",
    "agents/edit/weather_agent.py",
    "twins",
    "twins/lineage",
    "twins/eggs",
    "twins/cartridges",
    "twins/archived",
    "machines",
    "machines/outbox",
    "machines/neighborhood",
    "devices",
    "waiting",
    "activity",
    "activity/threads",
    "activity/organism",
    "activity/log",
    "settings",
)
CONTROLS = "#main :is(button, summary, input[type=checkbox], [role=switch])"
"""Fields alone send nothing; what sends them is a button."""


def controls(page: Page) -> list[str]:
    found: list[str] = page.locator(CONTROLS).evaluate_all(
        "all => all.map((one, at) => [one, at]).filter(([one]) => one.checkVisibility() && !one.disabled)"
        ".map(([one, at]) => `${at} ${one.outerHTML.slice(0, 120)}`)"
    )
    return found


class Quiet:
    """Waits until a page has nothing under way. Playwright's ``networkidle`` is reached once, when the page was loaded."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._requests: set[Request] = set()
        page.on("request", lambda request: self._requests.add(request))
        page.on("requestfinished", lambda request: self._requests.discard(request))
        page.on("requestfailed", lambda request: self._requests.discard(request))

    def wait(self) -> None:
        looks = 0
        while looks < 3:  # in a row: what came may ask for more
            self._page.wait_for_timeout(50)
            under_way = [one.url for one in self._requests if not one.url.endswith("/activity/stream")]
            looks = 0 if under_way else looks + 1


def test_page_without_operator_offers_nothing_that_is_refused(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("weather_agent.py", agent_source("Weather", 'return "rain"'))
    daemon.start()
    daemon.cli("twins", "new", "Gardener")
    refused: list[str] = []
    thrown: list[str] = []
    doing = ["opening the page"]

    def seen(response: Response) -> None:
        if response.status in (401, 403):
            refused.append(f"{response.request.method} {response.url} by {doing[0]}")

    # The headless shell lets no page write into the clipboard.
    with chromium(FULL_CHROMIUM) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        quiet = Quiet(page)
        page.on("response", seen)
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.on("filechooser", lambda _: None)
        for view in VIEWS:
            doing[0] = view
            page.goto(f"http://127.0.0.1:{daemon.port}/#/{view}")
            page.reload()
            page.locator("#main h1").first.wait_for(state="attached")
            quiet.wait()
            for control in controls(page):
                doing[0] = f"{view}: {control}"
                at = int(control.split(" ", 1)[0])
                one = page.locator(CONTROLS).nth(at)
                if not one.is_visible():
                    continue  # another one closed what it stood in
                one.click()
                quiet.wait()
                while page.locator("dialog[open]").count():
                    for button in page.locator("dialog[open] .dialog-actions button:not(.secondary)").all():
                        if button.is_enabled():
                            button.click()
                            quiet.wait()
                    page.keyboard.press("Escape")
                    quiet.wait()
                if page.url.rpartition("#/")[2] != view:
                    page.goto(f"http://127.0.0.1:{daemon.port}/#/{view}")
                    quiet.wait()
        doing[0] = "a cartridge"
        page.goto(f"http://127.0.0.1:{daemon.port}/#/twins/cartridges")
        content = json_documents.encode(lispy_file.new("sum", {"main": "(+ 40 2)"}, description="Adds."))
        file = {"name": "sum.lispy.json", "mimeType": "application/json", "buffer": content}
        signature = {"name": "sum.lispy.json.sig", "mimeType": "text/plain", "buffer": b"{}"}
        page.get_by_label("Open a cartridge").set_input_files([file, signature])
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator(".cartridge-status")).to_contain_text("Done in")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("button", name="Save its signature")).to_have_count(0)
        quiet.wait()
        doing[0] = "what is written"
        page.goto(f"http://127.0.0.1:{daemon.port}/#/chat")
        page.get_by_role("textbox", name="Ask").fill("what can you do?")
        page.get_by_role("textbox", name="Ask").press("Enter")
        expect(page.locator(".answer").last).not_to_be_empty()
        quiet.wait()
    assert refused == []
    assert thrown == []


def test_page_without_operator_asks_for_no_agent_file(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{daemon.port}/#/agents")
        expect(page.get_by_text("None of your own yet.", exact=True)).to_be_visible()
