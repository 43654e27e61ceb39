"""Snapshots that cannot be relied on: nothing of them goes into the next one, and each is told as what it is."""

from __future__ import annotations

import asyncio
import errno
import zipfile
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from neighborhoods.snapshot import drill as drilling
from neighborhoods.snapshot import staged_parts
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.snapshot_folder import DrillResult, SnapshotFolder, SnapshotRecord
from neighborhoods.snapshot.spooled_files import Spool
from neighborhoods.snapshot.staged_parts import PeerParts
from tests.neighborhoods.snapshot.machines import FolderMember, Machine


@pytest.fixture
def desk(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "desk", "desk")
    machine.brainstem()
    machine.twin("gardener", {"notes.txt": b"dry\n"})
    return machine


@pytest.mark.parametrize("change", ["differs", "is missing"])
def test_drill_names_a_file_that_did_not_come_back(
    desk: Machine, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    record = desk.take().record
    hatch = drilling.restore_local

    async def hatched_badly(plan: Any, installer: Any, hooks: Any) -> Any:
        done = await hatch(plan, installer, hooks)
        (notes,) = installer.home.rglob("notes.txt")
        if change == "differs":
            notes.write_bytes(b"wet\n")
        else:
            notes.unlink()
        return done

    monkeypatch.setattr(drilling, "restore_local", hatched_badly)
    found = asyncio.run(drilling.drill(Path(record.path), desk.folder.root, desk.key.fingerprint))
    assert not found.passed
    assert f"notes.txt {change}" in found.problem


def _rot(egg: Path, ending: str) -> None:
    """Changes a stored member's last byte, with checksums that fit: only the signed hash tells."""
    with zipfile.ZipFile(egg) as archive:
        (info,) = (one for one in archive.infolist() if one.filename.endswith(ending))
        content = archive.read(info)
    assert info.compress_type == zipfile.ZIP_STORED
    rotten = content[:-1] + bytes([content[-1] ^ 1])
    whole = egg.read_bytes()
    for old, new in ((content, rotten), (_checksum(content), _checksum(rotten))):
        assert old in whole
        whole = whole.replace(old, new)
    egg.write_bytes(whole)


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little")


@pytest.mark.parametrize("ending", ["notes.txt", ".tar.gz"])
def test_rot_of_the_last_snapshot_is_not_signed_anew(desk: Machine, tmp_path: Path, ending: str) -> None:
    pi = Machine(tmp_path / "pi", "pi")
    pi.twin("cook")
    peers = [SnapshotPeer("pi", FolderMember(pi.root))]
    _rot(Path(desk.take(peers).record.path), ending)
    with pytest.raises(ReportableError, match="The last snapshot is damaged"):
        desk.take(peers)
    assert len(list(desk.folder.root.glob("*.egg"))) == 1


def test_snapshot_whose_drill_failed_is_no_base_of_the_next(desk: Machine) -> None:
    record = desk.take().record
    assert desk.take().reused
    failed = DrillResult("2026-11-26T10:00:00Z", 0, "gardener/notes.txt differs")
    for one in desk.folder.listing():
        desk.folder.put(msgspec.structs.replace(one, drill=failed))
    assert not desk.take().reused
    assert record.is_there


def test_snapshot_that_another_key_signed_is_no_base_of_the_next(desk: Machine) -> None:
    desk.take()
    desk.key = IdentityKey.generate()
    assert not desk.take().reused


def test_no_egg_stays_that_the_list_has_no_room_for(desk: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(self: SnapshotFolder, record: SnapshotRecord) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SnapshotFolder, "put", is_full)
    with pytest.raises(OSError, match="No space"):
        desk.take()
    assert list(desk.folder.root.glob("*.egg")) == []


def test_part_without_the_note_that_belongs_to_it_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    parts = PeerParts(tmp_path, "pi")
    with Spool(tmp_path) as spool:
        spool.add("notes.txt", [b"dry\n"])
        parts.keep(spool, "cook", "active", "first", ())
        assert parts.find("cook", "active", "first") is not None
        spool.add("more.txt", [b"wet\n"])
        monkeypatch.setattr(staged_parts, "write_atomically", cut_off)
        with pytest.raises(KeyboardInterrupt):
            parts.keep(spool, "cook", "active", "second", ())
    assert parts.find("cook", "active", "first") is None, "its file holds the second by now"
    assert parts.find("cook", "active", "second") is None


def test_part_that_was_read_with_other_permissions_is_read_anew(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        PeerParts(tmp_path, "pi", allowed=["keys.txt"]).keep(spool, "cook", "active", "first", ())
    assert PeerParts(tmp_path, "pi", allowed=["keys.txt"]).find("cook", "active", "first") is not None
    assert PeerParts(tmp_path, "pi").find("cook", "active", "first") is None
