"""Reads and writes beneath a root: links, pipes, devices, sizes, and a tree that changes meanwhile."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.kernel_features import offers_openat2

from agents.storage import safe_open
from agents.storage.safe_fs import THREADS, SafeTree, in_file_pool
from agents.storage.safe_open import UnsafeFileError

SECRET = b"the secret"


@pytest.fixture(params=["openat2", "step by step"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SafeTree:
    """A tree with ``a/b/file`` and, beside it, ``outside/file`` with a secret."""
    if request.param == "step by step":
        monkeypatch.setattr(safe_open, "_is_probed", True)
        monkeypatch.setattr(safe_open, "_openat2", None)
    elif not offers_openat2():
        pytest.skip("this kernel, or a filter, has no openat2")
    else:
        assert safe_open.has_openat2()
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "file").write_bytes(b"mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(SECRET)
    return SafeTree(tmp_path / "root")


def test_safe_tree_every_form_of_a_place_is_read(tree: SafeTree) -> None:
    for where in ("a/b/file", ("a", "b", "file"), tree.root / "a" / "b" / "file", Path("a/b/file")):
        assert tree.read(where) == b"mine"
        assert tree.is_file(where)
    assert tree.read_if_there("a/nothing") is None


@pytest.mark.parametrize(
    "where", ["../outside/file", "a/../../outside/file", "a//b/file", "/etc/hostname", ".."]
)
def test_safe_tree_place_outside_is_refused(tree: SafeTree, where: str) -> None:
    with pytest.raises(UnsafeFileError):
        tree.read(where)
    with pytest.raises(UnsafeFileError):
        tree.write_durably(where, b"x")
    assert not tree.exists(where)


def test_safe_tree_link_as_file_is_refused(tree: SafeTree, tmp_path: Path) -> None:
    (tree.root / "link").symlink_to(tmp_path / "outside" / "file")
    (tree.root / "inner").symlink_to("a/b/file")
    for name in ("link", "inner"):
        with pytest.raises(UnsafeFileError, match="link"):
            tree.read(name)
        with pytest.raises(UnsafeFileError):
            tree.open(name)
        with pytest.raises(FileNotFoundError):
            tree.stat_file(name)
        assert not tree.is_file(name)
        assert tree.exists(name)
    tree.write_durably("link", b"new")
    assert (tree.root / "link").read_bytes() == b"new", "the link itself is replaced"
    assert (tmp_path / "outside" / "file").read_bytes() == SECRET


def test_safe_tree_link_as_folder_is_refused(tree: SafeTree, tmp_path: Path) -> None:
    (tree.root / "a" / "away").symlink_to(tmp_path / "outside")
    refused: list[Callable[[], object]] = [
        lambda: tree.read("a/away/file"),
        lambda: tree.write_durably("a/away/new", b"x"),
        lambda: tree.write("a/away/new", b"x"),
        lambda: tree.make_folder("a/away/folder"),
        lambda: tree.remove("a/away/file"),
        lambda: tree.remove_tree("a/away/file"),
        lambda: tree.rename("a/b/file", "a/away/file"),
        lambda: tree.rename("a/away/file", "stolen"),
        lambda: tree.lstat("a/away/file"),
        lambda: tree.entries("a/away"),
    ]
    for attempt in refused:
        with pytest.raises(UnsafeFileError):
            attempt()
    assert list(tree.files("a/away", lambda _: True, lambda _: True)) == []
    assert tree.names("a/away") == []
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]
    assert (tmp_path / "outside" / "file").read_bytes() == SECRET
    assert tree.links("") == ["a/away"]


def test_safe_tree_removing_a_tree_follows_no_link(tree: SafeTree, tmp_path: Path) -> None:
    (tree.root / "a" / "b" / "away").symlink_to(tmp_path / "outside")
    tree.remove_tree("a")
    assert not (tree.root / "a").exists()
    (tree.root / "away").symlink_to(tmp_path / "outside")
    tree.remove_tree("away")
    assert not os.path.lexists(tree.root / "away")
    assert (tmp_path / "outside" / "file").read_bytes() == SECRET


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
def test_safe_tree_no_regular_file_is_refused_at_once(tree: SafeTree, kind: str) -> None:
    path = tree.root / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == "device":
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    else:
        path.mkdir()
    for attempt in (tree.read, tree.open, tree.stat_file):  # none waits for a writer of the pipe
        with pytest.raises(OSError, match=r"odd|not permitted"):
            attempt("odd")
    assert not tree.is_file("odd")


def test_safe_tree_too_large_a_file_is_refused(tree: SafeTree) -> None:
    (tree.root / "large").write_bytes(b"x" * 1000)
    assert len(tree.read("large", 1000)) == 1000
    with pytest.raises(UnsafeFileError, match="larger than 999 bytes"):
        tree.read("large", 999)
    with (tree.root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnsafeFileError, match="larger"):
        tree.read("sparse")


def test_safe_tree_write_is_whole_and_private(tree: SafeTree) -> None:
    tree.write_durably("new/deep/file", b"one")
    tree.write_durably("new/deep/file", b"two")
    assert tree.read("new/deep/file") == b"two"
    assert (tree.root / "new" / "deep" / "file").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tree.root / "new" / "deep").iterdir()] == ["file"]
    tree.rename("new/deep/file", "elsewhere/file")
    tree.remove_empty_folders("new")
    assert not tree.exists("new")
    assert tree.names("") == ["a", "elsewhere"]


def _swap(place: str, first: str, second: str, stop: float) -> None:
    """Has ``place`` be a copy of one, then of the other, as fast as that goes."""
    while time.time() < stop:
        for target in (first, second):
            spare = f"{place}.spare"
            os.link(target, spare, follow_symlinks=False)
            Path(spare).replace(place)


@pytest.fixture
def swapping() -> Iterator[Callable[..., None]]:
    running: list[multiprocessing.Process] = []

    def begin(place: Path, first: Path, second: Path) -> None:
        process = multiprocessing.get_context("fork").Process(
            target=_swap, args=(str(place), str(first), str(second), time.time() + 10), daemon=True
        )
        process.start()
        running.append(process)

    yield begin
    for process in running:
        process.kill()
        process.join()


def test_safe_tree_swapped_file_never_gives_the_secret(
    tree: SafeTree, tmp_path: Path, swapping: Callable[..., None]
) -> None:
    (tmp_path / "a link").symlink_to(tmp_path / "outside" / "file")
    (tree.root / "a" / "b" / "file.real").write_bytes(b"mine")
    swapping(tree.root / "a" / "b" / "file", tree.root / "a" / "b" / "file.real", tmp_path / "a link")
    found = _outcomes(lambda: tree.read("a/b/file"))
    assert found == {b"mine", b"refused"}, "both sides of the race were met, and no secret"


def test_safe_tree_swapped_folder_never_gives_the_secret(tree: SafeTree, tmp_path: Path) -> None:
    real, place, away = tree.root / "a" / "real", tree.root / "a" / "b", tmp_path / "outside"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.rename(real)
            place.symlink_to(away)
            place.unlink()
            real.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = _outcomes(lambda: tree.read("a/b/file"))
    finally:
        stop.set()
        thread.join()
    assert SECRET not in found
    assert b"mine" in found


def _outcomes(read: Callable[[], bytes]) -> set[bytes]:
    found: set[bytes] = set()
    until = time.monotonic() + 2
    while time.monotonic() < until:
        try:
            found.add(read())
        except FileNotFoundError:
            continue
        except UnsafeFileError:
            found.add(b"refused")
    return found


async def test_file_pool_slow_calls_leave_the_default_threads_free() -> None:
    released = threading.Event()
    slow = [asyncio.ensure_future(in_file_pool(released.wait, 120)) for _ in range(4 * THREADS)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(100):
        await asyncio.gather(*(asyncio.to_thread(time.sleep, 0) for _ in range(40)))
    released.set()
    assert all(await asyncio.gather(*slow))
