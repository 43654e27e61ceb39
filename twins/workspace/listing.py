"""Every twin of a home at a glance, and the one that somebody means (RAPP v1 §18.13.2).

State is the place on disk; there is no index that could be wrong. A list reads each ``rappid.json``
and the memory files that are there, nothing else; who is running and when one talked is handed in.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from agents.storage.safe_fs import SafeTree
from twins.errors import BadFileError, BadRappidError, NoSuchTwinError, TwinConflictError
from twins.workspace.identity_file import FILE, read_regular
from twins.workspace.rappid import Rappid
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

MIN_PREFIX = 4
"""Digits that a shortened tail needs."""

_MAX_MEMORY = 16 << 20


class Presence(msgspec.Struct, frozen=True):
    """The daemon's knowledge of a twin. ``last_talk`` in seconds since 1970."""

    running: bool = False
    port: int | None = None
    last_talk: float | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """A folder that should be a twin and cannot be read."""

    folder: Path
    problem: str


class FoundTwin(msgspec.Struct):
    """The result of a scan, twins in the order of their names."""

    twins: list[Twin] = msgspec.field(default_factory=list)
    unreadable: list[Unreadable] = msgspec.field(default_factory=list)


class Row(msgspec.Struct, frozen=True):
    """One line of the list. ``memories`` is None where they cannot be counted."""

    key: str
    rappid: str
    name: str
    kind: str
    state: str
    port: int | None
    memories: int | None
    last_talk: float | None
    born_at: str
    parent_rappid: str


class Listing(msgspec.Struct):
    """The list, and what could not be listed."""

    rows: list[Row]
    unreadable: list[Unreadable]


class MemoryCounter:
    """Counts a workspace's memories; a file that did not change is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int, int | None]] = {}

    def count(self, workspace: Workspace) -> int | None:
        """Memories, shared and of every person. None when one of the files is no memory file."""
        data, files = workspace.data, workspace.files
        counts = [self._in(data / "shared_memories" / "memory.json", files)]
        people = files.names(data / "memory")
        counts += [self._in(data / "memory" / person / "user_memory.json", files) for person in people]
        return None if None in counts else sum(one for one in counts if one)

    def _in(self, path: Path, files: SafeTree) -> int | None:
        try:
            found = files.lstat(path)
        except FileNotFoundError:
            return 0
        except OSError:
            return None
        key = str(path)
        known = self._known.get(key)
        if known is None or known[:2] != (found.st_mtime_ns, found.st_size):
            known = self._known[key] = (found.st_mtime_ns, found.st_size, _count(path, files))
        return known[2]


def scan(places: TwinLayout, *, archived: bool = False) -> FoundTwin:
    """Every twin of one state. Dot-names are never twins, nor are folders without a ``rappid.json``."""
    found = FoundTwin()
    folder = places.archive if archived else places.twins
    try:
        with os.scandir(folder) as entries:
            names = [(one.name, one.is_symlink()) for one in entries if not one.name.startswith(".")]
    except FileNotFoundError:
        return found
    for name, is_link in names:
        path = folder / name
        try:
            if is_link:
                raise BadFileError("It is a link; twins are folders.", do="Move the folder here.")
            found.twins.append(Twin.read(path))
        except NoSuchTwinError:
            continue
        except BadFileError as problem:
            if os.path.lexists(path / FILE):
                found.unreadable.append(Unreadable(path, str(problem)))
    found.twins.sort(key=lambda twin: (twin.name.casefold(), twin.key))
    return found


def list_twins(
    places: TwinLayout,
    *,
    archived: bool = False,
    presences: Mapping[str, Presence] | None = None,
    counter: MemoryCounter | None = None,
) -> Listing:
    """The list of one state. ``presences`` by key; a twin without one is stopped and never talked.

    Callers that list repeatedly keep one ``counter``.
    """
    found = scan(places, archived=archived)
    known, counter = presences or {}, counter or MemoryCounter()
    rows = []
    for twin in found.twins:
        presence = known.get(twin.key, _ASLEEP)
        rows.append(
            Row(
                key=twin.key,
                rappid=twin.rappid.text,
                name=twin.name,
                kind=twin.kind,
                state="archived" if archived else "awake" if presence.running else "asleep",
                port=presence.port,
                memories=counter.count(twin.workspace),
                last_talk=presence.last_talk,
                born_at=twin.born_at,
                parent_rappid=twin.identity.parent_text,
            )
        )
    return Listing(rows, found.unreadable)


def find(places: TwinLayout, selector: str, *, archived: bool | None = False) -> Twin:
    """The twin that ``selector`` means.

    ``selector`` is a rappid in any form, its tail, its name or its folder's name; else the name in other
    capitals; else the start of the tail (four digits or more). ``archived`` None looks among active and
    archived ones. Raises ``NoSuchTwinError``; ``TwinConflictError`` when several are meant, naming them.
    """
    wanted = " ".join(unicodedata.normalize("NFC", selector).split())
    states = (False, True) if archived is None else (archived,)
    twins = [twin for state in states for twin in scan(places, archived=state).twins]
    for matches in _readings(wanted):
        meant = [twin for twin in twins if matches(twin)]
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise _ambiguous(wanted, meant)
    raise _nobody(wanted, twins)


def _readings(wanted: str) -> Iterable[Callable[[Twin], bool]]:
    """The possible meanings of a selector, the most literal first."""
    try:
        identity = Rappid.parse(wanted).identity
    except BadRappidError:
        identity = ""
    folded, digits = wanted.casefold(), wanted.replace("-", "").lower()

    def exactly(twin: Twin) -> bool:
        older = twin.identity.migrated_from
        return (
            wanted == twin.key
            or wanted.lower() == twin.rappid.tail
            or wanted in twin.identity.names
            or (bool(identity) and identity in (twin.rappid.identity, older.identity if older else ""))
        )

    yield exactly
    yield lambda twin: any(folded == name.casefold() for name in twin.identity.names)
    if len(digits) >= MIN_PREFIX:
        yield lambda twin: twin.rappid.digits.startswith(digits)


def _ambiguous(wanted: str, meant: list[Twin]) -> TwinConflictError:
    shown = ", ".join(f"{twin.name} ({twin.key[:12]})" for twin in meant[:5])
    more = f" and {len(meant) - 5} more" if len(meant) > 5 else ""
    return TwinConflictError(
        f'"{wanted[:60]}" can mean {len(meant)} twins: {shown}{more}.',
        do=f"Say which by the start of its rappid: {meant[0].key[:12]}",
    )


def _nobody(wanted: str, twins: list[Twin]) -> NoSuchTwinError:
    names = {twin.name.casefold(): twin.name for twin in twins}
    import difflib

    near = difflib.get_close_matches(wanted.casefold()[:60], names, n=1)
    do = f"Did you mean {names[near[0]]}?" if near else "rappd twins list"
    return NoSuchTwinError(f'No twin "{wanted[:60]}".', do=do)


def _count(path: Path, files: SafeTree) -> int | None:
    try:
        content = read_regular(path, _MAX_MEMORY, files)
        memories = json.loads(content) if content else {}
    except (BadFileError, ValueError, RecursionError):
        return None  # the list goes on; opening the memories reports the error
    return len(memories) if isinstance(memories, dict) else None


_ASLEEP = Presence()
