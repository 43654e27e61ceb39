"""Taking a snapshot: every machine at the same time, each into its parts, then one signed egg of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson
from msgspec.structs import replace

from envelopes.identity.keys import IdentityKey
from neighborhoods.snapshot.capture_retries import TRIES, PeerTell
from neighborhoods.snapshot.egg_writer import SnapshotWriter
from neighborhoods.snapshot.filtering import Omission
from neighborhoods.snapshot.local_capture import LocalCapture, LocalMachine, capture_local
from neighborhoods.snapshot.manifest import OVERSIZE, SnapshotOptions, default_name, manifest, peer_folders
from neighborhoods.snapshot.member_capture import PeerCapture, PeerReader, SnapshotPeer
from neighborhoods.snapshot.previous_snapshot import PreviousSnapshot
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder, SnapshotRecord, check_name
from neighborhoods.snapshot.staged_parts import PeerParts, discard
from twins.fs.atomic_file import atomic_file, settled
from twins.work_progress import Cancellation
from twins.workspace.identity_file import utc

_AT_ONCE = 8

T = TypeVar("T")

Tell = Callable[[dict[str, Any]], None]
"""Is told each event, from any thread: ``{"event": "machine", "machine", "state", "done", "whole"}``."""


@dataclass(slots=True)
class SnapshotResult:
    """A snapshot that lies on disk, whole, and what it lacks. ``untried``: why it was not tried, if it should have been."""

    record: SnapshotRecord
    left_out: list[Omission] = field(default_factory=list)
    oversize: list[Omission] = field(default_factory=list)
    failed: list[Omission] = field(default_factory=list)
    unstable: list[Omission] = field(default_factory=list)
    reused: int = 0
    untried: str = ""

    @property
    def is_partial(self) -> bool:
        """True when a machine or a twin that was wanted is missing, or is not of one moment."""
        return bool(self.failed or self.unstable)

    def as_json(self) -> dict[str, Any]:
        """For the command line and the page."""
        return {
            "snapshot": self.record.as_json(),
            "left_out": [one.as_json() for one in self.left_out],
            "oversize": [one.as_json() for one in self.oversize],
            "failed": [one.as_json() for one in self.failed],
            "unstable": [one.as_json() for one in self.unstable],
            "reused": self.reused,
            "partial": self.is_partial,
            "untried": self.untried,
        }


async def take_snapshot(
    machine: LocalMachine,
    peers: Sequence[SnapshotPeer],
    folder: SnapshotFolder,
    key: IdentityKey,
    *,
    target: Path | None = None,
    name: str = "",
    options: SnapshotOptions | None = None,
    allow: Collection[str] = (),
    overwrite: bool = False,
    scheduled: bool = False,
    now: datetime | None = None,
    tell: Tell = lambda event: None,
) -> SnapshotResult:
    """Takes a snapshot into ``target``, or among the home's eggs. The caller holds ``folder`` alone.

    Machines that fail are named in the result and the others are taken. Raises ``TwinConflictError`` when
    the file cannot be written, ``bad_snapshot_name``; parts that were read stay for the next try.
    """
    if name:
        check_name(name)
    options = options or SnapshotOptions()
    at = (now or datetime.now(UTC)).astimezone()
    name = name or await asyncio.to_thread(folder.free_name, default_name(at))
    target = target or folder.root / f"{name}.egg"
    with ExitStack() as stack:
        previous = await asyncio.to_thread(_previous, folder, key)
        if previous is not None:
            stack.enter_context(previous)
        file = stack.enter_context(atomic_file(target, overwrite=overwrite))
        writer = stack.enter_context(SnapshotWriter(file, at=at))
        local, captures = await _all(machine, peers, options, writer, folder, previous, allow, at, tell)
        members = {"local": local.row, "peers": [one.row for one in captures]}
        document = manifest(name, at, machine.name, options, members)
        size, digest = await _to_its_end(partial(_finish, writer, captures, previous, document, key, file))
    record = await asyncio.to_thread(_recorded, machine.name, local, captures, members)
    record = replace(
        record,
        path=str(target),
        name=name,
        taken_at=utc(at.astimezone(UTC)),
        size=size,
        sha256=digest,
        scheduled=scheduled,
    )
    try:
        await asyncio.to_thread(folder.put, record)
    except BaseException:  # no egg lies among the others that no list knows
        await asyncio.to_thread(target.unlink, missing_ok=True)
        raise
    await asyncio.to_thread(discard, folder.parts)
    return await asyncio.to_thread(_result, record, local, captures, members)


def _recorded(
    machine: str, local: LocalCapture, captures: Sequence[PeerCapture], members: dict[str, Any]
) -> SnapshotRecord:
    """The record of what was captured, without its file. Members may list tens of thousands of twins."""
    failed_paths = {bad.path for one in captures for bad in one.failed}
    captured = [one.row["name"] for one in captures if one.row["name"] not in failed_paths]
    missing = (
        *(f"{machine}/{one.path}" for one in local.failed),
        *(bad.path for one in captures for bad in one.failed),
    )
    known = set(missing)
    return SnapshotRecord(
        path="",
        name="",
        taken_at="",
        size=0,
        sha256="",
        machines=1 + len(captured),
        twins=_captured(members),
        missing=missing,
        holds=(machine, *captured),
        left_behind=tuple(path for path in _uncaptured(machine, members) if path not in known),
    )


async def _all(
    machine: LocalMachine,
    peers: Sequence[SnapshotPeer],
    options: SnapshotOptions,
    writer: SnapshotWriter,
    folder: SnapshotFolder,
    previous: PreviousSnapshot | None,
    allow: Collection[str],
    at: datetime,
    tell: Tell,
) -> tuple[LocalCapture, list[PeerCapture]]:
    """Every machine at the same time; this one goes straight into the egg, the others into their parts."""
    slots = asyncio.Semaphore(_AT_ONCE)
    readers = [
        PeerReader(
            peer,
            below,
            options,
            PeerParts(folder.parts, peer.name, allowed=allow),
            at=at,
            previous=previous,
            allow=allow,
            tell=_teller(tell, peer.name),
        )
        for peer, below in zip(peers, peer_folders([one.name for one in peers]), strict=True)
    ]
    try:
        async with asyncio.TaskGroup() as group:
            stop = Cancellation()
            work = partial(_local, machine, options, writer, folder, previous, allow, tell, stop)
            local = group.create_task(_to_its_end(work, stop))
            tasks = [group.create_task(_read(slots, reader)) for reader in readers]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return local.result(), [task.result() for task in tasks]


async def _to_its_end(work: Callable[[], T], stop: Cancellation | None = None) -> T:
    """Runs ``work`` in a thread; when the caller is cancelled, it has ended before this does: it writes into the egg."""
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        if stop is not None:
            stop.cancel()
        await asyncio.wait({thread})
        raise


async def _read(slots: asyncio.Semaphore, reader: PeerReader) -> PeerCapture:
    async with slots:
        return await reader.read()


def _teller(tell: Tell, machine: str) -> PeerTell:
    def told(state: str, done: int, whole: int, attempt: int) -> None:
        event = {"event": "machine", "machine": machine, "state": state, "done": done, "whole": whole}
        tell({**event, "try": attempt, "tries": TRIES} if attempt else event)

    return told


def _local(
    machine: LocalMachine,
    options: SnapshotOptions,
    writer: SnapshotWriter,
    folder: SnapshotFolder,
    previous: PreviousSnapshot | None,
    allow: Collection[str],
    tell: Tell,
    stop: Cancellation,
) -> LocalCapture:
    read = 0
    tell_all = _teller(tell, machine.name)

    def count(octets: int) -> None:
        nonlocal read
        stop.check()
        read += octets
        tell_all("reading", read, 0, 0)

    done = capture_local(machine, options, writer, folder.root, previous=previous, allow=allow, tell=count)
    tell_all("failed" if done.failed else "done", writer.octets, writer.octets, 0)
    return done


def _previous(folder: SnapshotFolder, key: IdentityKey) -> PreviousSnapshot | None:
    last = folder.last()
    return PreviousSnapshot.open(Path(last.path), signer=key.fingerprint) if last else None


def _finish(
    writer: SnapshotWriter,
    captures: Sequence[PeerCapture],
    previous: PreviousSnapshot | None,
    document: dict[str, Any],
    key: IdentityKey,
    file: Any,
) -> tuple[int, str]:
    for one in captures:
        writer.add(f"peers/{one.folder}/peer.json", orjson.dumps(one.row, option=orjson.OPT_INDENT_2))
        for member in sorted(one.parts):
            path = one.parts[member]
            if path is not None:
                writer.add(member, path)
            elif previous is not None:
                writer.copy(previous, member)
    writer.finish(document, key=key)
    return settled(file)


def _captured(members: dict[str, Any]) -> int:
    rows = [*members["local"]["twins"], *(row for peer in members["peers"] for row in peer["twins"])]
    return sum(row.get("captured", True) for row in rows)


def _uncaptured(machine: str, members: dict[str, Any]) -> list[str]:
    """Twins that are listed in an egg without their files, each with its machine."""
    owners = [(machine, members["local"]), *((peer["name"], peer) for peer in members["peers"])]
    return [
        f"{owner}/{row['name']}"
        for owner, part in owners
        for row in part["twins"]
        if not row.get("captured", True)
    ]


def _result(
    record: SnapshotRecord, local: LocalCapture, captures: Sequence[PeerCapture], members: dict[str, Any]
) -> SnapshotResult:
    done = SnapshotResult(record, unstable=local.unstable)
    parts: list[LocalCapture | PeerCapture] = [local, *captures]
    for part in parts:
        done.left_out += part.left_out
        done.failed += part.failed
        done.reused += part.reused
    for owner, rows in [
        ("", members["local"]["twins"]),
        *((f"{peer['name']}/", peer["twins"]) for peer in members["peers"]),
    ]:
        done.oversize += [
            Omission(
                f"{owner}{row['name']}",
                f"{row['workspace_bytes']} bytes",
                do=f"--max-twin-bytes {row['workspace_bytes']}",
            )
            for row in rows
            if row.get("reason") == OVERSIZE
        ]
    return done
