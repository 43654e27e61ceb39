"""The neighborhood as its owner meets it: a real browser on a real daemon, a machine behind a real sshd, another in a folder."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fixtures import member_homes as homes
from fixtures.axe import axe_core, violations
from fixtures.chromium import keep_picture, needs_chromium
from fixtures.page_questions import NAMELESS, SIDEWAYS, SMALL
from fixtures.running_daemon import RunningDaemon
from fixtures.ssh_server import SshServer
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(1200),
    needs_chromium,
]

BIG = 24 << 20


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens Machines › Neighborhood as the operator. The console must stay clean, the content policy included."""
    pages: list[Page] = []
    said: list[str] = []

    def opened(daemon: RunningDaemon, **options: Any) -> Page:
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(daemon.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Machines").click()
        page.get_by_role("link", name="Neighborhood").click()
        return page

    yield opened
    for page in pages:
        page.close()
    assert [text for text in said if "Failed to load" not in text] == []


def fill(home: Path) -> None:
    """Twins with everyday names of files: the others are not for an importer."""
    homes.fill_home(home)
    for name in homes.NAMES:
        for file in home.glob(f"twins/**/{name}"):
            file.unlink()


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[SshServer]:
    with SshServer(tmp_path / "pi") as server:
        fill(server.home)
        yield server


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon], pi: SshServer, tmp_path: Path) -> RunningDaemon:
    """A machine with a twin; pi is reached over SSH, stick is a folder, and nothing answers at shed."""
    fill(tmp_path / "stick")
    pi.config.write_text(
        f"Host pi\n  HostName {pi.address}\n  HostKeyAlias {pi.address}\n{pi.config.read_text()}"
    )
    desk = make_daemon("desk", RAPPD_SSH_CONFIG=str(pi.config), LLM_FAKE="1")
    entries = [
        {"name": "pi", "ssh_host": "pi"},
        {"name": "stick", "folder": str(tmp_path / "stick")},
        {"name": "shed", "ssh_host": f"{pi.address}:1"},
    ]
    desk.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (desk.home / "peers.json").write_text(json.dumps({"peers": entries}))
    desk.start()
    desk.post("/twins", {"name": "Rose"}, control=True)
    return desk


def without_shed(desk: RunningDaemon) -> None:
    path = desk.home / "peers.json"
    rows = [row for row in json.loads(path.read_text())["peers"] if row["name"] != "shed"]
    path.write_text(json.dumps({"peers": rows}))


def taken(page: Page) -> None:
    page.get_by_role("button", name="Take a snapshot").click()
    expect(page.locator(".nb-outcome")).to_contain_text("restorable, tried today")


def faultless(page: Page) -> None:
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("Promise.allSettled(document.getAnimations({subtree: true}).map(one => one.finished))")
        assert violations(page) == [], width
        for wrong in (SIDEWAYS, SMALL, NAMELESS):
            assert page.evaluate(wrong) == [], width


def test_picture_is_a_list_of_machines_links_twins_and_health(
    desk: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(desk)
    others = page.get_by_role("list", name="Other machines")
    expect(others.locator(".nb-other")).to_have_count(3)
    rows = {
        name: others.locator(".nb-other", has=page.get_by_text(name, exact=True))
        for name in ("pi", "stick", "shed")
    }
    expect(rows["pi"]).to_contain_text("linked by SSH")
    expect(rows["pi"]).to_contain_text("✓ ready for backup")
    expect(rows["pi"]).to_contain_text("gardener")
    expect(rows["stick"]).to_contain_text("linked by folder")
    expect(rows["shed"]).to_contain_text("✗ ")
    expect(rows["shed"]).to_contain_text("takes no SSH connections")
    own = page.get_by_role("region", name="This machine")
    own.get_by_role("link", name="Rose").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_contain_text("Rose")
    assert "#/twins/twin/" in page.url


def test_snapshot_is_taken_compared_planned_and_restored_as_a_simulation(
    desk: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(desk)
    taken(page)
    outcome = page.locator(".nb-outcome")
    expect(outcome).to_contain_text("3 of 4 machines, 5 twins")
    expect(outcome).to_contain_text("✗ shed: ")
    row = page.locator(".nb-snapshot")
    expect(row).to_contain_text("! restorable, tried today")
    without_shed(desk)
    taken(page)
    expect(row).to_have_count(2)
    expect(row.first).to_contain_text("✓ restorable, tried today")
    page.get_by_text("Compare two").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".nb-compare .diff-sum")).to_have_text(re.compile("^No file differs; "))

    page.get_by_role("button", name="Restore neighborhood").first.click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("Nothing would be written")
    dialog.get_by_label("As a simulation").check()
    expect(dialog.get_by_role("button", name="Hatch 4 parts")).to_be_visible()
    dialog.get_by_role("button", name="Hatch 4 parts").click()
    expect(dialog).to_contain_text("✓ Restored.")
    assert len(list((desk.home / "simulated" / "pi" / "twins").glob("*/soul.md"))) == 2


def test_twin_that_is_too_large_is_not_called_backed_up(
    desk: RunningDaemon, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    without_shed(desk)
    map_file = tmp_path / "stick" / "twins" / homes.OTHER / "map.bin"
    with map_file.open("wb") as file:
        file.truncate(60_000_000)
    page = open_page(desk)
    taken(page)
    expect(page.locator(".nb-outcome")).to_contain_text("left out, too large: stick/cook (60 MB)")
    expect(page.locator(".nb-snapshot")).to_contain_text("without stick/cook")
    other = page.locator(".nb-other", has=page.get_by_text("stick", exact=True))
    expect(other).to_contain_text("! only partly backed up")
    expect(page.locator(".nb-glance")).not_to_contain_text("All is backed up")


def test_second_tab_follows_what_another_one_or_a_command_began(
    desk: RunningDaemon, open_page: Callable[..., Page], pi: SshServer
) -> None:
    without_shed(desk)
    (pi.home / "twins" / homes.TWIN / "seeds.bin").write_bytes(random.Random(1).randbytes(BIG))
    first, second = open_page(desk), open_page(desk)
    expect(second.get_by_text("There is no snapshot yet.")).to_be_visible()
    first.get_by_role("button", name="Take a snapshot").click()
    expect(second.get_by_role("group", name="Progress")).to_contain_text("pi")
    expect(second.get_by_role("button", name="Take a snapshot")).to_be_disabled()
    expect(second.locator(".nb-snapshot")).to_contain_text("restorable, tried today")
    assert desk.cli("neighborhood", "snapshot").returncode == 0
    expect(second.locator(".nb-snapshot")).to_have_count(2)
    expect(second.get_by_role("button", name="Take a snapshot")).to_be_enabled()


def test_schedule_and_its_failure_stay_on_the_page(
    desk: RunningDaemon, open_page: Callable[..., Page]
) -> None:
    page = open_page(desk)
    assert desk.cli("neighborhood", "schedule", "every", "1", "minute", "--keep", "2").returncode == 0
    snapshots = page.locator(
        "section.group",
        has=page.get_by_role("heading", name="Backups of all machines (snapshots)", exact=True),
    )
    expect(snapshots).to_contain_text("Taken by itself: every 1 minute, next today")
    desk.stop()  # and a minute passes
    with closing(sqlite3.connect(desk.home / "rappd.db")) as db, db:
        db.execute("UPDATE timers SET next = next - 60")
    desk.start()
    page.reload()
    expect(snapshots).to_contain_text("✗ Fails since today")
    expect(snapshots).to_contain_text("shed")
    desk.post("/notices/dismiss", {"all": True}, control=True)
    page.reload()
    expect(snapshots).to_contain_text("✗ Fails since today")


def test_restore_of_a_plan_that_changed_is_planned_anew(
    desk: RunningDaemon, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    without_shed(desk)
    page = open_page(desk)
    taken(page)
    cook = tmp_path / "stick" / "twins" / homes.OTHER
    shutil.rmtree(cook)
    page.get_by_role("button", name="Restore neighborhood").click()
    dialog = page.locator("dialog")
    expect(dialog.locator(".nb-peer", has_text="stick")).to_contain_text("cook new")
    hatch = dialog.get_by_role("button", name="Hatch 1 part")
    expect(hatch).to_be_visible()
    shutil.rmtree(tmp_path / "stick" / "twins" / homes.TWIN)
    hatch.click()
    expect(dialog).to_contain_text("Something changed since you saw the plan; nothing was written.")
    assert not cook.exists()
    dialog.get_by_role("button", name="Hatch 2 parts").click()
    expect(dialog).to_contain_text("✓ Restored.")
    assert (cook / "soul.md").exists()


def test_snapshot_shows_each_machine_and_is_cancelled(
    desk: RunningDaemon, open_page: Callable[..., Page], pi: SshServer
) -> None:
    (pi.home / "twins" / homes.TWIN / "seeds.bin").write_bytes(random.Random(1).randbytes(BIG))
    page = open_page(desk)
    pi.pause()  # else it may have ended before anybody looks
    try:
        page.get_by_role("button", name="Take a snapshot").click()
        work = page.get_by_role("group", name="Progress")
        expect(work.locator("li", has_text="shed")).to_be_visible()
        pi.pause(on=False)
        expect(work.locator("li", has_text="pi").locator("progress")).to_be_visible()
        pi.pause()
        work.get_by_role("button", name="Cancel").click()
        expect(page.locator(".nb-outcome")).to_contain_text("Cancelled.")
    finally:
        pi.pause(on=False)
    assert desk.get("/neighborhood", control=True).json()["snapshots"] == []
    assert not list((desk.home / "eggs" / "neighborhood").glob("*.egg"))
    taken(page)
    expect(page.locator(".nb-outcome")).to_contain_text("3 of 4 machines")


def test_axe_finds_nothing_and_everything_fits(desk: RunningDaemon, open_page: Callable[..., Page]) -> None:
    page = open_page(desk, viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.evaluate(axe_core())
    expect(page.locator(".nb-other .bad")).to_have_count(1)
    faultless(page)
    keep_picture(page, "neighborhood")
    taken(page)
    taken(page)
    page.get_by_text("Compare two").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".nb-compare .diff-sum")).to_be_visible()
    faultless(page)
    keep_picture(page, "neighborhood-compared")
    page.get_by_role("button", name="Restore neighborhood").first.click()
    dialog = page.locator("dialog")
    dialog.get_by_label("As a simulation").check()
    dialog.get_by_text("What is there stays").click()
    expect(dialog.get_by_role("button", name="Hatch 4 parts")).to_be_visible()
    faultless(page)
    keep_picture(page, "neighborhood-plan")
