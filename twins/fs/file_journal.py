"""The moves of a hatching or a rollback, written down before the first move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec.structs import asdict

from twins.installer.quarantine import QuarantineEntry


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
    that go at the end with all they hold. ``holds`` begin before the first move.
    """

    id: str
    moves: list[Move] = msgspec.field(default_factory=list)
    made: list[Location] = msgspec.field(default_factory=list)
    pruned: list[Location] = msgspec.field(default_factory=list)
    dropped: list[Location] = msgspec.field(default_factory=list)
    holds: list[QuarantineEntry] = msgspec.field(default_factory=list)

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
        )
