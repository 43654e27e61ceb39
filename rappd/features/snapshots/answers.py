"""Snapshots as operations answer them: machines, snapshots, plans, and what the works end with."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from neighborhoods.snapshot.roster import MemberView
from neighborhoods.snapshot.snapshot_folder import SnapshotView
from rappd.features.snapshots.progress import WorkView
from rappd.features.snapshots.schedule import Schedule


class Snapshots(Schedule):
    """Snapshots, the newest first, and their schedule."""

    snapshots: list[SnapshotView]


class SnapshotOverview(Snapshots):
    """The machines, the snapshots, and the work that is under way."""

    members: list[MemberView]
    work: WorkView | None


class UnreadTwin(TypedDict):
    """A twin that cannot be read, and why."""

    name: str
    reason: str


class ProbeShown(TypedDict):
    """The answer of a machine; -1 for an unknown size. ``twins`` and their names, ``named``, where it could be read."""

    reachable: bool
    detail: str
    rappd_version: str
    free_bytes: int
    took_ms: float
    twins: NotRequired[int]
    named: NotRequired[list[str]]
    unread: NotRequired[list[UnreadTwin]]


class MemberProbed(MemberView):
    """A machine of the roster that was asked."""

    probe: ProbeShown


class LocalStep(TypedDict):
    """The plan for one twin here, or the brainstem: files by what would become of them."""

    kind: str
    name: str
    key: str
    archived: bool
    created: int
    overwritten: int
    skipped: int
    refused: int
    quarantined: int
    problem: NotRequired[str]


class AgentStepShown(TypedDict):
    """The plan for one agent file of another machine."""

    name: str
    action: Literal["create", "overwrite", "skip", "fail"]
    why: NotRequired[str]


class TwinStepShown(AgentStepShown):
    """The plan for one twin of another machine."""

    hash: str
    archived: bool


class PeerSteps(TypedDict):
    """The plan for another machine. ``agents_kept``: files that stay in the egg."""

    name: str
    way: str
    twins: list[TwinStepShown]
    agents: list[AgentStepShown]
    agents_kept: list[str]
    problem: NotRequired[str]


class RestoreSteps(TypedDict):
    """The plan of a restore. ``boot``: twins that are started afterwards; ``digest`` is what an approval refers to."""

    egg: dict[str, Any]
    seal: dict[str, Any]
    target: Literal["in-place", "local-simulate"]
    options: dict[str, Any]
    categories: dict[str, dict[str, int]]
    local: list[LocalStep]
    boot: list[str]
    peers: list[PeerSteps]
    left_archived: int
    problems: list[str]
    notes: list[str]
    nothing_to_do: bool
    digest: str


class RestorePlanned(TypedDict):
    """The plan for bringing a snapshot back."""

    plan: RestoreSteps


class RestoredSnapshot(RestoreSteps):
    """The plan that was carried out, and what came of it."""

    receipts: list[str]
    booted: list[str]
    staged: list[str]
    failed: list[str]
    partial: bool


class SnapshotRestored(TypedDict):
    """A snapshot that was brought back, and the number of open calls that came with it."""

    hatched: RestoredSnapshot
    open_calls: int


class LeftBehind(TypedDict):
    """A file, twin or machine that is not in a snapshot; ``do`` is what helps, ``id`` lets a likely secret travel."""

    path: str
    why: str
    id: NotRequired[str]
    do: NotRequired[str]


class SnapshotDrilled(TypedDict):
    """A snapshot, with the result of its drill."""

    snapshot: SnapshotView


class SnapshotTaken(SnapshotDrilled):
    """A snapshot that was taken. ``no_way``: machines that cannot be read, each with why."""

    left_out: list[LeftBehind]
    oversize: list[LeftBehind]
    failed: list[LeftBehind]
    unstable: list[LeftBehind]
    reused: int
    partial: bool
    untried: str
    no_way: dict[str, str]
