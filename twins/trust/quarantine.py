"""Held code: in its place and readable, but not run until the operator approves exactly these bytes.

``$RAPP_HOME/held.json``, where no worker can write:

    {"schema": "rappd-held/1.0", "held": {path: {sha256: {"why", "origin", "at", "exact"?}}}}

``path`` is relative to the home (absolute for a workspace that lies elsewhere). A hold is for its path, whatever
lies there: one letter that is changed on disk makes nothing trusted. The owner's yes to what lies there ends it.
Other contents that were brought to the same path before that yes stay held, exactly those (``exact``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import orjson
from msgspec.structs import replace

from agents.storage.atomic_write import write_atomically
from agents.storage.safe_walk import LinkFreeFolder
from twins.errors import BadFileError
from twins.workspace.identity_file import utc
from twins.workspace.workspace import exclusive_lock

SCHEMA = "rappd-held/1.0"


class QuarantineEntry(msgspec.Struct, frozen=True):
    """One held file. ``why`` is a sentence, ``origin`` what brought it (an egg's name, a peer's).

    ``exact``: only this content is held; another one at ``path`` is the owner's.
    """

    path: str
    sha256: str
    why: str
    origin: str
    at: str
    exact: bool = False


Holds = Mapping[str, Mapping[str, QuarantineEntry]]

EXACT = "exact"
"""The key, in place of a hash, that ``below`` adds to a path of which single contents alone are held."""

_CHANGED = "It was changed since."
_ARCHIVED = re.compile(r"\A(twins)/\.archive/(?=[^/.])")


class QuarantineList:
    """The files that are held. Other processes' changes are seen; asking costs one ``stat``.

    A damaged file raises ``BadFileError`` from every question: what cannot be read lets nothing run.
    """

    def __init__(self, path: Path, home: Path) -> None:
        self.path = path
        self._home = os.path.realpath(home)
        self._file: CachedFile[_Index] = CachedFile(path, _decode, lambda: _Index({}))

    def hold(
        self, path: Path | str, sha256: str, why: str, origin: str, *, now: datetime | None = None
    ) -> None:
        """Holds the file at ``path`` (absolute, or relative to the home), which has the content of that hash now."""
        self.hold_all(
            [QuarantineEntry(self.key_of(path), sha256, why, origin, utc(now or datetime.now(UTC)))]
        )

    def hold_all(self, holds: Iterable[QuarantineEntry]) -> None:
        """The same for many files with one write; each ``path`` as ``key_of`` gives it."""
        with exclusive_lock(self.path.parent):
            known = self._copy()
            for one in holds:
                known.setdefault(one.path, {})[one.sha256] = one
            self._write(known)

    def is_recorded(self, path: str, sha256: str) -> bool:
        """True when the list has a hold of ``path`` (as ``key_of`` gives it) that was made for that content."""
        one = self._file.content().holds.get(path, {}).get(sha256)
        return one is not None and not one.exact

    def knows(self, path: Path | str, sha256: str) -> bool:
        """True when a hold of that path was made for exactly that content."""
        return sha256 in self._file.content().holds.get(self.key_of(path), {})

    def is_held(self, path: Path | str, sha256: str) -> bool:
        """True when the file at ``path`` must not run with the content of that hash."""
        return self.entry(path, sha256) is not None

    def entry(self, path: Path | str, sha256: str) -> QuarantineEntry | None:
        """The hold of the file at ``path`` with that content; None when it may run.

        A content that was never seen is held as the latest one that came to that path.
        """
        holds = self._file.content().holds
        return _hold_of(holds.get(self.key_of(path), {}), sha256) if holds else None

    def holds_content(self, sha256: str) -> bool:
        """True when any file of this home is held with the content of that hash."""
        return sha256 in self._file.content().hashes

    def release(self, path: Path | str = "", sha256: str = "") -> list[QuarantineEntry]:
        """Ends holds by an explicit yes: to one path, to one content wherever it lies, or to a content at a path.

        From then on the path is the owner's; other contents that came there stay held, exactly those. Returns the holds
        that ended. Without ``path`` and ``sha256`` nothing does.
        """
        if not path and not sha256:
            return []
        key = self.key_of(path) if path else ""
        with exclusive_lock(self.path.parent):
            known = self._copy()
            ended: list[QuarantineEntry] = []
            for name in (key,) if key else tuple(known):
                by_hash = known.get(name, {})
                one = _hold_of(by_hash, sha256) if sha256 else None
                if one is None and (sha256 or not by_hash):
                    continue
                if sha256 and not key and sha256 not in by_hash:
                    continue  # a yes to a content says nothing about paths where it never lay
                ended += [one] if one else by_hash.values()
                known[name] = {
                    other: replace(row, exact=True)
                    for other, row in by_hash.items()
                    if sha256 and other != sha256
                }
            if ended:
                self._write(known)
        return ended

    def withdraw(self, holds: Iterable[tuple[str, str]]) -> None:
        """Ends the holds of these (path, sha256) pairs, whose files are not there any more."""
        self._change(holds, lambda one: None)

    def narrow(self, holds: Iterable[tuple[str, str]]) -> None:
        """Keeps these (path, sha256) pairs held exactly: their files were taken back, what lay there before is there again."""
        self._change(holds, lambda one: replace(one, exact=True))

    def widen(self, holds: Iterable[tuple[str, str]]) -> None:
        """Takes ``narrow`` back."""
        self._change(holds, lambda one: replace(one, exact=False))

    def listing(self, folder: Path | str = "") -> list[QuarantineEntry]:
        """Held files, below ``folder`` if one is given, by path; each with the content that it has now."""
        below = f"{self.key_of(folder)}/" if folder else ""
        rows = []
        for path, by_hash in sorted(self._file.content().holds.items()):
            if path.startswith(below) and (sha256 := _sha256_of(Path(self._home, path))):
                one = _hold_of(by_hash, sha256)
                rows += [one] if one else []
        return rows

    def below(self, *folders: Path) -> Mapping[str, Mapping[str, str]]:
        """Everything held below these folders, whether its file is there or not: path, with every link followed, to {sha256: why}.

        Other contents at these paths are held, too, but where there is the key ``EXACT``. The same object until something
        changes.
        """
        known = self._file.content()
        if folders not in known.below:
            roots = tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in folders)
            paths = {str(Path(self._home, path)): by_hash for path, by_hash in known.holds.items()}
            known.below[folders] = {
                path: {sha256: one.why for sha256, one in by_hash.items()} | _mark(by_hash)
                for path, by_hash in paths.items()
                if path.startswith(roots)
            }
        return known.below[folders]

    def copy(self, source: Path | str, target: Path | str) -> int:
        """Holds files held below the folder ``source`` at the same places below ``target``, too.

        For forks and copies: before the copied files are in place. Returns how many holds were added.
        """
        old, new = f"{self.key_of(source)}/", f"{self.key_of(target)}/"
        with exclusive_lock(self.path.parent):
            known = self._copy()
            found = [one for by in known.values() for one in by.values() if one.path.startswith(old)]
            for one in found:
                path = new + one.path[len(old) :]
                known.setdefault(path, {})[one.sha256] = replace(one, path=path)
            if found:
                self._write(known)
        return len(found)

    def key_of(self, path: Path | str) -> str:
        """The name of a file here: relative to the home with every link followed, so that it has one name.

        An archived twin's files have the names that they had, and will have again.
        """
        real = os.path.realpath(Path(self._home, path))
        if not real.startswith(self._home + os.sep):
            return real
        return _ARCHIVED.sub(r"\1/", real[len(self._home) + 1 :].replace(os.sep, "/"))

    def _change(
        self,
        holds: Iterable[tuple[str, str]],
        change: Callable[[QuarantineEntry], QuarantineEntry | None],
    ) -> None:
        with exclusive_lock(self.path.parent):
            known = self._copy()
            found = [(path, sha256) for path, sha256 in holds if sha256 in known.get(path, ())]
            for path, sha256 in found:
                changed = change(known[path].pop(sha256))
                if changed is not None:
                    known[path][sha256] = changed
            if found:
                self._write(known)

    def _copy(self) -> dict[str, dict[str, QuarantineEntry]]:
        return {path: dict(by_hash) for path, by_hash in self._file.content().holds.items()}

    def _write(self, known: dict[str, dict[str, QuarantineEntry]]) -> None:
        rows = {
            path: {
                one.sha256: {"why": one.why, "origin": one.origin, "at": one.at}
                | ({"exact": True} if one.exact else {})
                for one in by_hash.values()
            }
            for path, by_hash in sorted(known.items())
            if by_hash
        }
        for left in self.path.parent.glob(f".{self.path.name}.*.tmp"):  # by a writer that was killed
            left.unlink(missing_ok=True)
        write_atomically(
            self.path, orjson.dumps({"schema": SCHEMA, "held": rows}, option=orjson.OPT_INDENT_2)
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
                    sha256: QuarantineEntry(
                        path,
                        sha256,
                        str(row["why"]),
                        str(row["origin"]),
                        str(row["at"]),
                        row.get("exact") is True,
                    )
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


def _hold_of(by_hash: Mapping[str, QuarantineEntry], sha256: str) -> QuarantineEntry | None:
    """The hold of one path for a content; None when that content may run."""
    if (one := by_hash.get(sha256)) is not None:
        return one
    latest = max((row for row in by_hash.values() if not row.exact), key=lambda row: row.at, default=None)
    if latest is None:
        return None
    return replace(latest, sha256=sha256, why=f"{latest.why} {_CHANGED}".strip())


def _mark(by_hash: Mapping[str, QuarantineEntry]) -> dict[str, str]:
    return {EXACT: ""} if all(one.exact for one in by_hash.values()) else {}


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
