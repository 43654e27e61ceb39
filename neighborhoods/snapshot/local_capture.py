"""This machine's part of a snapshot: the brainstem, its twins, and the few files of the home that may travel."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agents.contract.file_discovery import AGENT_SUFFIXES
from agents.storage.safe_walk import LinkFreeFolder, has_other_names
from envelopes.errors import ReportableError
from neighborhoods.snapshot.egg_writer import SnapshotWriter
from neighborhoods.snapshot.filtering import RENAME, Omission, SecretFilter
from neighborhoods.snapshot.manifest import CORE_FILES, NOT_WANTED, OVERSIZE, UNREADABLE, SnapshotOptions
from neighborhoods.snapshot.original_file_names import as_text
from neighborhoods.snapshot.previous_snapshot import PreviousSnapshot
from neighborhoods.snapshot.spooled_files import Spool
from twins.eggs.frames import ConversationSource
from twins.eggs.writers import exclusions
from twins.eggs.writers.contents import EggContents, IsHeld
from twins.eggs.writers.env_blanking import known_values
from twins.eggs.writers.source_tree import SourceTree
from twins.eggs.writers.workspaces import whole_workspace
from twins.errors import HostileEggError, TwinError
from twins.fs.untrusted_names import NameSet, safe_path, shown, why_not_portable
from twins.workspace.listing import Presence, scan
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

_MEMORY, _DATA = ".brainstem_data/", "data/"
_COME_AND_GO = (exclusions.ExclusionReason.MADE_ANEW, exclusions.ExclusionReason.LOCAL)
"""Names that change while nothing of the twin does: caches, logs, files that are being written."""
_PASSES = 3
"""Readings of a twin until two looks at it agree."""
Tell = Callable[[int], None]
"""Is told how many bytes more were read."""


@dataclass(slots=True, frozen=True)
class LocalMachine:
    """This machine as a snapshot sees it. ``presences`` by key; ``conversations`` gives a workspace's."""

    name: str
    home: Path
    host: Workspace
    version: str = ""
    url: str = ""
    model: str = ""
    presences: Mapping[str, Presence] = field(default_factory=dict)
    conversations: Callable[[Workspace], ConversationSource] | None = None
    is_held: IsHeld | None = None


@dataclass(slots=True)
class LocalCapture:
    """The result: ``members.local`` of the manifest, and what stayed behind or failed."""

    row: dict[str, Any]
    left_out: list[Omission] = field(default_factory=list)
    failed: list[Omission] = field(default_factory=list)
    unstable: list[Omission] = field(default_factory=list)
    reused: int = 0


def capture_local(
    machine: LocalMachine,
    options: SnapshotOptions,
    writer: SnapshotWriter,
    scratch: Path,
    *,
    previous: PreviousSnapshot | None = None,
    allow: Collection[str] = (),
    tell: Tell = lambda octets: None,
) -> LocalCapture:
    """Writes this machine's members into the egg, one workspace at a time. Blocks on the disk.

    What cannot be read is in ``failed`` and the rest goes on. Raises what the egg's own file is to blame for.
    """
    return _Capture(machine, options, writer, scratch, previous, allow, tell).run()


@dataclass(slots=True)
class _Taken:
    """One workspace in the egg: its names below its prefix, and what stayed behind."""

    names: list[str]
    fingerprint: str
    left_out: list[Omission]
    is_unstable: bool = False

    def as_json(self) -> dict[str, Any]:
        """The fields by which the next snapshot finds it unchanged; one that was unstable is read anew."""
        left = [one.as_json() for one in self.left_out]
        if self.is_unstable:
            return {"fingerprint": "", "left_out": left, "unstable": True}
        return {"fingerprint": self.fingerprint, "left_out": left}


class _Capture:
    def __init__(
        self,
        machine: LocalMachine,
        options: SnapshotOptions,
        writer: SnapshotWriter,
        scratch: Path,
        previous: PreviousSnapshot | None,
        allow: Collection[str],
        tell: Tell,
    ) -> None:
        self._machine = machine
        self._options = options
        self._writer = writer
        self._scratch = scratch
        self._previous = previous
        self._allow = allow
        self._tell = tell
        self._done = LocalCapture({})

    def run(self) -> LocalCapture:
        machine, options = self._machine, self._options
        brainstem, known = self._brainstem()
        core = self._files(machine.host.root, "brainstem/core/", CORE_FILES, options.include_brainstem_core)
        state = self._global_state() if options.include_global_state else []
        twins = self._twins()
        agents = [name for name in brainstem if name.startswith("agents/")]
        self._done.row = {
            "host": machine.name,
            "brainstem_url": machine.url,
            "brainstem_dir": str(machine.host.root),
            "brainstem_version": machine.version,
            "loaded_agents": [
                name.removeprefix("agents/") for name in agents if name.endswith(AGENT_SUFFIXES)
            ],
            "model": machine.model,
            "agent_files_captured": [name.removeprefix("agents/") for name in agents],
            "core_files_captured": core,
            "brainstem_data_files": [
                name.removeprefix(_DATA) for name in brainstem if name.startswith(_DATA)
            ],
            "global_state_files": state,
            "twins": twins,
            **known,
        }
        return self._done

    def _brainstem(self) -> tuple[list[str], dict[str, Any]]:
        """The brainstem's members by their names below ``brainstem/``, and what the next snapshot needs to know."""
        host = self._machine.host
        if not (host.root / "rappid.json").is_file():
            return [], {}
        try:
            memory = self._options.include_brainstem_data
            captured = self._workspace(host, "brainstem/", memory=memory, rename=str)
        except (TwinError, OSError) as problem:
            if not self._writer.is_usable:
                raise
            self._done.failed.append(Omission("brainstem", _message_of(problem)))
            return [], {}
        self._note("brainstem", captured)
        return captured.names, captured.as_json()

    def _note(self, owner: str, captured: _Taken) -> None:
        self._done.left_out += [replace(one, path=f"{owner}/{one.path}") for one in captured.left_out]
        if captured.is_unstable:
            why = f"changed each of the {_PASSES} times it was read; it is in the snapshot as last read"
            self._done.unstable.append(Omission(owner, why, do="Let it rest, rerun."))

    def _twins(self) -> list[dict[str, Any]]:
        places = TwinLayout(self._machine.home)
        rows = []
        for archived in (False, True) if self._options.include_archived else (False,):
            found = scan(places, archived=archived)
            for unreadable in found.unreadable:
                self._done.failed.append(Omission(unreadable.folder.name, unreadable.problem))
            for twin in sorted(found.twins, key=lambda one: one.key):
                presence = self._machine.presences.get(twin.key, Presence())
                if presence.running or self._options.include_stopped_twins or archived:
                    rows.append(self._twin(twin, presence, archived))
        return rows

    def _twin(self, twin: Twin, presence: Presence, archived: bool) -> dict[str, Any]:
        seen = _look_at(twin.workspace.root, archived)
        row: dict[str, Any] = {
            "hash": twin.key,
            "rappid": twin.rappid.text,
            "name": twin.name,
            "kind": twin.kind,
            "port": presence.port,
            "pid": None,
            "alive_at_snapshot": presence.running and not archived,
            "workspace_bytes": seen.octets,
            "workspace_files": len(seen.names),
            **_contents(seen.names),
            "lifecycle": "archived" if archived else "active",
        }
        if not self._options.include_twin_workspaces:
            return row | {"captured": False, "reason": NOT_WANTED}
        if seen.octets > self._options.max_twin_bytes:
            return row | {"captured": False, "reason": OVERSIZE}
        prefix = f"twins/.archive/{twin.key}/" if archived else f"twins/{twin.key}/"
        try:
            captured = self._workspace(
                twin.workspace, prefix, memory=True, rename=_in_twin, key=twin.key, archived=archived
            )
        except (TwinError, OSError) as problem:
            if not self._writer.is_usable:
                raise
            self._done.failed.append(Omission(twin.name, _message_of(problem)))
            return row | {"captured": False, "reason": UNREADABLE}
        self._note(twin.name, captured)
        return row | captured.as_json()

    def _workspace(
        self,
        workspace: Workspace,
        prefix: str,
        *,
        memory: bool,
        rename: Callable[[str], str],
        key: str = "",
        archived: bool = False,
    ) -> _Taken:
        """Takes one workspace into the egg, under ``prefix``."""
        for attempt in range(_PASSES):
            before = self._fingerprint(workspace, key, memory, archived)
            if self._previous is not None and (kept := self._previous.members(prefix, before)):
                for name in kept:
                    self._writer.copy(self._previous, name)
                self._done.reused += 1
                self._writer.list(prefix, self._previous.listed(prefix))
                names = [name.removeprefix(prefix) for name in kept]
                return _Taken(names, before, self._previous.left_out(prefix))
            with Spool(self._scratch) as spool, ExitStack() as stack:
                listed = _look_at(workspace.root, archived).listed
                load, odd = self._gathered(workspace, stack, memory, archived)
                secret_filter = SecretFilter(spool, known=known_values(workspace), allow=self._allow)
                secret_filter.take_all(load)
                is_unstable = self._fingerprint(workspace, key, memory, archived) != before
                if is_unstable and attempt < _PASSES - 1:
                    continue
                for file in spool.files:
                    stamp = (file.mtime, file.executable)
                    self._writer.add(f"{prefix}{rename(file.name)}", spool.chunks(file), stamp=stamp)
                    self._tell(file.size)
                left = [Omission(as_text(one.path), one.why.value) for one in load.left_out]
                left += odd + secret_filter.left_out
                comes_back = {as_text(one.path): as_text(_in_twin(one.name)) for one in load.members}
                with SourceTree(workspace.root) as tree:
                    kept = [path for path in listed if path in comes_back or not _is_bare(tree, path)]
                self._writer.list(prefix, [comes_back.get(path, path) for path in kept])
                return _Taken([rename(file.name) for file in spool.files], before, left, is_unstable)
        raise AssertionError("the last pass returns")

    def _gathered(
        self, workspace: Workspace, stack: ExitStack, memory: bool, archived: bool
    ) -> tuple[EggContents, list[Omission]]:
        """The files that travel, and those whose names cannot."""
        source = self._machine.conversations
        load = whole_workspace(
            workspace,
            stack,
            conversations=source(workspace) if source else None,
            exclude_memory=not memory,
            is_held=self._machine.is_held,
            archived=archived,
        )
        if self._machine.is_held is not None:
            load.leave_held(self._machine.is_held)
        odd = _without_odd_names(load)
        load.settle()
        return load, odd

    def _fingerprint(self, workspace: Workspace, key: str, memory: bool, archived: bool) -> str:
        """Changes with any name, size or mtime below the folder, and with anything said."""
        digest = hashlib.sha256(repr((memory, sorted(self._allow))).encode())
        for root in dict.fromkeys((workspace.root, workspace.agents, workspace.soul.parent)):
            if root == workspace.root or not root.is_relative_to(workspace.root):
                digest.update(_look_at(root, archived).stamp)
        if self._machine.conversations is not None and memory:
            for frame in self._machine.conversations(workspace).frames(key):
                digest.update(frame["hash"].encode())
        return digest.hexdigest()

    def _files(self, root: Path, prefix: str, names: Collection[str], wanted: bool) -> list[str]:
        found = []
        with LinkFreeFolder(root) as walk, Spool(self._scratch) as spool:
            secret_filter = SecretFilter(spool, allow=self._allow)
            for name in names if wanted else ():
                try:
                    pieces = walk.chunks(name)
                    file = secret_filter.take(name, pieces, path=f"{prefix}{name}")
                except OSError:  # most brainstems have none of them
                    continue
                if file is not None:
                    self._writer.add(f"{prefix}{name}", spool.chunks(file))
                    found.append(name)
            self._done.left_out += secret_filter.left_out
        return found

    def _global_state(self) -> list[str]:
        allowed, denied = self._options.global_state_allowlist, self._options.global_state_denylist
        names = []
        with LinkFreeFolder(self._machine.home, follow=True) as walk:
            for path, status in walk.walk(enters=lambda path: path == "peers" or path.startswith("peers/")):
                if (
                    stat.S_ISREG(status.st_mode)
                    and not has_other_names(status)
                    and any(fnmatchcase(path, pattern) for pattern in allowed)
                    and not _is_denied(path, denied)
                ):
                    names.append(path)
        return self._files(self._machine.home, "brainstem/global_state/", sorted(names), wanted=True)


@dataclass(slots=True)
class _Look:
    """A workspace's files at one moment, without what no egg takes.

    ``listed``: every name, that too; a folder that stays behind ends in ``/``.
    """

    names: list[str]
    octets: int
    stamp: bytes
    listed: list[str]


def _look_at(root: Path, archived: bool = False) -> _Look:
    names, octets, digest = [], 0, hashlib.sha256()
    left: list[str] = []

    def enters(path: str) -> bool:
        why = _why_left(path, archived)
        if why is not None:
            left.append(f"{path}/")
        return why is None

    found = []
    with LinkFreeFolder(root, follow=True) as walk:
        for path, status in walk.walk(enters=enters):
            if not stat.S_ISDIR(status.st_mode):
                if _why_left(path, archived) is None:
                    found.append((path, status))
                else:
                    left.append(path)
    for path, status in sorted(found):
        names.append(path)
        octets += status.st_size
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    for path in sorted(left):
        if exclusions.by_name(path.rstrip("/").rpartition("/")[2]) not in _COME_AND_GO:
            digest.update(f"{path}\n".encode("utf-8", "surrogateescape"))
    return _Look(names, octets, digest.digest(), [as_text(path) for path in (*names, *left)])


def _why_left(path: str, archived: bool) -> exclusions.ExclusionReason | None:
    first, slash, _ = path.partition("/")
    if slash or first == ".brainstem_data":
        return exclusions.by_name(path.rpartition("/")[2])
    return exclusions.at_root(first, archived=archived)


def _contents(names: list[str]) -> dict[str, Any]:
    agents = [
        name.removeprefix("agents/")
        for name in names
        if name.startswith("agents/") and name.endswith(AGENT_SUFFIXES)
    ]
    memory = [name.removeprefix(_MEMORY) for name in names if name.startswith(_MEMORY)]
    return {
        "agents": agents,
        "agent_count": len(agents),
        "has_memory": bool(memory),
        "memory_files": memory,
        "memory_file_count": len(memory),
        "has_soul": "soul.md" in names,
        "has_rappid_json": "rappid.json" in names,
        "has_own_brainstem": "brainstem.py" in names,
    }


def _without_odd_names(load: EggContents) -> list[Omission]:
    """Takes out files whose name no egg may carry, or is another one's on some disk: each alone, not the twin."""
    names, kept, odd = NameSet(), [], []
    for member in load.members:
        try:
            names.add(safe_path(member.name))
            kept.append(member)
        except HostileEggError:
            why = why_not_portable(member.name) or "another file has this name on some disks"
            odd.append(Omission(shown(member.path), why, do=RENAME))
    load.members = kept
    return odd


def _is_bare(tree: SourceTree, path: str) -> bool:
    """True for an empty folder or file, which rappd makes in every workspace and nobody misses."""
    try:
        return tree.is_bare(path.rstrip("/"))
    except (OSError, TwinError):
        return False


def _is_denied(path: str, denied: tuple[str, ...]) -> bool:
    parts = path.split("/")
    return any(pattern.rstrip("/") in parts for pattern in denied)


def _in_twin(name: str) -> str:
    return f"{_MEMORY}{name.removeprefix(_DATA)}" if name.startswith(_DATA) else name


def _message_of(problem: Exception) -> str:
    if isinstance(problem, ReportableError):
        return str(problem)
    return problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)
