from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.twin_states import State, state_of
from twins.lifecycle.state_index import list_archived

pytestmark = pytest.mark.forks

KilledAt = Callable[[int, Callable[[], object]], bool]


def put_aside(home: Any, name: str, suffix: str = "") -> Any:
    """A twin as the published hatcher's rollback leaves it."""
    twin = home.mint(name)
    trash = home.places.twins / ".trash"
    trash.mkdir(exist_ok=True)
    twin.workspace.root.rename(trash / f"{twin.key}{suffix}")
    return twin


def test_trash_moves_to_the_archive_with_record(home: Any) -> None:
    plain, suffixed = put_aside(home, "Plain"), put_aside(home, "Suffixed", "-20260601-101500")
    before = home.content(home.places.twins / ".trash" / f"{suffixed.key}-20260601-101500")
    result = home.do("migrate", now=home.now)
    assert result["ok"] is True
    assert {one["hash"]: one["moved_to"] for one in result["archived"]} == {
        twin.key: str(home.places.twins / ".archive" / twin.key) for twin in (plain, suffixed)
    }
    place = home.places.archived(suffixed.key)
    assert home.content(place) == before
    record = json.loads((place / "archived.json").read_bytes())
    assert record["archived_by"] == "migration"
    assert record["archived_reason"] == "migrated from .trash convention"
    assert record["archived_at"] == "2026-11-21T09:40:00+00:00"
    assert record["last_known"]["alive_at_archive"] is False
    assert record["last_known"]["workspace_files"] == len(before)
    assert not (home.places.twins / ".trash").exists()
    home.do("unarchive", "Suffixed")
    assert state_of(home.places, suffixed.key) is State.ACTIVE


def test_last_of_same_rappid_is_archived_and_none_is_lost(home: Any) -> None:
    twin = put_aside(home, "Gardener", "-20260601-101500")
    trash = home.places.twins / ".trash"
    first = trash / f"{twin.key}-20260601-101500"
    for suffix in ("-20260701-000000", "-20250101-235959"):
        (trash / f"{twin.key}{suffix}").mkdir()
        (trash / f"{twin.key}{suffix}" / "rappid.json").write_bytes((first / "rappid.json").read_bytes())
        (trash / f"{twin.key}{suffix}" / "soul.md").write_text(suffix)
    result = home.do("migrate")
    assert result["ok"] is False
    assert (home.places.archived(twin.key) / "soul.md").read_text() == "-20260701-000000"
    assert {Path(one["folder"]).name for one in result["left"]} == {
        f"{twin.key}-20260601-101500",
        f"{twin.key}-20250101-235959",
    }
    assert all(Path(one["folder"]).is_dir() and "already" in one["why"] for one in result["left"])


def test_active_twin_is_not_archived_again(home: Any) -> None:
    twin = home.mint("Gardener")
    copy = home.places.twins / ".trash" / f"{twin.key}-20260601-101500"
    copy.mkdir(parents=True)
    (copy / "rappid.json").write_bytes((twin.workspace.root / "rappid.json").read_bytes())
    result = home.do("migrate")
    assert [one["folder"] for one in result["left"]] == [str(copy)]
    assert "active" in result["left"][0]["why"]
    assert state_of(home.places, twin.key) is State.ACTIVE
    assert copy.is_dir()


def test_what_is_no_twin_stays_and_is_told(home: Any) -> None:
    trash = home.places.twins / ".trash"
    (trash / "stub").mkdir(parents=True)
    (trash / "damaged").mkdir()
    (trash / "damaged" / "rappid.json").write_text("{")
    (trash / "note.txt").write_text("mine")
    result = home.do("migrate")
    assert {Path(one["folder"]).name for one in result["left"]} == {"stub", "damaged", "note.txt"}
    assert (trash / "note.txt").read_text() == "mine"
    assert list_archived(home.places) == []


def test_an_empty_trash_goes_and_none_is_no_trouble(home: Any) -> None:
    nothing = {"ok": True, "action": "migrate", "archived": [], "left": []}
    assert home.do("migrate") == nothing
    (home.places.twins / ".trash").mkdir(parents=True)
    assert home.do("migrate") == nothing
    assert not (home.places.twins / ".trash").exists()


def test_a_trash_that_is_a_link_is_left_alone(home: Any, tmp_path: Path) -> None:
    twin = put_aside(home, "Gardener")
    trash = home.places.twins / ".trash"
    trash.rename(tmp_path / "elsewhere")
    trash.symlink_to(tmp_path / "elsewhere")
    assert home.do("migrate")["archived"] == []
    assert (tmp_path / "elsewhere" / twin.key / "soul.md").exists()


def test_a_migration_killed_at_any_step_loses_nothing(homes: Callable[[], Any], killed_at: KilledAt) -> None:
    step, seen = 0, set()
    while True:
        home = homes()
        twin = put_aside(home, "Gardener", "-20260601-101500")
        aside = home.places.twins / ".trash" / f"{twin.key}-20260601-101500"
        before = home.content(aside)
        if not killed_at(step, lambda home=home: home.do("migrate")):  # type: ignore[misc]
            break
        moved = state_of(home.places, twin.key) is State.ARCHIVED
        seen.add(moved)
        assert aside.exists() is not moved
        assert home.content(home.places.archived(twin.key) if moved else aside) == before
        home.do("recover")
        assert home.leftovers() == []
        home.do("migrate")
        [entry] = list_archived(home.places)
        assert (entry["archived_by"], entry.get("note")) == ("migration", None)
        assert home.content(home.places.archived(twin.key)) == before
        step += 1
    assert seen == {False, True}
