"""Writing an egg's parts beside their destination, on the same disk, before anything there is touched."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from agents.storage.atomic_write import sync_folder
from agents.storage.safe_walk import LinkFreeFolder, split
from twins.byte_sizes import format_bytes
from twins.eggs.parsed_egg import ParsedEgg, Part
from twins.errors import BadEggError
from twins.fs.file_transaction import MOVING, PREFIX, UNDOING
from twins.installer.errors import DiskFullError
from twins.work_progress import STAGE, PhaseCounter, Progress
from twins.zip.ordered_pool import OrderedThreadPool, in_tasks

_SPARE = 4 << 20  # what journals and receipts may need besides
_LARGE = 1 << 20  # bytes of a file that the disk begins to write at once


class StagedFile(msgspec.Struct, frozen=True):
    """One written file."""

    sha256: str
    size: int


def new_id(now: datetime) -> str:
    """The name of one hatching: sorts by time, within a second too unless only the second is known."""
    within = f"{now.microsecond >> 4:04x}{secrets.token_hex(1)}" if now.microsecond else secrets.token_hex(3)
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{within}"


def make_staging(beside: Path, ident: str) -> Path:
    """An empty staging folder in ``beside``, the folder that the destination lies in."""
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    staging = beside / f"{PREFIX}{ident}"
    staging.mkdir(mode=0o700)
    sync_folder(beside)
    return staging


def abandon(staging: Path) -> None:
    """Throws a staging folder away, unless a journal says that it is still needed."""
    if not (staging / MOVING).exists() and not (staging / UNDOING).exists():
        shutil.rmtree(
            staging, ignore_errors=True
        )  # the failure that led here is told; leftovers go at the start


def check_disk_space(beside: Path, needed: int, name: str) -> None:
    """Raises ``DiskFullError`` when ``needed`` bytes do not fit on the disk of ``beside``."""
    found = os.statvfs(beside)
    missing = needed + _SPARE - found.f_bavail * found.f_frsize
    if missing > 0:
        raise DiskFullError(
            f"The disk is full; {name} is not hatched, not even half.",
            do=f"Free {format_bytes(missing)}, rerun.",
        )


def stage_parts(
    opened: ParsedEgg, parts: list[Part], tree: Path, progress: Progress | None = None
) -> dict[str, StagedFile]:
    """Writes ``parts`` below ``tree`` by their targets; what was written, by target.

    Raises ``BadEggError`` when a part is not as long as the egg says.
    """
    told = PhaseCounter(progress, STAGE, sum(part.size for part in parts))
    written: dict[str, StagedFile] = {}
    tree.mkdir(mode=0o700, exist_ok=True)
    with OrderedThreadPool[dict[str, StagedFile]](meanwhile=told.tell) as ahead:
        tasks = in_tasks((part, part.size) for part in parts)
        for staged in ahead.each(partial(_stage, opened.name, task, tree, told, ahead) for task in tasks):
            told.tell()
            written |= staged
    told.finish()
    return written


def _stage(
    egg: str,
    parts: list[Part],
    tree: Path,
    told: PhaseCounter,
    ahead: OrderedThreadPool[dict[str, StagedFile]],
) -> dict[str, StagedFile]:
    written = {}
    with LinkFreeFolder(tree, durable=False) as walk:
        for part in parts:
            digest = hashlib.sha256()
            size = 0
            above, name = split(part.target)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(name, flags, 0o600, dir_fd=walk.folder(above, make=True))
            try:
                for chunk in ahead.unless_stopped(part.chunks()):
                    size += len(chunk)
                    if size > part.size:
                        break
                    digest.update(chunk)
                    _write(handle, chunk)
                    told.add(len(chunk))
                if size >= _LARGE and hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
            if size != part.size:
                raise BadEggError(f"{egg} is damaged ({part.name}); nothing was written.", do="Get it again.")
            written[part.target] = StagedFile(digest.hexdigest(), size)
    return written


def stage_file(tree: Path, target: str, content: bytes) -> StagedFile:
    """Writes one file of this machine's own below ``tree``, over an earlier one."""
    with LinkFreeFolder(tree, durable=False) as walk:
        above, name = split(target)
        folder = walk.folder(above, make=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
    return StagedFile(hashlib.sha256(content).hexdigest(), len(content))


def hash_of(path: Path) -> StagedFile:
    """Hash and size of a staged file."""
    with path.open("rb") as file:
        return StagedFile(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def _write(handle: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(handle, rest) :]
