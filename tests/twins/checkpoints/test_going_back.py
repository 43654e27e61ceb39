"""Going back: exactly the files of then, everything else as it is, and a checkpoint of what was left."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.checkpoints.garden import OTHERS, THEN, Garden
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers.formats import EggFormat
from twins.eggs.writers.pack import pack
from twins.errors import BadEggError, TwinConflictError
from twins.workspace import souls
from twins.workspace.twin import mint, rename


def parts(content: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The files that a checkpoint concerns, and those that stay; the soul's history apart."""
    stays = {
        path: text
        for path, text in content.items()
        if path.startswith((".env", ".deps", ".remote", ".brainstem_data/kept", ".brainstem_data/private"))
        or path in OTHERS
        or text.startswith("-> ")
    }
    history = {path for path in content if path.startswith(".brainstem_data/soul_history/")}
    return {path: text for path, text in content.items() if path not in stays.keys() | history}, stays


def test_restored_files_are_exact_and_others_stay(garden: Garden) -> None:
    then, _ = parts(garden.content())
    assert then.keys() == THEN.keys()
    garden.make()
    garden.live_on()
    lived, stays = parts(garden.content())
    done = garden.go_back()
    assert parts(garden.content()) == (then, stays)
    assert stays[".env"] == "PUMP_KEY=two\n", "not the one of then"
    assert done.restored == sorted(path for path in then if then[path] != lived.get(path))
    assert done.removed == sorted(lived.keys() - then.keys())
    assert done.kept == len(then.keys() & lived.keys()) - sum(
        then[path] != lived[path] for path in then.keys() & lived.keys()
    )
    assert not (garden.root / "new").exists(), "a folder that came since goes with its files"
    assert garden.staged() == []
    assert done.notes == []


def test_state_before_restore_is_a_checkpoint(garden: Garden) -> None:
    garden.make(note="spring")
    garden.live_on()
    lived = garden.content()
    done = garden.go_back()
    assert done.before is not None
    assert (done.before.before, done.before.note) == (
        done.checkpoint.id, f"before going back to {done.checkpoint.id}",
    )  # fmt: skip
    garden.go_back(done.before.id, hours=6)
    assert parts(garden.content()) == parts(lived)
    assert len(garden.checkpoints.listing(garden.twin.key)) == 3


def test_nothing_happens_where_nothing_differs(garden: Garden) -> None:
    garden.make()
    inode = garden.root.stat().st_ino
    for done in (garden.look(), garden.go_back()):
        assert (done.differs, done.restored, done.removed, done.before) == (False, [], [], None)
        assert done.kept == len(THEN)
    assert garden.root.stat().st_ino == inode
    assert len(garden.checkpoints.listing(garden.twin.key)) == 1


def test_looking_tells_what_going_back_does_and_touches_nothing(garden: Garden) -> None:
    garden.make()
    garden.live_on()
    before = garden.content()
    told = garden.look()
    assert garden.content() == before
    assert len(garden.checkpoints.listing(garden.twin.key)) == 1
    done = garden.go_back()
    assert (told.restored, told.removed, told.kept) == (done.restored, done.removed, done.kept)


def test_who_the_twin_is_stays(garden: Garden) -> None:
    garden.make()
    garden.live_on()
    rename(garden.twin, "head gardener")
    papers = {name: (garden.root / name).read_bytes() for name in ("rappid.json", "bonds.json")}
    garden.go_back()
    assert garden.twin.name == "head gardener"
    assert {name: (garden.root / name).read_bytes() for name in papers} == papers


def test_a_soul_that_is_left_joins_the_history(garden: Garden) -> None:
    garden.make()
    souls.edit_soul(garden.twin.workspace, "You sell the garden.", reason="greed")
    garden.go_back()
    garden.go_back(garden.checkpoints.listing(garden.twin.key)[-1].id)
    history = [(one.reason, one.path.read_text()) for one in souls.soul_history(garden.twin.workspace)]
    assert sorted(history) == [
        ("before-going-back", "You sell the garden."),
        ("before-going-back-2", "You keep the garden.\n"),
        ("greed", "You keep the garden.\n"),
    ]


def test_permissions_of_files_and_folders_stay(garden: Garden) -> None:
    (garden.root / "tools").chmod(0o750)
    garden.make()
    garden.live_on()
    (garden.root / "tools" / "rake.sh").chmod(0o755)
    mode = garden.root.stat().st_mode
    garden.go_back()
    assert garden.content()["tools/rake.sh"] == "#!/bin/sh\n (runs)"
    assert (garden.root / "tools").stat().st_mode & 0o777 == 0o750
    assert garden.root.stat().st_mode == mode


def test_links_stay_unless_replaced_by_a_checkpoint(garden: Garden, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    garden.make()
    garden.live_on()
    for name in ("services", "senses/mood_sense.py"):
        path = garden.root / name
        if path.is_dir():
            path.rmdir()
        path.symlink_to(outside)
    (garden.root / "elsewhere").symlink_to(outside)
    os.mkfifo(garden.root / "pipe")
    garden.go_back()
    assert garden.content()["services/pump_service.py"] == THEN["services/pump_service.py"]
    assert garden.content()["senses/mood_sense.py"] == THEN["senses/mood_sense.py"]
    assert (garden.root / "elsewhere").is_symlink()
    assert (garden.root / "pipe").is_fifo()
    assert [path.name for path in outside.iterdir()] == ["mine.txt"], "nothing is written through a link"


def test_a_file_that_stays_and_is_in_the_way_stops_it(garden: Garden) -> None:
    garden.make()
    (garden.root / "README.md").unlink()
    garden.put("README.md/inner/pump.key", "k")
    before = garden.content()
    with pytest.raises(TwinConflictError, match=r"README\.md is in the way"):
        garden.go_back()
    assert garden.content() == before
    assert garden.staged() == []


def test_a_twin_that_changes_meanwhile_is_left_as_it_is(garden: Garden) -> None:
    garden.make()
    garden.live_on()

    garden.said.meanwhile = lambda: garden.put(".brainstem_data/memory.json", "written meanwhile")
    with pytest.raises(TwinConflictError, match="The twin changed meanwhile; it was left as it is"):
        garden.go_back()
    assert garden.content()[".brainstem_data/memory.json"] == "written meanwhile"
    assert garden.content()["soul.md"] == "You sell the garden.\n"
    assert garden.staged() == []


@pytest.mark.parametrize("harm", ["a byte", "cut short", "another's", "not the recorded one", "no egg"])
def test_damaged_or_foreign_checkpoint_is_refused(garden: Garden, harm: str) -> None:
    made = garden.make()
    octets = bytearray(made.egg.read_bytes())
    match harm:
        case "a byte":
            octets[octets.find(b"WATER = 1") if b"WATER = 1" in octets else len(octets) // 2] ^= 1
        case "cut short":
            del octets[-100:]
        case "no egg":
            octets = bytearray(b"#" * 500)
        case "another's":
            other = Garden(garden.home.with_name("other"))
            made_there = other.checkpoints.make(mint(other.places, "rose", owner="ada"))
            octets = bytearray(made_there.egg.read_bytes())
            made.egg.with_suffix(".json").unlink()
        case _:
            garden.put("soul.md", "Other.\n")
            octets = bytearray(garden.make(hours=1).egg.read_bytes())
    made.egg.write_bytes(octets)
    garden.live_on()
    before = garden.content()
    with pytest.raises(BadEggError):
        garden.go_back(made.id)
    assert garden.content() == before
    assert garden.staged() == []


def test_code_that_was_held_then_is_held_again(garden: Garden) -> None:
    path = garden.root / "agents" / "water_agent.py"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    garden.held.hold(path, digest, "It came in an egg.", "rose.egg")
    garden.make()
    garden.live_on()
    garden.go_back()
    entry = garden.held.entry(path, digest)
    assert entry is not None and entry.why == "It came in an egg."


NAMES = ["a", "b", "a.json", "pump.key", "private", "kept", "deep/er", "a/b/c"]
TREES = st.dictionaries(
    st.tuples(
        st.sampled_from(["", "agents/", "utils/", ".brainstem_data/", ".brainstem_data/a/", "x/"]),
        st.sampled_from(NAMES),
    ).map("".join),
    st.sampled_from(["", "1", "2", "3" * 2000]),
    max_size=8,
)


def consistent(tree: dict[str, str]) -> dict[str, str]:
    """Without files that others would need to be folders."""
    return {
        path: text for path, text in tree.items() if not any(other.startswith(f"{path}/") for other in tree)
    }


@settings(max_examples=40, deadline=None)
@given(TREES.map(consistent), TREES.map(consistent))
def test_whatever_was_and_is_there(then: dict[str, str], now: dict[str, str]) -> None:
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        garden = Garden(Path(folder) / "home")
        garden.root = mint(garden.places, "gardener", owner="ada").workspace.root
        for path, text in then.items():
            garden.put(path, text)
        made = garden.make()
        with zipfile.ZipFile(made.egg) as egg:
            kept = {name.replace("data/", ".brainstem_data/", 1) if name.startswith("data/") else name
                    for name in egg.namelist()}  # fmt: skip
        for path in sorted(then, key=len, reverse=True):
            if path not in now:
                (garden.root / path).unlink()
        for folder_ in sorted((p for p in garden.root.rglob("*") if p.is_dir()), reverse=True):
            if not any(folder_.iterdir()) and folder_.name not in ("agents", "services", ".brainstem_data"):
                folder_.rmdir()
        for path, text in now.items():
            garden.put(path, text)
        before = garden.content()
        try:
            garden.go_back()
        except TwinConflictError:
            assert garden.content() == before
            return
        content = garden.content()
        outside = {path: text for path, text in before.items() if path in now and _stays(path)}
        expected = {path: text for path, text in then.items() if path in kept} | outside
        assert {path: content[path] for path in content if path in then or path in now} == expected


def _stays(path: str) -> bool:
    return "key" in path or "private" in path or path.startswith(".brainstem_data/kept")


def test_going_back_leaves_odd_names_in_the_checkpoint(garden: Garden) -> None:
    garden.put(".brainstem_data/CON.md", "then")
    garden.put(".brainstem_data/ab:c.md", "then")
    garden.make()
    (garden.root / ".brainstem_data/CON.md").unlink()
    garden.put(".brainstem_data/ab:c.md", "now")
    garden.live_on()
    done = garden.go_back()
    assert done.notes == [
        ".brainstem_data/CON.md stays in the checkpoint: CON.md is the name of a device on Windows."
    ]
    assert not (garden.root / ".brainstem_data/CON.md").exists()
    assert (garden.root / ".brainstem_data/ab:c.md").read_text() == "then", "what the home has goes on"


def test_restore_takes_no_env_from_foreign_checkpoint(garden: Garden) -> None:
    egg = garden.make().egg
    egg.with_suffix(".json").unlink()
    garden.put(".env", "PUMP_URL=theirs\n")
    pack(garden.twin.workspace, egg, form=EggFormat.ORGANISM, overwrite=True)
    with open_egg(egg) as opened:
        assert "PUMP_URL=theirs" in str([part.read() for part in opened.parts if part.name == ".env"])
    garden.put(".env", "PUMP_URL=mine\n")
    garden.live_on()
    done = garden.go_back()
    assert (garden.root / ".env").read_text() == "PUMP_KEY=two\n"
    assert ".env" not in done.restored + done.removed
