"""Writing a backup: the home as it is now, whole or not at all; the daemon may run meanwhile."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson

from agents.storage.safe_fs import SafeTree
from agents.storage.safe_open import UnsafeFileError
from envelopes.identity.keys import IdentityKey
from rappd.backup.manifest import ANCHORS, DATABASE, OF_AGENTS, SCRATCH
from rappd.backup.secrets import MAX_BYTES, check_passphrase, seal
from rappd.backup.selection import Selection, select
from rappd.errors import ConflictError
from rappd.store.connections import is_full
from rappd.store.former_journal import check_journal
from rappd.version import __version__
from twins.eggs import integrity
from twins.fs.atomic_file import atomic_file, settled
from twins.zip.writer import PIECE, ArchiveWriter

SCHEMA = "rappd-backup/1.0"
MANIFEST, SEALED, HOME = "manifest.json", "sealed.json", "home/"

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Backup:
    """A backup that lies on disk, whole. ``left_out``: (path, why)."""

    path: Path
    files: int
    size: int
    sha256: str
    with_keys: bool
    left_out: list[tuple[str, str]] = field(default_factory=list)


def back_up(
    home: Path,
    target: Path,
    *,
    key: IdentityKey,
    machine: str,
    passphrase: str = "",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Backup:
    """Writes the whole home into ``target``, signed by its key.

    Keys and ``.env`` files go in only under ``passphrase``. Raises ``TwinConflictError`` when the place is
    taken or the disk full, ``UsageProblemError``. Blocks.
    """
    if passphrase:
        check_passphrase(passphrase)
    moment = datetime.now(UTC)
    stamp = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    files = SafeTree(home)
    chosen = select(home)
    left = chosen.left
    for scrap in home.glob(f"{SCRATCH}*"):  # of one that was killed
        shutil.rmtree(scrap, ignore_errors=True)
    with (
        atomic_file(target, overwrite=overwrite) as file,
        tempfile.TemporaryDirectory(dir=home, prefix=SCRATCH) as folder,
        ArchiveWriter(file, at=moment) as writer,
    ):
        hashes = {}
        whole, done = sum(_size(files, path) for path in chosen.plain), 0
        executable = []
        for path in chosen.plain:
            try:
                mode = files.stat_file(path).st_mode
                content = _as_opened(files, path)
            except (FileNotFoundError, UnsafeFileError):  # an agent took it away meanwhile, or changed it
                left.append((path, _WENT))
                continue
            except PermissionError as error:
                if not path.startswith(OF_AGENTS):
                    raise
                left.append((path, f"cannot be read ({error.strerror})"))
                continue
            written = writer.add(HOME + path, content)
            hashes[written.name] = written.sha256
            if mode & 0o100:
                executable.append(path)
            done += written.size
            if progress is not None:
                progress(done, max(whole, done))
        for name in (ANCHORS, DATABASE):  # in this order, so that the anchors never cover more than is there
            copy = _record(home / name, Path(folder))
            if copy is not None:
                written = writer.add(HOME + name, copy)
                hashes[written.name] = written.sha256
        if passphrase:
            written = writer.add(SEALED, seal(_bundle(home, chosen), passphrase))
            hashes[written.name] = written.sha256
        else:
            left += [(path, "holds keys, and no passphrase was given") for path in chosen.secret]
        manifest = {
            "schema": SCHEMA,
            "machine": machine,
            "fingerprint": key.fingerprint,
            "backed_up_at": stamp,
            "version": __version__,
            "files": len(hashes),
            "with_keys": bool(passphrase),
            "executable": executable,
        }
        written = writer.add(MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        hashes[written.name] = written.sha256
        writer.add(integrity.MEMBER, integrity.seal(hashes, at=stamp, key=key))
        writer.finish()
        size, digest = settled(file)
    return Backup(target, len(hashes) - 1, size, digest, bool(passphrase), left)


_WENT = "went while the backup was made"


def _size(files: SafeTree, path: str) -> int:
    try:
        return files.lstat(path).st_size
    except OSError:
        return 0


def _record(database: Path, folder: Path) -> Path | None:
    """A copy of a database from one moment, taken while it may be written to."""
    if not database.exists():
        return None
    copy = folder / database.name
    try:
        with (
            closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            check_journal(database, source)
            source.backup(target, pages=4096)
    except sqlite3.Error as error:
        if is_full(error):
            raise ConflictError(
                "The disk is full; nothing was packed.", do="Make room, then run it again."
            ) from error
        raise ConflictError(f"The record cannot be copied: {error}.", do="rappd doctor") from error
    return copy


def _as_opened(files: SafeTree, path: str) -> Iterator[bytes]:
    """The content that a file has when it is opened: one that grows while it is read would never end."""
    file = files.open(path)
    left = os.fstat(file.fileno()).st_size

    def read() -> Iterator[bytes]:
        nonlocal left
        with file:
            while left and (piece := file.read(min(left, PIECE))):
                left -= len(piece)
                yield piece

    return read()


def _bundle(home: Path, chosen: Selection) -> bytes:
    bundle = io.BytesIO()
    writer = ArchiveWriter(bundle)
    files = SafeTree(home)
    for path in chosen.secret:
        try:
            writer.add(path, _as_opened(files, path))
        except (FileNotFoundError, UnsafeFileError):  # an agent's .env that went meanwhile
            chosen.left.append((path, _WENT))
    writer.finish()
    if bundle.tell() > MAX_BYTES:
        raise ConflictError(
            "The keys folder holds too much to be sealed.", do="Move large files out of keys/."
        )
    return bundle.getvalue()
