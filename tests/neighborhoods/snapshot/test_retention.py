"""Removing old scheduled snapshots: only its own, only behind a newer whole one, never the last restorable one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from neighborhoods.snapshot.capture import take_snapshot
from neighborhoods.snapshot.drill import drill
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.retention import remove_old
from neighborhoods.snapshot.snapshot_folder import DrillResult, SnapshotRecord
from tests.neighborhoods.snapshot.machines import NOW, Machine


@pytest.fixture
def desk(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "desk", "desk")
    made.brainstem()
    made.twin("gardener")
    return made


def take(
    desk: Machine, hour: int, *, scheduled: bool = True, lacks: tuple[str, ...] = (), tried: bool = True
) -> SnapshotRecord:
    """A snapshot of that hour, without the machines that it ``lacks``."""

    async def work() -> SnapshotRecord:
        peers = [SnapshotPeer(name, None) for name in lacks]
        at = NOW + timedelta(hours=hour)
        with desk.folder.alone():
            done = await take_snapshot(
                desk.local(), peers, desk.folder, desk.key, scheduled=scheduled, now=at
            )
            result = await drill(Path(done.record.path), desk.folder.root, desk.key.fingerprint)
            record = msgspec.structs.replace(done.record, drill=result if tried else DrillResult("", 0, "no"))
            desk.folder.put(record)
            return record

    return asyncio.run(work())


def names(desk: Machine) -> list[str]:
    return [one.name for one in reversed(desk.folder.listing())]


def test_remove_old_keeps_the_last_whole_ones_and_those_of_others(desk: Machine) -> None:
    by_hand = take(desk, 0, scheduled=False)
    old = [take(desk, 1), take(desk, 2, lacks=("pi",)), take(desk, 3), take(desk, 4, tried=False)]
    kept = [take(desk, 5), take(desk, 6)]
    assert {one.name for one in remove_old(desk.folder, 2)} == {one.name for one in old}
    assert names(desk) == [one.name for one in [by_hand, *kept]]
    assert sorted(path.name for path in desk.folder.root.glob("*.egg")) == sorted(
        Path(one.path).name for one in [by_hand, *kept]
    )
    assert remove_old(desk.folder, 2) == []


def test_remove_old_without_a_newer_whole_one_removes_nothing(desk: Machine) -> None:
    take(desk, 1)
    take(desk, 2, lacks=("pi",))
    take(desk, 3, tried=False)
    assert remove_old(desk.folder, 1) == []
    assert len(names(desk)) == 3


def test_remove_old_keeps_partial_ones_only_as_far_as_they_have_something_of_their_own(desk: Machine) -> None:
    first = take(desk, 1, lacks=("pi",))
    own = take(desk, 2, lacks=("vm",))
    others = [take(desk, hour, lacks=("pi", "phone")) for hour in range(3, 6)]
    assert remove_old(desk.folder, 5) == []
    assert [one.name for one in remove_old(desk.folder, 1)] == [one.name for one in reversed(others[:2])]
    assert names(desk) == [one.name for one in (first, own, others[2])]
    last = take(desk, 6, lacks=("pi",))
    assert [one.name for one in remove_old(desk.folder, 1)] == [others[2].name, first.name]
    take(desk, 7, lacks=("pi",), tried=False)
    assert remove_old(desk.folder, 1) == []
    assert names(desk)[:2] == [own.name, last.name]


def test_remove_old_leaves_a_changed_file(desk: Machine) -> None:
    old = Path(take(desk, 1).path)
    content = bytearray(old.read_bytes())
    content[-1] ^= 1
    old.write_bytes(content)
    take(desk, 2)
    assert remove_old(desk.folder, 1) == []
    assert old.read_bytes() == content


def test_remove_old_leaves_files_outside_its_folder(desk: Machine, tmp_path: Path) -> None:
    record = take(desk, 1)
    elsewhere = Path(record.path).rename(tmp_path / "mine.egg")
    desk.folder.put(msgspec.structs.replace(record, path=str(elsewhere)))
    take(desk, 2)
    assert remove_old(desk.folder, 1) == []
    assert elsewhere.exists()


@pytest.mark.parametrize("wrong", [-500_000, 90_000], ids=["past", "future"])
def test_snapshot_taken_by_a_wrong_clock_is_neither_newest_for_ever_nor_removed_first(
    desk: Machine, wrong: int
) -> None:
    before = take(desk, 1)
    odd = take(desk, wrong)
    assert [one.name for one in desk.folder.listing()] == [odd.name, before.name]
    desk.folder.put(before)  # drilled again: it is no newer for that
    now = take(desk, 2)
    last = desk.folder.last_restorable()
    assert last is not None and last.name == now.name
    assert {one.name for one in remove_old(desk.folder, 1)} == {before.name, odd.name}
    assert names(desk) == [now.name]
