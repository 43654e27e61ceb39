"""The files that go into a backup: all of the home, but for what agents laid there that would make it fail.

A backup never fails because of what lies where agents write: what no archive takes is left out, and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from envelopes.errors import ReportableError
from rappd.backup.manifest import ANCHORS, DATABASE, BackupManifest, walk
from twins.byte_sizes import format_bytes
from twins.errors import HostileEggError
from twins.fs.untrusted_names import NameSet, folded, safe_path
from twins.zip.archive_bounds import Limits

_LIST_BYTES = 48 << 20  # of names and hashes in the signed list, of which a restore reads 64 MB
_LIST_ROW = 80  # a hash, quotes and commas
_SPARE = 64  # members besides the home's files, and room for what a daemon adds meanwhile
_SECRET_BYTES, _SECRETS_BYTES = 1 << 20, 32 << 20  # of one .env of an agent's, and of all


@dataclass(slots=True)
class Selection:
    """Paths below the home, sorted: what goes in, what only under a passphrase, and (path, why) of what does not."""

    plain: list[str] = field(default_factory=list)
    secret: list[str] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)


def select(home: Path) -> Selection:
    """Chooses the files of a home. Raises ``OSError`` for a folder of rappd's own that cannot be read."""
    chosen = Selection()
    room = _Room(home)
    found = []
    for one in walk(home):
        why = one.why or _nameless(one.path)
        if why:
            chosen.left.append((one.path, why))
        else:
            found.append(one)
    for one in _by_rank(found):
        why = room.refusal(one)
        if why:
            chosen.left.append((one.path, why))
        else:
            (chosen.secret if one.secret else chosen.plain).append(one.path)
    for paths in (chosen.plain, chosen.secret):
        paths.sort()
    chosen.left.sort()
    return chosen


def _nameless(path: str) -> str:
    try:
        safe_path(path)
    except ReportableError:
        return "has a name that no other system could take"
    return ""


def _by_rank(found: list[BackupManifest]) -> Iterator[BackupManifest]:
    """Files of rappd's own first, then those of workspaces with few files, older ones first.

    So a flood of files costs its own workspace, and in it the hidden folders that agents write into. Of two
    spellings, the one that rappd itself would use comes first: an agent's ``AGENTS`` does not take the place of
    ``agents``.
    """
    crowd = Counter(_workspace(one.path) for one in found if one.of_agents)

    def rank(one: BackupManifest) -> tuple[bool, int, bool, bool, int, str]:
        others = crowd[_workspace(one.path)] if one.of_agents else 0
        spelling = one.path != folded(one.path)
        return one.of_agents, others, spelling, "/." in one.path, one.changed, one.path

    yield from sorted(found, key=rank)


def _workspace(path: str) -> str:
    parts = path.split("/", 2)
    return parts[0] if parts[0] == "brainstem" else "/".join(parts[:2])


class _Room:
    """The room that an archive still has."""

    def __init__(self, home: Path) -> None:
        limits = Limits()
        self._names = NameSet()
        self._members = limits.members - _SPARE
        self._most = limits.member_size
        self._total = limits.total - sum(_size(home / name) for name in (DATABASE, ANCHORS))
        self._list = _LIST_BYTES
        self._secrets = _SECRETS_BYTES

    def refusal(self, one: BackupManifest) -> str:
        """The reason why this file is left out; "" for one that goes in, which is counted. Only agents' files are left out."""
        row = len(one.path.encode("utf-8", "surrogateescape")) + _LIST_ROW
        if one.of_agents:
            why = self._too_much(one, row)
            if why:
                return why
        try:
            self._names.add(one.path)
        except HostileEggError as error:
            if one.of_agents:
                return f"has a name that is another's on some disk ({str(error).partition(';')[0]})"
            raise
        self._members -= 1
        self._total -= one.size
        self._list -= row
        if one.secret:
            self._secrets -= one.size
        return ""

    def _too_much(self, one: BackupManifest, row: int) -> str:
        if one.secret and (one.size > _SECRET_BYTES or one.size > self._secrets):
            return f"is too large to be sealed ({format_bytes(one.size)})"
        if one.size > min(self._most, self._total):
            return f"is too large ({format_bytes(one.size)})"
        if self._members < 1 or row > self._list:
            return "is one file too many"
        return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
