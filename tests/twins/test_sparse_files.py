"""A file with holes takes no more room after it was packed, hatched, copied or sent."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.storage.safe_walk import LinkFreeFolder, LinkFreeFolders
from neighborhoods.snapshot.spooled_files import Spool
from neighborhoods.snapshot.transports import twin_folder
from tests.twins.eggs.writers.nest import Nest
from tests.twins.installer.a_home import NOW, AHome
from twins.eggs.encryption import make_encryption_key, open_file, seal_file
from twins.eggs.extracting import lay_out
from twins.eggs.readers.detect import open_egg
from twins.fs.file_transaction import Location, lay
from twins.merge.egg_merge import merge
from twins.trust.quarantine import QuarantineList
from twins.workspace.fork import fork
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout
from twins.zip.extracting import extract
from twins.zip.reader import Archive

SIZE = 40 << 20
MIDDLE = b"data in the middle"
FEW = 1 << 20


def disk_image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(SIZE)
        file.seek(SIZE // 2)
        file.write(MIDDLE)


def assert_sparse(path: Path) -> None:
    status = path.stat()
    assert status.st_size == SIZE
    with path.open("rb") as file:
        file.seek(SIZE // 2)
        assert file.read(len(MIDDLE)) == MIDDLE
    assert status.st_blocks * 512 < FEW, "the holes were written"


@pytest.fixture
def egg(bare: Nest) -> Path:
    disk_image(bare.workspace.root / "notes/disk.img")
    return bare.pack().path


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Nest]:
    yield Nest(tmp_path)


@pytest.mark.parametrize("is_sent", [False, True])
def test_holes_stay_holes_where_an_egg_is_hatched(egg: Path, tmp_path: Path, is_sent: bool) -> None:
    if is_sent:  # to a peer, which gets it sealed
        secret, recipient = make_encryption_key()
        seal_file(egg, egg.with_suffix(".age"), recipient)
        assert egg.with_suffix(".age").stat().st_size < FEW
        egg.unlink()
        open_file(egg.with_suffix(".age"), egg, secret)
    assert egg.stat().st_size < FEW
    home = AHome(tmp_path / "elsewhere")
    with open_egg(egg) as opened:
        done = home.importer().hatch(opened, now=NOW)
    [hatched] = home.root.glob("twins/*/notes/disk.img")
    assert done.receipt is not None
    assert_sparse(hatched)


def test_holes_stay_holes_where_an_egg_is_laid_out(egg: Path, tmp_path: Path) -> None:
    with open_egg(egg) as opened:
        lay_out(opened, tmp_path / "out")
    [found] = (tmp_path / "out").rglob("disk.img")
    assert_sparse(found)
    (tmp_path / "raw").mkdir()
    with Archive.open(egg) as archive:
        extract(archive, tmp_path / "raw")
    [found] = (tmp_path / "raw").rglob("disk.img")
    assert_sparse(found)


def test_holes_stay_holes_in_a_merge_of_two_eggs(bare: Nest, tmp_path: Path) -> None:
    ours = bare.pack(target=tmp_path / "ours.egg").path
    disk_image(bare.workspace.root / "notes/disk.img")
    theirs = bare.pack(target=tmp_path / "theirs.egg").path
    (tmp_path / "merged").mkdir()
    with open_egg(ours) as mine, open_egg(theirs) as other:
        merge(None, mine, other, tmp_path / "merged")
    assert_sparse(tmp_path / "merged/notes/disk.img")


def test_holes_stay_holes_where_a_file_goes_to_another_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_image(tmp_path / "from/disk.img")
    (tmp_path / "to").mkdir()

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    with LinkFreeFolders(tmp_path) as opened:
        lay(Location("from", "disk.img"), Location("to", "disk.img"), opened)
    assert_sparse(tmp_path / "to/disk.img")


def test_holes_stay_holes_in_a_copy_of_a_twin(tmp_path: Path) -> None:
    places = TwinLayout(tmp_path / "home")
    places.home.mkdir()
    twin = mint(places, "gardener", owner="rose", kind="project", now=NOW)
    disk_image(twin.workspace.root / "notes/disk.img")
    held = QuarantineList(places.home / "held.json", places.home)
    done = fork(places, twin, quarantine=held, owner="rose", name="other", now=NOW)
    assert_sparse(done.twin.workspace.root / "notes/disk.img")


def test_holes_stay_holes_where_a_snapshot_writes_a_twin(tmp_path: Path) -> None:
    disk_image(tmp_path / "from/disk.img")
    with LinkFreeFolder(tmp_path / "from") as source, LinkFreeFolder(tmp_path) as target:
        twin_folder._write(target, "to/disk.img", source.chunks("disk.img"), False, 1_700_000_000)
    assert_sparse(tmp_path / "to/disk.img")
    assert int((tmp_path / "to/disk.img").stat().st_mtime) == 1_700_000_000


def test_holes_stay_holes_in_the_store_of_a_snapshot(tmp_path: Path) -> None:
    disk_image(tmp_path / "disk.img")
    with Spool(tmp_path) as spool:
        before = spool.add("one", [b"one"])
        file = spool.add("disk.img", (bytes(FEW) for _ in range(SIZE // FEW)))
        after = spool.add("two", [b"two"])
        last = spool.add("more.img", (bytes(FEW) for _ in range(3)))
        assert sum(len(piece) for piece in spool.chunks(last)) == 3 * FEW
        assert b"".join(spool.chunks(before)) == b"one"
        assert sum(len(piece) for piece in spool.chunks(file)) == SIZE
        assert b"".join(spool.chunks(after)) == b"two"
        assert os.fstat(spool._file.fileno()).st_blocks * 512 < FEW, "the holes were written"
