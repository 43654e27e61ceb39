"""The senses of a workspace: ``senses/*_sense.py``, slots of answers beside the daemon's own (RAPP v1 §18.8)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from agents.brainstem.sense_file import BadSenseError, read_sense
from agents.brainstem.slots import PLAIN, TWIN, VOICE, Delimiters, Slot
from agents.contract.file_discovery import AgentFile, Stamp, find_sense_files
from agents.storage.safe_fs import SafeTree


class SenseFault(msgspec.Struct, frozen=True):
    """The reason why a file gives no slot, or not the one it describes now.

    ``file`` lies below the folder of senses; ``last_good``: its earlier version is in force; ``held``: it
    waits for approval.
    """

    file: str
    reason: str
    line: int | None = None
    last_good: bool = False
    held: bool = False


class SenseOutput(msgspec.Struct, frozen=True):
    """The senses in force, in the order of their files.

    ``prompts`` are the words for the daemon's own slots, by delimiter, where a sense has some.
    """

    slots: tuple[Slot, ...] = ()
    prompts: dict[str, str] = msgspec.field(default_factory=dict)
    delimiters: Delimiters = PLAIN
    faults: tuple[SenseFault, ...] = ()


class _File(msgspec.Struct, frozen=True):
    """The state of one version of a file. ``slot`` is the last one that it described well."""

    stamp: Stamp
    sha256: str = ""
    slot: Slot | None = None
    fault: SenseFault | None = None


class Senses:
    """One workspace's folder of senses. ``held(path, sha256)`` says why a file must not be used, "" when it may."""

    def __init__(
        self, folder: Path, *, held: Callable[[Path, str], str], files: SafeTree | None = None
    ) -> None:
        """``files``: the tree that the folder is in."""
        self._folder = folder
        self._tree = files
        self._held = held
        self._files: dict[str, _File] = {}
        self._seen: list[tuple[Slot | None, SenseFault | None]] = []
        self.now = SenseOutput()

    def look(self) -> SenseOutput:
        """Reads again what changed, sets ``now`` and returns it. Blocks on the disk."""
        found = find_sense_files(self._folder, self._tree)
        known = self._files
        self._files = {file.rel: _read(file, known.get(file.rel)) for file in found}
        seen = [self._usable(file, self._files[file.rel]) for file in found]
        if seen != self._seen:
            self._seen = seen
            self.now = _settled(zip((file.rel for file in found), seen, strict=True))
        return self.now

    def _usable(self, file: AgentFile, known: _File) -> tuple[Slot | None, SenseFault | None]:
        if not known.sha256:
            return known.slot, known.fault
        why = self._held(file.path, known.sha256)
        return (None, SenseFault(file.rel, why, held=True)) if why else (known.slot, known.fault)


def _read(file: AgentFile, known: _File | None) -> _File:
    if known is not None and known.stamp == file.stamp:
        return known
    earlier = known.slot if known else None
    sha256 = ""
    try:
        content = file.content()
        sha256 = hashlib.sha256(content).hexdigest()
        return _File(file.stamp, sha256, read_sense(content, file.path.stem))
    except OSError as error:
        fault = SenseFault(file.rel, f"it cannot be read: {error.strerror or error}", None, bool(earlier))
    except BadSenseError as problem:
        fault = SenseFault(file.rel, str(problem), problem.line, bool(earlier))
    return _File(file.stamp, sha256, earlier, fault)


def _settled(files: Iterable[tuple[str, tuple[Slot | None, SenseFault | None]]]) -> SenseOutput:
    """Of two that claim one delimiter or key, the earlier by path has it."""
    slots: list[Slot] = []
    prompts: dict[str, str] = {}
    faults: list[SenseFault] = []
    owners: dict[str, str] = {}
    for rel, (slot, fault) in files:
        if fault is not None:
            faults.append(fault)
        if slot is None:
            continue
        claims = (slot.delimiter, slot.response_key)
        taken = next((claim for claim in claims if claim in owners), None)
        if taken is not None:
            faults.append(SenseFault(rel, f"{taken} is taken by {owners[taken]}"))
            continue
        owners |= dict.fromkeys(claims, rel)
        if slot.delimiter in (VOICE, TWIN):
            prompts[slot.delimiter] = slot.prompt
        else:
            slots.append(slot)
    return SenseOutput(tuple(slots), prompts, Delimiters(slots) if slots else PLAIN, tuple(faults))
