"""Reads twins out of folders on this machine, and lays them out there; no link is followed below the home."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path

from agents.storage.atomic_write import sync_tree
from agents.storage.safe_walk import FileKind, LinkFreeFolder, has_other_names
from agents.storage.sparse_file import end_sparse, write_sparse
from neighborhoods.errors import UnstableMemberError
from neighborhoods.snapshot.member_transport import AGENTS, MemberListing, MemberTwin, WriteOutcome
from neighborhoods.snapshot.tar_archive import listing_headers, read_archive, tar_pieces
from neighborhoods.snapshot.tar_guard import TarEntry
from neighborhoods.snapshot.transports.listing_parser import MOST_RAPPID_BYTES, is_agent_file, rappid_fields
from neighborhoods.snapshot.transports.twin_files import PRUNED, TwinFiles
from twins.eggs.writers.exclusions import ExclusionReason

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_BATCH = 1 << 18
_Found = tuple[str, os.stat_result | None]


def list_twins(files: LinkFreeFolder, *, archived: bool, agents: str, host: str) -> MemberListing:
    """The twins of a home: folders of ``twins`` with a ``rappid.json``. ``agents`` is its folder of agents."""
    places = [("twins", "active"), *([("twins/.archive", "archived")] if archived else [])]
    found = [
        twin
        for place, lifecycle in places
        for name in sorted(_folders(files, place))
        if (twin := _twin(files, f"{place}/{name}", lifecycle)) is not None
    ]
    names = _entries(files, agents)
    listed = sorted(name for name, mode in names if stat.S_ISREG(mode) and is_agent_file(os.fsencode(name)))
    return MemberListing(tuple(found), tuple(listed), host)


def count_files(files: LinkFreeFolder, folder: str) -> TwinFiles:
    """The files below ``folder``, counted. Raises ``OSError``."""
    counted = TwinFiles()
    for path, status in _walk(files, folder):
        counted.take(
            b"%d %d %d ./%s" % (status.st_size, status.st_mtime_ns, status.st_ctime_ns, os.fsencode(path))
        )
    return counted


def tar_of(
    files: LinkFreeFolder,
    folder: str,
    *,
    mtime: int | None = None,
    stays: Callable[[str], tuple[str, str] | None] = lambda path: None,
    passed_over: Collection[str] = (),
    names_left: bool = True,
    more: Iterable[tuple[TarEntry, Iterator[bytes]]] = (),
) -> Iterator[bytes]:
    """The tar stream of a folder, "" for all; with ``mtime`` every file has that time.

    ``stays`` is asked for each path below ``folder``: None lets it travel; else it stays behind, and what is named
    instead, itself or a folder above it, goes into the stream with its reason. The stream begins with all those names,
    but for ``passed_over``. With ``names_left`` False it has neither names nor reasons. ``more`` ends the stream.

    Raises ``OSError``, and ``UnstableMemberError`` when a file changes meanwhile.
    """
    before = count_files(files, folder)
    try:
        found = list(_found(files, folder, passed_over))
        if names_left:
            yield from listing_headers(_names(found, stays))
        members = _members(files, folder, found, mtime, stays)
        if not names_left:
            members = ((entry, content) for entry, content in members if not entry.left_out)
        members = chain(members, more)
        yield from tar_pieces(members, is_sorted=False)
    except (ValueError, FileNotFoundError) as error:  # a file grew, shrank or went away
        raise UnstableMemberError("A file changed while it was read.", do="Try again.") from error
    if count_files(files, folder).fingerprint != before.fingerprint:
        raise UnstableMemberError("Files changed while they were read.", do="Try again.")


def batched(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same octets in fewer pieces."""
    batch = bytearray()
    for piece in pieces:
        batch += piece
        if len(batch) >= _BATCH:
            yield bytes(batch)
            batch.clear()
    if batch:
        yield bytes(batch)


def lay_out_twin(home: Path, twin: str, archive: Path, *, overwrite: bool, archived: bool) -> WriteOutcome:
    """Builds the twin beside its place and moves it in, whole or not at all. Raises ``OSError``.

    What a twin that exists holds beyond the archive stays in it.
    """
    place = "twins/.archive" if archived else "twins"
    with LinkFreeFolder(home, follow=True, durable=False) as files:
        files.folder(place, make=True)
        there = files.find(f"{place}/{twin}").kind
        if there is not FileKind.NOTHING and not overwrite:
            return WriteOutcome(skipped=1, detail="it is there already")
        if there not in (FileKind.NOTHING, FileKind.FOLDER):
            raise NotADirectoryError(errno.ENOTDIR, "something else lies at its place", twin)
        staged = f"twins/.staging/{twin}.member.{secrets.token_hex(8)}"
        try:
            created, overwritten = _build(files, f"{staged}/new", archive, twin, f"{place}/{twin}")
            sync_tree(home / staged)
            if there is FileKind.FOLDER:
                (home / place / twin).rename(home / staged / "old")
            (home / staged / "new").rename(home / place / twin)
        except BaseException:
            if files.find(f"{place}/{twin}").kind is FileKind.NOTHING and there is FileKind.FOLDER:
                (home / staged / "old").rename(home / place / twin)
            raise
        finally:
            shutil.rmtree(home / staged, ignore_errors=True)
    return WriteOutcome(created=created, overwritten=overwritten)


def lay_out_agents(home: Path, folder: str, archive: Path, *, overwrite: bool) -> WriteOutcome:
    """Writes the files of an archive of agents into ``folder``, each whole. Raises ``OSError``.

    One that is there stays unless ``overwrite``; a link or folder in its place always stays.
    """
    created = overwritten = skipped = 0
    with LinkFreeFolder(home, follow=True) as files:
        into = files.folder(folder, make=True)
        for entry, content in read_archive(archive, AGENTS):
            there = files.find(f"{folder}/{entry.path}").kind
            if "/" in entry.path or not (there is FileKind.NOTHING or (overwrite and there is FileKind.FILE)):
                for _ in content:  # what stays is read past
                    pass
                skipped += 1
                continue
            staged = f".{secrets.token_hex(8)}.member"
            try:
                _write(files, f"{folder}/{staged}", content, entry.executable, entry.mtime)
                os.rename(staged, entry.path, src_dir_fd=into, dst_dir_fd=into)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(staged, dir_fd=into)
                raise
            created += there is FileKind.NOTHING
            overwritten += there is FileKind.FILE
        os.fsync(into)
    return WriteOutcome(created, overwritten, skipped)


def _build(files: LinkFreeFolder, staged: str, archive: Path, twin: str, there: str) -> tuple[int, int]:
    files.folder(staged, make=True)
    created = overwritten = 0
    for entry, content in read_archive(archive, twin):
        _write(files, f"{staged}/{entry.path}", content, entry.executable, entry.mtime)
        if files.find(f"{there}/{entry.path}").kind is FileKind.NOTHING:
            created += 1
        else:
            overwritten += 1
    for path, status in list(_every(files, there)):
        _keep(files, f"{there}/{path}", f"{staged}/{path}", status)
    return created, overwritten


def _keep(files: LinkFreeFolder, old: str, new: str, status: os.stat_result) -> None:
    """Takes over a file or a link of the earlier twin where the new one has nothing."""
    if files.find(new).kind is not FileKind.NOTHING:
        return
    above, _, name = old.rpartition("/")
    if stat.S_ISREG(status.st_mode):
        _write(files, new, files.chunks(old), bool(status.st_mode & 0o100), int(status.st_mtime))
    elif stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=files.folder(above))
        above, _, name = new.rpartition("/")
        os.symlink(target, name, dir_fd=files.folder(above, make=True))


def _write(files: LinkFreeFolder, path: str, content: Iterator[bytes], executable: bool, mtime: int) -> None:
    above, _, name = path.rpartition("/")
    folder = files.folder(above, make=True)
    with os.fdopen(os.open(name, _FLAGS, 0o700 if executable else 0o600, dir_fd=folder), "wb") as file:
        for piece in content:
            write_sparse(file.fileno(), piece)
        end_sparse(file.fileno())
        os.utime(file.fileno(), (mtime, mtime))


def _members(
    files: LinkFreeFolder,
    folder: str,
    found: Iterable[_Found],
    mtime: int | None,
    stays: Callable[[str], tuple[str, str] | None],
) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    named: set[str] = set()
    for path, status in found:
        left = stays(path) or _why_left(path, status)
        if left is not None or status is None:
            if left and left[0] not in named:
                named.add(left[0])
                yield TarEntry(left[0], 0, left_out=left[1]), iter(())
            continue
        at = int(status.st_mtime) if mtime is None else mtime
        entry = TarEntry(path, status.st_size, bool(status.st_mode & 0o100), max(0, at))
        yield entry, files.chunks(f"{folder}/{path}" if folder else path)


def _names(found: Iterable[_Found], stays: Callable[[str], tuple[str, str] | None]) -> Iterator[bytes]:
    """Each path, or the folder above it below which nothing may be named."""
    last = ""
    for path, _ in found:
        left = stays(path)
        if left is None or left[0] != last:
            last = left[0] if left else path
            yield os.fsencode(last)


def _why_left(path: str, status: os.stat_result | None) -> tuple[str, str] | None:
    """The path and the reason of what is sent to nobody."""
    if status is None:
        return path, ExclusionReason.MADE_ANEW.value
    if not stat.S_ISREG(status.st_mode):
        is_link = stat.S_ISLNK(status.st_mode)
        return path, (ExclusionReason.LINK if is_link else ExclusionReason.NO_FILE).value
    return (path, ExclusionReason.OTHER_NAMES.value) if has_other_names(status) else None


def _walk(files: LinkFreeFolder, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """(path below ``folder``, status) of the regular files that may travel."""
    for path, status in _found(files, folder):
        if status is not None and stat.S_ISREG(status.st_mode) and not has_other_names(status):
            yield path, status


def _found(files: LinkFreeFolder, folder: str, passed_over: Collection[str] = ()) -> Iterator[_Found]:
    """(path below ``folder``, status) of everything but folders; at last, without a status, those that are made anew."""
    pruned: list[str] = []

    def enters(path: str) -> bool:
        is_pruned = path.rpartition("/")[2] in PRUNED
        if is_pruned:
            pruned.append(path)
        return not is_pruned

    files.folder(folder)  # a missing one is no empty one
    prefix = f"{folder}/" if folder else ""
    for path, status in files.walk(folder, enters=enters, failed=_raise):
        below = path.removeprefix(prefix)
        if not stat.S_ISDIR(status.st_mode) and below not in passed_over:
            yield below, status
    for path in pruned:
        if (below := path.removeprefix(prefix)) not in passed_over:
            yield below, None


def _every(files: LinkFreeFolder, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    if files.find(folder).kind is FileKind.FOLDER:
        for path, status in files.walk(folder):
            yield path.removeprefix(f"{folder}/"), status


def _raise(_: str, error: OSError) -> None:
    raise error


def _twin(files: LinkFreeFolder, folder: str, lifecycle: str) -> MemberTwin | None:
    try:
        rappid = files.content(f"{folder}/rappid.json", MOST_RAPPID_BYTES)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    counted = count_files(files, folder)
    return MemberTwin(
        hash=folder.rpartition("/")[2],
        rappid_json=rappid_fields(rappid),
        lifecycle=lifecycle,
        workspace_bytes=counted.bytes,
        workspace_files=counted.files,
        has_soul=counted.has_soul,
        agents=counted.agents,
        fingerprint=counted.fingerprint,
    )


def _folders(files: LinkFreeFolder, place: str) -> list[str]:
    return [name for name, mode in _entries(files, place) if stat.S_ISDIR(mode) and not name.startswith(".")]


def _entries(files: LinkFreeFolder, folder: str) -> list[tuple[str, int]]:
    try:
        return [(name, status.st_mode) for name, status in files.entries(folder)]
    except OSError as error:
        if error.errno in _GONE:
            return []
        raise


def unpack_archive(archive: Path, into: Path, twin: str) -> int:
    """Lays the files of a twin's archive out in a new folder; how many. Raises ``OSError``, ``MemberError``."""
    count = 0
    with LinkFreeFolder(into, durable=False) as files:
        files.folder("", make=True)
        for entry, content in read_archive(archive, twin):
            _write(files, entry.path, content, entry.executable, entry.mtime)
            count += 1
    return count


def overlay_archive(root: Path, folder: str, twin: str, archive: Path, *, overwrite: bool) -> tuple[int, int]:
    """Writes the files of a twin's archive into ``folder`` below ``root``, "" for itself: (created, overwritten).

    Without ``overwrite`` a file that is there stays. Raises ``OSError``, also where a link is in the way, ``MemberError``.
    """
    created = overwritten = 0
    with LinkFreeFolder(root, durable=False) as files:
        for entry, content in read_archive(archive, twin):
            path = f"{folder}/{entry.path}" if folder else entry.path
            there = files.find(path).kind
            if there is FileKind.BLOCKED:
                raise NotADirectoryError(errno.ENOTDIR, "a link or a file is in the way", path)
            if there is FileKind.NOTHING:
                created += 1
            elif overwrite and there in (FileKind.FILE, FileKind.LINK):
                above, _, name = path.rpartition("/")
                os.unlink(name, dir_fd=files.folder(above))
                overwritten += 1
            else:
                for _ in content:  # what stays is read past
                    pass
                continue
            _write(files, path, content, entry.executable, entry.mtime)
    return created, overwritten
