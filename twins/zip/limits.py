"""Limits of an archive. What passes these is refused before anything is unpacked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twins.byte_sizes import format_bytes
from twins.errors import HostileEggError
from twins.zip.names import LEAVE_IT


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
