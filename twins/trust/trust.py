"""The answer to the one question about code: may these bytes run here?

Decided from the origin of the code, the quarantine, the owner's approvals and the receipts of eggs; nothing else
in the program decides it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any

import orjson

from agents.contract.may_run import SHIPPED, YOURS, Allowed, Origin, Quarantined, Refused, Verdict, is_known
from agents.runtimes.python.sandbox.needs import Needs, yes_digest
from agents.storage.atomic_write import write_atomically
from twins.errors import BadFileError
from twins.installer.receipts import Receipts
from twins.trust.needs_rules import DECLARED_FREELY, ScopeRules
from twins.trust.quarantine import CachedFile, QuarantineEntry, QuarantineList
from twins.workspace.workspace import Workspace, exclusive_lock

_DIGITS = 12
Stamp = tuple[int, int]


class CodeOrigins:
    """Tells files of different origin apart, so that they never share a worker process.

    A file whose content an egg brought is of that egg, wherever it lies. At a path that an egg wrote, other
    content is of an origin of its own: mostly it is the egg's code with a change. Blocks on the disk.
    """

    def __init__(self, home: Path) -> None:
        self._home = Path(os.path.realpath(home))
        self._folder = Receipts(home).folder
        self._read: dict[str, tuple[Stamp, list[tuple[str, str, str]]]] = {}
        self._by_content: dict[str, str] = {}
        self._by_path: dict[str, str] = {}
        self._lock = threading.Lock()

    def look(self) -> object:
        """Read receipts that are new or changed; another object when there were any. Thread-safe."""
        with self._lock:
            return self._look()

    def _look(self) -> object:
        found = _stamps(self._folder)
        if found.keys() == self._read.keys() and all(self._read[one][0] == found[one] for one in found):
            return self._by_content
        for name, stamp in found.items():
            if name not in self._read or self._read[name][0] != stamp:
                self._read[name] = (stamp, self._files_of(self._folder / name))
        self._read = {name: self._read[name] for name in sorted(found)}
        rows = [row for _, rows in self._read.values() for row in rows]
        self._by_path = {path: egg for egg, path, _ in rows}
        self._by_content = {sha256: egg for egg, _, sha256 in rows}
        return self._by_content

    def egg_of(self, path: Path, sha256: str) -> str:
        """``egg:<hash>``, with a suffix for changed content; "" for what no egg brought."""
        egg = self._by_content.get(sha256)
        if egg is not None:
            return egg
        real = os.path.realpath(path)
        egg = self._by_path.get(real)
        return f"{egg}:{os.path.relpath(real, self._home)}" if egg is not None else ""

    def _files_of(self, receipt: Path) -> list[tuple[str, str, str]]:
        """(egg, path, sha256) of the code that one hatching wrote."""
        try:
            found: Mapping[str, Any] = orjson.loads(receipt.read_bytes())
            egg = f"egg:{found['sha256'][:_DIGITS]}"
            root = Path(self._home, found["workspace"])
            files = [row for row in found["files"] if str(row["path"]).endswith(".py")]
            return [
                (egg, os.path.realpath(row.get("moved_to") or root / row["path"]), row["sha256"])
                for row in files
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []  # a damaged receipt is told by what needs it whole


def _stamps(folder: Path) -> dict[str, Stamp]:
    found = {}
    try:
        for entry in os.scandir(folder):
            if entry.name.endswith(".json") and not entry.name.endswith(".frames.json"):
                status = entry.stat(follow_symlinks=False)
                found[entry.name] = (status.st_mtime_ns, status.st_ino)
    except FileNotFoundError:
        return {}
    return found


_DAMAGED = object()


def verdict(origin: Origin, entry: QuarantineEntry | None, *, egg: str, is_approved: bool) -> Verdict:
    """The rule. ``entry``: how the bytes are held at their path; ``egg``: the egg that brought them."""
    if not is_known(origin):
        return Refused(f'code of the origin "{origin[:40]}" does not run here')
    if origin == SHIPPED:
        return Allowed(structural=True)
    if entry is not None:
        return Quarantined(entry.why, entry.origin)
    return Allowed(egg, is_approved)


class Approvals:
    """Files whose exact bytes the owner lets change structure, by SHA-256, in ``$RAPP_HOME/approved.json``.

    No worker can write there, so that no agent approves itself.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: CachedFile[dict[str, Any]] = CachedFile(path, _approved, dict)

    def covers(self, digest: str) -> bool:
        """True when files of that SHA-256 may change structure. Raises ``BadFileError`` when the file is damaged."""
        return digest in self._file.content()

    def add(self, filename: str, digest: str) -> None:
        """Remembers the owner's approval of exactly these bytes."""
        with exclusive_lock(self._path.parent):
            known = {**self._file.content(), digest: {"file": filename, "at": int(time.time())}}
            write_atomically(self._path, orjson.dumps(known, option=orjson.OPT_INDENT_2))
            self._file.forget()


class Trust:
    """The rules of one home."""

    def __init__(self, home: Path, scope: ScopeRules = DECLARED_FREELY) -> None:
        """``scope``: what declared needs must be."""
        self._scope = scope
        self.quarantine = QuarantineList(home / "held.json", home)
        self.approvals = Approvals(home / "approved.json")
        self.origins = CodeOrigins(home)

    def may_run(
        self, origin: Origin, path: Path, sha256: str, needs: Needs | EllipsisType | None = ...
    ) -> Verdict:
        """As ``agents.contract.may_run.Trust``. What cannot be read lets nothing run that did not come with the program."""
        if origin == SHIPPED:
            return verdict(origin, None, egg="", is_approved=False)
        try:
            entry = self.quarantine.entry(path, sha256)
            egg, is_approved = self.origins.egg_of(path, sha256), self.approvals.covers(sha256)
        except BadFileError as problem:
            return Refused(str(problem))
        found = verdict(origin, entry, egg=egg, is_approved=is_approved)
        if needs is ... or not isinstance(found, Allowed):
            return found
        return self._scope.verdict(needs, found, self.approvals.covers(yes_digest(sha256, needs)))

    def allow_needs(self, filename: str, sha256: str, needs: Needs | None) -> None:
        """Remembers the owner's yes to exactly these needs of exactly these bytes."""
        self.approvals.add(filename, yes_digest(sha256, needs))

    def is_held(self, path: Path, sha256: str) -> bool:
        """True for bytes that do not go into an egg: this machine signs nothing that nobody has read.

        Raises ``BadFileError`` when that cannot be told.
        """
        found = self.may_run(YOURS, path, sha256)
        if isinstance(found, Refused):
            raise BadFileError(found.why, do="rappd doctor")
        return isinstance(found, Quarantined)


class WorkspaceTrust:
    """The rules as one workspace meets them: asked by the daemon, and told to its workers with every request."""

    def __init__(self, trust: Trust, workspace: Workspace) -> None:
        self._trust = trust
        self.may_run = trust.may_run
        self._folders = (workspace.root, workspace.agents)
        self._seen: Mapping[str, Mapping[str, str]] | None = None
        self.standing: Mapping[str, Any] = {}
        """Fields that every request to a worker carries; empty when nothing is quarantined."""

    def look(self) -> Sequence[object]:
        """As ``agents.contract.may_run.Trust``."""
        return self.look_at_quarantine(), self._trust.origins.look()

    def look_at_quarantine(self) -> object:
        """Reads anew what is held, for workers too; another object when that changed. Blocks on the disk."""
        try:
            found = self._trust.quarantine.below(*self._folders)
        except BadFileError:
            return _DAMAGED  # nothing of the workspace is served now; workers go by what they were told
        if found is not self._seen:
            self.standing = {"held": orjson.Fragment(orjson.dumps(found))} if found else {}
            self._seen = found
        return found


def _approved(content: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise BadFileError(
            "approved.json is damaged; no approval counts until it is whole.", do="Restore it from a backup."
        )
    return found
