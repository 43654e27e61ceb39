"""Bringing a snapshot back: every local part through the installer, every other machine by its own way.

Each part comes to its place whole or not at all, what fails is told and the rest goes on, so that a second
run does only what is left.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envelopes.errors import ReportableError
from neighborhoods.snapshot import file_times
from neighborhoods.snapshot.member_transport import MemberTransport, as_failure
from neighborhoods.snapshot.peer_trees import as_egg, packed_at, spooled, write_agents
from neighborhoods.snapshot.plan import (
    CREATE,
    EVERYTHING,
    FAIL,
    OVERWRITE,
    SKIP,
    PeerPlan,
    PeerStep,
    RestorePlan,
    Target,
    TransportSource,
    UnitPlan,
    as_destined,
    overwrites,
    simulated_home,
)
from neighborhoods.snapshot.snapshot_contents import PeerTwin
from neighborhoods.snapshot.spooled_files import Spool
from twins.installer.errors import from_disk
from twins.installer.installer import Installer
from twins.installer.planning import Plan

Resting = Callable[[str], AbstractAsyncContextManager[None]]
"""Holds the twin of that key asleep; "" is the brainstem."""
InstallerOf = Callable[[Path], Installer]
"""The installer of a folder that stands for another machine's home."""
Tell = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class LocalResult:
    """The result of this machine's part. ``receipts`` undo it."""

    receipts: list[str] = field(default_factory=list)
    booted: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RestoreResult:
    """The result of a restore. ``plan`` is as carried out; ``receipts`` undo the local parts."""

    plan: RestorePlan
    receipts: list[str] = field(default_factory=list)
    booted: list[str] = field(default_factory=list)
    staged: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def is_partial(self) -> bool:
        """True when something that was planned did not come back."""
        return bool(self.failed)

    def as_json(self) -> dict[str, Any]:
        """For the command line and the page."""
        return {
            **self.plan.as_json(),
            "receipts": self.receipts,
            "booted": self.booted,
            "staged": self.staged,
            "failed": self.failed,
            "partial": self.is_partial,
        }


@dataclass(slots=True, frozen=True)
class RestoreHooks:
    """The daemon's part around hatching: twins that rest meanwhile, and those that wake afterwards."""

    resting: Resting
    boot: Callable[[str, int | None], Awaitable[None]] | None = None


@asynccontextmanager
async def nobody_runs(key: str) -> AsyncIterator[None]:
    """For a home in which nothing runs."""
    yield


async def restore_local(
    plan: RestorePlan,
    installer: Installer,
    hooks: RestoreHooks,
    *,
    source: str = "",
    tell: Tell = lambda event: None,
) -> LocalResult:
    """Hatches this machine's part, one unit after the other, and boots what was awake."""
    done = LocalResult()
    for one in plan.local:
        await _local(one, plan, installer, hooks, source, done)
        tell({"event": "hatched", "name": one.unit.name, "kind": one.unit.kind, "problem": one.problem})
    if plan.options.target is Target.IN_PLACE and hooks.boot is not None:
        await _boot(plan, hooks, done)
    return done


async def restore_peers(
    plan: RestorePlan,
    home: Path,
    installer_of: InstallerOf,
    transport_of: TransportSource,
    scratch: Path,
    local: LocalResult,
    *,
    tell: Tell = lambda event: None,
) -> RestoreResult:
    """Brings the other machines' twins to their places, or into ``simulated/`` below ``home``."""
    done = RestoreResult(plan, local.receipts, local.booted)
    await asyncio.to_thread(scratch.mkdir, mode=0o700, parents=True, exist_ok=True)
    if plan.options.target is Target.LOCAL_SIMULATE:
        for peer in plan.peers:
            await asyncio.to_thread(_simulate, peer, plan, home, installer_of, scratch, tell)
    else:
        await asyncio.gather(*(_send(peer, transport_of, scratch, done, tell) for peer in plan.peers))
    done.failed = [*plan.problems, *local.failed]
    done.failed += [
        f"{peer.block.name}/{step.twin.name}: {step.why}"
        for peer in plan.peers
        for step in ([] if peer.problem else peer.of(FAIL))
    ]
    for peer in plan.peers:
        lost = [step for step in peer.agents if step.action == FAIL]
        if lost and not peer.problem:
            done.failed.append(f"{peer.block.name}/agents: {lost[0].why}")
    return done


async def _local(
    one: UnitPlan,
    plan: RestorePlan,
    installer: Installer,
    hooks: RestoreHooks,
    source: str,
    done: LocalResult,
) -> None:
    if one.plan is None:
        return
    unit = one.unit
    is_running_there = unit.kind == "twin" and not unit.is_archived
    approved = one.plan.digest

    def hatch() -> None:
        result = installer.hatch(
            as_destined(unit, installer),
            overwrite=overwrites(unit, plan.options),
            approved=approved,
            source=source,
        )
        one.plan = result.plan
        _stamp(result.plan, plan.contents.stamps)
        if result.receipt is not None:
            done.receipts.append(result.receipt.id)

    try:
        if is_running_there:
            async with hooks.resting(unit.key):
                await asyncio.to_thread(hatch)
        else:
            await asyncio.to_thread(hatch)
    except ReportableError as problem:
        one.plan, one.problem = None, str(problem)


def _simulate(
    peer: PeerPlan,
    plan: RestorePlan,
    home: Path,
    installer_of: InstallerOf,
    scratch: Path,
    tell: Tell,
) -> None:
    folder = simulated_home(home, peer.block)
    if not peer.writes and not folder.exists():
        return
    there = installer_of(folder)
    there.recover()
    for step in peer.writes:
        chosen = EVERYTHING if step.action == OVERWRITE else frozenset()
        try:
            with Spool(scratch) as spool:
                spooled(step.twin, spool)
                egg = as_egg(plan.contents.opened, step.twin, spool)
                if step.twin.is_archived:
                    egg.folder = f"twins/.archive/{egg.key}"
                hatched = there.hatch(egg, overwrite=chosen, source=plan.contents.opened.file)
                _stamp(hatched.plan, {file.name: (file.mtime, file.executable) for file in spool.files})
        except (ReportableError, OSError) as problem:
            step.action, step.why = FAIL, _cause_and_advice(problem, step)
        tell(_hatched_event(peer, step))


async def _send(
    peer: PeerPlan, transport_of: TransportSource, scratch: Path, done: RestoreResult, tell: Tell
) -> None:
    if not peer.writes and not peer.agent_writes:
        return
    transport = transport_of(peer.block)
    assert transport is not None
    try:
        for step in peer.writes:
            await _send_twin(peer, step, transport, scratch, done)
            tell(_hatched_event(peer, step))
        await _send_agents(peer, transport, scratch, done)
    finally:
        await transport.aclose()


async def _send_twin(
    peer: PeerPlan, step: PeerStep, transport: MemberTransport, scratch: Path, done: RestoreResult
) -> None:
    handle, name = await asyncio.to_thread(tempfile.mkstemp, ".tar.gz", "sending-", scratch)
    archive = Path(name)
    try:
        await asyncio.to_thread(_copy_out, step.twin, handle)
        outcome = await transport.write_twin(
            step.twin.hash,
            archive,
            overwrite=step.action == OVERWRITE,
            archived=step.twin.is_archived,
            is_trusted=peer.is_trusted,
        )
    except Exception as problem:  # noqa: BLE001 - logged there; the other machines are written all the same
        step.action, step.why = FAIL, _cause_and_advice(_reported(peer, problem), step)
        return
    finally:
        await asyncio.to_thread(archive.unlink, missing_ok=True)
    if outcome.staged:
        done.staged.append(f"{peer.block.name}/{step.twin.name}")
        step.why = outcome.detail or "waits there for its owner's approval"
    elif step.action == CREATE and outcome.skipped and not outcome.created and not outcome.overwritten:
        step.action, step.why = SKIP, outcome.detail or "is there"


async def _send_agents(
    peer: PeerPlan, transport: MemberTransport, scratch: Path, done: RestoreResult
) -> None:
    """The agents of its brainstem, those to be replaced apart from the others."""
    for action in (CREATE, OVERWRITE):
        steps = [step for step in peer.agents if step.action == action]
        if not steps:
            continue
        handle, name = await asyncio.to_thread(tempfile.mkstemp, ".tar.gz", "sending-", scratch)
        try:
            at = packed_at(done.plan.contents.opened)
            await asyncio.to_thread(write_agents, handle, [(one.name, one.part) for one in steps], at)
            outcome = await transport.write_agents(
                Path(name), overwrite=action == OVERWRITE, is_trusted=peer.is_trusted
            )
        except Exception as problem:  # noqa: BLE001 - logged there; the other machines are written all the same
            found = _reported(peer, problem)
            error = from_disk(found, "the agents") if isinstance(found, OSError) else found
            for step in steps:
                step.action, step.why = FAIL, error.with_advice()
            continue
        finally:
            await asyncio.to_thread(Path(name).unlink, missing_ok=True)
        if outcome.staged:
            done.staged.append(f"{peer.block.name}/agents")
        for step in steps:
            step.why = outcome.detail


def _copy_out(twin: PeerTwin, handle: int) -> None:
    """Copies a twin's archive out of the egg, and closes ``handle``; the transport checks it as it reads."""
    assert twin.part is not None
    with os.fdopen(handle, "wb") as file:
        for piece in twin.part.chunks():
            file.write(piece)


def _stamp(plan: Plan, found: Mapping[str, file_times.Stamp]) -> None:
    """Gives files that are as in the egg their times and executable bits."""
    by_base: dict[Path, list[tuple[str, file_times.Stamp]]] = {}
    for row in plan.rows:
        if (row.writes or row.same) and row.name in found:
            base, path = plan.ground.locate(row.target)
            by_base.setdefault(base, []).append((path, found[row.name]))
    for base, rows in by_base.items():
        if base.is_dir():
            file_times.apply(base, rows)


async def _boot(plan: RestorePlan, hooks: RestoreHooks, done: LocalResult) -> None:
    assert hooks.boot is not None
    for one in plan.local:
        if one.unit.was_alive and one.plan is not None:
            try:
                await hooks.boot(one.plan.ground.root.name, one.unit.port)
                done.booted.append(one.unit.key)
            except ReportableError as problem:
                done.failed.append(f"{one.unit.name} is hatched and could not be started: {problem}")


def _reported(peer: PeerPlan, problem: Exception) -> ReportableError | OSError:
    return problem if isinstance(problem, OSError) else as_failure(peer.block.name, problem)


def _cause_and_advice(problem: ReportableError | OSError, step: PeerStep) -> str:
    """The cause, and what to do."""
    found = from_disk(problem, step.twin.name) if isinstance(problem, OSError) else problem
    return found.with_advice()


def _hatched_event(peer: PeerPlan, step: PeerStep) -> dict[str, Any]:
    event = {"event": "hatched", "machine": peer.block.name, "name": step.twin.name, "kind": "peer_twin"}
    return event | {"problem": step.why if step.action == FAIL else ""}
