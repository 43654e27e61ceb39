"""The plan for bringing a snapshot back: what each part would do, here and on every other machine.

Writes nothing anywhere. ``digest`` changes when the egg, the options, or anything that would be touched does.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agents.contract.file_discovery import AGENT_SUFFIXES
from envelopes.errors import ReportableError
from neighborhoods.snapshot.member_transport import MemberTransport, as_failure
from neighborhoods.snapshot.snapshot_contents import LocalUnit, PeerBlock, PeerTwin, SnapshotContents
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part
from twins.errors import TwinConflictError
from twins.installer.installer import Installer
from twins.installer.placement_rules import Category
from twins.installer.planning import Action, Plan, Standing


class Target(StrEnum):
    """The place where the parts of other machines go."""

    IN_PLACE = "in-place"
    LOCAL_SIMULATE = "local-simulate"


class RestoreOptions(msgspec.Struct, frozen=True):
    """The options of a restore. Without an ``overwrite_`` option only gaps are filled."""

    target: Target = Target.IN_PLACE
    overwrite_agents: bool = False
    overwrite_core: bool = False
    overwrite_data: bool = False
    overwrite_global_state: bool = False
    overwrite_twins: bool = False
    overwrite_peer_twins: bool = False
    restore_archived: bool = False


TransportSource = Callable[[PeerBlock], MemberTransport | None]
"""The way to a machine of the egg; None when this home knows none."""

EVERYTHING = frozenset(set(Category) - {Category.NO_MEMORY})
CREATE, OVERWRITE, SKIP, FAIL = "create", "overwrite", "skip", "fail"
_UNHELD = "nobody trusted signed it, and no rappd there quarantines it"
NO_RAPPID = "has no readable rappid.json: its files stay in the egg, and no twin hatches from them"


@dataclass(slots=True)
class UnitPlan:
    """The plan of one local unit; ``plan`` is None when ``problem`` says why nothing can be done."""

    unit: LocalUnit
    plan: Plan | None = None
    problem: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Files by what would happen to them."""
        if self.plan is None:
            return {"created": 0, "overwritten": 0, "skipped": 0, "refused": 0, "quarantined": 0}
        return {
            "created": len(self.plan.of(Action.CREATE)),
            "overwritten": len(self.plan.of(Action.REPLACE)),
            "skipped": len(self.plan.of(Action.KEEP)),
            "refused": len(self.plan.of(Action.REFUSE)),
            "quarantined": len(self.plan.quarantined),
        }


@dataclass(slots=True)
class PeerStep:
    """One twin of another machine: create, overwrite, skip or fail, and why."""

    twin: PeerTwin
    action: str
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "hash": self.twin.hash,
            "name": self.twin.name,
            "archived": self.twin.is_archived,
            "action": self.action,
            **({"why": self.why} if self.why else {}),
        }


@dataclass(slots=True)
class AgentStep:
    """One agent file of another machine's brainstem: create, overwrite, skip or fail, and why."""

    name: str
    part: Part
    action: str
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "action": self.action, **({"why": self.why} if self.why else {})}


@dataclass(slots=True)
class PeerPlan:
    """The steps for one other machine. ``way``: where its twins would go.

    ``is_trusted``: this machine, or a signer that it trusts, signed the egg.
    """

    block: PeerBlock
    way: str
    steps: list[PeerStep] = field(default_factory=list)
    agents: list[AgentStep] = field(default_factory=list)
    problem: str = ""
    is_trusted: bool = False

    @property
    def agents_kept(self) -> list[str]:
        """Files beside its agents that stay in the egg; in a simulation, its agents too."""
        planned = {step.name for step in self.agents}
        return [name for part in self.block.agents if (name := _agent_name(part)) not in planned]

    @property
    def agent_writes(self) -> list[AgentStep]:
        """The agent files to be written."""
        return [step for step in self.agents if step.action in (CREATE, OVERWRITE)]

    def of(self, action: str) -> list[PeerStep]:
        """The steps of one action."""
        return [step for step in self.steps if step.action == action]

    @property
    def writes(self) -> list[PeerStep]:
        """The steps that write."""
        return [step for step in self.steps if step.action in (CREATE, OVERWRITE)]


@dataclass(slots=True)
class RestorePlan:
    """The whole plan of one egg. ``awake``: twins that run here, or wake with the next start."""

    contents: SnapshotContents
    options: RestoreOptions
    standing: Standing
    signer_name: str
    local: list[UnitPlan]
    peers: list[PeerPlan]
    left_archived: int
    awake: frozenset[str] = frozenset()
    digest: str = ""

    @property
    def is_settled(self) -> bool:
        """True when restoring would do nothing, here or elsewhere."""
        here = all(one.plan is None or one.plan.is_settled for one in self.local)
        in_place = self.options.target is Target.IN_PLACE
        sleeps = in_place and any(one.unit.was_alive and one.unit.key not in self.awake for one in self.local)
        return here and not sleeps and not any(peer.writes or peer.agent_writes for peer in self.peers)

    @property
    def local_digest(self) -> str:
        """Changes when the egg, the options, or a file here that would be touched does."""
        return _hashed(
            {
                "schema": "rappd-restore-plan/1.0",
                "egg": self.contents.opened.digest,
                "options": msgspec.to_builtins(self.options),
                "standing": self.standing.value,
                "local": [[one.unit.id, one.plan.digest if one.plan else one.problem] for one in self.local],
            }
        )

    @property
    def problems(self) -> list[str]:
        """The parts that cannot be done, one sentence each."""
        return [
            *(f"{one.unit.name}: {one.problem}" for one in self.local if one.problem),
            *(f"{peer.block.name}: {peer.problem}" for peer in self.peers if peer.problem),
        ]

    def as_json(self) -> dict[str, Any]:
        """For the command line and the page."""
        opened = self.contents.opened
        return {
            "egg": {
                "name": opened.name,
                "file": opened.file,
                "size": opened.size,
                "sha256": opened.digest,
                "packed_at": opened.packed_at,
                "packed_by": opened.made_by,
                "form": "roster" if self.contents.is_roster else "snapshot",
            },
            "seal": {
                "whole": opened.seal.whole,
                "signer": opened.seal.signer,
                "signer_name": self.signer_name,
                "standing": self.standing.value,
            },
            "target": self.options.target.value,
            "options": msgspec.to_builtins(self.options),
            "categories": categories(self.local, self.peers),
            "local": [
                {
                    "kind": one.unit.kind,
                    "name": one.unit.name,
                    "key": one.unit.key,
                    "archived": one.unit.is_archived,
                    **one.counts,
                    **({"problem": one.problem} if one.problem else {}),
                }
                for one in self.local
            ],
            "boot": [one.unit.key for one in self.local if one.unit.was_alive]
            if self.options.target is Target.IN_PLACE
            else [],
            "peers": [
                {
                    "name": peer.block.name,
                    "way": peer.way,
                    "twins": [step.as_json() for step in peer.steps],
                    "agents": [step.as_json() for step in peer.agents],
                    "agents_kept": peer.agents_kept,
                    **({"problem": peer.problem} if peer.problem else {}),
                }
                for peer in self.peers
            ],
            "left_archived": self.left_archived,
            "problems": self.problems,
            "notes": list(opened.notes),
            "nothing_to_do": self.is_settled,
            "digest": self.digest,
        }


def categories(local: list[UnitPlan], peers: list[PeerPlan]) -> dict[str, dict[str, int]]:
    """Created, overwritten and skipped per category: files, and twins for the other machines."""
    found = {
        name: {"created": 0, "overwritten": 0, "skipped": 0}
        for name in ("agents", "core", "data", "global_state", "twins", "peer_twins")
    }
    actions = {Action.CREATE: "created", Action.REPLACE: "overwritten", Action.KEEP: "skipped"}
    for one in local:
        for row in one.plan.rows if one.plan else ():
            if row.action in actions:
                found[_category(one.unit, row.target)][actions[row.action]] += 1
    for peer in peers:
        for action, name in ((CREATE, "created"), (OVERWRITE, "overwritten"), (SKIP, "skipped")):
            found["peer_twins"][name] += len(peer.of(action))
    return found


async def make_restore_plan(
    contents: SnapshotContents,
    options: RestoreOptions,
    installer: Installer,
    transport_of: TransportSource,
    *,
    signer_name: str = "",
    awake: Iterable[str] = (),
) -> RestorePlan:
    """The plan for this moment. Other machines are listed, never written; a simulation does not even ask them.

    Addresses that the egg itself names count only when somebody trusted signed it.
    """
    standing = installer.standing(contents.opened)
    trusted = contents.opened.seal.whole is True and standing in (Standing.SELF, Standing.TRUSTED)
    if not trusted:
        contents.forget_coordinates()
    units = [unit for unit in contents.local if options.restore_archived or not unit.is_archived]
    local = await asyncio.to_thread(lambda: [plan_unit(unit, options, installer) for unit in units])
    if options.target is Target.IN_PLACE:
        there = (_in_place(one, options, transport_of, trusted) for one in contents.peers)
        peers = list(await asyncio.gather(*there))
    else:
        peers = await asyncio.to_thread(
            lambda: [_simulated(one, options, installer.home) for one in contents.peers]
        )
    made = RestorePlan(
        contents,
        options,
        standing,
        signer_name,
        local,
        peers,
        left_archived=len(contents.local) - len(units),
        awake=frozenset(awake),
    )
    made.digest = _digest(made)
    return made


def plan_unit(unit: LocalUnit, options: RestoreOptions, installer: Installer) -> UnitPlan:
    """The plan for one local unit."""
    if unit.problem:
        return UnitPlan(unit, problem=unit.problem)
    try:
        return UnitPlan(unit, _planned(unit, options, installer))
    except ReportableError as problem:
        return UnitPlan(unit, problem=str(problem))


def overwrites(unit: LocalUnit, options: RestoreOptions) -> frozenset[Category]:
    """The categories of files that one unit may replace."""
    if unit.kind == "twin":
        return EVERYTHING if options.overwrite_twins else frozenset()
    if unit.kind == "data":
        wanted = options.overwrite_global_state or options.overwrite_core
        return EVERYTHING if wanted else frozenset()
    chosen: set[Category] = set()
    if options.overwrite_agents:
        chosen |= {Category.AGENTS, Category.SERVICES, Category.SLOTS, Category.PAGES}
    if options.overwrite_core:
        chosen.add(Category.SOUL)
    if options.overwrite_data:
        chosen.add(Category.MEMORY)
    return frozenset(chosen)


def as_destined(unit: LocalUnit, installer: Installer) -> ParsedEgg:
    """The unit's egg: a brainstem fills an empty home whole, and joins one that somebody lives in."""
    if unit.kind != "brainstem":
        return unit.opened
    whole = replace(unit.opened, destination=Destination.BRAINSTEM)
    try:
        installer.plan(whole)
    except TwinConflictError:
        return unit.opened
    return whole


def _planned(unit: LocalUnit, options: RestoreOptions, installer: Installer) -> Plan:
    return installer.plan(as_destined(unit, installer), overwrite=overwrites(unit, options))


async def _in_place(
    block: PeerBlock, options: RestoreOptions, transport_of: TransportSource, trusted: bool
) -> PeerPlan:
    plan = PeerPlan(block, "", is_trusted=trusted)
    wanted = [twin for twin in block.twins if options.restore_archived or not twin.is_archived]
    agents = {name: part for part in block.agents if _is_agent(name := _agent_name(part))}
    if not wanted and not agents:
        return plan
    transport = transport_of(block)
    if transport is None:
        plan.problem = "no way to it is known: write it to peers.json, or trust who signed the egg"
    else:
        try:
            probe = await transport.probe()
            if not probe.reachable:
                plan.problem = probe.detail or "no answer"
            else:
                listing = await transport.list(include_archived=True)
        except Exception as problem:  # noqa: BLE001 - logged there; the other machines are planned all the same
            plan.problem = str(as_failure(block.name, problem))
        finally:
            await transport.aclose()
    if plan.problem:
        plan.steps = [PeerStep(twin, FAIL, plan.problem) for twin in wanted]
        plan.agents = [AgentStep(name, part, FAIL, plan.problem) for name, part in agents.items()]
        return plan
    there = {twin.hash: twin.fingerprint or "there" for twin in listing.twins}
    failures = {twin.hash: twin.failure for twin in listing.twins if twin.failure}
    plan.steps = [
        PeerStep(twin, FAIL, failures[twin.hash])
        if twin.hash in failures
        else _step(twin, there.get(twin.hash, ""), options)
        for twin in wanted
    ]
    replaced = options.overwrite_agents and options.overwrite_peer_twins
    for name, part in agents.items():
        if not trusted and not probe.rappd_version:
            plan.agents.append(AgentStep(name, part, SKIP, _UNHELD))
        elif name not in listing.agent_files:
            plan.agents.append(AgentStep(name, part, CREATE))
        elif replaced:
            plan.agents.append(AgentStep(name, part, OVERWRITE))
        else:
            plan.agents.append(AgentStep(name, part, SKIP, "is there"))
    return plan


def _agent_name(part: Part) -> str:
    return part.name.partition("/brainstem/agents/")[2]


def _is_agent(name: str) -> bool:
    """True for what a brainstem loads by its own name; a module beside it would be imported by others' agents."""
    return "/" not in name and name.endswith(AGENT_SUFFIXES)


def _simulated(block: PeerBlock, options: RestoreOptions, home: Path) -> PeerPlan:
    folder = simulated_home(home, block)
    plan = PeerPlan(block, str(folder))
    for twin in block.twins:
        if options.restore_archived or not twin.is_archived:
            there = "there" if (folder / "twins" / twin.hash / "rappid.json").exists() else ""
            is_nobody = twin.part is not None and not twin.is_twin
            step = PeerStep(twin, SKIP, NO_RAPPID) if is_nobody else _step(twin, there, options)
            plan.steps.append(step)
    return plan


def simulated_home(home: Path, block: PeerBlock) -> Path:
    """The folder that stands for another machine in a simulation."""
    return home / "simulated" / block.folder


def _step(twin: PeerTwin, there: str, options: RestoreOptions) -> PeerStep:
    if twin.part is None:
        return PeerStep(twin, SKIP, f"not in the egg: {twin.reason}")
    if not there:
        return PeerStep(twin, CREATE)
    if options.overwrite_peer_twins:
        return PeerStep(twin, OVERWRITE)
    return PeerStep(twin, SKIP, "is there")


def _category(unit: LocalUnit, target: str) -> str:
    if unit.kind == "twin":
        return "twins"
    if unit.kind == "data":
        return "core" if target.startswith("brainstem/core/") else "global_state"
    first = target.partition("/")[0]
    return "data" if first == ".brainstem_data" else "core" if first == "soul.md" else "agents"


def _digest(plan: RestorePlan) -> str:
    peers = [
        [
            peer.block.name,
            peer.way,
            [[step.twin.hash, step.action, step.why] for step in peer.steps],
            [[step.name, step.action, step.why] for step in peer.agents],
        ]
        for peer in plan.peers
    ]
    return _hashed({"local": plan.local_digest, "peers": peers})


def _hashed(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def writes_elsewhere(plan: Mapping[str, Any]) -> bool:
    """True when this plan, as JSON, would write twins or agents to another machine: only after a yes to it."""
    return plan["target"] == "in-place" and any(
        step["action"] in ("create", "overwrite")
        for peer in plan["peers"]
        for step in (*peer["twins"], *peer["agents"])
    )
