"""The folder of this home's snapshots: the eggs, what is known of each, and the lock that lets one run at a time.

``eggs/neighborhood/snapshots.json`` lists every snapshot that was taken, those written elsewhere too, with
the result of its restore drill.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, cast

import msgspec

from agents.storage.atomic_write import write_atomically
from neighborhoods.errors import NeighborhoodError, SnapshotRunningError
from twins.errors import BadFileError, HostileEggError
from twins.fs.untrusted_names import safe_component, shown

_SCHEMA = "rappd-snapshots/1.0"
_LONGEST_NAME = 120


def check_name(name: str) -> None:
    """Raises ``bad_snapshot_name`` for a name that is no plain file name on every system."""
    try:
        safe_component(name, windows=True)
        fits = name.isprintable() and len(name.encode()) <= _LONGEST_NAME and not name.startswith(".")
    except HostileEggError:
        fits = False
    if not fits:
        raise NeighborhoodError(
            f'A snapshot cannot be called "{shown(name)}"; nothing was copied.',
            do='Take a name without / \\ : * ? " < > |, not begun with a dot, of at most 120 bytes.',
            code="bad_snapshot_name",
        )


class DrillResult(msgspec.Struct, frozen=True):
    """The result of hatching a snapshot into a scratch folder. ``problem`` "" says that every file came back.

    ``apart``: what the egg holds beside it that was no twin when it was read, a sentence each.
    """

    at: str
    files: int = 0
    problem: str = ""
    apart: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True when the snapshot can be restored."""
        return not self.problem


class SnapshotView(TypedDict):
    """A snapshot, see ``SnapshotRecord``; ``restorable``: its drill passed, ``there``: its file is where it was written."""

    path: str
    name: str
    taken_at: str
    size: int
    sha256: str
    machines: int
    twins: int
    missing: list[str]
    drill: dict[str, Any] | None
    holds: list[str]
    scheduled: bool
    number: int
    left_behind: list[str]
    restorable: bool
    there: bool


class SnapshotRecord(msgspec.Struct, frozen=True):
    """One snapshot. ``missing`` names the machines and twins that it lacks, ``holds`` the machines that it has.

    ``left_behind`` names the twins that its options left behind, as those above ``max_twin_bytes``.
    ``scheduled``: the schedule took it, and may remove it again. ``number`` grows with each that is noted: a clock that
    was wrong does not change which is the newest.
    """

    path: str
    name: str
    taken_at: str
    size: int
    sha256: str
    machines: int
    twins: int
    missing: tuple[str, ...] = ()
    drill: DrillResult | None = None
    holds: tuple[str, ...] = ()
    scheduled: bool = False
    number: int = 0
    left_behind: tuple[str, ...] = ()

    @property
    def is_restorable(self) -> bool:
        """True when its drill passed and its file is there."""
        return bool(self.drill and self.drill.passed) and self.is_there

    @property
    def is_whole(self) -> bool:
        """True when it is restorable and lacks nothing that was wanted."""
        return self.is_restorable and not self.missing

    def holds_whole(self, machine: str) -> bool:
        """True when it has that machine, with every twin."""
        absent = (*self.missing, *self.left_behind)
        lacks = any(one == machine or one.startswith(f"{machine}/") for one in absent)
        return machine in self.holds and not lacks

    def as_json(self) -> SnapshotView:
        """One row of a list, with the state of its file now."""
        state = {"restorable": bool(self.drill and self.drill.passed), "there": self.is_there}
        return cast(SnapshotView, {**msgspec.to_builtins(self), **state})

    @property
    def is_there(self) -> bool:
        """True when the file is where it was written, in its size."""
        try:
            return Path(self.path).stat().st_size == self.size
        except OSError:
            return False


class _File(msgspec.Struct):
    schema: str = _SCHEMA
    snapshots: list[SnapshotRecord] = []


class SnapshotFolder:
    """The snapshots of one home. Methods block on the disk."""

    def __init__(self, home: Path) -> None:
        self.root = home / "eggs" / "neighborhood"
        self.parts = self.root / ".parts"
        self._index = self.root / "snapshots.json"

    def version(self) -> int:
        """Another number whenever the list is another one, whichever process wrote it."""
        try:
            return self._index.stat().st_mtime_ns
        except OSError:
            return 0

    def free_name(self, wanted: str) -> str:
        """``wanted``, or with a number where a snapshot has that name already: two may be taken in one second."""
        name, number = wanted, 1
        while (self.root / f"{name}.egg").exists():
            number += 1
            name = f"{wanted}-{number}"
        return name

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Sweeps, too. Raises ``SnapshotRunningError`` when another process, or thread, takes a snapshot."""
        with self.locked():
            self.sweep()
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """``alone`` for an event loop, which calls ``sweep`` in a thread."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SnapshotRunningError(
                    "Another snapshot of this home is under way.", do="Wait until it is done."
                ) from None
            yield
        finally:
            os.close(handle)

    def sweep(self) -> None:
        """Called while locked. Removes what a snapshot, drill or restore left that was killed; finished parts stay."""
        for left in self.root.iterdir():
            if left.name.startswith(".drill-") or left.name == ".sending":
                shutil.rmtree(left)
            elif left.name.startswith(".") and left.name.endswith(".tmp"):
                left.unlink()

    def listing(self) -> list[SnapshotRecord]:
        """Every snapshot, the newest first. Raises ``BadFileError``."""
        try:
            found = msgspec.json.decode(self._index.read_bytes(), type=_File)
        except FileNotFoundError:
            return []
        except msgspec.DecodeError as error:
            raise BadFileError(
                "The list of snapshots is damaged; the snapshots themselves are not touched.",
                do=f"Move {self._index} away.",
            ) from error
        return sorted(found.snapshots, key=lambda one: (one.number, one.taken_at), reverse=True)

    def find(self, text: str) -> Path:
        """The file that a path, or a snapshot's name, means. Raises ``no_such_snapshot``."""
        try:
            path = Path(text).expanduser()
            if path.is_file():
                return path.absolute()
        except (OSError, RuntimeError) as error:  # longer than any disk's names, nobody's home
            raise self.unknown(text) from error
        for record in self.listing():
            if text == record.name and record.is_there:
                return Path(record.path)
        raise self.unknown(text)

    def unknown(self, text: str) -> NeighborhoodError:
        """The error for a snapshot that is not there."""
        return NeighborhoodError(
            f'No snapshot "{text[:60]}".', do="rappd neighborhood snapshots", code="no_such_snapshot"
        )

    def last(self) -> SnapshotRecord | None:
        """The newest snapshot that is there and whose drill did not fail."""
        for record in self.listing():
            if record.is_there and (record.drill is None or record.drill.passed):
                return record
        return None

    def last_restorable(self, machine: str = "") -> SnapshotRecord | None:
        """The newest that is restorable, and holds ``machine`` where one is named."""
        for record in self.listing():
            if record.is_restorable and (not machine or record.holds_whole(machine)):
                return record
        return None

    def put(self, record: SnapshotRecord) -> None:
        """Notes a snapshot, in place of one at the same path."""
        known = self.listing()
        same = next((one for one in known if (one.path, one.sha256) == (record.path, record.sha256)), None)
        number = same.number if same else 1 + max((one.number for one in known), default=0)
        record = msgspec.structs.replace(record, number=number)
        kept = [one for one in known if one.path != record.path and one.is_there]
        content = _File(snapshots=[record, *kept])
        write_atomically(self._index, msgspec.json.format(msgspec.json.encode(content), indent=2))

    def remove(self, record: SnapshotRecord) -> bool:
        """Removes the file of a snapshot and forgets it. A file that is another by now stays: False."""
        path = Path(record.path)
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != record.sha256:
                return False
        path.unlink()
        content = _File(snapshots=[one for one in self.listing() if one.path != record.path])
        write_atomically(self._index, msgspec.json.format(msgspec.json.encode(content), indent=2))
        return True
