"""Checkpoints: made, listed, found, and eggs like any other."""

from __future__ import annotations

import pytest
from fixtures.refusals import refused

from tests.twins.checkpoints.garden import OTHERS, THEN, Garden
from twins.eggs.readers.detect import open_egg
from twins.errors import TwinConflictError
from twins.workspace.checkpoints import MAX_NOTE


def test_checkpoint_is_an_egg_with_conversations(garden: Garden) -> None:
    made = garden.make(note="  before the\nfrost ")
    assert made.egg == garden.home / "eggs" / "checkpoints" / garden.twin.key / "2026-11-21T09-40-00.000Z.egg"
    assert (made.at, made.note, made.before) == ("2026-11-21T09:40:00.000Z", "before the frost", "")
    assert (made.records, made.files, made.size) == (3, len(THEN) + 3, made.egg.stat().st_size)
    with open_egg(made.egg) as opened:
        assert (opened.seal.whole, opened.digest) == (True, made.sha256)
        names = {part.name for part in opened.parts}
    assert names == {path.replace(".brainstem_data", "data") for path in THEN} | {
        "rappid.json", "bonds.json", "data/frames.json",
    }  # fmt: skip


def test_likely_secrets_do_not_stop_a_checkpoint(garden: Garden) -> None:
    garden.put(".brainstem_data/notes.md", "api_key = sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH\n")
    before = garden.content()
    garden.make()
    garden.live_on()
    garden.put(".brainstem_data/notes.md", "nothing")
    garden.go_back()
    assert garden.content()[".brainstem_data/notes.md"] == before[".brainstem_data/notes.md"]


def test_a_list_has_all_of_a_twin_and_no_others(garden: Garden) -> None:
    assert garden.checkpoints.listing(garden.twin.key) == []
    made = [garden.make(hours=number, note=str(number)) for number in (2, 0, 1)]
    folder = made[0].egg.parent
    (folder / "notes.txt").write_text("mine")
    (folder / "other.egg").write_bytes(b"")
    listed = garden.checkpoints.listing(garden.twin.key)
    assert [one.note for one in listed] == ["0", "1", "2"]
    assert listed == sorted(made, key=lambda one: one.id)
    assert garden.checkpoints.listing("f" * 64) == []


def test_two_of_one_moment_are_two(garden: Garden) -> None:
    made = [garden.make() for _ in range(3)]
    assert [one.id[-4:] for one in made] == ["000Z", "001Z", "002Z"]


def test_one_is_found_by_the_start_of_its_name_or_is_the_latest(garden: Garden) -> None:
    first, second = garden.make(), garden.make(hours=1)
    twin = garden.twin
    assert garden.checkpoints.find(twin) == second
    assert garden.checkpoints.find(twin, "2026-11-21T09") == first
    assert garden.checkpoints.find(twin, f"{second.id}.egg") == second
    with pytest.raises(TwinConflictError, match='"2026" fits 2 checkpoints of gardener'):
        garden.checkpoints.find(twin, "2026")
    with refused("no_such_checkpoint", match='gardener has no checkpoint "2025"'):
        garden.checkpoints.find(twin, "2025")
    garden.live_on()
    undone = garden.go_back()
    assert undone.checkpoint == second
    assert undone.before is not None
    assert garden.checkpoints.find(twin) == second, "not the one that going back made"
    assert garden.checkpoints.find(twin, undone.before.id) == undone.before


def test_a_twin_without_one_is_told_how_to_make_one(garden: Garden) -> None:
    with refused("no_such_checkpoint", match=r"gardener has no checkpoint\.") as raised:
        garden.look()
    assert raised.value.do == f"rappd twins checkpoint {garden.twin.key[:12]}"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"note": 1, "files": "x"}', '"text"', "\xff"])
def test_egg_without_record_is_a_plain_checkpoint(garden: Garden, content: str | None) -> None:
    made = garden.make(note="before the frost")
    record = made.egg.with_suffix(".json")
    record.unlink() if content is None else record.write_text(content)
    [found] = garden.checkpoints.listing(garden.twin.key)
    assert (found.id, found.note, found.sha256, found.records) == (made.id, "", "", None)
    before = garden.content()
    garden.live_on()
    garden.go_back()
    assert {path: garden.content()[path] for path in THEN} == {path: before[path] for path in THEN}


def test_a_note_stays_short_enough_for_a_list(garden: Garden) -> None:
    assert len(garden.make(note="long " * 1000).note) == MAX_NOTE


def test_what_one_that_was_killed_left_half_written_is_swept(garden: Garden) -> None:
    made = garden.make()
    left = made.egg.with_name(".egg.1.abcdef.tmp")
    left.write_bytes(b"half")
    record = made.egg.with_name("2026-11-21T09-41-00.000Z.json")
    record.write_text("{}")
    garden.make(hours=1)
    assert not left.exists()
    assert not record.exists()
    assert made.egg.with_suffix(".json").exists()


def test_a_checkpoint_hatches_on_another_home_with_what_was_said(garden: Garden) -> None:
    made = garden.make()
    elsewhere = Garden(garden.home.with_name("elsewhere"))
    elsewhere.home.mkdir()
    with open_egg(made.egg) as opened:
        done = elsewhere.importer().hatch(opened)
    assert done.receipt is not None
    assert elsewhere.twin.rappid == garden.twin.rappid
    assert (elsewhere.twin.workspace.root / "soul.md").read_text() == THEN["soul.md"]
    assert elsewhere.importer().receipts.frames(done.receipt.id).read_bytes().count(b"Hello") == 3


def test_a_checkpoint_keeps_nothing_that_never_travels(garden: Garden) -> None:
    with open_egg(garden.make().egg) as opened:
        held = b"".join(part.read() for part in opened.parts)
    for content in OTHERS.values():
        assert not content or len(content) < 3 or content.strip().encode() not in held
