"""A file transaction: moves kept in a journal, so that a failure or a crash leaves the old state or the new one.

A *staging folder* ``.hatch-<id>`` lies beside the destination, on the same disk. Its state is the name of
the journal in it:

    none           nothing outside was touched: the folder is thrown away
    moving.json    decided: every move is made, by the next start if need be
    undoing.json   a move failed: every move is taken back
    done.json      every move is made: what is left is to tidy up

so that a change of state is one rename, which needs no room on a full disk. Every move can be made, and
taken back, any number of times.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec.structs import asdict

from agents.storage.atomic_write import sync_folder, write_atomically
from agents.storage.safe_walk import FileKind, FoundFile, LinkFreeFolders, split
from agents.storage.sparse_file import end_sparse, write_sparse
from twins.installer.errors import PlanChangedError
from twins.trust.quarantine import QuarantineEntry, QuarantineList

_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})
PREFIX = ".hatch-"
MOVING, UNDOING, DONE = "moving.json", "undoing.json", "done.json"
Moved = Callable[[int, int], None]
"""(moves made, moves in all)"""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_INHABITED = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP})


def make(move: Move, opened: LinkFreeFolders) -> None:
    """Makes the move. Raises ``PlanChangedError`` when something else lies there than the move expects."""
    if move.source is None:
        _take_away(move, opened)
    elif move.folder:
        if _find(move.source, opened).kind is not FileKind.NOTHING:
            _rename(move.source, move.target, opened, is_folder=True)
    elif move.aside is None:
        _create(move, move.source, opened)
    else:
        _replace(move, move.source, move.aside, opened)


def _create(move: Move, source: Location, opened: LinkFreeFolders) -> None:
    """Never over anything: the new name is linked to the staged file, which stays until all is done."""
    there = _find(move.target, opened)
    if there.kind is not FileKind.NOTHING:
        if there.ident == _find(source, opened).ident or _is(move.target, move.new, opened):
            return
        raise _changed(move.target)
    lay(source, move.target, opened)


def _replace(move: Move, source: Location, aside: Location, opened: LinkFreeFolders) -> None:
    if _find(source, opened).kind is FileKind.NOTHING:
        return  # it is in its place
    if _find(aside, opened).kind is FileKind.NOTHING:
        if _find(move.target, opened).kind is not FileKind.FILE:
            raise _changed(move.target)
        lay(move.target, aside, opened)
    linked = _find(move.target, opened).ident == _find(aside, opened).ident
    if not _is(aside, move.old, opened) or not (
        linked or _is(move.target, move.old, opened) or _is(move.target, move.new, opened)
    ):
        raise _changed(move.target)
    _rename(source, move.target, opened)


def _take_away(move: Move, opened: LinkFreeFolders) -> None:
    assert move.aside is not None
    there = _find(move.target, opened)
    if there.kind is FileKind.NOTHING:
        return
    if not move.folder and not _is(move.target, move.old, opened):
        raise _changed(move.target)
    _rename(move.target, move.aside, opened, is_folder=move.folder)


def take_back(move: Move, opened: LinkFreeFolders) -> None:
    """Takes the move back, made or not; what somebody changed since stays."""
    _restore(move, opened)
    for spot in (move.target, move.aside):
        if spot is not None:
            _clear_copy(spot, opened)


def _restore(move: Move, opened: LinkFreeFolders) -> None:
    if move.source is None:
        assert move.aside is not None
        if (
            _find(move.target, opened).kind is FileKind.NOTHING
            and _find(move.aside, opened).kind is not FileKind.NOTHING
        ):
            _rename(move.aside, move.target, opened, is_folder=move.folder)
    elif move.folder:
        if (
            _find(move.source, opened).kind is FileKind.NOTHING
            and _find(move.target, opened).kind is FileKind.FOLDER
        ):
            _rename(move.target, move.source, opened, is_folder=True)
    elif move.aside is None:
        # Only what was put there: another file at that place is somebody else's.
        if _is(move.target, move.new, opened):
            _unlink(move.target, opened)
    elif _find(move.aside, opened).kind is not FileKind.NOTHING:
        there = _find(move.target, opened)
        if there.kind is FileKind.NOTHING or _is(move.target, move.new, opened):
            _rename(move.aside, move.target, opened)
        elif there.ident == _find(move.aside, opened).ident or _is(move.target, move.old, opened):
            _unlink(move.aside, opened)
        # else it was changed by somebody since: that stays, and the earlier version stays aside


def lay(source: Location, target: Location, opened: LinkFreeFolders) -> None:
    """Gives a file a second place, never over anything: another name for it, or a copy on another disk."""
    if not _link(source, target, opened):
        _copy(source, target, opened)


def _find(spot: Location, opened: LinkFreeFolders) -> FoundFile:
    return opened[spot.base].find(spot.path)


def _is(spot: Location, sha256: str, opened: LinkFreeFolders) -> bool:
    return bool(sha256) and opened[spot.base].sha256(spot.path) == sha256


def _ends(source: Location, target: Location, opened: LinkFreeFolders) -> tuple[int, str, int, str]:
    """Folder handle and name of both; the source's handle is a copy, to be closed."""
    above, name = split(source.path)
    first = os.dup(opened[source.base].folder(above))
    try:
        above, final = split(target.path)
        return first, name, opened[target.base].folder(above, make=True), final
    except BaseException:
        os.close(first)
        raise


def _link(source: Location, target: Location, opened: LinkFreeFolders) -> bool:
    """Gives the file a second name, never over anything. False where the disk has no such links."""
    handle, name, folder, final = _ends(source, target, opened)
    try:
        os.link(name, final, src_dir_fd=handle, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError as error:
        raise _changed(target) from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    finally:
        os.close(handle)
    return True


def _rename(source: Location, target: Location, opened: LinkFreeFolders, *, is_folder: bool = False) -> None:
    handle, name, folder, final = _ends(source, target, opened)
    try:
        os.replace(name, final, src_dir_fd=handle, dst_dir_fd=folder)
    except OSError as error:
        if is_folder and error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _changed(target) from error
        if error.errno != errno.EXDEV or is_folder:
            raise
        _copy(source, target, opened)
        os.unlink(name, dir_fd=handle)
    finally:
        os.close(handle)


def _copy(source: Location, target: Location, opened: LinkFreeFolders) -> None:
    """For folders on another disk: a copy beside the target, then one rename."""
    above, name = split(target.path)
    temporary = _copied_as(name)
    folder = os.dup(opened[target.base].folder(above, make=True))
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
            try:
                for chunk in opened[source.base].chunks(source.path):
                    write_sparse(file.fileno(), chunk)
                end_sparse(file.fileno())
                os.fsync(file.fileno())
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
    finally:
        os.close(folder)


def _copied_as(name: str) -> str:
    return f".hatch-{hashlib.sha256(os.fsencode(name)).hexdigest()[:24]}"


def _clear_copy(spot: Location, opened: LinkFreeFolders) -> None:
    """Removes what a copy that was interrupted left beside its target."""
    above, name = split(spot.path)
    beside = Location(spot.base, f"{above}/{_copied_as(name)}" if above else _copied_as(name))
    if _find(beside, opened).kind is FileKind.FILE:
        _unlink(beside, opened)


def _unlink(spot: Location, opened: LinkFreeFolders) -> None:
    above, name = split(spot.path)
    os.unlink(name, dir_fd=opened[spot.base].folder(above))


def _changed(spot: Location) -> PlanChangedError:
    return PlanChangedError(
        f"{split(spot.path)[1]} changed meanwhile; nothing was written.", do="Look at the plan again."
    )


class Location(msgspec.Struct, frozen=True):
    """One place: a path below a base folder, which is relative to the home or absolute.

    No link below the base is followed.
    """

    base: str
    path: str


def name_of(folder: Path, home: Path) -> str:
    """A folder's name in records: relative to the home, so that it holds after a move; else absolute."""
    return folder.relative_to(home).as_posix() if folder.is_relative_to(home) else str(folder)


class Move(msgspec.Struct, frozen=True):
    """``source`` goes to ``target``; what was there goes ``aside`` first.

    Without ``source`` the target is only taken away. ``old`` and ``new`` are SHA-256 of what was there
    ("" for nothing) and of what comes; both "" for a ``folder``.
    """

    target: Location
    source: Location | None = None
    aside: Location | None = None
    old: str = ""
    new: str = ""
    folder: bool = False


class Journal(msgspec.Struct):
    """All that has to happen, or to be taken back, as one.

    ``made``: folders that the moves bring into being, outermost first; they go when it is taken back.
    ``pruned``: folders that go at the end if nothing is in them, outermost first. ``dropped``: folders
    that go at the end with all they hold. ``holds`` begin before the first move. ``freed``: (path, SHA-256) of held files
    that the moves take away; what lies there afterwards is not held with them.
    """

    id: str
    moves: list[Move] = msgspec.field(default_factory=list)
    made: list[Location] = msgspec.field(default_factory=list)
    pruned: list[Location] = msgspec.field(default_factory=list)
    dropped: list[Location] = msgspec.field(default_factory=list)
    holds: list[QuarantineEntry] = msgspec.field(default_factory=list)
    freed: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def encode(self) -> bytes:
        """The journal's file."""
        return orjson.dumps(self, asdict)

    @classmethod
    def decode(cls, content: bytes) -> Journal:
        """Reads what ``encode`` wrote."""
        found: dict[str, Any] = orjson.loads(content)
        return cls(
            id=found["id"],
            moves=[
                Move(
                    Location(**row["target"]),
                    Location(**row["source"]) if row["source"] else None,
                    Location(**row["aside"]) if row["aside"] else None,
                    row["old"],
                    row["new"],
                    row["folder"],
                )
                for row in found["moves"]
            ],
            made=[Location(**spot) for spot in found["made"]],
            pruned=[Location(**spot) for spot in found["pruned"]],
            dropped=[Location(**spot) for spot in found["dropped"]],
            holds=[QuarantineEntry(**row) for row in found["holds"]],
            freed=[(path, sha256) for path, sha256 in found.get("freed", ())],
        )


def apply_journal(
    staging: Path,
    journal: Journal,
    quarantine: QuarantineList,
    home: Path,
    moved: Moved = lambda done, whole: None,
) -> list[str]:
    """Makes every move, or none. From here on a crash is finished by ``resume``. ``moved`` counts the moves.

    Returns sentences about what could not be tidied up. Raises ``PlanChangedError`` when something else lies
    at a place than the journal says, and what the disk raises; all moves are taken back then.
    """
    journal.holds = [one for one in journal.holds if not quarantine.is_recorded(one.path, one.sha256)]
    write_atomically(staging / MOVING, journal.encode())
    sync_folder(staging)
    return _forward(staging, journal, quarantine, home, moved)


def resume(staging: Path, quarantine: QuarantineList, home: Path) -> str:
    """Brings what a crash left in ``staging`` to its end: "finished", "undone" or "cleared".

    A move that cannot be made any more, because something changed meanwhile, is taken back with all others.
    """
    if (staging / UNDOING).exists():
        _back(staging, Journal.decode((staging / UNDOING).read_bytes()), quarantine, home)
        return "undone"
    if (staging / MOVING).exists():
        try:
            _forward(staging, Journal.decode((staging / MOVING).read_bytes()), quarantine, home)
        except PlanChangedError:
            return "undone"
        return "finished"
    if (staging / DONE).exists():
        _finish(staging, Journal.decode((staging / DONE).read_bytes()), home)
        return "finished"
    shutil.rmtree(staging)
    return "cleared"


def _forward(
    staging: Path,
    journal: Journal,
    quarantine: QuarantineList,
    home: Path,
    moved: Moved = lambda done, whole: None,
) -> list[str]:
    try:
        if journal.holds:
            quarantine.hold_all(journal.holds)
        if journal.freed:
            quarantine.narrow(journal.freed)
        with LinkFreeFolders(home) as opened:
            touched: set[Location] = set()
            for number, move in enumerate(journal.moves, 1):
                make(move, opened)
                moved(number, len(journal.moves))
                touched |= {
                    Location(spot.base, split(spot.path)[0]) for spot in (move.target, move.aside) if spot
                }
            _sync_all(touched, opened)
        (staging / MOVING).rename(staging / DONE)
    except BaseException:
        (staging / MOVING).rename(staging / UNDOING)
        _back(staging, journal, quarantine, home)
        raise
    return _finish(staging, journal, home)


def _finish(staging: Path, journal: Journal, home: Path) -> list[str]:
    """Tidies up. What resists is not worth failing for: it is told, and tried again at the next start."""
    left = _remove_empty(journal.pruned, home)
    left += _tidy(*(home / spot.base / spot.path for spot in journal.dropped))
    return left or _tidy(staging)


def _back(staging: Path, journal: Journal, quarantine: QuarantineList, home: Path) -> None:
    with LinkFreeFolders(home) as opened:
        touched: set[Location] = set()
        for move in reversed(journal.moves):
            take_back(move, opened)
            touched.add(Location(move.target.base, split(move.target.path)[0]))
        _sync_all(touched, opened)
    _remove_empty(journal.made, home)
    if journal.holds:
        quarantine.withdraw((one.path, one.sha256) for one in journal.holds)
    if journal.freed:
        quarantine.widen(journal.freed)
    (staging / UNDOING).unlink()
    _tidy(staging)


def _sync_all(folders: Iterable[Location], opened: LinkFreeFolders) -> None:
    for spot in folders:
        try:
            os.fsync(opened[spot.base].folder(spot.path))
        except OSError as error:
            if error.errno not in _GONE:  # somebody put something else there meanwhile
                raise


def _remove_empty(folders: Iterable[Location], home: Path) -> list[str]:
    left = []
    with LinkFreeFolders(home) as opened:
        for spot in reversed(list(folders)):
            above, name = split(spot.path)
            try:
                os.rmdir(name, dir_fd=opened[spot.base].folder(above))
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in _INHABITED:
                    left.append(
                        f"{spot.path} could not be removed: {(error.strerror or str(error)).lower()}."
                    )
    return left


def _tidy(*folders: Path) -> list[str]:
    """Throws folders away; sentences about what resists."""
    left = []
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            left.append(f"{folder} could not be removed: {(error.strerror or str(error)).lower()}.")
    return left
