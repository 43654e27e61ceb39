"""The reach of agents in the page: at the card, in the panel of one agent, and before an approval."""

from __future__ import annotations

import re

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import agent_source
from playwright.sync_api import Browser, expect

from tests.rappd.test_declared_scope import SWALLOWS, MakeDaemon, declaring

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]


def test_card_panel_and_question_say_what_an_agent_may_reach(
    make_daemon: MakeDaemon, browser: Browser
) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_AGENTS_MUST_DECLARE="on")
    daemon.drop("rain_agent.py", declaring(agent_source("Rain", SWALLOWS), "{'hosts': ['rain.example']}"))
    daemon.drop("open_agent.py", agent_source("Open"))
    daemon.start()
    body = {"agent": "Rain", "args": {"path": "/var/tmp/diary"}}
    assert not daemon.post("/agents/run", body, control=True).json()["ok"]
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    expect(page.locator("#write")).to_be_visible()
    page.goto(f"http://127.0.0.1:{daemon.port}/#/agents")
    card = page.locator("li[data-file='rain_agent.py']")
    expect(card).to_contain_text("Talks to rain.example.")
    expect(card).to_contain_text("1 call failed: it wanted more than it says that it needs.")
    expect(page.locator("li[data-file='calculator_listener.py']")).to_contain_text(
        "Uses its own storage alone."
    )
    waits = page.locator("li[data-file='open_agent.py']")
    expect(waits).to_contain_text("May read your files and the network.")
    waits.get_by_role("button", name="Read and approve").click()
    expect(page.get_by_role("dialog")).to_contain_text("May read your files and the network.")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("li[data-file='open_agent.py'] h3 a")).to_have_text("Open")
    card.get_by_role("link", name="Rain", exact=True).click()
    panel = page.locator(".detail-body")
    expect(panel).to_contain_text(re.compile("reading /var/tmp/diary.*refused, 1 call"))
