"""The ``.deps`` folder of a workspace, changed as a whole although workers may write beside it.

Every step starts from an open folder and follows no link, so that a worker that exchanges a folder
meanwhile leads nothing astray.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import fcntl
import io
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from agents.packages.requirements import normalised

_RENAME_EXCHANGE = 2
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_RECORD_BYTES = 32 << 20
_INFO = ".dist-info"
_FRESH = "packages"


class PackageFolder:
    """``.deps``, locked, with a fresh folder beside it: ``work``, which holds ``packages``."""

    def __init__(self, path: Path, beside: int, work: int) -> None:
        self.work = work
        self._name = path.name
        self._beside = beside

    def installed(self) -> dict[str, str]:
        """Name (as indexes compare it) to version of every package in it."""
        with _opened(self._name, self._beside) as folder:
            return _packages(folder)

    def take_over(self) -> None:
        """Put the fresh packages, and what was there of others, in the place of the folder."""
        with _opened(_FRESH, self.work) as fresh, _opened(self._name, self._beside) as old:
            if fresh is None:
                raise FileNotFoundError(2, "the packages that were fetched are gone", _FRESH)
            if old is not None:
                _carry_over(old, fresh, _replaced_files(old, _packages(fresh)))
        self._exchange()

    def _exchange(self) -> None:
        if not _exists(self._name, self._beside):
            os.rename(_FRESH, self._name, src_dir_fd=self.work, dst_dir_fd=self._beside)
            return
        renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        ends = (self.work, os.fsencode(_FRESH), self._beside, os.fsencode(self._name))
        if renameat2 and renameat2(*ends, _RENAME_EXCHANGE) == 0:
            return
        # Two steps: the next lock puts the old one back should we die between them.
        here = {"src_dir_fd": self._beside, "dst_dir_fd": self._beside}
        os.rename(self._name, _previous(self._name), **here)
        os.rename(_FRESH, self._name, src_dir_fd=self.work, dst_dir_fd=self._beside)
        _remove(_previous(self._name), self._beside)


@contextlib.contextmanager
def locked(path: Path, seconds: float) -> Iterator[PackageFolder]:
    """One installation at a time; what an interrupted one left is put right first.

    Raises TimeoutError when another one takes longer than ``seconds``, OSError when the folder is a link
    or cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fresh, previous = f"{path.name}.new", _previous(path.name)
    try:
        _lock(beside, seconds)
        if _exists(previous, beside) and not _exists(path.name, beside):
            os.rename(previous, path.name, src_dir_fd=beside, dst_dir_fd=beside)
        _refuse_link(path, beside)
        for leftover in (previous, fresh):
            _remove(leftover, beside)
        os.mkdir(fresh, 0o700, dir_fd=beside)
        work = os.open(fresh, _FOLDER, dir_fd=beside)
        try:
            os.mkdir(_FRESH, 0o700, dir_fd=work)
            yield PackageFolder(path, beside, work)
        finally:
            os.close(work)
            _remove(fresh, beside)
    finally:
        os.close(beside)


def _previous(name: str) -> str:
    return f"{name}.old"


def _lock(folder: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError("another installation is under way") from None
            time.sleep(0.05)


def _refuse_link(path: Path, beside: int) -> None:
    if _exists(path.name, beside):
        found = os.stat(path.name, dir_fd=beside, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(20, "it is a link or a file; move it away", str(path))


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def _opened(name: str, folder: int | None) -> Iterator[int | None]:
    try:
        found = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        yield None
        return
    try:
        yield found
    finally:
        os.close(found)


def _packages(folder: int | None) -> dict[str, str]:
    names = os.listdir(folder) if folder is not None else []
    return dict(_name_and_version(name) for name in names if name.endswith(_INFO))


def _name_and_version(info: str) -> tuple[str, str]:
    name, _, version = info.removesuffix(_INFO).rpartition("-")
    return normalised(name), version


def _replaced_files(old: int, replaced: dict[str, str]) -> set[str]:
    """The files in ``old`` of packages that are in ``replaced``."""
    dropped: set[str] = set()
    for name in os.listdir(old):
        if name.endswith(_INFO) and _name_and_version(name)[0] in replaced:
            with _opened(name, old) as info:
                if info is not None:
                    dropped |= {f"{name}/{part}" for part in os.listdir(info)} | _recorded(info)
    return dropped


def _recorded(info: int) -> set[str]:
    try:
        record = os.open("RECORD", _FILE, dir_fd=info)
    except OSError:
        return set()
    with open(record, "rb") as file:
        if not stat.S_ISREG(os.fstat(record).st_mode):
            return set()
        text = file.read(_RECORD_BYTES).decode("utf-8", "replace")
    with contextlib.suppress(csv.Error):
        return {os.path.normpath(row[0]) for row in csv.reader(io.StringIO(text)) if row}
    return set()


def _carry_over(old: int, fresh: int, dropped: set[str], below: str = "") -> None:
    """Add to ``fresh`` what ``old`` holds and ``fresh`` does not bring itself."""
    for name in os.listdir(old):
        rel = f"{below}{name}"
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=old, follow_symlinks=False).st_mode)
        if not is_folder:
            if rel not in dropped and _source_of(rel) not in dropped:
                _carry_file(name, old, fresh)
            continue
        is_new = not _exists(name, fresh)
        if is_new:
            os.mkdir(name, dir_fd=fresh)
        with _opened(name, old) as from_folder, _opened(name, fresh) as to_folder:
            if from_folder is not None and to_folder is not None:
                _carry_over(from_folder, to_folder, dropped, f"{rel}/")
        if is_new:
            with contextlib.suppress(OSError):  # unless something was put there
                os.rmdir(name, dir_fd=fresh)


def _source_of(rel: str) -> str:
    """The file that a compiled one was made from, "" for any other file."""
    folder, name = os.path.split(rel)
    if os.path.basename(folder) != "__pycache__":
        return ""
    return os.path.join(os.path.dirname(folder), f"{name.partition('.')[0]}.py")


def _carry_file(name: str, old: int, fresh: int) -> None:
    try:
        os.link(name, name, src_dir_fd=old, dst_dir_fd=fresh, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        source = os.open(name, _FILE, dir_fd=old)
        with open(source, "rb") as from_file:
            found = os.fstat(source)
            if stat.S_ISREG(found.st_mode):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with (
                    contextlib.suppress(FileExistsError),
                    open(os.open(name, flags, found.st_mode & 0o777, dir_fd=fresh), "wb") as to_file,
                ):
                    shutil.copyfileobj(from_file, to_file)
