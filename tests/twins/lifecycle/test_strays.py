"""Strays and damaged twins in the folders of twins: nothing is taken for a twin, and no twin is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from twins.errors import NoSuchTwinError
from twins.workspace.listing import scan


def test_dot_names_and_folders_without_identity_are_no_twins(home: Any) -> None:
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    for hidden in (".cache", ".staging/x", ".archive/.hidden", ".trash"):
        folder = home.places.twins / hidden
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rappid.json").write_bytes((home.places.archived(twin.key) / "rappid.json").read_bytes())
    (home.places.archive / "empty").mkdir()
    (home.places.purged / ".hidden.json").write_text("{}")
    assert scan(home.places).twins == []
    assert [entry["hash"] for entry in home.do("list_archived")] == [twin.key]
    assert home.do("list_purged") == []


def test_a_home_without_twins_lists_nothing_and_writes_nothing(home: Any) -> None:
    assert home.do("list_archived") == []
    assert home.do("list_purged") == []
    assert not home.places.home.exists()


@pytest.mark.parametrize(
    "octets",
    [None, b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"schema": "rapp-twin-tombstone/1.0"}', b"{}" * 10, b" " * (2 << 20)],
    ids=["none", "empty", "cut", "list", "text", "utf-16", "bare", "twice", "huge"],
)  # fmt: skip
def test_twin_with_damaged_record_is_listed_restored_purged(home: Any, octets: bytes | None) -> None:
    for verb in ("unarchive", "purge"):
        twin = home.mint("Gardener")
        home.do("archive", twin.key)
        record = home.places.archived(twin.key) / "archived.json"
        record.unlink()
        if octets is not None:
            record.write_bytes(octets)
        [entry] = home.do("list_archived")
        assert (entry["rappid"], entry["name"], entry["kind"]) == (twin.rappid.text, "Gardener", "project")
        assert entry["note"]
        result = home.do(verb, "Gardener", **({"confirm": True} if verb == "purge" else {}))
        assert result["ok"]
        if verb == "unarchive":
            kept = home.places.active(twin.key) / "archived.json"
            assert (kept.read_bytes() if kept.exists() else None) == octets
            home.do("archive", twin.key)
            home.do("purge", twin.key, confirm=True)
    assert len(home.do("list_purged")) == 2


def test_a_record_that_is_partly_wrong_keeps_what_is_right(home: Any) -> None:
    twin = home.mint("Gardener")
    home.do("archive", twin.key, reason="winter", now=home.now)
    path = home.places.archived(twin.key) / "archived.json"
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps({**record, "archived_by": "somebody", "extra": [1]}))
    [entry] = home.do("list_archived")
    assert (entry["archived_by"], entry["archived_reason"], entry["extra"]) == ("operator", "winter", [1])
    assert entry["archived_at"] == record["archived_at"]
    assert "archived_by" in entry["note"]


def test_the_record_of_another_twin_is_not_believed(home: Any) -> None:
    one, other = home.mint("Gardener"), home.mint("Cook")
    home.do("archive", one.key, reason="winter")
    home.do("archive", other.key, reason="summer")
    (home.places.archived(other.key) / "archived.json").write_bytes(
        (home.places.archived(one.key) / "archived.json").read_bytes()
    )
    entries = {entry["hash"]: entry for entry in home.do("list_archived")}
    assert entries[other.key]["name"] == "Cook"
    assert "archived_reason" not in entries[other.key]
    assert "another twin" in entries[other.key]["note"]


def test_archived_twin_with_damaged_identity_is_purged(home: Any) -> None:
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    (home.places.archived(twin.key) / "rappid.json").write_text("{")
    [entry] = home.do("list_archived")
    assert entry["name"] == "Gardener"
    home.do("purge", twin.key, confirm=True)
    assert home.do("list_purged")[0]["rappid"] == twin.rappid.text


def test_a_damaged_tombstone_is_listed_and_harms_nobody(home: Any) -> None:
    twin = home.mint("Gardener")
    home.do("archive", twin.key)
    home.do("purge", twin.key, confirm=True)
    (home.places.purged / f"{'ab' * 32}.json").write_text("{")
    entries = home.do("list_purged")
    assert {entry["hash"] for entry in entries} == {twin.key, "ab" * 32}
    assert [
        bool(entry.get("note")) for entry in sorted(entries, key=lambda one: one["hash"] == twin.key)
    ] == [
        True,
        False,
    ]


@pytest.mark.parametrize("trap", ["folder", "link", "pipe"])
def test_what_a_twin_laid_in_the_place_of_its_record_is_no_trap(home: Any, trap: str) -> None:
    twin = home.mint("Gardener")
    record = twin.workspace.root / "archived.json"
    outside = home.places.home / "precious"
    outside.write_text("precious")
    if trap == "folder":
        record.mkdir()
        (record / "mine").write_text("mine")
    elif trap == "link":
        record.symlink_to(outside)
    else:
        os.mkfifo(record)
    home.do("archive", twin.key, reason="winter")
    [entry] = home.do("list_archived")
    assert (entry["archived_reason"], entry.get("note")) == ("winter", None)
    assert outside.read_text() == "precious"
    if trap == "folder":
        [kept] = home.places.archived(twin.key).glob("archived.json.*")
        assert (kept / "mine").read_text() == "mine"


def test_a_link_is_no_twin_and_is_neither_moved_nor_followed(home: Any, tmp_path: Path) -> None:
    twin = home.mint("Gardener")
    elsewhere = tmp_path / "elsewhere"
    twin.workspace.root.rename(elsewhere)
    twin.workspace.root.symlink_to(elsewhere)
    with pytest.raises(NoSuchTwinError):
        home.do("archive", twin.key)
    home.places.archived("cd" * 32).symlink_to(elsewhere)
    assert home.do("list_archived") == []
    with pytest.raises(NoSuchTwinError):
        home.do("purge", "cd" * 32, confirm=True)
    assert (elsewhere / "soul.md").exists()
