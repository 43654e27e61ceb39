"""The bounds of an archive: the stretch of a file that it is, and the limits of what it may unpack to.

What passes the limits is refused before anything is unpacked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from twins.byte_sizes import format_bytes
from twins.errors import BadEggError, BadFileError, HostileEggError, NoSuchFileError
from twins.fs.untrusted_names import LEAVE_IT, shown


class FileSlice:
    """Reads ``length`` bytes from ``start`` of a descriptor; nothing outside them can be reached.

    ``label`` is what a person calls the archive. Reads at given places, so threads may share one.
    """

    def __init__(self, handle: int, start: int, length: int, label: str) -> None:
        self.handle = handle
        self.start = start
        self.length = length
        self.label = label

    @classmethod
    def of(cls, path: Path) -> FileSlice:
        """All of a regular file. Raises ``NoSuchFileError``, and ``BadFileError`` for what is none or cannot be read."""
        label = shown(path.name)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, ValueError):  # a name with NUL is none
            raise NoSuchFileError(f"There is no file {shown(str(path))}", do="look at the path") from None
        except OSError as error:
            raise BadFileError(f"{label} cannot be read: {error.strerror}", do="look at the file") from error
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise BadFileError(f"{label} is no file that can be opened", do="name an egg")
        return cls(handle, 0, status.st_size, label)

    def part(self, start: int, length: int, label: str) -> FileSlice:
        """A stretch of this stretch, with a descriptor of its own."""
        return FileSlice(os.dup(self.handle), self.start + start, length, label)

    def read(self, at: int, count: int) -> bytes:
        """Exactly ``count`` bytes. Raises ``BadEggError`` where there are fewer."""
        if at < 0 or count < 0 or at + count > self.length:
            raise self.damaged()
        octets = os.pread(self.handle, count, self.start + at)
        while len(octets) < count:
            more = os.pread(self.handle, count - len(octets), self.start + at + len(octets))
            if not more:
                raise self.damaged()
            octets += more
        return octets

    def close(self) -> None:
        """Gives the descriptor back; twice is once."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def damaged(self, where: str = "") -> BadEggError:
        """An error for damage on its way here; ``where`` names the file or the part."""
        inside = f" ({where})" if where else ""
        return BadEggError(f"{self.label} is damaged{inside}; nothing was written", do="get it again")

    def hostile(self, why: str) -> HostileEggError:
        """An error for a form that no honest writer makes."""
        return HostileEggError(f"{why}; refused whole", do=LEAVE_IT)

    def unreadable(self, why: str) -> BadEggError:
        """An error for a form that may be honest and whole, but cannot be read here."""
        return BadEggError(f"{why}, which cannot be read here; nothing was written", do="pack it again")


@dataclass(slots=True, frozen=True)
class Limits:
    """Sizes in bytes. The defaults admit a neighborhood of large twins and no bomb.

    ``ratio`` (unpacked to packed, over the whole archive) counts only for what unpacks to more than
    ``harmless`` bytes: a short log of one repeated line is no bomb. ``nesting`` counts the archives
    inside each other, the outermost included (RAPP/1 has three); all of them share the other limits.
    """

    members: int = 100_000
    member_size: int = 16 << 30
    total: int = 64 << 30
    ratio: int = 100
    harmless: int = 64 << 20
    nesting: int = 3


class Allowance:
    """The rest of ``limits`` for a file of ``size`` bytes and all archives inside it."""

    def __init__(self, limits: Limits, size: int) -> None:
        self.limits = limits
        self._packed = size
        self._unpacked = 0
        self._members = 0

    def take(self, sizes: Iterable[int]) -> int:
        """Counts members of these unpacked sizes; returns their sum. Raises ``HostileEggError`` past a limit."""
        limits = self.limits
        sizes = list(sizes)
        total = sum(sizes)
        self._members += len(sizes)
        self._unpacked += total
        if self._members > limits.members:
            raise HostileEggError(
                f"This egg holds more than {limits.members} files; refused whole", do=LEAVE_IT
            )
        if self._unpacked > limits.total or max(sizes, default=0) > limits.member_size:
            raise HostileEggError(
                f"This egg unpacks to {format_bytes(self._unpacked)}; refused whole", do=LEAVE_IT
            )
        if self._unpacked > max(limits.harmless, limits.ratio * self._packed):
            times = self._unpacked // self._packed
            raise HostileEggError(
                f"This egg unpacks to {format_bytes(self._unpacked)}, {times} times its size; refused whole",
                do=LEAVE_IT,
            )
        return total
