"""Carrying a journal out, so that a failure or a crash leaves the old state or the new one.

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
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from agents.storage.atomic_write import sync_folder, write_atomically
from agents.storage.safe_walk import LinkFreeFolders, split
from twins.fs.file_moves import Journal, Location, make, take_back
from twins.installer.errors import PlanChangedError
from twins.installer.quarantine import QuarantineList

PREFIX = ".hatch-"
MOVING, UNDOING, DONE = "moving.json", "undoing.json", "done.json"
Moved = Callable[[int, int], None]
"""(moves made, moves in all)"""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_INHABITED = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP})


def apply_journal(
    staging: Path, journal: Journal, held: QuarantineList, home: Path, moved: Moved = lambda done, whole: None
) -> list[str]:
    """Makes every move, or none. From here on a crash is finished by ``resume``. ``moved`` counts the moves.

    Returns sentences about what could not be tidied up. Raises ``PlanChangedError`` when something else lies
    at a place than the journal says, and what the disk raises; all moves are taken back then.
    """
    journal.holds = [one for one in journal.holds if not held.is_held(one.path, one.sha256)]
    write_atomically(staging / MOVING, journal.encode())
    sync_folder(staging)
    return _forward(staging, journal, held, home, moved)


def resume(staging: Path, held: QuarantineList, home: Path) -> str:
    """Brings what a crash left in ``staging`` to its end: "finished", "undone" or "cleared".

    A move that cannot be made any more, because something changed meanwhile, is taken back with all others.
    """
    if (staging / UNDOING).exists():
        _back(staging, Journal.decode((staging / UNDOING).read_bytes()), held, home)
        return "undone"
    if (staging / MOVING).exists():
        try:
            _forward(staging, Journal.decode((staging / MOVING).read_bytes()), held, home)
        except PlanChangedError:
            return "undone"
        return "finished"
    if (staging / DONE).exists():
        _finish(staging, Journal.decode((staging / DONE).read_bytes()), home)
        return "finished"
    shutil.rmtree(staging)
    return "cleared"


def _forward(
    staging: Path, journal: Journal, held: QuarantineList, home: Path, moved: Moved = lambda done, whole: None
) -> list[str]:
    try:
        if journal.holds:
            held.hold_all(journal.holds)
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
        _back(staging, journal, held, home)
        raise
    return _finish(staging, journal, home)


def _finish(staging: Path, journal: Journal, home: Path) -> list[str]:
    """Tidies up. What resists is not worth failing for: it is told, and tried again at the next start."""
    left = _remove_empty(journal.pruned, home)
    left += _tidy(*(home / spot.base / spot.path for spot in journal.dropped))
    return left or _tidy(staging)


def _back(staging: Path, journal: Journal, held: QuarantineList, home: Path) -> None:
    with LinkFreeFolders(home) as opened:
        touched: set[Location] = set()
        for move in reversed(journal.moves):
            take_back(move, opened)
            touched.add(Location(move.target.base, split(move.target.path)[0]))
        _sync_all(touched, opened)
    _remove_empty(journal.made, home)
    if journal.holds:
        held.withdraw((one.path, one.sha256) for one in journal.holds)
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
