"""Limits of a LisPy program: steps, memory, depth, output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(slots=True, frozen=True)
class Limits:
    """The published limits of ``lispy-core@1``, and two of our own that keep memory bounded.

    ``max_collection_items`` also bounds the characters of a string. ``max_cells`` is what may be alive
    at once (a list item, a binding, 32 characters: one cell each); ``max_integer_bits`` how large an
    integer may grow, 256 at least.
    """

    max_steps: int = 100_000
    max_call_depth: int = 128
    max_reader_depth: int = 256
    max_source_bytes: int = 1 << 20
    max_collection_items: int = 100_000
    max_output_bytes: int = 1 << 20
    max_cells: int = 1_000_000
    max_integer_bits: int = 65_536

    def as_json(self) -> dict[str, int]:
        """The limits by name."""
        return asdict(self)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Limits:
        """The limits in ``given``, the rest as published. Raises ``ValueError`` for a wrong name or number."""
        unknown = set(given) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"there is no limit {min(unknown)}")
        for name, value in given.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} must be a whole number")
        return cls(**given)

    def within(self, ceiling: Limits) -> bool:
        """True when none of them is above the one in ``ceiling``."""
        return all(getattr(self, field.name) <= getattr(ceiling, field.name) for field in fields(self))


CEILING = Limits(
    max_steps=100_000_000,
    max_call_depth=10_000,
    max_reader_depth=1_000,
    max_source_bytes=1 << 24,
    max_collection_items=1_000_000,
    max_output_bytes=1 << 24,
    max_cells=10_000_000,
    max_integer_bits=1 << 18,
)
"""The most that an image from elsewhere may ask for, unless its reader says otherwise."""
