"""The list of waiting matters, answered on the page of a real daemon, by keyboard, in both themes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Page, expect

from tests.rappd.test_lost_data import started_with_damaged_page
from twins.trust.quarantine import QuarantineList

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


def hold(home: Path, path: str, source: str) -> None:
    place = home / "brainstem" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(source)
    digest = hashlib.sha256(source.encode()).hexdigest()
    QuarantineList(home / "held.json", home).hold(place, digest, "Nobody signed it.", "kitchen.egg")


def opened(page: Page, daemon: RunningDaemon) -> None:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.get_by_role("link", name="Waiting").click()


def test_quarantined_code_is_refused_undone_and_approved_by_keyboard(
    make_daemon: Callable[..., RunningDaemon], page: Page, tmp_path: Path
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    hold(daemon.home, "agents/oven_agent.py", agent_source("Oven", 'return "<b>warm</b>"'))
    hold(daemon.home, ".env", "COLOUR=green\n")
    daemon.start()
    opened(page, daemon)
    expect(page.get_by_role("link", name="Waiting 2 matters")).to_be_visible()
    page.evaluate(axe_core())
    assert violations(page) == []
    code = page.locator("li", has_text="agents/oven_agent.py came in kitchen.egg")
    code.get_by_role("button", name="Refuse").press("Enter")
    expect(code).to_have_count(0)
    assert not (daemon.agents / "oven_agent.py").exists()
    page.get_by_role("button", name="Undo").press("Enter")
    expect(code).to_be_visible()
    page.reload()
    code.get_by_role("button", name="Read and approve").press("Enter")
    expect(page.locator("dialog .listing")).to_contain_text("<b>warm</b>")
    page.get_by_role("button", name="Approve", exact=True).press("Enter")
    expect(code).to_have_count(0)
    expect(page.get_by_role("link", name="Waiting 1 matter")).to_be_visible()
    assert "Oven" in daemon.agent_names()


def test_damaged_database_is_told_with_what_to_do(page: Page, tmp_path: Path) -> None:
    daemon = started_with_damaged_page(tmp_path / "home")
    try:
        opened(page, daemon)
        card = page.get_by_role("listitem").filter(has_text="This machine is not ready")
        expect(card).to_contain_text("rappd.db is damaged", timeout=60_000)
        expect(card).to_contain_text("rappd restore")
        expect(page.get_by_role("link", name="Waiting 1 matter")).to_be_visible()
    finally:
        daemon.cli("stop")


def test_received_egg_and_machine_that_asks_are_answered(page: Page, tmp_path: Path) -> None:
    desk, pi = (Machine(tmp_path / name, name, LLM_FAKE="1").start() for name in ("desk", "pi"))
    kitchen = Machine(tmp_path / "kitchen", "kitchen", LLM_FAKE="1").start()
    try:
        acquaint(desk, pi)
        egg = tmp_path / "rose.egg"
        pi.cli("twins", "new", "Rose", "--kind", "place")
        assert pi.cli("egg", "pack", "Rose", "-o", egg).returncode == 0
        opened(page, desk)
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        assert pi.cli("egg", "send", egg, "desk").returncode == 0
        page.get_by_role("button", name="Look inside: pi sent rose.egg").click(timeout=60_000)
        page.get_by_role("button", name="Hatch", exact=False).click()
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible(timeout=60_000)
        assert [twin["name"] for twin in desk.owner("GET", "/twins")["twins"]] == ["Rose"]

        kitchen.owner("POST", "/pairings", {"peer": desk.address})
        page.get_by_role("button", name="Compare words: kitchen wants to pair").click(timeout=60_000)
        expect(page.get_by_role("dialog")).to_contain_text("Compare these four words")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Refuse: kitchen wants to pair").click()
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible(timeout=60_000)
        assert "kitchen" not in desk.trusted()
    finally:
        for one in (desk, pi, kitchen):
            one.stop()
