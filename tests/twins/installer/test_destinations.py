"""The brainstem of this home, whole or grafted onto; and eggs that are kept as data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.twins.installer.a_home import (
    GARDENER,
    KEY,
    LATER,
    NOW,
    AHome,
    egg,
    lies,
    part,
)
from twins.eggs.parsed_egg import Destination, ParsedEgg, Role
from twins.errors import BadEggError, HostileEggError, TwinConflictError
from twins.installer.planning import Action
from twins.workspace.bonds import events
from twins.workspace.workspace import DEFAULT_SOUL, Workspace

RAPP = {
    "agents/kanban_agent.py": b"x = 1\n",
    "services/kanban_service.py": b"y = 1\n",
    "rapps/kanban/ui/index.html": b"<p>",
    ".brainstem_data/kanban/rappid.json": b"{}",
}
WHOLE = {
    "soul.md": b"You are a brainstem.\n",
    "agents/a_agent.py": b"x = 1\n",
    "rappid.json": GARDENER["rappid.json"],
}


class TestTheBrainstem:
    def _rapp(self, *more: Any, **changes: Any) -> ParsedEgg:
        return egg(RAPP, *more, destination=Destination.HOST, name="kanban", **changes)

    def test_a_rapplication_joins_it(self, home: AHome) -> None:
        home.start_brainstem()
        before = lies(home.brainstem)
        home.importer().hatch(self._rapp(), now=NOW)
        there = lies(home.brainstem)
        assert {path: there[path] for path in RAPP} == RAPP
        assert {path: there[path] for path in before} == before
        assert "HATCH_RECEIPT.json" not in there
        assert [event["kind"] for event in events(Workspace.at(home.brainstem))] == ["graft"]
        assert {hold.path for hold in home.held.listing()} == {
            "brainstem/agents/kanban_agent.py",
            "brainstem/services/kanban_service.py",
        }

    def test_it_is_known_as_an_installed_one_is(self, home: AHome) -> None:
        home.start_brainstem()
        listed = {"rapps/kanban/manifest.json": b'{"id": "kanban"}'}
        receipt = home.importer().hatch(self._rapp(part(*listed.popitem(), Role.PAGE)), now=NOW).receipt
        placed = home.brainstem / "rapps/kanban/placed.json"
        assert json.loads(placed.read_bytes()) == [
            "agents/kanban_agent.py",
            "rapps/kanban/manifest.json",
            "rapps/kanban/ui/index.html",
            "services/kanban_service.py",
        ], "what it remembers is its owner's"
        more = part("agents/kanban_more_agent.py", b"z = 1\n")
        again = self._rapp(part("rapps/kanban/manifest.json", b'{"id": "kanban"}', Role.PAGE), more)
        newer = home.importer().hatch(again, now=LATER).receipt
        assert "agents/kanban_more_agent.py" in json.loads(placed.read_bytes())
        assert "agents/kanban_agent.py" in json.loads(placed.read_bytes())
        for one in (newer, receipt):
            assert one is not None
            home.importer().rollback(one.id)
        assert not placed.exists()

    def test_it_stays_who_it_is(self, home: AHome) -> None:
        home.start_brainstem()
        done = home.importer().hatch(self._rapp(part("rappid.json", b"{}"), part("bonds.json", b"{}")))
        assert [row.target for row in done.plan.of(Action.REFUSE)] == ["rappid.json", "bonds.json"]
        assert not (home.brainstem / "rappid.json").exists()

    def test_moved_folders_are_found_on_another_disk(self, home: AHome, tmp_path: Path) -> None:
        workspace = home.start_brainstem()
        for number, base in enumerate([tmp_path, Path("/dev/shm")]):
            if not base.is_dir():
                continue
            moved = base / f"my-agents-{os.getpid()}-{number}"
            moved.mkdir()
            try:
                host = Workspace.at(workspace.root, agents=str(moved))
                importer = home.importer(host=host)
                done = importer.hatch(self._rapp(), now=NOW)
                assert (moved / "kanban_agent.py").read_bytes() == b"x = 1\n"
                assert not (workspace.root / "agents/kanban_agent.py").exists()
                assert home.held.is_held(moved / "kanban_agent.py", done.plan.quarantined[0].new)
                newer = egg({"agents/kanban_agent.py": b"newer\n"}, destination=Destination.HOST)
                second = importer.hatch(newer, overwrite=["agents"], now=LATER)
                assert (moved / "kanban_agent.py").read_bytes() == b"newer\n"
                assert second.receipt is not None
                assert done.receipt is not None
                importer.rollback(second.receipt.id)
                assert (moved / "kanban_agent.py").read_bytes() == b"x = 1\n"
                importer.rollback(done.receipt.id)
                assert list(moved.iterdir()) == []
            finally:
                for path in moved.iterdir():
                    path.unlink()
                moved.rmdir()

    def _whole(self) -> ParsedEgg:
        return egg(WHOLE, destination=Destination.BRAINSTEM, name="desk")

    @pytest.mark.parametrize("started", [False, True])
    def test_a_whole_one_only_into_an_empty_home(self, home: AHome, started: bool) -> None:
        if started:
            home.start_brainstem()
        home.importer().hatch(self._whole(), now=NOW)
        there = lies(home.brainstem)
        assert {path: there[path] for path in WHOLE} == WHOLE
        assert json.loads(there["HATCH_RECEIPT.json"])["name"] == "desk"

    @pytest.mark.parametrize("path", ["rappid.json", "agents/mine_agent.py", "soul.md", ".brainstem_data/x"])
    def test_a_home_that_is_lived_in_is_not_empty(self, home: AHome, path: str) -> None:
        home.start_brainstem()
        home.live_in(home.brainstem, {path: b"mine"})
        before = lies(home.brainstem)
        with pytest.raises(TwinConflictError, match="lives in this home already"):
            home.importer().hatch(self._whole())
        assert lies(home.brainstem) == before

    def test_the_first_soul_is_nobodys(self, home: AHome) -> None:
        home.start_brainstem()
        assert (home.brainstem / "soul.md").read_text() == DEFAULT_SOUL
        plan = home.importer().plan(self._whole())
        assert [row.target for row in plan.of(Action.REPLACE)] == ["soul.md"]


class TestData:
    def test_it_is_unpacked_and_nothing_of_it_runs(self, home: AHome) -> None:
        files = {
            "children/twin/x/agents/a_agent.py": b"x = 1\n",
            "agents/b_agent.py": b"y = 1\n",
            ".deps/z.py": b"z",
        }
        home.importer().hatch(egg(files, destination=Destination.INERT), now=NOW)
        there = lies(home.root / "swarms" / KEY)
        assert {path: there[path] for path in files} == files
        assert "HATCH_RECEIPT.json" in there
        assert "bonds.json" not in there
        assert home.held.listing() == []

    @pytest.mark.parametrize("key", ["../twins", ".hidden", "a/b", "", ".."])
    def test_its_folder_cannot_lead_elsewhere(self, home: AHome, key: str) -> None:
        with pytest.raises(HostileEggError):
            home.importer().hatch(egg({"x": b"x"}, destination=Destination.INERT, key=key, rappid=""))
        assert not (home.root / "twins").exists()

    def test_a_kind_that_is_not_kept_as_data_is_refused(self, home: AHome) -> None:
        wrong = egg({"x": b"x"}, destination=Destination.INERT)
        wrong.family = replace(wrong.family, kind="key")
        with pytest.raises(BadEggError, match="no kind that is kept as data"):
            home.importer().hatch(wrong)
        assert not (home.root / "keys").exists()
