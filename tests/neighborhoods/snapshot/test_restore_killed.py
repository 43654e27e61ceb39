"""A restore killed at any step: each twin is whole or absent, and a second run does what is left."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.plan import Target
from tests.neighborhoods.snapshot.machines import FolderMember, Machine, to_folders, tree
from tests.twins.installer.crash_scenarios import DIED, die_at, in_child

pytestmark = pytest.mark.forks

TARGETS = (Target.LOCAL_SIMULATE, Target.IN_PLACE)


@pytest.mark.parametrize("target", TARGETS)
def test_restore_killed_at_any_step_leaves_no_half_twin(target: Target, tmp_path: Path) -> None:
    desk, pi = Machine(tmp_path / "desk", "desk"), Machine(tmp_path / "pi", "pi")
    desk.brainstem()
    desk.twin("gardener", {"notes.txt": b"dry\n"})
    pi.twin("cook", {"big.bin": os.urandom(5000)})
    egg = Path(desk.take([SnapshotPeer("pi", FolderMember(pi.root))]).record.path)
    whole_desk, whole_pi = tree(desk.root / "twins"), tree(pi.root / "twins")

    def fresh() -> tuple[Machine, FolderMember]:
        for name in ("laptop", "pi2"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        laptop = Machine(tmp_path / "laptop", "laptop")
        laptop.signers.trust(desk.key.fingerprint, "desk")
        (tmp_path / "pi2").mkdir()
        return laptop, FolderMember(tmp_path / "pi2")

    def twins_of_pi(laptop: Machine, member: FolderMember) -> dict[str, bytes]:
        home = member.home if target is Target.IN_PLACE else laptop.root / "simulated" / "pi"
        return _visible(home / "twins")

    laptop, member = fresh()
    ended, steps = in_child(lambda: _hatch(laptop, egg, member, target), lambda count, event: None)
    assert ended == 0
    assert steps > 30
    states = set()
    for number in range(1, steps + 1, 3):
        laptop, member = fresh()
        assert (
            in_child(lambda at=(laptop, member): _hatch(at[0], egg, at[1], target), die_at(number))[0] == DIED
        )
        here, there = _visible(laptop.root / "twins"), twins_of_pi(laptop, member)
        assert here in ({}, whole_desk), f"killed at step {number}"
        assert there in ({}, whole_pi), f"killed at step {number}"
        states.add((bool(here), bool(there)))
        _hatch(laptop, egg, member, target)
        assert _visible(laptop.root / "twins") == whole_desk
        assert twins_of_pi(laptop, member) == whole_pi
        assert [
            path for path in laptop.root.rglob("*") if path.name.startswith((".hatch-", "sending-"))
        ] == []
    assert {(False, False), (True, False), (True, True)} <= states


def _hatch(laptop: Machine, egg: Path, member: FolderMember, target: Target) -> None:
    with laptop.folder.alone():
        assert not laptop.hatch(egg, to_folders(pi=member), target=target).is_partial


def _visible(twins: Path) -> dict[str, bytes]:
    """The files of twins; names that begin with a dot are no twins."""
    return {path: content for path, content in tree(twins).items() if not path.startswith(".")}
