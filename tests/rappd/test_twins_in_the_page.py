"""Twins and eggs as an owner meets them: a real browser on a real daemon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Page, Route, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(1200),
    needs_chromium,
]


DRAG_OUT = """key => {
    const carried = new DataTransfer();
    const event = new DragEvent("dragstart", {dataTransfer: carried, bubbles: true, cancelable: true});
    document.querySelector(`[data-key="${key}"]`).dispatchEvent(event);
    return carried.getData("DownloadURL");
}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose console must stay clean, the content policy included."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    page.close()
    assert [text for text in said if "Failed to load" not in text] == []


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    return make_daemon(LLM_FAKE="1").start()


def _open(page: Page, daemon: RunningDaemon) -> None:
    page.goto(daemon.post("/operator/key", control=True).json()["url"])
    page.get_by_role("link", name="Twins").click()
    expect(page.locator("main h1")).to_have_text("Twins")  # the chat takes files, too


def _new_twin(page: Page, name: str, kind: str = "personal") -> None:
    page.get_by_role("button", name="New twin").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Kind").select_option(kind)
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".twin h3", has_text=name)).to_be_visible()


def _menu(page: Page, name: str, choice: str) -> None:
    page.get_by_role("button", name=f"More for {name}").click()
    page.get_by_role("menuitem", name=choice).click()


def _hatch(page: Page, egg: Path) -> str:
    """The number of files by the plan, as "3 files"."""
    page.locator("#main input[type=file]").first.set_input_files(egg)
    button = page.get_by_role("button", name="Hatch")
    files = button.inner_text().removeprefix("Hatch ")
    button.click()
    expect(page.locator("dialog")).to_have_count(0)
    return files


def test_twin_created_packed_deleted_hatches_elsewhere(
    make_daemon: Callable[..., RunningDaemon], daemon: RunningDaemon, page: Page, tmp_path: Path
) -> None:
    _open(page, daemon)
    _new_twin(page, "Rose")
    expect(page.locator("nav a[href='#/twins'].place")).to_contain_text("1 twin")
    page.get_by_role("link", name="Chat with Rose").click()
    page.get_by_placeholder("Ask Rose…").fill("hello")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_text("fake-llm: hello")
    page.get_by_role("link", name="Twins").click()
    expect(page.locator(".twin")).to_contain_text("s ago")
    page.get_by_role("button", name="Pack Rose").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save Rose.egg").click()
    egg = tmp_path / "my rose.egg"
    download.value.save_as(egg)
    key = str(page.locator(".twin").get_attribute("data-key"))
    link = str(page.evaluate(DRAG_OUT, key)).partition("Rose.egg:")[2]
    assert daemon.get(urlsplit(link).path).body == egg.read_bytes(), (
        "what the browser asks for without a proof"
    )
    assert daemon.get(urlsplit(link).path.replace("/out/", "/out/9")).status == 404

    _menu(page, "Rose", "Archive")
    page.locator("nav >> text=Archived").click()
    page.get_by_role("button", name="Delete Rose").click()
    expect(page.locator("dialog .losses")).to_contain_text("memories")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".line-row")).to_contain_text("Rose")
    assert not (daemon.home / "twins" / key).exists()

    page.locator("nav >> text=Here").click()
    expect(page.get_by_text("No twin lives here yet.")).to_be_visible()
    page.locator("#main input[type=file]").first.set_input_files(egg)
    expect(page.locator("dialog .problem")).to_contain_text("Rose was purged here and stays gone")

    daemon.stop()
    elsewhere = make_daemon("elsewhere", LLM_FAKE="1").start()
    _open(page, elsewhere)
    files = _hatch(page, egg)
    expect(page.locator(".toast")).to_have_text(re.compile(f"^Rose hatched: {files}\\."))
    expect(page.locator(f"[data-key='{key}']")).to_contain_text("talked")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("No twin lives here yet.")).to_be_visible()
    expect(page.locator(".toast")).to_contain_text("Rose is as it was before.")


def test_unknown_signers_egg_waits_and_second_fills_gaps(
    make_daemon: Callable[..., RunningDaemon], daemon: RunningDaemon, page: Page, tmp_path: Path
) -> None:
    stranger = make_daemon("stranger")  # not started: its command line packs alone
    egg = tmp_path / "gardener.egg"
    assert stranger.cli("twins", "new", "Gardener", "--kind", "project").returncode == 0
    (workspace,) = [one for one in (stranger.home / "twins").iterdir() if not one.name.startswith(".")]
    (workspace / "agents").mkdir(exist_ok=True)
    (workspace / "agents" / "hose_agent.py").write_text(
        agent_source("Hose", 'return "on"', "Opens the hose.")
    )
    assert stranger.cli("egg", "pack", "Gardener", "-o", str(egg)).returncode == 0

    _open(page, daemon)
    page.locator("#main input[type=file]").first.set_input_files(egg)
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("not paired. Its code will not run until you approve it.")
    expect(dialog.locator(".quarantine .plan-count")).to_have_text("1")
    page.keyboard.press("Escape")
    assert not (daemon.home / "twins" / workspace.name).exists()

    files = _hatch(page, egg)
    expect(page.locator(".toast")).to_contain_text(f"Gardener hatched: {files}. 1 code file waits")
    page.locator(".toast").get_by_role("button", name="Read").click()
    expect(page.locator(".quarantined")).to_contain_text("hose_agent.py")
    page.get_by_role("button", name="Read and approve").click()
    expect(page.locator("dialog .listing")).to_contain_text('return "on"')
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".agent h3")).to_have_text("Hose")

    soul = daemon.home / "twins" / workspace.name / "soul.md"
    soul.write_text("You are mine.")
    page.locator("nav >> text=Eggs").click()
    page.get_by_role("button", name="Undo the hatching of Gardener").click()
    expect(page.locator("dialog")).to_contain_text("soul.md changed since Gardener hatched")
    page.get_by_role("button", name="Leave it hatched").click()
    page.locator("nav >> text=Here").click()
    expect(page.locator("#main nav [aria-current=page]")).to_have_text("Here")
    page.locator("#main input[type=file]").first.set_input_files(egg)
    dialog.get_by_label("soul").check()
    expect(dialog.locator(".replace .plan-count")).to_have_text("1")
    daemon.cli("twins", "rename", "Gardener", "Mine")  # whatever happens between the look and the yes
    soul.write_text("You are changed meanwhile.")
    page.get_by_role("button", name="Hatch 1 file").click()
    expect(dialog).to_contain_text("nothing was written")
    assert soul.read_text() == "You are changed meanwhile."
    page.get_by_role("button", name="Hatch 1 file").click()
    expect(page.locator(".toast", has_text="hatched: 1 file")).to_be_visible()
    assert "Gardener" in soul.read_text()


def test_egg_opened_again_at_once_hatches(
    make_daemon: Callable[..., RunningDaemon], daemon: RunningDaemon, page: Page, tmp_path: Path
) -> None:
    stranger, egg = make_daemon("stranger"), tmp_path / "gardener.egg"
    assert stranger.cli("twins", "new", "Gardener").returncode == 0
    assert stranger.cli("egg", "pack", "Gardener", "-o", str(egg)).returncode == 0
    held: list[Route] = []
    _open(page, daemon)
    page.route(
        "**/eggs/*",
        lambda route: held.append(route) if route.request.method == "DELETE" else route.continue_(),
    )
    chosen = page.locator("#main input[type=file]").first
    with page.expect_request(lambda asked: asked.method == "DELETE"):
        chosen.set_input_files(egg)
        expect(page.get_by_role("button", name="Hatch")).to_be_visible()
        page.keyboard.press("Escape")
    chosen.set_input_files(egg)
    page.wait_for_timeout(500)
    with page.expect_response(lambda answer: answer.request.method == "DELETE"):
        held[0].continue_()
    page.get_by_role("button", name="Hatch").click()
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator(".twin h3", has_text="Gardener")).to_be_visible()


def test_a_damaged_egg_is_named_as_its_owner_names_it(
    daemon: RunningDaemon, page: Page, tmp_path: Path
) -> None:
    _open(page, daemon)
    _new_twin(page, "Rose")
    page.get_by_role("button", name="Pack Rose").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save Rose.egg").click()
    whole = Path(download.value.path()).read_bytes()
    damaged = tmp_path / "Grandma’s rose.egg"
    damaged.write_bytes(whole[: len(whole) // 2])
    page.locator("#main input[type=file]").first.set_input_files(damaged)
    expect(page.locator("dialog .problem")).to_contain_text("Grandma’s rose.egg")
    expect(page.locator("dialog .problem")).to_contain_text("nothing was written")
    page.get_by_role("button", name="Close", exact=True).last.click()
    expect(page.locator("dialog")).to_have_count(0)


def test_lineage_eggs_and_a_buddy(daemon: RunningDaemon, page: Page) -> None:
    _open(page, daemon)
    _new_twin(page, "Pip", "buddy")
    page.get_by_role("button", name="Feed Pip").click()
    expect(page.locator(".buddy")).to_contain_text("The egg hatched.")
    expect(page.locator(".creature")).to_have_attribute("aria-label", "a hatchling, happy")
    _menu(page, "Pip", "Fork")
    page.get_by_role("button", name="Fork", exact=True).click()
    expect(page.locator(".twin")).to_have_count(2)
    page.locator("nav >> text=Lineage").click()
    expect(page.locator(".kin")).to_have_count(2)
    expect(page.locator(".kin").last).to_have_attribute(
        "aria-label", "Pip (fork): fork of Pip, buddy, born today"
    )
    page.locator("nav >> text=Eggs").click()
    page.get_by_role("group", name="Before").get_by_role("combobox").select_option("Pip")
    page.get_by_role("group", name="After").get_by_role("combobox").select_option("Pip (fork)")
    expect(page.locator(".facts")).to_contain_text("Pip (fork)")
    page.locator(".file-diff summary", has_text="rappid.json").click()
    expect(page.locator(".sides .after.changed").first).to_be_visible()


def test_packing_secret_needs_each_one_allowed(daemon: RunningDaemon, page: Page) -> None:
    _open(page, daemon)
    _new_twin(page, "Rose")
    key = str(page.locator(".twin").get_attribute("data-key"))
    agents = daemon.home / "twins" / key / "agents"
    for name in ("mail", "post"):
        (agents / f"{name}_agent.py").write_text(
            f'{agent_source(name.title())}\nPASSWORD = "hunter2-{name}-longer-9X"\n'
        )
    page.get_by_role("button", name="Pack Rose").click()
    stopped = page.locator(".egg-line [role=alert]")
    expect(stopped).to_contain_text("2 likely secrets would travel.")
    expect(stopped.locator("li")).to_have_count(2)
    expect(stopped.locator("li").first).to_contain_text("mail_agent.py line ")
    stopped.get_by_role("button", name="Pack anyway: mail_agent.py").click()
    expect(stopped).to_contain_text("1 place to decide")
    assert not list((daemon.home / "eggs").rglob("Rose*.egg"))
    stopped.get_by_role("button", name="Pack anyway: post_agent.py").click()
    expect(page.get_by_role("button", name="Save Rose.egg")).to_be_visible()

    (agents / "post_agent.py").write_text(agent_source("Post") + '\nPASSWORD = "another-secret-7Y"\n')
    page.get_by_role("button", name="Put away").click()
    page.get_by_role("button", name="Pack Rose").click()
    expect(stopped.locator("li")).to_have_count(2)  # what was allowed once is asked again
    stopped.get_by_role("button", name="Leave it unpacked").click()
    expect(page.locator(".egg-line")).to_be_hidden()


def test_checkpoint_restores_changed_twin(daemon: RunningDaemon, page: Page) -> None:
    _open(page, daemon)
    _new_twin(page, "Rose")
    key = str(page.locator(".twin").get_attribute("data-key"))
    soul = daemon.home / "twins" / key / "soul.md"
    before = soul.read_text()
    page.get_by_role("link", name="Rose", exact=True).click()
    part = page.locator("section.group", has=page.get_by_role("heading", name="Checkpoints"))
    expect(part).to_contain_text("None yet.")
    part.get_by_role("button", name="Save a checkpoint").click()
    expect(part.locator("li")).to_have_count(1)
    expect(part.locator("li")).to_contain_text("today, ")

    soul.write_text("You are another.")
    part.get_by_role("button", name="Go back to today").click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("1 file as it was then: soul.md")
    dialog.get_by_role("button", name="Leave it").click()
    assert soul.read_text() == "You are another."
    part.get_by_role("button", name="Go back to today").click()
    dialog.get_by_role("button", name="Go back", exact=True).click()
    expect(page.locator(".toast", has_text="Rose is as it was")).to_be_visible()
    assert soul.read_text() == before
    expect(page.locator(".soul")).to_contain_text("You are Rose")
    expect(part.locator("li")).to_have_count(2)
    expect(part.locator("li").first).to_contain_text("before it went back to today, ")
