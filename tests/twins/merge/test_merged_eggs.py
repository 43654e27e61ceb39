"""Twins that were packed, lived on in two places, were packed again, and are merged: real eggs throughout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from envelopes.identity.keys import IdentityKey
from tests.twins.merge.parallel_lives import told
from twins.cartridges.buddy_actions import Action
from twins.cartridges.buddy_store import BuddyStore
from twins.eggs.frames import Frame, decoded, verified
from twins.eggs.parsed_egg import ParsedEgg, Role
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers.pack import pack
from twins.errors import BadEggError, TwinConflictError
from twins.merge import alternates
from twins.merge.egg_merge import MergedEggs, merge
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout, Workspace

NOON = datetime(2026, 4, 12, 12, 0, tzinfo=UTC)
KEY, KITCHEN = IdentityKey.generate(), IdentityKey.generate()
AGENT = "class A:\n    def perform(self):\n        return {}\n"


class Said:
    """The words to a twin, as its home keeps them."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self._frames = list(frames)

    def frames(self, key: str) -> Iterator[Frame]:
        return iter(self._frames)


class Lives:
    """A twin's workspace, as it was and in two places since."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.beginning = told("garden", None, 0, [(1, "a"), (1, "b")], "both")
        twin = mint(TwinLayout(folder / "home"), "Gardener", owner="ada", kind="place", now=NOON)
        self.base = twin.workspace
        self.write(self.base, "agents/water_agent.py", AGENT.format("'water'"))
        self.write(self.base, ".brainstem_data/memory.json", json.dumps({"beds": 2, "likes": ["sun"]}))
        self.write(self.base, "notes.txt", "one")
        self.ours, self.theirs = self.copy("ours"), self.copy("theirs")

    def copy(self, name: str) -> Workspace:
        shutil.copytree(self.base.root, self.folder / name)
        return Workspace.at(self.folder / name)

    def write(self, workspace: Workspace, path: str, text: str) -> None:
        target = workspace.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def egg(
        self, workspace: Workspace, name: str, frames: Iterable[Frame], key: IdentityKey | None = KEY
    ) -> Path:
        path = self.folder / f"{name}.egg"
        pack(workspace, path, at=NOON, key=key, conversations=Said(frames), overwrite=True)
        return path

    def merged(
        self, base: Path | None, ours: Path, theirs: Path, name: str = "merged", trusted: Iterable[str] = ()
    ) -> MergedEggs:
        opened: list[ParsedEgg] = [open_egg(path) for path in (base, ours, theirs) if path is not None]
        folder = self.folder / f"staging-{name}"
        folder.mkdir()
        try:
            return merge(
                opened[0] if base else None, opened[-2], opened[-1], folder, at=NOON, trusted=tuple(trusted)
            )
        finally:
            for one in opened:
                one.close()

    def packed(self, found: MergedEggs, name: str = "merged") -> Path:
        path = self.folder / f"{name}.egg"
        pack(found.workspace, path, at=NOON, conversations=found.conversations, overwrite=True)
        return path


@pytest.fixture
def lived(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def text(found: MergedEggs, path: str) -> str:
    return (found.workspace.root / path).read_text()


def test_two_lives_become_one_egg(lived: Lives) -> None:
    lived.write(lived.ours, "agents/frost_agent.py", AGENT.format("'frost'"))
    lived.write(lived.ours, ".brainstem_data/memory.json", json.dumps({"beds": 3, "likes": ["sun", "rain"]}))
    lived.write(
        lived.theirs, ".brainstem_data/memory.json", json.dumps({"beds": 4, "likes": ["sun", "worms"]})
    )
    lived.write(lived.theirs, "notes.txt", "two")
    begun = lived.beginning
    ours = begun + told("garden", begun[-1], 60, [(9, "ours")], "one")
    theirs = begun + told("garden", begun[-1], 60, [(1, "theirs"), (1, "more")], "two")
    eggs = [
        lived.egg(lived.base, "base", begun),
        lived.egg(lived.ours, "desk", ours),
        lived.egg(lived.theirs, "pi", theirs),
    ]
    found = lived.merged(*eggs)
    assert json.loads(text(found, ".brainstem_data/memory.json")) == {
        "beds": 5,
        "likes": ["sun", "rain", "worms"],
    }
    assert text(found, "notes.txt") == "two"
    assert "frost" in text(found, "agents/frost_agent.py")
    report = found.report
    assert (report.shared, report.new, report.contradicting, report.dimensions) == (2, 2, 1, 1)
    assert report.taken == ["notes.txt"]
    assert report.joined == [".brainstem_data/memory.json"]
    assert report.set_aside == report.removed == []

    with open_egg(lived.packed(found)) as opened:
        assert opened.rappid is not None
        assert opened.rappid.text == report.rappid
        [talk] = [part for part in opened.parts if part.role is Role.CONVERSATIONS]
        said = [frame["payload"]["text"] for frame in verified(decoded(talk.chunks()))]
        assert said == ["a", "b", "theirs", "more"]
        [kept] = [part for part in opened.parts if part.target == alternates.FILE]
        [aside] = alternates.decoded(kept.read()).dimensions
        assert [frame["payload"]["text"] for frame in aside.frames] == ["ours"]
        assert aside.seen_in == ("desk.egg",)


def test_conflicting_file_keeps_ours_and_sets_theirs_aside(lived: Lives) -> None:
    lived.write(lived.ours, "agents/water_agent.py", AGENT.format("'ours'"))
    lived.write(lived.theirs, "agents/water_agent.py", AGENT.format("'theirs'"))
    lived.write(lived.ours, "soul.md", "Ours.\n")
    lived.write(lived.theirs, "soul.md", "Theirs.\n")
    base, ours, theirs = (lived.egg(one, name, []) for one, name in _all(lived))
    found = lived.merged(base, ours, theirs)
    assert "'ours'" in text(found, "agents/water_agent.py")
    assert text(found, "soul.md") == "Ours.\n"
    assert found.report.set_aside == ["agents/water_agent.py", "soul.md"]
    kept = alternates.decoded((found.workspace.root / alternates.FILE).read_bytes())
    assert [one.path for one in kept.files] == ["agents/water_agent.py", "soul.md"]
    assert "'theirs'" in text(found, kept.files[0].kept_as)
    assert [path.name for path in (found.workspace.root / "agents").iterdir()] == ["water_agent.py"]

    with open_egg(lived.packed(found)) as opened:
        roles = {part.target: part.role for part in opened.parts}
        assert roles[kept.files[0].kept_as] is Role.MEMORY


def test_removal_wins_over_untouched_and_change_over_removal(lived: Lives) -> None:
    (lived.ours.root / "notes.txt").unlink()
    (lived.ours.root / "agents/water_agent.py").unlink()
    lived.write(lived.theirs, "agents/water_agent.py", AGENT.format("'better'"))
    base, ours, theirs = (lived.egg(one, name, []) for one, name in _all(lived))
    found = lived.merged(base, ours, theirs)
    assert not (found.workspace.root / "notes.txt").exists()
    assert found.report.removed == ["notes.txt"]
    assert "'better'" in text(found, "agents/water_agent.py")
    swapped = lived.merged(base, theirs, ours, "swapped")
    assert swapped.report.removed == ["notes.txt"]
    assert "'better'" in text(swapped, "agents/water_agent.py")
    unknown = lived.merged(None, ours, theirs, "unknown")
    assert text(unknown, "notes.txt") == "one", "without a base nothing counts as removed"


def test_merging_the_same_egg_again_changes_nothing(lived: Lives) -> None:
    begun = lived.beginning
    lived.write(lived.ours, ".brainstem_data/memory.json", '{"beds": 3}')
    lived.write(lived.theirs, ".brainstem_data/memory.json", '{"beds": 9}')
    lived.write(lived.theirs, "soul.md", "Theirs.\n")
    lived.write(lived.ours, "soul.md", "Ours.\n")
    base = lived.egg(lived.base, "base", begun)
    ours = lived.egg(lived.ours, "desk", begun + told("garden", begun[-1], 60, [(2, "x")], "one"))
    theirs = lived.egg(lived.theirs, "pi", begun + told("garden", begun[-1], 60, [(1, "y")], "two"))
    once = lived.merged(base, ours, theirs)
    assert json.loads(text(once, ".brainstem_data/memory.json")) == {"beds": 10}
    merged = lived.packed(once)
    twice = lived.merged(base, merged, theirs, "twice")
    assert twice.report.already
    assert json.loads(text(twice, ".brainstem_data/memory.json")) == {"beds": 10}, "nothing is counted twice"
    assert lived.packed(twice, "twice").read_bytes() == merged.read_bytes()
    itself = lived.merged(base, merged, lived.packed(once, "again"), "itself")
    assert itself.report.already
    assert lived.packed(itself, "itself").read_bytes() == merged.read_bytes(), "nor is that written down"
    onward = lived.merged(base, theirs, merged, "onward")
    assert onward.report.forward
    assert lived.packed(onward, "onward").read_bytes() == merged.read_bytes(), "nor on the other machine"


def test_a_later_egg_of_the_same_machine_is_merged_on_top(lived: Lives) -> None:
    begun = lived.beginning
    base = lived.egg(lived.base, "base", begun)
    ours = lived.egg(lived.ours, "desk", begun + told("kitchen", None, 10, [(1, "x")], "one"))
    said = begun + told("garden", begun[-1], 60, [(1, "y")], "two")
    first = lived.egg(lived.theirs, "pi", said)
    merged = lived.packed(lived.merged(base, ours, first))
    lived.write(lived.theirs, "notes.txt", "three")
    second = lived.egg(lived.theirs, "pi-later", said + told("garden", said[-1], 90, [(1, "z")], "two"))
    found = lived.merged(first, merged, second, "later")
    assert not found.report.already
    assert text(found, "notes.txt") == "three"
    assert [frame["payload"]["text"] for frame in found.conversations.frames("")] == ["a", "b", "x", "y", "z"]
    kept = alternates.decoded((found.workspace.root / alternates.FILE).read_bytes())
    assert len(kept.merged) == 4


def test_another_being_is_refused_and_so_is_what_is_none(lived: Lives, tmp_path: Path) -> None:
    stranger = mint(TwinLayout(tmp_path / "elsewhere"), "Gardener", owner="ada", now=NOON)
    ours = lived.egg(lived.ours, "ours", [])
    other = lived.egg(stranger.workspace, "other", [])
    with pytest.raises(TwinConflictError, match="two different beings"):
        lived.merged(None, ours, other)
    lispy = tmp_path / "ant.lispy.json"
    lispy.write_text('{"_meta": {"type": "lispy-cartridge", "version": 1}, "programs": {"a": "1"}}')
    with pytest.raises(BadEggError, match="no twin"):
        lived.merged(None, ours, lispy, "lispy")


def test_untrusted_code_is_named_and_never_signed_here(lived: Lives) -> None:
    lived.write(lived.theirs, "agents/foreign_agent.py", AGENT.format("'foreign'"))
    base, ours = lived.egg(lived.base, "base", []), lived.egg(lived.ours, "ours", [])
    theirs = lived.egg(lived.theirs, "theirs", [], key=KITCHEN)
    found = lived.merged(base, ours, theirs, trusted=[KEY.fingerprint])
    assert found.report.foreign_code == ["agents/foreign_agent.py"]
    both = lived.merged(base, ours, theirs, "both", trusted=[KEY.fingerprint, KITCHEN.fingerprint])
    assert both.report.foreign_code == []
    none = lived.merged(base, ours, theirs, "none")
    assert none.report.foreign_code == ["agents/water_agent.py", "agents/foreign_agent.py"]


def test_names_that_cannot_lie_on_one_disk_are_kept_apart(lived: Lives) -> None:
    lived.write(lived.ours, "agents/Sun_agent.py", AGENT.format("1"))
    lived.write(lived.theirs, "agents/sun_agent.py", AGENT.format("2"))
    lived.write(lived.ours, "shed", "a file")
    lived.write(lived.theirs, "shed/door.txt", "a folder")
    base, ours, theirs = (lived.egg(one, name, []) for one, name in _all(lived))
    found = lived.merged(base, ours, theirs)
    assert found.report.set_aside == ["agents/sun_agent.py", "shed/door.txt"]
    assert text(found, "shed") == "a file"
    with open_egg(lived.packed(found)) as opened:
        assert {"agents/Sun_agent.py", "shed"} <= {part.target for part in opened.parts}


def test_a_buddys_two_lives_add_up(lived: Lives) -> None:
    nests = [BuddyStore(one) for one in (lived.base, lived.ours, lived.theirs)]
    nests[0].lay(name="Fluffy", now=NOON)
    nests[0].act(Action.FEED, now=NOON)
    for nest, often, memory in ((nests[1], 20, "sun"), (nests[2], 35, "rain")):
        shutil.copy(nests[0].path, nest.path)
        for _ in range(often):
            nest.act(Action.PET, now=NOON)
        nest.act(Action.REMEMBER, text=memory, now=NOON + timedelta(minutes=often))
    base, ours, theirs = (lived.egg(one, name, []) for one, name in _all(lived))
    found = lived.merged(base, ours, theirs)
    assert found.report.joined == [".brainstem_data/buddy.json"]
    nest = BuddyStore(found.workspace)
    buddy = nest.act(Action.STATUS, now=NOON + timedelta(minutes=35)).document["organism"]
    assert buddy["xp"] == 20 + 35 + 3 + 3
    assert buddy["stage"] == "juvenile"
    assert [memory["text"] for memory in buddy["long_memory"]] == ["sun", "rain"]
    assert 0 <= buddy["energy"] <= 100


def _all(lived: Lives) -> list[tuple[Workspace, str]]:
    return [(lived.base, "base"), (lived.ours, "ours"), (lived.theirs, "theirs")]
