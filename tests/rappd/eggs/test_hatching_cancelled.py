"""Cancelling: Ctrl-C and the page's button throw the staging away, until files are moved into place."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import REPO, RunningDaemon
from fixtures.terminal import Terminal
from playwright.sync_api import Page, expect

from envelopes.envelope import DONE, HELP, Envelope, new_id
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import ConflictError
from rappd.features.eggs.operations import EggOperations
from twins.work_progress import WorkCancelledError

CANCELLED = "Cancelled; nothing was written."
BIG = 24 << 20
# Holds hatchings where a test wants: each place is reported by a file, and left when another file is gone.
_SITE = """
import os, time
from pathlib import Path
import twins.eggs.writers.pack as packing
import twins.installer.hatching as hatching
from twins.work_progress import Cancellation

places = Path(os.environ["HATCH_PLACES"])

def hold(name):
    (places / f"{name}.reached").touch()
    while (places / f"{name}.hold").exists():
        time.sleep(0.01)

def held(module, function, name, *, after):
    real = getattr(module, function)
    def wrapped(*given, **named):
        if not after:
            hold(name)
        try:
            return real(*given, **named)
        finally:
            if after:
                hold(name)
    setattr(module, function, wrapped)

held(Cancellation, "cancel", "asked", after=True)
held(hatching, "stage_parts", "staged", after=True)
held(hatching, "apply_journal", "moving", after=False)
held(packing, "whole_workspace", "gathered", after=True)
"""


class Places:
    """The places where a hatching can be held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environment = {
            "HATCH_PLACES": str(folder),
            "PYTHONPATH": f"{folder}:{REPO}",
            "RAPPD_AGENTS_SANDBOX": "off",
        }
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_SITE)

    def hold(self, name: str) -> None:
        self.forget(name)
        (self._folder / f"{name}.hold").touch()

    def wait_for(self, name: str) -> None:
        until = time.monotonic() + 100
        while not (self._folder / f"{name}.reached").exists():
            assert time.monotonic() < until, name
            time.sleep(0.01)

    def forget(self, name: str) -> None:
        (self._folder / f"{name}.reached").unlink(missing_ok=True)

    def let_go(self, name: str) -> None:
        (self._folder / f"{name}.hold").unlink(missing_ok=True)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "places")


@pytest.fixture
def egg(make_daemon: Callable[..., RunningDaemon], tmp_path: Path) -> Path:
    """An egg with much to carry, from another home."""
    kitchen = make_daemon("kitchen", LLM_FAKE="1", RAPPD_NAME="kitchen")
    made = json.loads(kitchen.cli("twins", "new", "Rose", "--kind", "place", "--json").stdout)["twin"]
    data = kitchen.home / "twins" / made["key"] / ".brainstem_data"
    data.mkdir(exist_ok=True)
    (data / "seeds.bin").write_bytes(random.Random(1).randbytes(BIG))
    packed = tmp_path / "rose.egg"
    assert kitchen.cli("egg", "pack", "Rose", "-o", packed).returncode == 0
    return packed


def home_of(make_daemon: Callable[..., RunningDaemon], places: Places) -> RunningDaemon:
    return make_daemon("desk", LLM_FAKE="1", RAPPD_NAME="desk", **places.environment)


def nothing_hatched(home: RunningDaemon) -> bool:
    twins = home.home / "twins"
    found = [path.name for path in twins.iterdir() if path.name[:1] != "."] if twins.exists() else []
    staged = list(home.home.rglob(".hatch-*"))
    receipts = json.loads(home.cli("egg", "hatchings", "--json").stdout)["hatchings"]
    return not found and not staged and not receipts


@pytest.mark.parametrize("running", [False, True])
def test_interrupt_cancels_a_hatching(
    make_daemon: Callable[..., RunningDaemon], places: Places, egg: Path, running: bool
) -> None:
    desk = home_of(make_daemon, places)
    if running:
        desk.start()
    places.hold("staged")
    terminal = Terminal(desk, "egg", "hatch", str(egg))
    places.wait_for("staged")
    terminal.send(signal.SIGINT)
    places.wait_for("asked")
    places.let_go("staged")
    ended = terminal.to_end()
    assert (ended.code, ended.lines[-1]) == (130, CANCELLED)
    assert nothing_hatched(desk)
    again = desk.cli("egg", "hatch", str(egg))
    assert again.returncode == 0, again.stderr
    assert "Rose hatched" in again.stdout


@pytest.mark.parametrize("running", [False, True])
def test_interrupt_too_late_names_the_rollback(
    make_daemon: Callable[..., RunningDaemon], places: Places, egg: Path, running: bool
) -> None:
    desk = home_of(make_daemon, places)
    if running:
        desk.start()
    places.hold("moving")
    terminal = Terminal(desk, "egg", "hatch", str(egg))
    places.wait_for("moving")
    terminal.send(signal.SIGINT)
    places.wait_for("asked")
    places.let_go("moving")
    ended = terminal.to_end()
    assert "Too late to cancel: its files are being moved into place" in ended.text
    assert CANCELLED not in ended.text
    desk.wait_for(lambda: not nothing_hatched(desk) and hatchings(desk), what="the hatching to end")
    [row] = hatchings(desk)
    assert f"rappd egg rollback {row['id']}" in ended.text
    assert ended.code == 130
    assert desk.cli("egg", "rollback", row["id"]).returncode == 0


def test_interrupt_cancels_a_hatching_of_text_with_progress_shown(
    make_daemon: Callable[..., RunningDaemon], places: Places, tmp_path: Path
) -> None:
    from tests.twins.eggs.test_strings import clone, entry

    desk = home_of(make_daemon, places)
    (tmp_path / "registry").mkdir()
    clone(tmp_path / "registry", entry("@kody/weather", 5))
    places.hold("staged")
    terminal = Terminal(desk, "egg", "hatch-text", "AAAAAAAAAAU", "--registry", str(tmp_path / "registry"))
    places.wait_for("staged")
    terminal.read_until(lambda seen: "Hatching agents: unpacking 100 %" in seen.words)
    terminal.send(signal.SIGINT)
    places.wait_for("asked")
    places.let_go("staged")
    ended = terminal.to_end()
    assert (ended.code, ended.lines[-1]) == (130, CANCELLED)
    assert not list(desk.agents.glob("*weather*")) and not hatchings(desk)


def hatchings(home: RunningDaemon) -> list[Any]:
    found: list[Any] = json.loads(home.cli("egg", "hatchings", "--json").stdout)["hatchings"]
    return found


def test_cancel_route_refuses_unknown_work(fake_daemon: RunningDaemon) -> None:
    refused = fake_daemon.post("/eggs/cancel", {"work": "nothing"}, control=True)
    assert (refused.status, refused.json()["code"]) == (404, "not_found")
    assert fake_daemon.post("/eggs/cancel", {"work": "nothing"}).status in (401, 403), "the operator alone"


@pytest.mark.parametrize("ends", ["done", "cancelled"])
async def test_cancelling_tells_what_was_done_all_the_same(ends: str) -> None:
    async def work(turn: Turn) -> Envelope:
        if ends == "cancelled":
            raise WorkCancelledError
        return turn.envelope.reply(DONE, {})

    asked = Envelope(new_id(), "owner", "owner", HELP, {})
    turn = Turn(asked, Caller("control", operator=True), work, stop=lambda: None).begin()
    eggs = cast(EggOperations, SimpleNamespace(_dispatcher=SimpleNamespace(operation=lambda id: turn)))
    if ends == "cancelled":
        assert await EggOperations.cancel(eggs, "x") is True
        return
    with pytest.raises(ConflictError, match="it is done"):
        await EggOperations.cancel(eggs, "x")


@pytest.mark.browser
@pytest.mark.timeout(900)
@needs_chromium
def test_page_cancels_hatching_and_packing(
    make_daemon: Callable[..., RunningDaemon], places: Places, egg: Path
) -> None:
    desk = home_of(make_daemon, places).start()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(desk.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Twins").click()
        expect(page.locator("main h1")).to_have_text("Twins")  # the chat takes files, too
        page.locator("#main input[type=file]").first.set_input_files(egg)

        begin(page, places, "staged")
        page.locator("dialog .progress").get_by_role("button", name="Cancel").click()
        places.wait_for("asked")
        places.let_go("staged")
        expect(page.locator("dialog")).to_contain_text(CANCELLED)
        assert nothing_hatched(desk)

        begin(page, places, "moving")
        page.locator("dialog .progress").get_by_role("button", name="Cancel").click()
        expect(page.locator("dialog")).to_contain_text("Too late to cancel")
        expect(page.locator("dialog")).to_contain_text("rappd egg rollback")
        places.let_go("moving")
        expect(page.locator(".toast")).to_contain_text("Rose hatched")

        places.forget("asked")
        places.hold("gathered")
        page.get_by_role("button", name="Pack Rose").click()
        places.wait_for("gathered")
        page.locator(".egg-line").get_by_role("button", name="Cancel").click()
        places.wait_for("asked")
        places.let_go("gathered")
        expect(page.locator(".egg-line .progress")).to_have_count(0)
        assert not list((desk.home / "eggs").rglob("*-twin.egg"))


def begin(page: Page, places: Places, name: str) -> None:
    """Hatches, up to that place."""
    places.hold(name)
    page.get_by_role("button", name="Hatch ").click()
    places.wait_for(name)


def phases(told: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The per cents of each phase, in the order in which they were told."""
    found: dict[str, list[float]] = {}
    for one in told:
        if one["type"] == "progress":
            found.setdefault(one["phase"], []).append(100 * one["done"] / max(1, one["whole"]))
    return found


def test_each_phase_grows_to_hundred_per_cent(
    make_daemon: Callable[..., RunningDaemon], egg: Path, tmp_path: Path
) -> None:
    desk = make_daemon("desk", LLM_FAKE="1", RAPPD_NAME="desk").start()

    def events(path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        answer = desk.request("POST", path, body, control=True, headers={"Accept": "text/event-stream"})
        lines = answer.body.decode().split("\n\n")
        return [json.loads(line.removeprefix("data: ")) for line in lines if line]

    hatched = phases(events("/eggs/hatch", {"path": str(egg)}))
    assert list(hatched) == ["check", "stage", "sync", "move"]
    key = desk.request("GET", "/twins", control=True).json()["twins"][0]["key"]
    (desk.home / "twins" / key / ".brainstem_data" / "seeds.bin").unlink()
    again = phases(events("/eggs/hatch", {"path": str(egg)}))
    assert list(again) == ["check", "stage", "save", "sync", "move"]
    packed = phases(events("/eggs/pack", {"twin": key}))
    assert list(packed) == ["pack"]
    rapp1 = phases(events("/eggs/pack", {"twin": key, "form": "rapp1-organism"}))
    assert list(rapp1) == ["look", "pack"]
    for found in (hatched, again, packed, rapp1):
        for phase, steps in found.items():
            assert steps == sorted(steps), (phase, steps)
            assert steps[-1] == 100, (phase, steps)
    body = egg.read_bytes()
    answer = desk.request(
        "POST", "/eggs?name=rose.egg", body, control=True, headers={"Accept": "text/event-stream"}
    )
    lines = [json.loads(line.removeprefix("data: ")) for line in answer.body.decode().split("\n\n") if line]
    assert phases(lines)["check"][-1] == 100
    assert lines[-1]["type"] == "done"
    assert lines[-1]["plan"]["egg"]["name"] == "Rose"


def test_merge_and_pack_tell_their_phases(egg: Path, tmp_path: Path) -> None:
    from envelopes.identity.keys import IdentityKey
    from rappd.features.eggs.merging import merge_eggs
    from twins.eggs.writers.formats import EggMaker
    from twins.trust.signers import Signers

    told: list[dict[str, Any]] = []

    def progress(phase: str, done: int, whole: int) -> None:
        told.append({"type": "progress", "phase": phase, "done": done, "whole": whole})

    merge_eggs(
        egg, egg, egg, tmp_path / "both.egg",
        key=IdentityKey.generate(), signers=Signers(tmp_path / "signers.json"),
        maker=EggMaker(version="1", host="desk"), progress=progress,
    )  # fmt: skip
    found = phases(told)
    assert list(found) == ["check base", "check ours", "check theirs", "merge", "pack"]
    for phase, steps in found.items():
        assert steps == sorted(steps), (phase, steps)
        assert steps[-1] == 100, (phase, steps)
        assert phase in ("merge", "pack") or len(steps) > 1
