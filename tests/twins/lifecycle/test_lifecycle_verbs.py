"""Archived, brought back, purged, alone and in bulk: what each verb does, and when it does nothing."""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.twin_states import State, state_of
from twins.errors import BadFileError, BadFilterError, NoSuchTwinError, TwinConflictError
from twins.lifecycle.archive_moves import archive_body
from twins.lifecycle.lifecycle import Lifecycle
from twins.lifecycle.selection import Selection
from twins.lifecycle.state_index import list_archived
from twins.workspace.listing import scan
from twins.workspace.new_twin_staging import move_into_place, staged_twin


def test_archived_twin_is_whole_with_its_record(home: Any) -> None:
    twin = home.mint("Gardener")
    before = home.content(twin.workspace.root)
    result = home.do("archive", "Gardener", reason=" winter ", now=home.now)
    place = home.places.twins / ".archive" / twin.key
    assert result == {
        "ok": True,
        "action": "archive",
        "mode": "execute",
        "archived": [{"hash": twin.key, "name": "Gardener", "kind": "project", "moved_to": str(place)}],
        "errors": [],
    }
    assert home.content(place) == before
    assert json.loads((place / "archived.json").read_bytes()) == {
        "schema": "rapp-twin-tombstone/1.0",
        "rappid": twin.rappid.text,
        "hash": twin.key,
        "name": "Gardener",
        "kind": "project",
        "archived_at": "2026-11-21T09:40:00+00:00",
        "archived_by": "operator",
        "archived_reason": "winter",
        "last_known": {
            "alive_at_archive": False,
            "workspace_bytes": sum(map(len, before.values())),
            "workspace_files": len(before),
            "agents": ["dice_agent.py"],
        },
        "retention": {"purge_after": None, "purge_policy": "operator-explicit"},
    }
    assert scan(home.places).twins == []


def test_restored_twin_is_stopped_and_keeps_record(home: Any, runner: Any) -> None:
    twin = home.mint("Gardener")
    before = home.content(twin.workspace.root)
    runner.boot(twin.key)
    home.do("archive", twin.key)
    result = home.do("unarchive", twin.rappid.text)
    assert result["unarchived"] == [
        {"hash": twin.key, "name": "Gardener", "kind": "project", "moved_to": str(twin.workspace.root)}
    ]
    assert home.content(twin.workspace.root) == before
    assert json.loads((twin.workspace.root / "archived.json").read_bytes())["last_known"]["alive_at_archive"]
    assert not runner.presence(twin.key).running


def test_a_running_twin_is_dead_before_it_moves(home: Any, runner: Any) -> None:
    twin = home.mint("Gardener")
    process = runner.boot(twin.key)
    home.do("archive", twin.key)
    assert process.poll() is not None
    [entry] = list_archived(home.places)
    assert entry["last_known"]["alive_at_archive"] is True
    assert entry["last_known"]["port"] == 7081


def test_a_twin_that_will_not_stop_stays_active(home: Any, runner: Any) -> None:
    twin = home.mint("Gardener")
    runner.boot(twin.key)
    runner.immortal.add(twin.key)
    with pytest.raises(TwinConflictError, match="does not stop"):
        home.do("archive", twin.key)
    assert state_of(home.places, twin.key) is State.ACTIVE
    assert runner.presence(twin.key).running


def test_twin_started_during_archive_is_stopped_again(home: Any, runner: Any) -> None:
    twin = home.mint("Gardener")

    class Woken(Lifecycle):
        async def _stop(self, twin: Any) -> None:
            await super()._stop(twin)
            if twin.workspace.root.exists():
                runner.boot(twin.key)

    asyncio.run(Woken(home.places, runner).archive(twin.key))
    assert state_of(home.places, twin.key) is State.ARCHIVED
    assert not runner.presence(twin.key).running


def test_a_purged_twin_is_a_tombstone_and_nothing_else(home: Any) -> None:
    twin = home.mint("Gardener", kind="memorial")
    home.do("archive", twin.key, reason="done", by="cron:old twins", now=home.now)
    later = home.now + timedelta(days=1)
    result = home.do("purge", twin.key, confirm=True, reason="truly", now=later)
    tombstone = home.places.twins / ".purged" / f"{twin.key}.json"
    assert result == {
        "ok": True,
        "action": "purge",
        "mode": "execute",
        "purged": [{"hash": twin.key, "name": "Gardener", "kind": "memorial", "tombstone": str(tombstone)}],
        "errors": [],
    }
    assert json.loads(tombstone.read_bytes()) == {
        "schema": "rapp-twin-purged/1.0",
        "rappid": twin.rappid.text,
        "hash": twin.key,
        "name": "Gardener",
        "kind": "memorial",
        "archived_at": "2026-11-21T09:40:00+00:00",
        "archived_by": "cron:old twins",
        "archived_reason": "done",
        "purged_at": "2026-11-22T09:40:00+00:00",
        "purged_by": "operator",
        "purged_reason": "truly",
    }
    assert home.do("list_purged") == [json.loads(tombstone.read_bytes())]
    assert list(home.places.archive.iterdir()) == []


def test_a_purge_without_a_yes_only_says_whom(home: Any) -> None:
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    result = home.do("purge", twin.key)
    path = home.places.archived(twin.key)
    assert result == {
        "ok": True,
        "action": "purge",
        "mode": "dry-run",
        "purged": [],
        "errors": [],
        "would_purge": [{"hash": twin.key, "name": "Gardener", "kind": "project", "path": str(path)}],
    }
    assert state_of(home.places, twin.key) is State.ARCHIVED


def test_an_active_twin_is_not_purged(home: Any) -> None:
    twin = home.mint("Gardener")
    for confirm in (False, True):
        with pytest.raises(TwinConflictError, match="archive first") as caught:
            home.do("purge", "gardener", confirm=confirm)
        assert twin.key[:12] in caught.value.do
    assert state_of(home.places, twin.key) is State.ACTIVE


def test_each_verb_says_in_which_state_the_twin_is(home: Any) -> None:
    twin = home.mint("Gardener")
    with pytest.raises(TwinConflictError, match="is active already"):
        home.do("unarchive", "Gardener")
    home.do("archive", "Gardener")
    with pytest.raises(TwinConflictError, match="is archived already"):
        home.do("archive", "Gardener")
    home.do("purge", "Gardener", confirm=True)
    for verb in ("archive", "unarchive", "purge"):
        for selector in ("Gardener", twin.key, twin.key[:8], twin.rappid.text):
            with pytest.raises(TwinConflictError, match="is purged"):
                home.do(verb, selector)
        with pytest.raises(NoSuchTwinError):
            home.do(verb, "Nobody")


@pytest.mark.parametrize("by", ["", "root", "cron:", "cron:a\nb", "Operator", "fleet:other"])
def test_who_did_it_is_one_of_the_published_or_nothing_happens(home: Any, runner: Any, by: str) -> None:
    twin = home.mint("Gardener")
    process = runner.boot(twin.key)
    with pytest.raises(BadFileError):
        home.do("archive", twin.key, by=by)
    with pytest.raises(BadFileError):
        home.do("archive_matching", Selection(kind="project"), confirm=True, by=by)
    assert process.poll() is None
    assert state_of(home.places, twin.key) is State.ACTIVE


def test_a_second_twin_of_the_same_rappid_loses_nothing(home: Any, tmp_path: Path) -> None:
    """An egg may bring back somebody who is archived here."""
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    with staged_twin(home.places, twin.key) as staged:
        (staged / "rappid.json").write_bytes((home.places.archived(twin.key) / "rappid.json").read_bytes())
        (staged / "soul.md").write_text("younger")
        move_into_place(staged, home.places.active(twin.key))
    with pytest.raises(TwinConflictError, match="archived already"):
        home.do("archive", twin.key)
    with pytest.raises(TwinConflictError, match="Another Gardener is active"):
        home.do("unarchive", twin.key)
    assert (home.places.active(twin.key) / "soul.md").read_text() == "younger"
    home.do("purge", twin.key, confirm=True)
    assert state_of(home.places, twin.key) is State.ACTIVE
    home.do("archive", twin.key)
    assert state_of(home.places, twin.key) is State.ARCHIVED
    assert (home.places.archived(twin.key) / "soul.md").read_text() == "younger"


def test_purge_removes_checkpoints_and_keeps_eggs(home: Any) -> None:
    twin, other = home.mint("Gardener"), home.mint("Baker")
    kept = [
        _file(home, "checkpoints", other.key, "2026-11-21T09-40-00.000Z.egg"),
        _file(home, twin.key, "2026-11-21T09-40-00.000000Z-twin.egg"),
        _file(home, twin.key, "the-day-before.egg"),
        _file(home, other.key, "2026-11-21T09-40-00.000000Z-twin-before.egg"),
    ]
    taken = [
        _file(home, "checkpoints", twin.key, f"2026-11-21T09-40-00.000Z.{ending}")
        for ending in ("egg", "json")
    ]
    taken.append(_file(home, twin.key, "2026-11-20T09-40-00.000000Z-twin-before.egg"))
    home.do("archive", twin.key, now=home.now)
    home.do("unarchive", twin.key)
    assert all(path.exists() for path in taken)
    home.do("archive", twin.key, now=home.now)
    home.do("purge", twin.key, confirm=True, now=home.now)
    assert not taken[0].parent.exists()
    assert not any(path.exists() for path in taken)
    assert all(path.exists() for path in kept)


def test_checkpoints_of_who_lives_under_that_key_are_kept(home: Any) -> None:
    twin = home.mint("Gardener")
    own = [
        _file(home, "checkpoints", twin.key, "2026-11-21T09-40-00.000Z.egg"),
        _file(home, twin.key, "2026-11-21T09-40-00.000000Z-twin-before.egg"),
    ]
    home.do("archive", twin.key, now=home.now)
    with staged_twin(home.places, twin.key) as staged:
        (staged / "rappid.json").write_bytes((home.places.archived(twin.key) / "rappid.json").read_bytes())
        move_into_place(staged, home.places.active(twin.key))
    home.do("purge", twin.key, confirm=True, now=home.now)
    assert all(path.exists() for path in own)


def test_later_checkpoints_survive_unfinished_purge(home: Any) -> None:
    twin = home.mint("Gardener")
    earlier = _file(home, "checkpoints", twin.key, "2026-11-20T09-40-00.000Z.egg")
    home.do("archive", twin.key, now=home.now)
    home.do("purge", twin.key, confirm=True, now=home.now)
    assert not earlier.exists()
    earlier = _file(home, "checkpoints", twin.key, "2026-11-20T09-40-00.000Z.egg")
    later = _file(home, "checkpoints", twin.key, "2026-11-22T09-40-00.000Z.egg")
    (home.places.archive / f".{twin.key}.doomed").mkdir()  # as a crash leaves it
    home.do("recover")
    assert not earlier.exists()
    assert later.exists()


def _file(home: Any, *names: str) -> Path:
    path: Path = home.places.eggs.joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("all that it was")
    return path


def test_restored_twin_survives_its_tombstone(home: Any) -> None:
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    saved = {path.name: path.read_bytes() for path in home.places.archived(twin.key).glob("*.json")}
    home.do("purge", twin.key, confirm=True)
    back = home.places.archived(twin.key)
    back.mkdir()
    for name, octets in saved.items():  # its archived.json too, as a snapshot of archived twins carries it
        (back / name).write_bytes(octets)
    assert home.do("recover") == []
    assert state_of(home.places, twin.key) is State.ARCHIVED
    assert [entry["hash"] for entry in home.do("list_archived")] == [twin.key]


def test_a_place_that_is_taken_meanwhile_is_not_overwritten(home: Any) -> None:
    """Even an empty folder, which the system would replace without a word."""
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    record = list_archived(home.places)[0]
    home.do("unarchive", twin.key)
    home.places.archived(twin.key).mkdir()
    with pytest.raises(TwinConflictError, match="archived already"):
        archive_body(home.places, twin.workspace.root, record)
    home.places.archived(twin.key).rmdir()
    home.do("archive", twin.key)
    home.places.active(twin.key).mkdir()
    with pytest.raises(TwinConflictError, match="Another Gardener is active"):
        home.do("unarchive", twin.key)
    assert home.leftovers() == []


# Bulk.


def test_a_bulk_archive_only_says_whom_until_it_is_confirmed(home: Any, runner: Any) -> None:
    old, other = home.mint("Test one"), home.mint("Garden")
    home.mint("Test two", kind="memorial")
    process = runner.boot(old.key)
    selection = Selection.from_filter({"name_prefix": "Test", "exclude_kinds": ["memorial"]})
    result = home.do("archive_matching", selection)
    assert result == {
        "ok": True,
        "action": "archive",
        "mode": "dry-run",
        "archived": [],
        "errors": [],
        "would_archive": [{"hash": old.key, "name": "Test one", "kind": "project"}],
    }
    assert process.poll() is None
    assert len(scan(home.places).twins) == 3
    result = home.do("archive_matching", selection, confirm=True)
    assert result == {
        "ok": True,
        "action": "archive",
        "mode": "execute",
        "archived": [
            {
                "hash": old.key,
                "name": "Test one",
                "kind": "project",
                "moved_to": str(home.places.archived(old.key)),
            }
        ],
        "errors": [],
    }
    assert process.poll() is not None
    assert state_of(home.places, other.key) is State.ACTIVE


def test_one_that_cannot_be_archived_stops_no_other(home: Any, runner: Any) -> None:
    first, second, third = home.mint("Test a"), home.mint("Test b"), home.mint("Test c")
    runner.boot(second.key)
    runner.immortal.add(second.key)
    result = home.do("archive_matching", Selection(name_prefix="Test"), confirm=True)
    assert result["ok"] is False
    assert [one["hash"] for one in result["archived"]] == [first.key, third.key]
    [error] = result["errors"]
    assert (error["hash"], error["name"]) == (second.key, "Test b")
    assert "does not stop" in error["error"]
    assert state_of(home.places, second.key) is State.ACTIVE


def test_stopped_for_days_is_neither_running_nor_used(home: Any, runner: Any) -> None:
    names = ("old", "running", "touched", "talked", "new")
    twins = {name: home.mint(name) for name in names}
    long_ago = time.time() - 40 * 86_400
    for name in names[:-1]:
        for path in [twins[name].workspace.root, *twins[name].workspace.root.rglob("*")]:
            os.utime(path, (long_ago, long_ago))
    runner.boot(twins["running"].key)
    os.utime(twins["touched"].workspace.data / "memory.json")
    runner.talked[twins["talked"].key] = time.time() - 86_400
    runner.talked[twins["old"].key] = long_ago - 86_400

    def meant(days: int) -> list[str]:
        result = home.do("archive_matching", Selection.from_filter({"stopped_for_days": days}))
        return [one["name"] for one in result["would_archive"]]

    assert meant(30) == ["old"]
    assert meant(41) == []
    home.do("archive", "old")
    home.do("unarchive", "old")
    assert meant(30) == []  # somebody wanted it back today


def test_a_filter_that_hangs_is_refused_and_nothing_happens(home: Any) -> None:
    home.mint("a" * 60 + "!")
    selection = Selection.from_filter({"name_regex": "(a+)+$"})
    with pytest.raises(BadFilterError, match="too long"):
        home.do("archive_matching", selection, confirm=True)
    assert len(scan(home.places).twins) == 1
