from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.twins.cartridges.test_shapes_and_crossing import FLUFFY
from twins.cartridges import cartridge_io
from twins.cartridges.buddy_actions import Action
from twins.cartridges.buddy_store import BuddyStore
from twins.cartridges.json_documents import encode, parse, same
from twins.cartridges.shapes import Shape, checked
from twins.eggs.parsed_egg import Destination
from twins.eggs.readers.detect import open_egg
from twins.errors import BadCartridgeError, BadFileError, NoSuchFileError, TwinConflictError
from twins.workspace import workspace as workspaces
from twins.workspace.workspace import Workspace

NOON = datetime(2026, 4, 12, 12, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    return Workspace.at(tmp_path / "fluffy")


@pytest.fixture
def nest(home: Workspace) -> BuddyStore:
    home.create()
    return BuddyStore(home)


def test_an_egg_is_laid_fed_and_lives_on_in_its_file(nest: BuddyStore) -> None:
    assert nest.is_empty()
    nest.lay(name="Fluffy", now=NOON)
    assert nest.act(Action.PET, now=NOON).answer == "An egg. Feed it and it hatches."
    nest.act(Action.FEED, now=NOON)
    nest.hear("hello", "ada", now=NOON)
    lived = nest.act(Action.POST, now=NOON + timedelta(minutes=30))
    kept = json.loads(nest.path.read_text())
    assert checked(kept) is Shape.BUDDY
    assert kept["_meta"]["type"] == "rappter.egg"
    assert kept["organism"] == lived.document["organism"]
    assert (kept["organism"]["energy"], kept["organism"]["xp"]) == (50, 10)
    assert [entry["text"] for entry in kept["organism"]["context_memory"]] == ["hello"]
    assert oct(nest.path.stat().st_mode & 0o777) == "0o600"


def test_without_a_buddy_there_is_none(home: Workspace) -> None:
    for ask in (
        lambda: BuddyStore(home).read(),
        lambda: BuddyStore(home).act(Action.FEED),
        lambda: BuddyStore(home).hear("a", "b"),
        lambda: BuddyStore(home).export(),
    ):
        with pytest.raises(NoSuchFileError, match="No buddy lives here"):
            ask()
    assert not home.root.exists()


def test_looking_writes_nothing_when_nothing_is_new(nest: BuddyStore) -> None:
    nest.lay(name="Fluffy", now=NOON)
    nest.act(Action.FEED, now=NOON)
    before = nest.path.stat()
    nest.act(Action.STATUS, now=NOON + timedelta(seconds=20))
    assert nest.path.stat().st_ino == before.st_ino


def test_cartridge_of_any_shape_arrives_unchanged(nest: BuddyStore, tmp_path: Path) -> None:
    nest.take(FLUFFY, now=NOON)
    for shape in Shape:
        path = tmp_path / f"{shape.name}.json"
        cartridge_io.save(path, nest.export(shape, now=NOON))
        other = Workspace.at(tmp_path / shape.name)
        other.create()
        loaded = cartridge_io.load(path)
        assert loaded.shape is shape
        arrived = BuddyStore(other)
        arrived.take(loaded.document, now=NOON + timedelta(days=30))
        there = arrived.export(Shape.BUDDY, now=NOON + timedelta(days=30))
        here = nest.export(Shape.BUDDY, now=NOON)
        assert there["organism"] == here["organism"], "a cartridge does not age while it travels"
        there = arrived.export(Shape.BUDDY, now=NOON + timedelta(days=30, minutes=7))
        assert there["organism"]["energy"] == here["organism"]["energy"] - 7


@pytest.mark.parametrize("shape", list(Shape))
def test_as_an_egg_it_becomes_a_twin_that_finds_its_buddy(
    nest: BuddyStore, tmp_path: Path, shape: Shape
) -> None:
    nest.take(FLUFFY, now=NOON)
    path = tmp_path / "some.file"
    cartridge_io.save(path, nest.export(shape, now=NOON))
    with open_egg(path) as opened:
        assert opened.destination is Destination.TWIN
        parts = {part.target: part.read() for part in opened.parts}
        assert "curious" in parts["soul.md"].decode(), "its character is in its soul"
        assert parts[".brainstem_data/buddy.rappter.egg"] == path.read_bytes()
    for number, target in enumerate((".brainstem_data/buddy.rappter.egg", ".brainstem_data/buddy.json")):
        other = Workspace.at(tmp_path / f"other{number}")
        other.create()
        (other.root / target).write_bytes(parts[target])
        assert BuddyStore(other).act(Action.STATUS, now=NOON).document["organism"] == nest.read()["organism"]


def test_load_run_save_load_run_save(nest: BuddyStore, tmp_path: Path) -> None:
    nest.take(FLUFFY, now=NOON)
    path = tmp_path / "fluffy.rappter.egg"
    for number in range(1, 4):
        nest.act(Action.PET, now=NOON)
        cartridge_io.save(path, nest.export(Shape.SEED, now=NOON))
        nest.path.unlink()
        nest.take(cartridge_io.load(path).document, now=NOON)
        assert nest.read()["organism"]["xp"] == 50 + number
    home = cartridge_io.load(path).document
    for key in ("id", "skills", "code", "personality", "memory"):
        assert same(home[key], FLUFFY[key])
    assert home["stats"] == {**FLUFFY["stats"], "xp": 53, "mood": 95}, "and what changed is told beside it"


def test_twin_is_replaced_only_if_told_and_kept(nest: BuddyStore) -> None:
    nest.lay(name="First", now=NOON)
    first = nest.path.read_bytes()
    with pytest.raises(TwinConflictError, match="stays"):
        nest.take(FLUFFY, now=NOON)
    with pytest.raises(TwinConflictError):
        nest.lay(now=NOON)
    assert nest.path.read_bytes() == first
    nest.take(FLUFFY, replace=True, now=NOON)
    assert nest.read()["organism"]["name"] == "Fluffy"
    [kept] = (nest.path.parent / "kept" / "buddy").iterdir()
    assert kept.read_bytes() == first


def test_a_hatched_egg_is_found_as_it_came_and_taken_in(nest: BuddyStore) -> None:
    nest.shell.write_bytes(encode(FLUFFY))
    assert not nest.is_empty()
    assert nest.read()["organism"]["name"] == "Fluffy"
    nest.act(Action.STATUS, now=NOON)
    assert nest.path.exists()
    assert parse(nest.shell.read_bytes()) == FLUFFY
    nest.act(Action.PET, now=NOON)
    assert nest.read()["organism"]["xp"] == 51


def test_what_an_agent_laid_in_its_place_is_not_followed(nest: BuddyStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    nest.path.symlink_to(secret)
    with pytest.raises(BadFileError, match=r"buddy\.json"):
        nest.read()
    nest.path.unlink()
    os.mkfifo(nest.path)
    with pytest.raises(BadFileError, match=r"buddy\.json is not a regular file"):
        nest.act(Action.FEED)
    nest.path.unlink()
    nest.path.write_text("{]")
    with pytest.raises(BadCartridgeError, match="line 1"):
        nest.act(Action.FEED)
    assert nest.path.read_text() == "{]", "what is damaged is left for its owner to mend"
    nest.path.write_bytes(encode(FLUFFY))
    with pytest.raises(BadCartridgeError, match="another shape"):
        nest.read()


def test_several_processes_feed_it_and_nothing_is_lost(nest: BuddyStore) -> None:
    nest.lay(name="Fluffy", now=NOON)
    nest.act(Action.FEED, now=NOON)

    def pet() -> None:
        for _ in range(20):
            nest.act(Action.PET, now=NOON)

    children = [_forked(pet) for _ in range(4)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert nest.read()["organism"]["xp"] == 80


def test_killed_step_leaves_old_or_new_buddy(nest: BuddyStore) -> None:
    nest.lay(name="Fluffy", now=NOON)
    nest.act(Action.FEED, now=NOON)
    before = nest.path.read_bytes()
    for name, when, xp in (
        ("fsync", "before", 0),
        ("fsync", "after", 0),
        ("replace", "before", 0),
        ("replace", "after", 1),
    ):
        child = _forked(lambda name=name, when=when: _dies(nest, name, when))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert nest.read()["organism"]["xp"] == xp, (name, when)
        assert nest.act(Action.PET, now=NOON).document["organism"]["xp"] == xp + 1, "no lock is left behind"
        nest.path.write_bytes(before)


def _dies(nest: BuddyStore, name: str, when: str) -> None:
    """Pets the buddy in a process that is killed before or after the one call of ``os.name``."""
    original = getattr(os, name)

    def deadly(*args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs) if when == "after" else None
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(workspaces.os, name, deadly)
    nest.act(Action.PET, now=NOON)


def _forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def test_agents_cannot_make_the_daemon_write_elsewhere(tmp_path: Path) -> None:
    workspace, elsewhere = Workspace.at(tmp_path / "workspace"), tmp_path / "elsewhere"
    workspace.create()
    elsewhere.mkdir()
    workspace.data.rmdir()
    workspace.data.symlink_to(elsewhere)
    nest = BuddyStore(workspace)
    with pytest.raises(BadFileError, match="is a link"):
        nest.lay(now=NOON)
    (elsewhere / "buddy.json").write_text("{}")
    for attempt in (nest.read, lambda: nest.act(Action.FEED), lambda: nest.rename("x")):
        with pytest.raises(BadFileError, match="is a link"):
            attempt()
    assert [path.name for path in elsewhere.iterdir()] == ["buddy.json"]


def test_a_name_is_changed_and_an_empty_nest_stays_one(nest: BuddyStore, tmp_path: Path) -> None:
    nest.lay(name="First", now=NOON)
    nest.rename("Second", now=NOON)
    assert nest.act(Action.FEED, now=NOON).answer == "The egg hatched. This is Second."
    empty = Workspace.at(tmp_path / "empty")
    empty.create()
    BuddyStore(empty).rename("Nobody")
    assert BuddyStore(empty).is_empty()
