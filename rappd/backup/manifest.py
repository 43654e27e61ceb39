"""The contents of a backup: what belongs into it, what only under a passphrase, and what is made anew."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agents.storage.safe_walk import LinkFreeFolder, has_other_names, raise_unless_gone, split

DATABASE = "rappd.db"
ANCHORS = "anchors.db"
IDENTITY = "keys/identity.pem"
SCRATCH = ".backup-"
"""The prefix of folders in which a backup is made."""

_MADE_ANEW = frozenset(
    {
        "rappd.sock",
        "rappd.pid",
        *(f"{name}{end}" for name in (DATABASE, ANCHORS) for end in ("", "-wal", "-shm", "-intake")),
    }
)
_FOLDERS_MADE_ANEW = frozenset({"ports", "pids", "eggs/.waiting", "twins/.staging"})
_ANYWHERE_MADE_ANEW = frozenset({".deps", "__pycache__"})
_HALF_WRITTEN = re.compile(r"\..+\.[0-9a-f]{8,12}\.tmp")


class BackupManifest(NamedTuple):
    """One file: its path below the home with ``/``, and whether it holds secrets.

    ``why`` it stays behind, "" when it does not. ``changed``: when it last was, in ns, which agents cannot forge.
    """

    path: str
    secret: bool
    why: str = ""
    size: int = 0
    changed: int = 0

    @property
    def of_agents(self) -> bool:
        """True where agents may have laid it."""
        return self.path.startswith(OF_AGENTS)


def walk(home: Path) -> Iterator[BackupManifest]:
    """Every file of a home, in the order of its path. Links are told and never followed.

    Raises ``OSError`` for a folder that cannot be read, but for one of agents', which is told: nothing is left out
    unnoticed.
    """
    closed: list[BackupManifest] = []

    def failed(path: str, error: OSError) -> None:
        if not f"{path}/".startswith(OF_AGENTS):
            raise_unless_gone(path, error)
        elif not isinstance(error, FileNotFoundError):
            closed.append(BackupManifest(path, False, f"cannot be read ({error.strerror})"))

    with LinkFreeFolder(home, follow=True) as folder:
        found = sorted(folder.walk(enters=lambda path: not _is_made_anew(path), failed=failed))
    yield from closed
    for path, status in found:
        if stat.S_ISDIR(status.st_mode) or path in _MADE_ANEW or _HALF_WRITTEN.fullmatch(split(path)[1]):
            continue
        if stat.S_ISLNK(status.st_mode):
            yield BackupManifest(path, False, "is a link, and links are not followed")
        elif has_other_names(status) and path.startswith(OF_AGENTS):
            yield BackupManifest(path, False, "has another name on this disk (a hard link)")
        elif not stat.S_ISREG(status.st_mode):
            yield BackupManifest(path, False, "is no regular file")
        else:
            yield BackupManifest(path, is_secret(path), "", status.st_size, status.st_ctime_ns)


OF_AGENTS = ("brainstem/", "twins/", "simulated/", "neighborhoods/")
"""Folders in which agents may lay files: a key of the owner's that one of them linked in is not to go out in the clear."""


def _is_made_anew(folder: str) -> bool:
    name = folder.rpartition("/")[2]
    return folder in _FOLDERS_MADE_ANEW or name in _ANYWHERE_MADE_ANEW or folder.startswith(SCRATCH)


def is_secret(path: str) -> bool:
    """True for a file of a home that may only travel under a passphrase."""
    parts = path.casefold().split("/")  # on some disks other spellings name the same file
    return parts[0] == "keys" or parts[-1] == ".env" or parts[-1].startswith(".env.")
