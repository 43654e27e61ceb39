"""Files on their way into a snapshot: looked at for secrets, and kept only when none was found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from neighborhoods.snapshot.spooled_files import Spool, SpooledFile
from twins.eggs.writers.contents import Content, EggContents
from twins.eggs.writers.secret_scan import SecretScan
from twins.fs.untrusted_names import shown, why_not_portable

RENAME: Final = "Rename it, rerun."
"""Advice about a file that stays behind for its name."""


class Omission(msgspec.Struct, frozen=True):
    """A file that stays behind, or could not be read. ``id`` lets a likely secret travel when it is allowed.

    ``do`` is what its owner can do about it; without it, such files always stay behind.
    """

    path: str
    why: str
    id: str = ""
    do: str = ""

    def as_json(self) -> dict[str, Any]:
        """The object for a screen; without ``id`` and ``do`` where there is none."""
        more = {"id": self.id, "do": self.do}
        return {"path": self.path, "why": self.why, **{key: text for key, text in more.items() if text}}


def omissions(row: Mapping[str, Any]) -> list[Omission]:
    """The files that stayed behind, as a twin's row of a manifest lists them."""
    return [
        Omission(one["path"], one["why"], one.get("id", ""), one.get("do", ""))
        for one in row.get("left_out", [])
    ]


class SecretFilter:
    """Takes files into a spool unless they hold a likely secret whose id is not in ``allow``.

    A file whose name no installer takes stays behind too: a snapshot holds what can be restored.
    """

    def __init__(
        self, spool: Spool, *, known: Mapping[bytes, str] | None = None, allow: Collection[str] = ()
    ) -> None:
        self._spool = spool
        self._scan = SecretScan(known)
        self._allow = frozenset(allow)
        self.left_out: list[Omission] = []

    def take(
        self, name: str, pieces: Iterable[bytes], *, path: str = "", mtime: int = 0, executable: bool = False
    ) -> SpooledFile | None:
        """One file; None when it stays behind. ``path`` is what a person calls it."""
        if why := why_not_portable(name):
            self.left_out.append(Omission(shown(path or name), why, do=RENAME))
            return None
        before = len(self._scan.findings)
        watched = self._scan.watch((path or name).removeprefix("agents/"), pieces)
        added = self._spool.add(name, watched, mtime=mtime, executable=executable)
        refused = [one for one in self._scan.findings[before:] if one.id not in self._allow]
        if not refused:
            return added
        self._spool.drop_last()
        first = refused[0]
        line = f"line {first.line} " if first.line else ""
        self.left_out.append(Omission(path or name, f"{line}holds a likely {first.what}", first.id))
        return None

    def take_all(self, load: EggContents) -> None:
        """Every member that is still there, in the load's order."""
        for member in load.members:
            content = member.open()
            if content is not None:
                mtime, executable = _stamp(member.file)
                self.take(member.name, _pieces(content), path=member.path, mtime=mtime, executable=executable)


def _stamp(path: Path | None) -> tuple[int, bool]:
    try:
        found = path.lstat() if path else None
    except OSError:
        return 0, False
    return (int(found.st_mtime), bool(found.st_mode & 0o100)) if found else (0, False)


def _pieces(content: Content) -> Iterable[bytes]:
    return (content,) if isinstance(content, bytes) else content
