"""Counts of what code with declared needs asked for and was refused, kept over restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from agents.runtimes.python.sandbox.needs import Use
from agents.storage.atomic_write import write_atomically
from agents.storage.safe_fs import in_file_pool

log = logging.getLogger(__name__)

_MOST = 60
"""Different things that are kept of one file; of further ones the number alone."""
_MOST_FILES = 200
_SECONDS = 2.0
"""Counts are written so long after the first that is new."""

VERBS = {
    "read": "reading",
    "write": "changing",
    "hosts": "talking to",
    "programs": "starting",
    "variables": "using",
}


class UseRow(TypedDict):
    """A thing that calls asked for, whether it was given, and how often."""

    kind: str
    what: str
    given: bool
    times: int


class FileUses(msgspec.Struct):
    """The uses of one version of a file: how often each thing was given, and refused. ``exceeded``: calls that were refused."""

    sha256: str
    exceeded: int = 0
    times: list[tuple[str, str, bool, int]] = []

    def note(self, uses: Sequence[Use]) -> None:
        """Takes in the uses of one call."""
        self.exceeded += any(not given for _, _, given in uses)
        counted = {(kind, what, given): times for kind, what, given, times in self.times}
        for use in uses:
            if use in counted or len(counted) < _MOST:
                counted[use] = counted.get(use, 0) + 1
        self.times = [(*use, times) for use, times in counted.items()]

    def rows(self) -> list[UseRow]:
        """``{kind, what, given, times}``, what was refused first."""
        found = sorted(self.times, key=lambda one: (one[2], one[:3]))
        return [
            {"kind": kind, "what": what, "given": given, "times": times} for kind, what, given, times in found
        ]


_decode = msgspec.json.Decoder(dict[str, FileUses]).decode


class UseLog:
    """The uses of one workspace's files, in ``path``, where no worker can write; None keeps them in memory alone."""

    def __init__(self, path: Path | None = None) -> None:
        """Blocks on the disk."""
        self._path = path
        self._files: dict[str, FileUses] = {}
        self._saving: asyncio.Task[None] | None = None
        if path is not None:
            try:
                self._files = _decode(path.read_bytes())
            except FileNotFoundError:
                pass
            except (OSError, ValueError) as problem:
                log.warning("%s cannot be read, and begins anew: %s", path, problem)

    def of(self, origin: str, rel: str, sha256: str) -> FileUses:
        """The uses of this version of a file."""
        found = self._files.get(f"{origin}\n{rel}")
        return found if found is not None and found.sha256 == sha256 else FileUses(sha256)

    def note(self, origin: str, rel: str, sha256: str, uses: Sequence[Use]) -> None:
        """Takes in the uses of one call of this version of a file."""
        found = self.of(origin, rel, sha256)
        found.note(uses)
        key = f"{origin}\n{rel}"
        self._files.pop(key, None)
        self._files[key] = found
        while len(self._files) > _MOST_FILES:
            del self._files[next(iter(self._files))]
        if self._path is not None and self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(self._save(_SECONDS))

    async def close(self) -> None:
        """Writes what is new."""
        if (saving := self._saving) is not None:
            saving.cancel()
            await self._save(0)

    async def _save(self, delay: float) -> None:
        await asyncio.sleep(delay)
        self._saving = None
        path, content = self._path, msgspec.json.encode(self._files)
        assert path is not None
        try:
            await in_file_pool(write_atomically, path, content)
        except OSError as problem:
            log.warning("the counts of what agents asked for could not be kept: %s", problem)


def refusal(name: str, uses: Sequence[Use], command: str = "") -> str:
    """The sentence of a call that exceeded the needs of ``name``; "" for one that did not. ``command`` tells more."""
    refused = [f"{VERBS[kind]} {what}" for kind, what, given in uses if not given]
    if not refused:
        return ""
    sentence = f"{name} was refused what its needs do not name: {', '.join(refused[:5])}."
    return f"{sentence} {command}".strip()
