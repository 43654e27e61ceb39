"""One other machine's part of a snapshot: its twins, each as a checked tar.gz file in the staging folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from msgspec.structs import replace

from neighborhoods.errors import MemberError, UnstableMemberError
from neighborhoods.snapshot.capture_retries import PASSES, PeerTell, probed, quiet, ran
from neighborhoods.snapshot.filtering import RENAME, Omission, SecretFilter, omissions
from neighborhoods.snapshot.manifest import NOT_WANTED, OVERSIZE, TAR_FAILED, UNSTABLE, SnapshotOptions
from neighborhoods.snapshot.member_transport import MemberProbe, MemberTransport, MemberTwin, as_failure
from neighborhoods.snapshot.previous_snapshot import PreviousSnapshot
from neighborhoods.snapshot.spooled_files import Spool, disk_problem
from neighborhoods.snapshot.staged_parts import PeerParts, StagedPart
from neighborhoods.snapshot.stream_bridge import SILENCE, StreamBridge
from neighborhoods.snapshot.tar_guard import TarGuard, TarLimits, files_of, read_tar
from twins.fs.untrusted_names import safe_component, shown

_TAKEN_OVER = ("left_out", "captured", "captured_path_in_egg", "captured_bytes")
_MOST_AGENTS = 64 << 20
_MOST_BESIDE = 2 << 30
"""Octets of a stream beside its files: headers, and what a tar without exclusions sends and is dropped here."""


@dataclass(slots=True, frozen=True)
class SnapshotPeer:
    """One machine of the roster. ``transport`` None: there is no way to read it, and ``no_way`` says why."""

    name: str
    transport: MemberTransport | None = None
    url: str = ""
    ssh_user: str = ""
    ssh_host: str = ""
    reachable_http: bool | None = None
    health: dict[str, Any] | None = None
    no_way: str = "no way to read it is known"


@dataclass(slots=True)
class PeerCapture:
    """The result for one machine: its row of the manifest, and what goes into the egg.

    ``parts``: member name to a file, or None for one that the last snapshot holds. ``folder``: its folder
    below ``peers/``.
    """

    row: dict[str, Any]
    folder: str
    parts: dict[str, Path | None] = field(default_factory=dict)
    left_out: list[Omission] = field(default_factory=list)
    failed: list[Omission] = field(default_factory=list)
    reused: int = 0


@dataclass(slots=True, frozen=True)
class _TwinCapture:
    """One twin's row of the manifest, its member and file. ``is_new``: it was read now."""

    row: dict[str, Any]
    member: str = ""
    path: Path | None = None
    left_out: list[Omission] = field(default_factory=list)
    failed: Omission | None = None
    is_new: bool = False

    def into(self, done: PeerCapture) -> None:
        """Joins the result of its machine."""
        if self.member:
            done.parts[self.member] = self.path
            done.reused += self.path is None
        done.left_out += self.left_out
        if self.failed is not None:
            done.failed.append(self.failed)


def _joined(captures: Sequence[_TwinCapture], done: PeerCapture) -> list[dict[str, Any]]:
    for capture in captures:
        capture.into(done)
    return [capture.row for capture in captures]


class PeerReader:
    """Reads one machine. ``kept`` holds the parts that an interrupted snapshot read already."""

    def __init__(
        self,
        peer: SnapshotPeer,
        folder: str,
        options: SnapshotOptions,
        kept: PeerParts,
        *,
        at: datetime,
        previous: PreviousSnapshot | None = None,
        allow: Collection[str] = (),
        tell: PeerTell = lambda state, done, whole, attempt: None,
    ) -> None:
        """``folder``: the machine's folder in the egg."""
        self._peer = peer
        self._name = folder
        self._folder = f"peers/{folder}"
        self._options = options
        self._kept = kept
        self._at = at
        self._previous = previous
        self._allow = allow
        self._tell = tell
        self._done = self._whole = 0

    async def read(self) -> PeerCapture:
        """Never raises for what the other machine is to blame for: that is in ``failed``."""
        peer = self._peer
        row: dict[str, Any] = {
            "name": peer.name,
            "url": peer.url,
            "ssh_user": peer.ssh_user,
            "ssh_host": peer.ssh_host,
            "reachable_http": bool(peer.reachable_http),
            "health": peer.health,
            "probed_at": self._at.isoformat(timespec="seconds"),
            "ssh_ok": False,
            "twins": [],
            "agent_files": [],
        }
        done = PeerCapture(row, self._name)
        if peer.transport is None:
            done.failed.append(Omission(peer.name, peer.no_way))
            return done
        fields = dict(row)
        try:
            await self._read(peer.transport, done)
            await asyncio.to_thread(
                orjson.dumps, row
            )  # the manifest holds it: what cannot be written ends here
        except Exception as problem:  # noqa: BLE001 - logged there; the other machines are read all the same
            done = PeerCapture(fields, self._name)
            done.failed.append(Omission(peer.name, str(as_failure(peer.name, problem))))
            self._tell("failed", 0, 0, 0)
        return done

    async def _read(self, transport: MemberTransport, done: PeerCapture) -> None:
        peer, row = self._peer, done.row
        self._tell("asking", 0, 0, 0)
        probe = await probed(transport, self._tell)
        row |= {"health": peer.health or _health(probe), "ssh_ok": probe.reachable and bool(peer.ssh_host)}
        if not probe.reachable:
            done.failed.append(Omission(peer.name, probe.detail or "no answer"))
            self._tell("failed", 0, 0, 0)
            return
        try:
            listing = await transport.list(include_archived=self._options.include_archived)
        except MemberError as problem:
            done.failed.append(Omission(peer.name, str(problem)))
            self._tell("failed", 0, 0, 0)
            return
        most = self._options.max_twin_bytes
        twins, self._whole = await asyncio.to_thread(_in_order, listing.twins, most)
        try:
            row["twins"] = await self._twins(twins, done)
        except MemberError as problem:
            done.failed.append(Omission(peer.name, str(problem)))
        if listing.agent_files:
            row["agent_files"] = await self._agents(done)
        self._tell("failed" if done.failed else "done", self._done, self._whole, 0)

    async def _twins(self, twins: Sequence[MemberTwin], done: PeerCapture) -> list[dict[str, Any]]:
        """Reads all, and those again that answered somebody meanwhile: each part is of a moment between two calls."""
        assert self._peer.transport is not None
        wants = self._options.include_twin_workspaces and bool(twins)
        before = await self._peer.transport.activity() if wants else {}
        captures = []
        for twin in twins:
            captures.append(await self._twin(twin))
            await asyncio.sleep(0)  # thousands that need not be read would hold the event loop
        for attempt in range(PASSES):
            after = await self._peer.transport.activity() if before else {}
            changed = [
                n for n, twin in enumerate(twins) if captures[n].is_new and ran(twin.hash, before, after)
            ]
            if not changed:
                break
            if attempt == PASSES - 1:
                for n in changed:
                    captures[n] = self._failed(twins[n], "it answers all the time", UNSTABLE)
                break
            before = await quiet(self._peer.transport, [twins[n].hash for n in changed])
            for n in changed:
                captures[n] = await self._twin(twins[n], anew=True)
        return await asyncio.to_thread(_joined, captures, done)

    async def _twin(self, twin: MemberTwin, *, anew: bool = False) -> _TwinCapture:
        """One twin: from the last snapshot, from an interrupted one, or read; ``anew``: read in any case."""
        row = _row(twin)
        if twin.failure:
            return self._failed(twin, twin.failure)
        if not self._options.include_twin_workspaces:
            return _TwinCapture(row | {"captured": False, "reason": NOT_WANTED})
        if twin.workspace_bytes > self._options.max_twin_bytes:
            return _TwinCapture(row | {"captured": False, "reason": OVERSIZE})
        lifecycle = "archived" if twin.lifecycle == "archived" else "active"
        below = "twins/.archive" if lifecycle == "archived" else "twins"
        try:
            member = f"{self._folder}/{below}/{safe_component(twin.hash)}.tar.gz"
            old = self._unchanged(twin, lifecycle, member)
            if old is not None:
                self._count(twin.workspace_bytes)
                return _TwinCapture(row | old, member, left_out=self._named(omissions(old), twin.name))
            kept = (
                None
                if anew
                else await asyncio.to_thread(self._kept.find, twin.hash, lifecycle, twin.fingerprint)
            )
            if kept is not None:
                self._count(twin.workspace_bytes)
            part = kept or await self._read_twin(twin, lifecycle)
        except UnstableMemberError as problem:
            return self._failed(twin, str(problem), UNSTABLE)
        except Exception as problem:  # noqa: BLE001 - logged there; its other twins are read all the same
            return self._failed(twin, self._message_of(problem))
        fields = {
            "left_out": [one.as_json() for one in part.left_out],
            "captured": True,
            "captured_path_in_egg": member,
            "captured_bytes": part.path.stat().st_size,
        }
        left_out = self._named(part.left_out, twin.name)
        return _TwinCapture(row | fields, member, part.path, left_out, is_new=kept is None)

    def _failed(self, twin: MemberTwin, why: str, reason: str = TAR_FAILED) -> _TwinCapture:
        row = _row(twin) | {"captured": False, "reason": reason, "detail": why}
        return _TwinCapture(row, failed=Omission(f"{self._peer.name}/{shown(twin.name)}", why))

    def _unchanged(self, twin: MemberTwin, lifecycle: str, member: str) -> dict[str, Any] | None:
        """The fields of the last snapshot, when it holds the twin as it is now under this name."""
        if self._previous is None:
            return None
        old = self._previous.peer_twin(self._peer.name, twin.hash, lifecycle, twin.fingerprint)
        if old is None or old["captured_path_in_egg"] != member:
            return None
        return {key: old.get(key) for key in _TAKEN_OVER}

    def _named(self, left_out: Iterable[Omission], owner: str) -> list[Omission]:
        whose = f"{self._peer.name}/{shown(owner)}"
        return [replace(one, path=f"{whose}/{one.path}") for one in left_out]

    async def _read_twin(self, twin: MemberTwin, lifecycle: str) -> StagedPart:
        assert self._peer.transport is not None
        transport = self._peer.transport
        for attempt in range(PASSES):
            try:
                stream = transport.read_twin(twin.hash, archived=lifecycle == "archived")
                return await self._keep(stream, twin.hash, lifecycle, twin.fingerprint)
            except UnstableMemberError:
                if attempt == PASSES - 1:
                    raise
        raise AssertionError("the last pass returns or raises")

    async def _keep(
        self, stream: AsyncIterator[bytes], twin: str, lifecycle: str, fingerprint: str
    ) -> StagedPart:
        most = 2 * self._options.max_twin_bytes + (1 << 20)
        guard = TarGuard(root=twin, limits=TarLimits(file_bytes=most, stream_bytes=most + _MOST_BESIDE))
        with Spool(self._kept.folder) as spool:
            left_out = await self._spooled(stream, guard, spool)
            return await asyncio.to_thread(
                self._kept.keep, spool, twin, lifecycle, fingerprint, tuple(left_out)
            )

    async def _agents(self, done: PeerCapture) -> list[str]:
        assert self._peer.transport is not None
        limits = TarLimits(file_bytes=_MOST_AGENTS, stream_bytes=_MOST_AGENTS + _MOST_BESIDE)
        guard = TarGuard(root="agents", limits=limits)
        try:
            with Spool(self._kept.folder) as spool:
                left_out = await self._spooled(self._peer.transport.read_agents(), guard, spool)
                files = sorted(spool.files)
                for file in files:
                    path = await asyncio.to_thread(self._kept.keep_agent, file.name, spool.chunks(file))
                    done.parts[f"{self._folder}/brainstem/agents/{file.name}"] = path
        except Exception as problem:  # noqa: BLE001 - logged there; its twins are kept all the same
            done.failed.append(Omission(f"{self._peer.name}/agents", self._message_of(problem)))
            return []
        done.left_out += self._named(left_out, "agents")
        return [file.name for file in files]

    async def _spooled(self, stream: AsyncIterator[bytes], guard: TarGuard, spool: Spool) -> list[Omission]:
        """Takes a stream in; returns what of it stays behind."""
        secret_filter = SecretFilter(spool, allow=self._allow)
        bridge = StreamBridge(stream, self._count)
        await bridge.consume(lambda: _take(bridge.pieces(), guard, secret_filter))
        odd = [Omission(one.path, one.reason, do=RENAME if one.is_odd else "") for one in guard.left_out]
        return odd + secret_filter.left_out

    def _message_of(self, problem: Exception) -> str:
        """The cause in a sentence. ``OSError`` is about this machine's disk: what happens there is ``MemberError``."""
        if isinstance(problem, TimeoutError):
            return f"nothing came for {SILENCE:g} s"
        if isinstance(problem, OSError):
            return disk_problem(problem)
        return str(as_failure(self._peer.name, problem))

    def _count(self, octets: int) -> None:
        self._done += octets
        self._tell("reading", min(self._done, self._whole), self._whole, 0)


def _take(pieces: Iterator[bytes], guard: TarGuard, secret_filter: SecretFilter) -> None:
    """Each file of a stream to the filter, in the thread that reads it."""
    for entry, content in files_of(read_tar(pieces, guard)):
        secret_filter.take(entry.path, content, mtime=entry.mtime, executable=entry.executable)


def _in_order(twins: Iterable[MemberTwin], most: int) -> tuple[list[MemberTwin], int]:
    """The twins by lifecycle and hash, and the octets of those that have at most ``most``."""
    wanted = (twin.workspace_bytes for twin in twins if twin.workspace_bytes <= most)
    return sorted(twins, key=lambda twin: (twin.lifecycle, twin.hash)), sum(wanted)


def _row(twin: MemberTwin) -> dict[str, Any]:
    identity = twin.rappid_json
    rappid, name, kind = (
        identity.get("rappid"),
        identity.get("display_name") or identity.get("name"),
        identity.get("kind"),
    )
    return {
        "hash": twin.hash,
        "rappid": rappid if isinstance(rappid, str) else "",
        "name": name if isinstance(name, str) else twin.hash,
        "kind": kind if isinstance(kind, str) else "",
        "workspace_bytes": twin.workspace_bytes,
        "workspace_files": twin.workspace_files,
        "has_soul": twin.has_soul,
        "agents": list(twin.agents),
        "lifecycle": "archived" if twin.lifecycle == "archived" else "active",
        "fingerprint": twin.fingerprint,
        **({} if twin.has_rappid_json else {"has_rappid_json": False}),
    }


def _health(probe: MemberProbe) -> dict[str, Any] | None:
    return {"status": "ok", "version": probe.rappd_version} if probe.rappd_version else None
