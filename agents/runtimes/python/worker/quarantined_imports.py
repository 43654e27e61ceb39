"""Code that waits for its owner's approval is not imported: approved code beside it cannot bring it in."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from agents.contract.file_discovery import Stamp, stamp_of
from agents.contract.loading import MODULE_PREFIX

Holds = Mapping[str, Mapping[str, str]]
"""Path of a file, with every link followed, to {sha256: why it must not run with that content}.

It must not run with any other content either, but where there is the key ``EXACT``.
"""

EXACT = "exact"

NONE: Holds = {}


class QuarantinedImportError(ImportError):
    """A module was to be imported, or a file run, that is quarantined."""


class QuarantineImportHook:
    """The guard inside a worker.

    It stands where every module begins to run, whichever way it was found: by an import, by its path, from
    another folder. ``refusals`` counts since the list last changed.
    """

    def __init__(self, root: Path) -> None:
        """``root``: the folder that files are named from, in what is said of them."""
        self._root = os.path.realpath(root) + os.sep
        self._quarantined = NONE
        self._watches = False
        self.refusals = 0

    def know(self, quarantined: Holds) -> bool:
        """Goes by this list from now on; whether it is another than before."""
        if quarantined == self._quarantined:
            return False
        if not self._watches:  # it cannot be taken away again, and most workers never need it
            self._watches = True
            sys.addaudithook(self._audit)
        self._quarantined = quarantined
        self.refusals = 0
        return True

    def why(self, file: str) -> str:
        """The reason why the file must not run as it is now; "" when it may."""
        real = os.path.realpath(file)
        by_hash = self._quarantined.get(real)
        if not by_hash:
            return ""
        try:
            content = Path(real).read_bytes()
        except OSError:  # it is gone
            return ""
        changed = "" if EXACT in by_hash else list(by_hash.values())[-1]
        return by_hash.get(hashlib.sha256(content).hexdigest(), changed)

    def holds_any(self, files: Iterable[str]) -> bool:
        """True when one of these must not run."""
        return any(map(self.why, files))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._quarantined:
            return
        if event == "exec":
            file = getattr(arguments[0], "co_filename", "")
        elif event == "import":  # its second argument is the file of a module that is no Python
            file = arguments[1]
        else:
            return
        if not isinstance(file, str) or file[:1] in ("", "<"):
            return
        why = self.why(file)
        if why:
            self.refusals += 1
            shown = os.path.realpath(file).removeprefix(self._root)
            raise QuarantinedImportError(f"{shown} is quarantined until you approve it: {why}")


class SiblingModules:
    """Watches ``sys.modules`` for files of some folders.

    An agent should not import its neighbours (RAPP v1 §5.5); where one does, it gets the neighbour's current
    version.
    """

    def __init__(self, *folders: Path) -> None:
        self._roots = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self._stamps: dict[str, tuple[str, Stamp]] = {}
        self._mark()

    def note_if_grown(self) -> None:
        """Takes in what was imported since the last look, if anything was."""
        if len(sys.modules) != self._count:
            self.note()

    def note(self) -> None:
        """Takes in what was imported since the last look."""
        for name in list(takewhile(self._newest.__ne__, reversed(sys.modules))):
            file = getattr(sys.modules[name], "__file__", None)
            if name.startswith(MODULE_PREFIX) or name in self._stamps or not isinstance(file, str):
                continue
            if os.path.realpath(file).startswith(self._roots):
                self._stamps[name] = (file, _stamp(file))
        self._mark()

    def _mark(self) -> None:
        """Modules stand in the order of their import.

        Looking at the later ones alone leaves the others' memory shared with the process that a worker was
        forked from.
        """
        self._count = len(sys.modules)
        self._newest = next(reversed(sys.modules))

    def forget_if_changed(self) -> bool:
        """True when one of them changed on disk. Then all are forgotten, to be imported anew."""
        if all(_stamp(file) == stamp for file, stamp in self._stamps.values()):
            return False
        self.forget()
        return True

    def files(self) -> Sequence[str]:
        """The files that were imported."""
        return [file for file, _ in self._stamps.values()]

    def forget(self) -> None:
        """Makes the next import of each of them load it anew."""
        for name in self._stamps:
            sys.modules.pop(name, None)
            parent, _, child = name.rpartition(".")
            if hasattr(sys.modules.get(parent), child):
                delattr(sys.modules[parent], child)
        self._stamps.clear()
        self.note()


def _stamp(file: str) -> Stamp:
    try:
        return stamp_of(os.stat(file))  # noqa: PTH116 - asked for at each call
    except OSError:
        return 0, 0, 0
