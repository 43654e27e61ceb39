"""Access of one worker to the file system: which paths it may write, which of these stay read-only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Access:
    """Read-only is everything, but for ``writable`` and what is inside; of that, ``read_only`` again.

    Of several paths above a file the deepest one decides. ``pinned`` are the folders that lead from a
    writable path to another of these paths: renaming one would exchange what is behind the path.
    """

    writable: tuple[Path, ...]
    read_only: tuple[Path, ...]
    pinned: tuple[Path, ...]

    @classmethod
    def of(cls, writable: Iterable[Path], read_only: Iterable[Path], hidden: Path | None) -> Access:
        """The access that results; paths that change nothing are left out. ``hidden`` is a folder that
        workers do not see: what they may see inside of it is kept."""
        verdicts: dict[Path, bool | None] = {**dict.fromkeys(writable, True), **dict.fromkeys(read_only, False)}
        if hidden is not None:
            verdicts.setdefault(hidden, None)
        kept: dict[Path, bool | None] = {}
        pinned: set[Path] = set()
        for path in sorted(verdicts, key=lambda one: len(one.parts)):
            above = next((one for one in path.parents if one in kept), None)
            if verdicts[path] == (above is not None and kept[above]):
                continue
            if above is not None and kept[above]:
                pinned |= {one for one in path.parents if one != above and one.is_relative_to(above)}
            kept[path] = verdicts[path]
        return cls(
            tuple(path for path, verdict in kept.items() if verdict),
            tuple(path for path, verdict in kept.items() if verdict is False),
            tuple(pinned - kept.keys()),
        )
