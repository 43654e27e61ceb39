"""Eggs that came in and are not hatched yet: ``eggs/.waiting/<sha256>/<name>``, for a day; opened where sealed.

What is planned, and then hatched, is a copy that lies in the home. Nobody else writes there, so that nothing
changes between the look and the yes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError
from twins.eggs.encryption import is_sealed, open_file
from twins.errors import BadEggError, BadFileError, NoSuchFileError
from twins.fs.untrusted_names import why_no_component
from twins.installer.errors import from_disk

_KEEP_SECONDS = 24 * 3600
_CHUNK = 1 << 20
_NAME_BYTES = 120
_SIGNATURE_BYTES = 1 << 16
_ID = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = ".sig"
SUFFIX = ".age"
RECEIVED = ".arrived"
"""The folder, among the home's eggs, of those that came from elsewhere and wait."""
_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # bytes; PATH_MAX and NAME_MAX of limits.h


class UploadedEggs:
    """The folder of them. An egg's id is the SHA-256 of its bytes. Everything blocks on the disk."""

    def __init__(self, folder: Path, *, keep_seconds: float = _KEEP_SECONDS) -> None:
        self._folder = folder
        self._keep_seconds = keep_seconds
        self._lock = Lock()
        self._holds: Counter[str] = Counter()
        """By id: how many tabs look at an egg that they opened."""

    def part(self) -> Path:
        """A name for a file that is still coming in. Eggs that waited for more than a day go meanwhile."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.remove_old()
        return self._folder / f"{secrets.token_hex(8)}.part"

    def keep(self, part: Path, digest: str, called: str, *, hold: bool = False) -> Path:
        """Moves a file that came in whole to its place, under the name that people know it by.

        One that is held stays until it was let go as often.
        """
        folder = self._folder / digest
        with self._lock:
            self._holds[digest] += hold
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / _proper(called)
            part.replace(path)
        os.utime(folder)
        return path

    def keep_whole(self, part: Path, called: str) -> Path:
        """``keep`` of a file whose SHA-256 is not known yet."""
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return self.keep(part, digest, called)

    def take_in(self, path: Path, *, expect_sha256: str = "", hold: bool = False) -> Path:
        """A copy of the file at ``path``, with the signature that lies beside it; the file itself when it waits here already.

        Raises ``NoSuchFileError``, ``BadFileError`` for what is no regular file, ``BadEggError`` for another hash,
        ``DiskFullError``.
        """
        if path.parent.parent == self._folder:
            kept = path
        else:
            part = self.part()
            try:
                digest = _copied(path, part)
                kept = self.keep(part, digest, path.name, hold=hold)
            finally:
                part.unlink(missing_ok=True)
            self._take_signature(path, kept)
        if expect_sha256 and self.id_of(kept) != expect_sha256.lower():
            self.discard(kept)
            raise BadEggError(f"{path.name} is not the egg that is expected; nothing was written.",
                         do="Ask its publisher.")  # fmt: skip
        return kept

    def find(self, ident: str) -> Path:
        """The egg of that id. Raises ``NotFoundError``."""
        folder = self._folder / ident
        names = sorted(folder.iterdir()) if _ID.fullmatch(ident) and folder.is_dir() else []
        eggs = [one for one in names if one.with_suffix("") not in names or one.suffix != _SIGNATURE]
        if not eggs:
            raise NotFoundError("That egg does not wait here any more.", do="Open it again.")
        return max(eggs, key=lambda one: one.stat().st_mtime_ns)

    def held(self) -> list[Path]:
        """The eggs that somebody looks at."""
        with self._lock:
            ids = [id for id, count in self._holds.items() if count > 0]
        found = []
        for id in ids:
            with contextlib.suppress(NotFoundError):
                found.append(self.find(id))
        return found

    def id_of(self, path: Path) -> str:
        """The id of an egg that waits here."""
        return path.parent.name

    def let_go(self, path: Path) -> None:
        """Throws one away, unless others hold it."""
        with self._lock:
            self._holds[self.id_of(path)] -= 1
            if self._holds[self.id_of(path)] <= 0:
                self._remove(path)

    def discard(self, path: Path) -> None:
        """Throws one away, even while others hold it."""
        with self._lock:
            self._remove(path)

    def _remove(self, path: Path) -> None:
        self._holds.pop(self.id_of(path), None)
        shutil.rmtree(path.parent, ignore_errors=True)  # what resists goes after a day

    def keep_signature(self, kept: Path, signature: bytes) -> None:
        """Lays the signature that came with an egg beside it; with b"" there is none."""
        target = kept.with_name(kept.name + _SIGNATURE)
        target.unlink(missing_ok=True)
        if signature:
            target.write_bytes(signature)

    def _take_signature(self, path: Path, kept: Path) -> None:
        try:
            file, size = _opened(path.with_name(path.name + _SIGNATURE))
        except (NoSuchFileError, BadFileError):
            self.keep_signature(kept, b"")
            return
        with file:
            self.keep_signature(kept, file.read(_SIGNATURE_BYTES) if size <= _SIGNATURE_BYTES else b"")

    def remove_old(self) -> None:
        """Removes what waited too long, and parts of a process that was killed. Raises ``OSError``."""
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            try:
                waited = time.time() - path.stat().st_mtime
            except FileNotFoundError:  # somebody hatched it meanwhile
                continue
            if waited <= self._keep_seconds:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def new_file(path: Path) -> BinaryIO:
    """A new private file to write into."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


async def receive(
    part: Path,
    pieces: AsyncIterator[bytes],
    *,
    most: int,
    do: str,
    size: int = 0,
    came: Callable[[], object] = lambda: None,
) -> str:
    """Writes what comes into a new file and returns its SHA-256; ``came`` is called after each piece.

    ``size`` is what is said to come. Raises ``UsageProblemError`` for more than ``most`` bytes, with ``do``, and for
    nothing; ``DiskFullError``, ``not_writable``.
    """
    digest, written = hashlib.sha256(), 0
    try:
        with await asyncio.to_thread(new_file, part) as file:
            async for piece in pieces:
                written += len(piece)
                if written > most:
                    raise UsageProblemError(f"The egg has more than {most >> 30} GB.", do=do)
                digest.update(piece)
                await asyncio.to_thread(file.write, piece)
                came()
    except OSError as error:
        raise from_disk(error, "The egg", needs=size or written) from error
    if not written:
        raise UsageProblemError("No file was sent.", do="The body is the egg.")
    return digest.hexdigest()


def _copied(path: Path, part: Path) -> str:
    """Copies a file; the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    source, size = _opened(path)
    try:
        with source, new_file(part) as target:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
    except OSError as error:
        raise from_disk(error, path.name, needs=size) from error
    return digest.hexdigest()


def _opened(path: Path) -> tuple[BinaryIO, int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NoSuchFileError(f"There is no file {path}.", do="Look at the path.") from None
    except OSError as error:
        raise BadFileError(
            f"{path.name} cannot be read: {error.strerror}.", do="Look at the file."
        ) from error
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise BadFileError(f"{path.name} is not a file.", do="Name an egg.")
    return os.fdopen(handle, "rb"), found.st_size


def _proper(called: str) -> str:
    """A file's name as it may be used here; its end, which tells what it is, stays."""
    name = re.sub(r"[\x00-\x1f\x7f]+", " ", re.split(r"[/\\]", called)[-1])
    name = re.sub(r'[<>:"|?*]', "_", name)
    name = name.encode("utf-8", "replace").decode().strip(" .")
    while len(name.encode()) > _NAME_BYTES:
        name = name[len(name) // 8 + 1 :].strip(" .")
    return "an egg" if why_no_component(name) else name


def whole_path(text: str) -> Path:
    """A path on this machine that does not depend on where one stands. Raises ``UsageProblemError``."""
    path = Path.home() / text[2:] if text.startswith("~/") else Path(text)
    if "\0" in text or not path.is_absolute():
        raise UsageProblemError(
            "Which egg? Its whole path is needed.", do="Give a path like /home/ada/rose.egg."
        )
    if len(str(path).encode(errors="replace")) >= _LONGEST_PATH or any(
        len(part.encode(errors="replace")) > _LONGEST_NAME for part in path.parts
    ):
        raise UsageProblemError("That path is longer than a disk can hold.", do="Give a shorter one.")
    return path


def is_sealed_file(path: Path) -> bool:
    """True for a file in the form of a sealed egg; False for one that cannot be read. Blocks."""
    try:
        return is_sealed(path)
    except OSError:
        return False


def unsealed(path: Path, home: Home, waiting: UploadedEggs) -> Path:
    """The egg itself: ``path``, or what is sealed in it, as a copy that waits here. Blocks.

    Raises ``not_for_this_machine``, ``BadEggError``, ``NotFoundError``.
    """
    if not is_sealed_file(path):
        return path  # its reader reports what is wrong with it
    secret = home.keys / "sealing.txt"
    if not secret.exists():
        raise NotFoundError("This machine never had a key for sealed eggs.", do="rappd start makes one.")
    part = waiting.part()
    try:
        open_file(path, part, secret.read_text())
        return waiting.keep_whole(part, path.name.removesuffix(SUFFIX))
    finally:
        part.unlink(missing_ok=True)
