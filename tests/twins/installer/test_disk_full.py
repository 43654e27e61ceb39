"""A disk that is full, or cannot be written: a clear sentence, and everything as it was."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.refusals import refused

from tests.twins.installer.a_home import GARDENER, AHome, egg, leftovers, lies, part
from twins.byte_sizes import format_bytes
from twins.installer.errors import DiskFullError, from_disk


def test_an_egg_that_cannot_fit_is_not_begun(home: AHome) -> None:
    huge = part(".brainstem_data/huge", b"", size=10**15)
    with pytest.raises(DiskFullError, match="disk is full; gardener is not hatched, not even half") as caught:
        home.importer().hatch(egg(GARDENER, huge))
    assert caught.value.do.startswith("Free ")
    assert (caught.value.code, caught.value.status) == ("disk_full", 507)
    assert not leftovers(home.root)
    assert not home.twin.exists()


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (3_100_000, "3.1 MB"), (1_200_000_000, "1.2 GB"), (10**15, "1000 TB")],
)  # fmt: skip
def test_sizes_are_said_as_people_read_them(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=60", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("no file system may be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


needs_a_disk = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


@pytest.mark.needs_root
@needs_a_disk
@pytest.mark.parametrize("exists", [False, True])
def test_a_disk_that_fills_up_meanwhile(tiny_disk: Path, exists: bool) -> None:
    home = AHome(tiny_disk / "home")
    if exists:
        home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"], "soul.md": b"mine\n"})
    before = lies(home.twin)
    large = part(".brainstem_data/large", b"x" * 4000)
    filler = tiny_disk / "filler"

    def fill(step: str, done: int, total: int) -> None:
        if not filler.exists():
            with filler.open("wb") as file:
                while True:
                    try:
                        file.write(b"x" * 4096)
                        file.flush()
                    except OSError:
                        break

    with pytest.raises(DiskFullError):
        home.importer().hatch(egg(GARDENER, large), overwrite=["soul"], progress=fill)
    assert lies(home.twin) == before
    assert not leftovers(home.root)
    filler.unlink()
    home.importer().hatch(egg(GARDENER, large), overwrite=["soul"])
    assert (home.twin / "soul.md").read_bytes() == GARDENER["soul.md"]


@pytest.mark.needs_root
@needs_a_disk
def test_a_disk_without_room_for_one_more_file(tiny_disk: Path) -> None:
    home = AHome(tiny_disk / "home")
    many = {f".brainstem_data/{number}.json": b"{}" for number in range(80)}
    with pytest.raises(DiskFullError):
        home.importer().hatch(egg({**GARDENER, **many}))
    assert not home.twin.exists()
    assert not leftovers(home.root)
    home.importer().hatch(egg(GARDENER))


@pytest.mark.needs_root
@needs_a_disk
def test_a_disk_that_may_not_be_written(tiny_disk: Path) -> None:
    home = AHome(tiny_disk / "home")
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"]})
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    try:
        plan = home.importer().plan(egg(GARDENER))
        assert plan.placed
        with refused("not_writable", match="read-only file system; gardener is as it was"):
            home.importer().hatch(egg(GARDENER))
    finally:
        subprocess.run(["mount", "-o", "remount,rw", tiny_disk], check=True)
    assert list(lies(home.twin)) == ["rappid.json"]


def test_full_disk_never_asks_for_no_bytes() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert from_disk(full, "gardener").do == "Free some space, rerun."
    assert from_disk(full, "gardener", needs=5 << 20).do == "Free 5.2 MB, rerun."
