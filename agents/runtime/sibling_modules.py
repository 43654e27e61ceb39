"""Modules that agents imported from their own folders under plain names, and when they are out of date."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from agents.contract.file_discovery import Stamp, stamp_of
from agents.contract.loading import MODULE_PREFIX


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
