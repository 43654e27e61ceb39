"""The ``organism.yaml`` that is in force: the last good version of the file, across faults and restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from agents.storage.safe_fs import in_file_pool
from agents.storage.safe_open import first_bytes
from rappd.errors import UsageProblemError
from rappd.organism.organism import Organism
from rappd.organism.organism_file import MOST_BYTES, Fault, Reading, read

log = logging.getLogger(__name__)

FILE = "organism.yaml"
_GOOD = ".organism.good.yaml"
"""A copy of the last good version beside the file, for the next start. No worker can read or write there."""
_LOOK_SECONDS = 0.3
"""A version counts when it looks the same twice: no half-saved one does, and each within a second."""

_Stamp = tuple[int, int, int] | None


class OrganismInForce:
    """Reads the file of one home. ``current`` is without any list where there is no file."""

    def __init__(self, root: Path, *, writes: bool = True) -> None:
        """``writes``: keeps a copy of the last good version. Blocks on the disk."""
        self.path, self._good, self._writes = root / FILE, root / _GOOD, writes
        self.current = Organism()
        self.faults: tuple[Fault, ...] = ()
        self.notes: tuple[Fault, ...] = ()
        self.is_there = False
        self._stamp: _Stamp = None
        self._looking = asyncio.Lock()
        self._changed: list[Callable[[], None]] = []
        self._apply(*self._found())

    def on_change(self, changed: Callable[[], None]) -> None:
        """``changed`` is called on the event loop after another version came into force, or was refused."""
        self._changed.append(changed)

    async def reload(self) -> None:
        """Reads the file now. Raises ``bad_organism`` for one with faults; the version before stays in force."""
        await self._look()
        if self.faults:
            raise UsageProblemError(
                f"{FILE}, {self.faults[0]}", do="rappd organism check", code="bad_organism"
            )

    async def watch(self) -> None:
        """Takes each change over within a second. Ends by cancellation."""
        seen = self._stamp
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            stamp = await in_file_pool(_stamp, self.path)
            if stamp == seen != self._stamp:
                await self._look()
            seen = stamp

    async def _look(self) -> None:
        async with self._looking:
            before = self._stamp
            self._apply(*await asyncio.to_thread(self._found))
            if self._stamp != before:
                self._tell()

    def _found(self) -> tuple[_Stamp, Reading | None, Organism | None]:
        """The stamp of the file, what it says where it is another one, and what is in force in place of a first one with faults."""
        stamp, first = _stamp(self.path), self._stamp is None
        if stamp is None:
            if self._writes:
                self._good.unlink(missing_ok=True)
            return stamp, Reading(Organism()), None
        if stamp == self._stamp:
            return stamp, None, None
        text, reading = read_file(self.path)
        if reading.organism is None:
            return stamp, reading, self._kept() if first else None
        if self._writes:
            self._keep(text)
        return stamp, reading, None

    def _apply(self, stamp: _Stamp, reading: Reading | None, kept: Organism | None) -> None:
        self._stamp, self.is_there = stamp, stamp is not None
        if reading is not None:
            self.current = reading.organism or kept or self.current
            self.faults, self.notes = reading.faults, reading.notes

    def _tell(self) -> None:
        for fault in self.faults:
            log.warning("%s, %s; the version before stays in force", FILE, fault)
        for note in self.notes:
            log.info("%s, %s", FILE, note)
        for changed in self._changed:
            changed()

    def _keep(self, text: str) -> None:
        try:
            write_atomically(self._good, text.encode())
        except OSError as error:
            log.warning("the last good version of %s cannot be kept: %s", FILE, error)

    def _kept(self) -> Organism:
        if not self._good.is_file():
            return Organism()
        kept = read_file(self._good)[1].organism
        if kept is None:  # of another version of rappd: what it named is not known, so nothing is offered
            log.warning("the last good version of %s cannot be read; nothing is offered", FILE)
        return kept or Organism(listeners=())


def read_file(path: Path) -> tuple[str, Reading]:
    """The text of a file, its ends of lines as they are, and what it says. Blocks on the disk."""
    try:
        text = first_bytes(path, MOST_BYTES + 1).decode()
    except UnicodeDecodeError as error:
        return "", Reading(None, (Fault(1, 1, f"The file is not UTF-8 (byte {error.start})."),))
    except OSError as error:
        return "", Reading(None, (Fault(1, 1, f"The file cannot be read: {error.strerror}."),))
    return text, read(text)


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError:
        return (0, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino
