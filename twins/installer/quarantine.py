"""Held code: in its place and readable, but not run until the operator approves exactly these bytes.

``$RAPP_HOME/held.json``, where no worker can write:

    {"schema": "rappd-held/1.0", "held": {path: {sha256: {"why", "origin", "at"}}}}

``path`` is relative to the home (absolute for a workspace that lies elsewhere). A hold binds path and
content together: a file that its owner edits or replaces is another content, and no longer held.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from agents.storage.atomic_write import write_atomically
from agents.storage.safe_walk import LinkFreeFolder
from twins.errors import BadFileError
from twins.workspace.identity_file import utc
from twins.workspace.workspace import exclusive_lock

SCHEMA = "rappd-held/1.0"


class QuarantineEntry(msgspec.Struct, frozen=True):
    """One held file. ``why`` is a sentence, ``origin`` what brought it (an egg's name, a peer's)."""

    path: str
    sha256: str
    why: str
    origin: str
    at: str


Holds = Mapping[str, Mapping[str, QuarantineEntry]]


class QuarantineList:
    """The files that are held. Other processes' changes are seen; asking costs one ``stat``.

    A damaged file raises ``BadFileError`` from every question: what cannot be read lets nothing run.
    """

    def __init__(self, path: Path, home: Path) -> None:
        self._path = path
        self._home = os.path.realpath(home)
        self._file: CachedFile[_Index] = CachedFile(path, _decode, lambda: _Index({}))

    def hold(
        self, path: Path | str, sha256: str, why: str, origin: str, *, now: datetime | None = None
    ) -> None:
        """Holds the file at ``path`` (absolute, or relative to the home) while its content has that hash."""
        self.hold_all(
            [QuarantineEntry(self.key_of(path), sha256, why, origin, utc(now or datetime.now(UTC)))]
        )

    def hold_all(self, holds: Iterable[QuarantineEntry]) -> None:
        """The same for many files with one write; each ``path`` as ``key_of`` gives it."""
        with exclusive_lock(self._path.parent):
            known = self._copy()
            for one in holds:
                known.setdefault(one.path, {})[one.sha256] = one
            self._write(known)

    def is_held(self, path: Path | str, sha256: str) -> bool:
        """True when the file at ``path`` must not run with the content of that hash."""
        known = self._file.content()
        return sha256 in known.hashes and sha256 in known.holds.get(self.key_of(path), ())

    def why(self, path: Path | str, sha256: str) -> str:
        """The reason why the file at ``path`` must not run with that content; "" when it may."""
        one = self.entry(path, sha256)
        return one.why if one else ""

    def entry(self, path: Path | str, sha256: str) -> QuarantineEntry | None:
        """The hold of the file at ``path`` with that content; None when it may run."""
        known = self._file.content()
        if sha256 not in known.hashes:
            return None
        return known.holds.get(self.key_of(path), {}).get(sha256)

    def holds_content(self, sha256: str) -> bool:
        """True when any file of this home is held with the content of that hash."""
        return sha256 in self._file.content().hashes

    def release(self, path: Path | str = "", sha256: str = "") -> list[QuarantineEntry]:
        """Ends holds: of one path, of one content wherever it lies, or of both together.

        Returns those that ended. Without ``path`` and ``sha256`` nothing does.
        """
        key = self.key_of(path) if path else ""
        return self._drop(
            lambda one: bool(key or sha256) and key in ("", one.path) and sha256 in ("", one.sha256)
        )

    def withdraw(self, holds: Iterable[tuple[str, str]]) -> None:
        """Ends the holds of these (path, sha256) pairs, whose files are not there any more."""
        gone = set(holds)
        self._drop(lambda one: (one.path, one.sha256) in gone)

    def listing(self, folder: Path | str = "") -> list[QuarantineEntry]:
        """Holds, below ``folder`` if one is given, by path; only those whose file still has that content."""
        below = f"{self.key_of(folder)}/" if folder else ""
        rows = [
            one
            for path, by_hash in sorted(self._file.content().holds.items())
            for one in by_hash.values()
            if path.startswith(below)
        ]
        return [one for one in rows if _sha256_of(Path(self._home, one.path)) == one.sha256]

    def below(self, *folders: Path) -> Mapping[str, Mapping[str, str]]:
        """Everything held below these folders, whether its file is there or not: path, with every link followed, to {sha256: why}.

        The same object until something changes.
        """
        known = self._file.content()
        if folders not in known.below:
            roots = tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in folders)
            paths = {str(Path(self._home, path)): by_hash for path, by_hash in known.holds.items()}
            known.below[folders] = {
                path: {sha256: one.why for sha256, one in by_hash.items()}
                for path, by_hash in paths.items()
                if path.startswith(roots)
            }
        return known.below[folders]

    def copy(self, source: Path | str, target: Path | str) -> int:
        """Holds files held below the folder ``source`` at the same places below ``target``, too.

        For forks and copies: before the copied files are in place. Returns how many holds were added.
        """
        old, new = f"{self.key_of(source)}/", f"{self.key_of(target)}/"
        with exclusive_lock(self._path.parent):
            known = self._copy()
            found = [one for by in known.values() for one in by.values() if one.path.startswith(old)]
            for one in found:
                path = new + one.path[len(old) :]
                known.setdefault(path, {})[one.sha256] = QuarantineEntry(
                    path, one.sha256, one.why, one.origin, one.at
                )
            if found:
                self._write(known)
        return len(found)

    def key_of(self, path: Path | str) -> str:
        """The name of a file here: relative to the home with every link followed, so that it has one name."""
        real = os.path.realpath(Path(self._home, path))
        inside = real.startswith(self._home + os.sep)
        return real[len(self._home) + 1 :].replace(os.sep, "/") if inside else real

    def _drop(self, ends: Any) -> list[QuarantineEntry]:
        with exclusive_lock(self._path.parent):
            known = self._copy()
            ended = [one for by_hash in known.values() for one in by_hash.values() if ends(one)]
            for one in ended:
                del known[one.path][one.sha256]
            if ended:
                self._write(known)
        return ended

    def _copy(self) -> dict[str, dict[str, QuarantineEntry]]:
        return {path: dict(by_hash) for path, by_hash in self._file.content().holds.items()}

    def _write(self, known: dict[str, dict[str, QuarantineEntry]]) -> None:
        rows = {
            path: {
                one.sha256: {"why": one.why, "origin": one.origin, "at": one.at} for one in by_hash.values()
            }
            for path, by_hash in sorted(known.items())
            if by_hash
        }
        for left in self._path.parent.glob(f".{self._path.name}.*.tmp"):  # by a writer that was killed
            left.unlink(missing_ok=True)
        write_atomically(
            self._path, orjson.dumps({"schema": SCHEMA, "held": rows}, option=orjson.OPT_INDENT_2)
        )
        self._file.forget()


class _Index:
    """The file's content, the hashes in it for a quick no, and what was asked of it by folder."""

    __slots__ = ("below", "hashes", "holds")

    def __init__(self, holds: Holds) -> None:
        self.below: dict[tuple[Path, ...], Mapping[str, Mapping[str, str]]] = {}
        self.holds = holds
        self.hashes = frozenset(sha256 for by_hash in holds.values() for sha256 in by_hash)


def _decode(content: bytes) -> _Index:
    try:
        found = orjson.loads(content)
        return _Index(
            {
                path: {
                    sha256: QuarantineEntry(path, sha256, str(row["why"]), str(row["origin"]), str(row["at"]))
                    for sha256, row in by_hash.items()
                }
                for path, by_hash in found["held"].items()
            }
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise BadFileError(
            "held.json is damaged; no code from eggs runs until it is whole.",
            do="Restore it from a backup.",
        ) from error


def _sha256_of(path: Path) -> str:
    with LinkFreeFolder(path.parent) as walk:
        return walk.sha256(path.name)


Content = TypeVar("Content")


class CachedFile(Generic[Content]):
    """One file that is only ever replaced as a whole. Asking costs one ``stat``."""

    def __init__(
        self, path: Path, decode: Callable[[bytes], Content], without: Callable[[], Content]
    ) -> None:
        """``without()`` stands for a file that is not there."""
        self._path = path
        self._decode = decode
        self._without = without
        self._loaded: tuple[tuple[int, int, int] | None, Content] | None = None

    def content(self) -> Content:
        """The file's content now. Raises what ``decode`` raises; then nothing older is given out."""
        try:
            stamp: tuple[int, int, int] | None = _stamp(self._path.stat())
        except FileNotFoundError:
            stamp = None
        loaded = self._loaded
        if loaded is not None and loaded[0] == stamp:
            return loaded[1]
        if stamp is None:
            self._loaded = (None, self._without())
        else:
            with self._path.open("rb") as file:
                stamp = _stamp(os.fstat(file.fileno()))
                self._loaded = (stamp, self._decode(file.read()))
        return self._loaded[1]

    def forget(self) -> None:
        """Reads anew when next asked: after writing the file oneself, whose stamp may look like the old one."""
        self._loaded = None


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_size, found.st_ino
