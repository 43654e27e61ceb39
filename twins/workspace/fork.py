"""Forking: a new twin that begins where another one is, and goes its own way from there.

It takes along soul, agents, services and memories. It does not take secrets, installed packages, what
the daemon keeps about files, or the history of a life that was not its own. Conversations lie in the
daemon's store, which forks them itself.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from agents.storage.safe_walk import LinkFreeFolder, has_other_names
from agents.storage.sparse_file import end_sparse, is_sparse, read_hole, write_sparse
from twins.errors import BadFileError
from twins.trust.quarantine import QuarantineList
from twins.workspace.bonds import record_event
from twins.workspace.identity_file import MAX_NAME, Identity
from twins.workspace.listing import scan
from twins.workspace.new_twin_staging import staged_twin
from twins.workspace.rappid import mint_rappid
from twins.workspace.souls import default_soul, proper_soul
from twins.workspace.twin import Twin, settle
from twins.workspace.workspace import TwinLayout, Workspace

# Of the dot-names in a workspace only these belong to its twin.
_DOT_NAMES = frozenset({".brainstem_data", ".remote_agents", ".repos.json"})
_OWN_PAPERS = frozenset({"rappid.json", "bonds.json", "archived.json", "HATCH_RECEIPT.json"})
_PAST = frozenset({".brainstem_data/kept", ".brainstem_data/soul_history"})
_NEVER = (
    r"(?i)\.env(rc|\..*)?|\.copilot_(token|session|pending)|voice\.zip|.*\.(token|session|secret|key)|private"
    r"|\.git|\.?venv|node_modules|__pycache__|\.pytest_cache|.*\.py[co]|\.DS_Store|Thumbs\.db|\..*\.tmp|\.tmp-.*"
)
_CHANGED = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO})
_CHUNK = 1 << 20
_MAX_DEPTH = 64


class Fork(msgspec.Struct):
    """The new twin, how many files it took along, and the paths that it left behind, each with why."""

    twin: Twin
    files: int
    left: list[tuple[str, str]] = msgspec.field(default_factory=list)


def fork(
    places: TwinLayout,
    original: Twin,
    *,
    quarantine: QuarantineList,
    owner: str,
    name: str = "",
    now: datetime | None = None,
    entropy: bytes | None = None,
) -> Fork:
    """A new twin whose ``parent_rappid`` is the original's; whole or not at all.

    The original is only read, and should not be running meanwhile: files of a database may not fit
    together otherwise. Quarantined code stays quarantined in the fork. Raises ``BadNameError``.
    """
    at = now or datetime.now(UTC)
    name = name or _free_name(places, original.name)
    rappid = mint_rappid(owner, name, entropy)
    identity = Identity.new(rappid, name=name, kind=original.kind, born_at=at, parent=original.rappid)
    with staged_twin(places, rappid.key) as staged:
        copying = _ForkCopy()
        copying.tree(original.workspace.root, staged)
        workspace = Workspace.at(staged)
        if not workspace.files.exists(workspace.soul):
            workspace.files.write_durably(workspace.soul, proper_soul(default_soul(original.kind, name)))
        workspace.create()
        identity.write(staged)
        record_event(workspace, "birth", at=at, note=f"forked from {original.rappid.text}")
        quarantine.copy(original.workspace.root, places.active(rappid.key))
        return Fork(settle(places, staged, identity), copying.files, sorted(copying.left))


class _ForkCopy:
    """Copies a tree without ever following a link, whatever its own agents do to it meanwhile."""

    def __init__(self) -> None:
        self.files = 0
        self.left: list[tuple[str, str]] = []

    def tree(self, source: Path, target: Path) -> None:
        """Everything below ``source`` that a fork takes along. Raises ``BadFileError`` naming what resists."""
        with LinkFreeFolder(source) as files:
            for path, status in files.walk(enters=self._takes, failed=self._skip):
                if stat.S_ISDIR(status.st_mode):
                    (target / path).mkdir(mode=0o700)
                elif self._takes(path):
                    self._entry(files, path, status.st_mode, target / path)

    def _takes(self, path: str) -> bool:
        why = _why_left(path) or ("too deep" if path.count("/") > _MAX_DEPTH else "")
        if why:
            self.left.append((path, why))
        return not why

    def _skip(self, path: str, error: OSError) -> None:
        if error.errno not in _CHANGED:
            raise BadFileError(
                f"{path or 'Its folder'} cannot be copied: {error.strerror}; nothing was forked.",
                do="Look at the file.",
            ) from error
        self.left.append((path, "changed meanwhile"))

    def _entry(self, files: LinkFreeFolder, path: str, mode: int, target: Path) -> None:
        if not stat.S_ISREG(mode):
            self.left.append((path, "a link" if stat.S_ISLNK(mode) else "not a file"))
            return
        try:
            descriptor, found = files.open(path)
            if has_other_names(found):  # its copy would have one name, and travel in the next egg
                os.close(descriptor)
                self.left.append((path, "a hard link"))
                return
            with os.fdopen(descriptor, "rb") as source, target.open("xb") as copy:
                _copy(source.fileno(), copy.fileno(), found)
                os.fchmod(copy.fileno(), 0o700 if found.st_mode & stat.S_IXUSR else 0o600)
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
        except OSError as error:
            self._skip(path, error)
        else:
            self.files += 1


def _copy(source: int, copy: int, status: os.stat_result) -> None:
    sparse = is_sparse(status)
    while chunk := (sparse and read_hole(source, _CHUNK)) or os.read(source, _CHUNK):
        write_sparse(copy, chunk)
    end_sparse(copy)


def _free_name(places: TwinLayout, name: str) -> str:
    used_names = {twin.name for twin in scan(places).twins}
    start, count = name[: MAX_NAME - 20], 1
    while (free := f"{start} (fork{f' {count}' if count > 1 else ''})") in used_names:
        count += 1
    return free


def _why_left(path: str) -> str:
    name = path.rpartition("/")[2]
    if re.fullmatch(_NEVER, name):
        return "a secret, or made anew"
    if path in _OWN_PAPERS:
        return "its own"
    if path in _PAST:
        return "a past that is not the fork's"
    if "/" not in path and name.startswith(".") and name not in _DOT_NAMES:
        return "belongs to the place"
    return ""
