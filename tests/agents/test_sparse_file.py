"""Holes of files: they cost no reading, and no room where they are written again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.storage.safe_walk import LinkFreeFolder
from agents.storage.sparse_file import end_sparse, is_hole, is_sparse, read_hole, write_sparse

MIB = 1 << 20


def room(path: Path) -> int:
    return path.stat().st_blocks * 512


def image(path: Path, *parts: tuple[int, bytes], size: int) -> Path:
    """A file of that size with data at the given places, and holes elsewhere."""
    with path.open("wb") as file:
        file.truncate(size)
        for at, data in parts:
            file.seek(at)
            file.write(data)
    return path


def copied(source: Iterator[bytes], target: Path) -> Path:
    with target.open("wb") as file:
        for piece in source:
            write_sparse(file.fileno(), piece)
        end_sparse(file.fileno())
    return target


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ([], 8 * MIB),
        ([(3 * MIB + 5, b"data in the middle")], 8 * MIB),
        ([(0, b"begin")], 5 * MIB + 17),
        ([(8 * MIB - 3, b"end")], 8 * MIB),
        ([(0, b"x" * MIB), (2 * MIB, b"y" * 3 * MIB)], 6 * MIB + 1),
        ([], 0),
        ([(0, b"\0" * 10)], 10),
    ],
)
def test_a_copy_has_the_bytes_and_no_more_room(
    tmp_path: Path, parts: list[tuple[int, bytes]], size: int
) -> None:
    source = image(tmp_path / "disk.img", *parts, size=size)
    with LinkFreeFolder(tmp_path) as folder:
        target = copied(folder.chunks("disk.img"), tmp_path / "copy.img")
    assert target.stat().st_size == size
    assert target.read_bytes() == source.read_bytes()
    assert room(target) <= room(source) + 2 * 65536


def test_a_hole_is_told_from_zeros_that_were_written_only_by_its_room(tmp_path: Path) -> None:
    source = image(tmp_path / "disk.img", (MIB, b"data"), size=3 * MIB)
    assert is_sparse(source.stat())
    handle = os.open(source, os.O_RDONLY)
    try:
        first = read_hole(handle, MIB)
        if first is not None:  # this file system tells of its holes
            assert first == bytes(MIB)
            assert read_hole(handle, MIB) is None
            assert os.read(handle, 4) == b"data"
        os.lseek(handle, 2 * MIB + 1, os.SEEK_SET)
        assert read_hole(handle, MIB) is None, "it ends before"
    finally:
        os.close(handle)


def test_only_long_runs_of_zeros_are_holes() -> None:
    assert is_hole(bytes(MIB))
    assert not is_hole(bytes(100))
    assert not is_hole(bytes(MIB - 1) + b"x")
    assert not is_hole(bytes(MIB // 2) + b"x" + bytes(MIB // 2))
