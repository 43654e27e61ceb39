"""Code that waits for its owner's approval is not imported: approved code beside it cannot bring it in."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Holds = Mapping[str, Mapping[str, str]]
"""Path of a file, with every link followed, to {sha256: why it must not run with that content}."""

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
        self._held = NONE
        self._watches = False
        self.refusals = 0

    def know(self, held: Holds) -> bool:
        """Goes by this list from now on; whether it is another than before."""
        if held == self._held:
            return False
        if not self._watches:  # it cannot be taken away again, and most workers never need it
            self._watches = True
            sys.addaudithook(self._audit)
        self._held = held
        self.refusals = 0
        return True

    def why(self, file: str) -> str:
        """The reason why the file must not run as it is now; "" when it may."""
        real = os.path.realpath(file)
        by_hash = self._held.get(real)
        if not by_hash:
            return ""
        try:
            return by_hash.get(hashlib.sha256(Path(real).read_bytes()).hexdigest(), "")
        except OSError:  # it is gone
            return ""

    def holds_any(self, files: Iterable[str]) -> bool:
        """True when one of these must not run."""
        return any(map(self.why, files))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._held:
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
