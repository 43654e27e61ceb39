"""Files of the account that agents do not see: keys, tokens, profiles, histories of other programs.

Two rules, since no list of programs is complete: names that are known to hold secrets (``private_paths.toml``), and what its owner
closed to all other accounts (mode 0600, 0700), as programs do with tokens. ``agents.may_read`` opens what an
agent needs.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import os
import re
import stat
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agents.runtimes.python.sandbox.file_access import is_within

_LISTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
NAMED = (
    *(name for names in _LISTS["home"].values() for name in names.split()),
    *(f"{folder}/{name}" for folder, names in _LISTS["below"].items() for name in names.split()),
)
"""Patterns of names in a home folder."""
HARMLESS = frozenset(_LISTS["harmless"]["names"].split())
_EXACT = _LISTS["exact"]["paths"].split()
SYSTEM = _LISTS["system"]["paths"].split()
_CONTAINERS = frozenset({".config", ".local", ".local/share", ".local/state", ".cache"})
"""Folders of many programs."""

SETTING = "agents.may_read"
EVERYTHING = "*"
_KNOWN = re.compile("|".join(fnmatch.translate(name) for name in NAMED))
_CACHE_FOLDER = ".cache"  # all of it is closed to others: only names count
_REFUSALS = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENXIO, errno.ENOTDIR, errno.EROFS)
_SECONDS = 10.0
_MOST_ENTRIES = 1000
_hidden_here: tuple[str, ...] = ()


class PrivatePaths:
    """The private paths of this machine's homes, as real paths. Looked up again when asked 10 seconds later.

    ``may_read``: paths that stay readable, absolute or below a home; ``*`` for all. ``system``: with those of
    ``SYSTEM``.
    """

    def __init__(self, homes: Sequence[str], may_read: Sequence[str], *, system: bool) -> None:
        self._homes = [*homes, *(other_homes() if os.geteuid() == 0 else ())]
        self._may_read = tuple(may_read)
        self._system = system
        self._looked = -_SECONDS
        self.hidden: tuple[str, ...] = ()
        self.shown: tuple[str, ...] = ()

    def refresh(self) -> None:
        """Look again, if the last time is long enough ago."""
        if time.monotonic() - self._looked < _SECONDS:
            return
        now = time.monotonic()
        if EVERYTHING in self._may_read:
            return
        allowed = [path for one in self._may_read for path in self._places(one)]
        found = {path for home in self._homes for path in private_in_home(home)}
        found |= set(_private_in_system() if self._system else ())
        around = [*self._homes, "/"]
        self.hidden = tuple(
            path
            for path in sorted(found)
            if not any(is_within(path, one) for one in allowed)
            and not any(is_within(home, path) for home in around)
        )
        self.shown = tuple(one for one in allowed if any(is_within(one, path) for path in self.hidden))
        self._looked = now  # not before: a look that failed hid nothing, and is made again at once

    def named(self, paths: Iterable[str]) -> list[str]:
        """The ``paths`` that are hidden, or lie in what is hidden."""
        self.refresh()
        return [
            text
            for text in paths
            if any(is_within(place, one) for place in self._places(text) for one in self.hidden)
        ]

    def _places(self, text: str) -> Iterator[str]:
        name = text.strip().removeprefix("~/").rstrip("/")
        if name:
            yield from {os.path.realpath(os.path.join(home, name)) for home in self._homes}


def other_homes() -> list[str]:
    """Home folders of people, which root could read; from the account file alone, not from a directory service."""
    found = ["/root"]
    with contextlib.suppress(OSError), open("/etc/passwd", encoding="utf-8", errors="replace") as lines:
        accounts = [line.split(":") for line in lines]
        found += [one[5] for one in accounts if len(one) > 5 and one[2].isdigit() and int(one[2]) >= 1000]
    with contextlib.suppress(OSError), os.scandir("/home") as entries:
        found += [entry.path for entry in entries]
    resolved = {os.path.realpath(path) for path in found if path.count("/") and path != "/"}
    return [path for path in sorted(resolved) if path != "/" and os.path.isdir(path)]


def private_in_home(home: str) -> Iterator[str]:
    """The private paths in ``home``, as real paths."""
    for name in _EXACT:
        if os.path.lexists(path := f"{home}/{name}"):
            yield os.path.realpath(path)
    ahead = [""]
    while ahead:
        folder = ahead.pop()
        of_many = folder in ("", *_CONTAINERS)
        for entry in _entries(f"{home}/{folder}"):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if _KNOWN.match(name):
                yield os.path.realpath(entry.path)
            elif not name.startswith("."):
                continue  # documents and pictures
            elif folder != _CACHE_FOLDER and name not in HARMLESS and _is_closed(entry, folder=of_many):
                yield os.path.realpath(entry.path)
            elif of_many and folder != _CACHE_FOLDER and entry.is_dir(follow_symlinks=False):
                ahead.append(name)


def remember(hidden: Sequence[str]) -> None:
    """Keep what is hidden from this worker, for ``explain``."""
    global _hidden_here
    _hidden_here = tuple(hidden)


def explain(problem: BaseException) -> str:
    """A sentence for the reader of a refused private path; "" for any other problem."""
    if not isinstance(problem, OSError) or problem.errno not in _REFUSALS:
        return ""
    name = problem.filename
    if not isinstance(name, str):
        return ""
    path = os.path.abspath(name)
    for hidden in _hidden_here:
        if is_within(path, hidden) or is_within(os.path.realpath(path), hidden):
            return f" ({hidden} is hidden from agents; the setting {SETTING} opens it)"
    return ""


def _private_in_system() -> Iterator[str]:
    for pattern in SYSTEM:
        for path in glob.glob(pattern):
            if os.access(path, os.R_OK):
                yield os.path.realpath(path)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
            yield entry


def _is_closed(entry: os.DirEntry[str], *, folder: bool) -> bool:
    """True for what no other account may open; ``folder``: of folders, too."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        return False
    return not mode & (stat.S_IRWXG | stat.S_IRWXO) and (folder or not stat.S_ISDIR(mode))
