"""Access of one worker to the file system: which paths it may write, which of these stay read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """Read-only is everything, but for ``writable`` and what is inside; of that, ``read_only`` again.

    Of several paths above a file the deepest one decides. ``pinned`` are the folders that lead from a
    writable path to another of these paths: renaming one would exchange what is behind the path. ``hidden``
    are the paths of which only what the others name is seen.
    """

    writable: tuple[str, ...]
    read_only: tuple[str, ...]
    pinned: tuple[str, ...]
    hidden: tuple[str, ...]

    @classmethod
    def of(cls, writable: Iterable[str], read_only: Iterable[str], hidden: Iterable[str]) -> Access:
        """The access that results; paths that change nothing are left out.

        ``hidden`` is what workers do not see: what they may see inside of it is kept.
        """
        verdicts: dict[str, bool | None] = {
            **dict.fromkeys(writable, True),
            **dict.fromkeys(read_only, False),
        }
        for path in hidden:
            verdicts.setdefault(path, None)
        kept: dict[str, bool | None] = {}
        pinned: dict[str, None] = {}
        for path in sorted(verdicts, key=len):
            between = []
            current: bool | None = False
            for above in folders_above(path):
                if above in kept:
                    current = kept[above]
                    break
                between.append(above)
            if verdicts[path] == current:
                continue
            if current:
                pinned |= dict.fromkeys(between)
            kept[path] = verdicts[path]
        return cls(
            tuple(path for path, verdict in kept.items() if verdict),
            tuple(path for path, verdict in kept.items() if verdict is False),
            tuple(path for path in pinned if path not in kept),
            tuple(path for path, verdict in kept.items() if verdict is None),
        )

    def hides(self, path: str) -> bool:
        """True when a worker sees nothing at ``path``: of the paths above it, the nearest that counts is hidden."""
        for above in (path, *folders_above(path)):
            if above in self.hidden:
                return True
            if above in self.writable or above in self.read_only:
                return False
        return False


def folders_above(path: str) -> Iterator[str]:
    """The folders that contain ``path``, the nearest first, the whole file system last."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def is_within(path: str, folder: str) -> bool:
    """True when ``path`` is ``folder`` or inside of it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
