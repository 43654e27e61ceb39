"""The roster: which agents a workspace serves now, and why the others are not served."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents import dependencies
from agents.contract import Description, distinct, safe_tool_name
from agents.discovery import AgentFile, find_agent_files
from agents.errors import AgentError, CallTimeout
from agents.thinking.provider import Tool
from agents.worker.crew import Crew

log = logging.getLogger(__name__)

LOAD_SECONDS = 20.0
_NO_STAMP = (0, 0, 0)  # no file on disk has it, so a worker takes the kept copy
Origin = str  # "shipped", "yours", or "source owner/repo"

STRUCTURAL = frozenset({"LearnNew", "SwarmFactory", "Twin", "HatchEgg", "LayEgg", "Fleet"})


def is_structural(name: str) -> bool:
    """Whether an agent of that name changes the house itself, and so is offered to its operator only."""
    return name in STRUCTURAL or name.startswith("Neighborhood")


@dataclass(slots=True, frozen=True)
class Folder:
    """A place agents come from. Later folders win over earlier ones that claim the same name."""

    origin: Origin
    path: Path
    only: frozenset[str] | None = None  # file names that count; None takes all


@dataclass(slots=True, frozen=True)
class Failure:
    """Why a file, or a class in it, is quarantined."""

    reason: str
    line: int | None = None
    class_name: str = ""


@dataclass(slots=True)
class Agent:
    """One agent as the house knows it. ``tool_name`` is its name in a form that every model takes."""

    name: str
    tool_name: str
    description: str
    parameters: dict[str, Any]
    file: AgentFile
    origin: Origin
    sha256: str
    kept: str
    class_name: str = ""
    has_context: bool = False
    idempotent: bool = False
    one_worker: bool = False
    trusted: bool = False
    shadowed_by: str = ""

    def described(self) -> Description:
        """The part of it that its file declares."""
        return Description(self.name, self.tool_name, self.description, self.parameters, self.class_name)

    def reference(self) -> dict[str, Any]:
        """What a worker needs to load this very version."""
        return {
            "rel": self.file.rel,
            "path": str(self.file.path),
            "source_path": self.kept,
            "stamp": list(self.file.stamp),
        }

    def tool(self) -> Tool:
        """The OpenAI tool definition."""
        return {
            "type": "function",
            "function": {
                "name": self.tool_name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }


@dataclass(slots=True)
class FileState:
    """One agent file: the agents of its last good version, and what is wrong with it now."""

    file: AgentFile
    origin: Origin
    agents: list[Agent] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    good_since: float = 0.0


@dataclass(slots=True, frozen=True)
class Change:
    """What a refresh found: agents that became ready, a file that failed, or one that went."""

    kind: Literal["ready", "failed", "gone"]
    file: str
    agents: tuple[str, ...] = ()
    failure: Failure | None = None
    good_since: float = 0.0


Installer = Callable[[list[str]], Awaitable[str]]
"""Installs packages into the workspace's ``.deps``; gives "" or what went wrong."""


class Roster:
    """Agents of one workspace. The daemon's side: files are described by workers, never loaded here."""

    def __init__(
        self,
        *,
        crew: Crew,
        folders: Callable[[], Sequence[Folder]],
        kept: Path,
        deps: Path,
        trusted: Callable[[Origin, str], bool],
        installer: Installer | None = None,
    ) -> None:
        self._crew = crew
        self._folders = folders
        self._kept = kept
        self._deps = deps
        self._is_trusted = trusted
        self._installer = installer
        self._states: dict[tuple[Origin, str], FileState] = {}
        self._serving: list[Agent] = []
        self._by_tool: dict[bool, dict[str, Agent]] = {True: {}, False: {}}
        self._tools: dict[bool, list[Tool]] = {True: [], False: []}
        self._lock = asyncio.Lock()
        self.version = 0

    def serving(self, *, structural: bool = True) -> list[Agent]:
        """Agents that answer now, in alphabetical order."""
        return list(self._by_tool[structural].values())

    def tools(self, *, structural: bool) -> list[Tool]:
        """Tool definitions in alphabetical order of agent name; the list is shared, do not change it."""
        return self._tools[structural]

    def find(self, tool_name: str, *, structural: bool = True) -> Agent | None:
        """The serving agent that a model knows as ``tool_name``."""
        return self._by_tool[structural].get(tool_name)

    def named(self, name: str) -> Agent | None:
        """The serving agent called ``name``, by its own name or its tool name, any case."""
        found = self._by_tool[True].get(name)
        lowered = name.casefold()
        return found or next((agent for agent in self._serving if agent.name.casefold() == lowered), None)

    def states(self) -> list[FileState]:
        """Every file, in load order."""
        return list(self._states.values())

    def unavailable(self) -> list[str]:
        """Names of files that have faults and serve nothing."""
        return [state.file.rel for state in self._states.values() if state.failures and not state.agents]

    async def refresh(self) -> list[Change]:
        """Looks at the folders again and describes what is new or changed."""
        async with self._lock:
            found = await asyncio.to_thread(self._discover)
            changes = [
                Change("gone", state.file.rel, tuple(agent.name for agent in state.agents))
                for key, state in self._states.items()
                if key not in found
            ]
            todo = [
                (key, file)
                for key, file in found.items()
                if key not in self._states or self._states[key].file.stamp != file.stamp
            ]
            fresh: dict[tuple[Origin, str], FileState] = {}
            if todo:
                fresh = await self._describe_all(todo)
            self._states = {key: fresh.get(key) or self._states[key] for key in found}
            self._settle()
            for key in fresh:
                changes.extend(_changes(self._states[key]))
            return changes

    async def forget(self, origin: Origin, rel: str) -> None:
        """Describes a file anew at the next refresh, though its stamp is the same."""
        async with self._lock:
            self._states.pop((origin, rel), None)

    def _discover(self) -> dict[tuple[Origin, str], AgentFile]:
        found = {}
        for folder in self._folders():
            for file in find_agent_files(folder.path):
                if folder.only is None or file.rel in folder.only:
                    found[(folder.origin, file.rel)] = file
        return found

    async def _describe_all(
        self, todo: list[tuple[tuple[Origin, str], AgentFile]]
    ) -> dict[tuple[Origin, str], FileState]:
        done = {}
        pending = todo
        while pending:
            batch, pending = pending[:50], pending[50:]
            outcomes = await self._describe(batch)
            for (key, file), outcome in zip(batch, outcomes, strict=True):
                outcome = await self._with_packages(key, file, outcome)
                if key not in self._states and _is_broken(outcome):
                    earlier = await self._from_kept(key, file, outcome)
                    if earlier is not None:
                        done[key] = earlier
                        continue
                done[key] = await asyncio.to_thread(self._take, key, file, outcome)
        return done

    async def _from_kept(
        self, key: tuple[Origin, str], file: AgentFile, outcome: dict[str, Any]
    ) -> FileState | None:
        """The last good version of a file that is broken at the start, if a copy of it was kept."""
        kept = self._kept_path(*key)
        content = await asyncio.to_thread(_read, kept)
        if not content:
            return None
        earlier = AgentFile(file.rel, file.path, _NO_STAMP)
        body = {"rel": file.rel, "path": str(file.path), "stamp": list(_NO_STAMP), "source_path": str(kept)}
        try:
            answer = await self._crew.request("describe", {"files": [body]}, timeout=LOAD_SECONDS)
        except AgentError:
            return None
        found = answer["files"][0]
        if not found["agents"]:
            return None
        agents = self._agents_of(key[0], earlier, found, hashlib.sha256(content).hexdigest(), str(kept))
        good_since = (await asyncio.to_thread(kept.stat)).st_mtime
        return FileState(file, key[0], agents, _failures(outcome), good_since)

    async def _describe(self, batch: Sequence[tuple[tuple[Origin, str], AgentFile]]) -> list[dict[str, Any]]:
        files = [{"rel": file.rel, "path": str(file.path), "stamp": list(file.stamp)} for (_, file) in batch]
        try:
            answer = await self._crew.request("describe", {"files": files}, timeout=LOAD_SECONDS)
        except CallTimeout:
            if len(batch) == 1:
                return [_failed(f"it was still loading after {LOAD_SECONDS:g} s")]
        except AgentError as error:
            if len(batch) == 1:
                return [_failed(f"loading it {error}")]
        else:
            outcomes: list[dict[str, Any]] = answer["files"]
            return outcomes
        return [(await self._describe([one]))[0] for one in batch]  # one of them does it: find out which

    async def _with_packages(
        self, key: tuple[Origin, str], file: AgentFile, outcome: dict[str, Any]
    ) -> dict[str, Any]:
        tried: set[str] = set()
        while (missing := (outcome.get("failure") or {}).get("missing_module")) and missing not in tried:
            tried.add(missing)
            source = await asyncio.to_thread(_read, file.path)
            wanted = dependencies.requirements_for(source, missing)
            if not wanted or self._installer is None:
                command = dependencies.command_for(missing, wanted, self._deps)
                outcome["failure"]["reason"] += f"; install it: {command}"
                break
            problem = await self._installer(wanted)
            if problem:
                outcome["failure"]["reason"] += f"; {problem}"
                break
            outcome = (await self._describe([(key, file)]))[0]
        return outcome

    def _take(self, key: tuple[Origin, str], file: AgentFile, outcome: dict[str, Any]) -> FileState:
        origin = key[0]
        before = self._states.get(key)
        failures = _failures(outcome)
        if _is_broken(outcome):
            if before is not None and before.agents:
                return FileState(file, origin, before.agents, failures, before.good_since)
            return FileState(file, origin, [], failures)
        content = _read(file.path)
        sha256 = hashlib.sha256(content).hexdigest()
        kept = self._keep(origin, file, content) if origin != "shipped" else ""
        agents = self._agents_of(origin, file, outcome, sha256, kept)
        return FileState(file, origin, agents, failures, time.time())

    def _agents_of(
        self, origin: Origin, file: AgentFile, outcome: dict[str, Any], sha256: str, kept: str
    ) -> list[Agent]:
        return [
            Agent(
                name=item["name"],
                tool_name=item["tool_name"],
                description=item["description"],
                parameters=item["parameters"],
                file=file,
                origin=origin,
                sha256=sha256,
                kept=kept,
                class_name=item["class_name"],
                has_context=item.get("has_system_context", False),
                idempotent=item.get("idempotent", False),
                one_worker=item.get("one_worker", False),
                trusted=self._is_trusted(origin, sha256) and is_structural(item["name"]),
            )
            for item in outcome.get("agents", ())
        ]

    def _kept_path(self, origin: Origin, rel: str) -> Path:
        name = hashlib.sha256(f"{origin}\n{rel}".encode()).hexdigest()[:16]
        return self._kept / f"{name}.py"

    def _keep(self, origin: Origin, file: AgentFile, content: bytes) -> str:
        target = self._kept_path(origin, file.rel)
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
            temporary = target.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_bytes(content)
            temporary.replace(target)
        except OSError as error:
            log.warning("no copy of %s kept: %s", file.rel, error)
            return ""
        return str(target)

    def _settle(self) -> None:
        """Decides who serves which name: of two that claim one, the later in load order."""
        winners: dict[str, Agent] = {}
        for state in self._states.values():
            for agent in state.agents:
                agent.shadowed_by = ""
                earlier = winners.get(agent.name)
                if earlier is not None:
                    earlier.shadowed_by = agent.file.rel
                winners[agent.name] = agent
        self._serving = sorted(winners.values(), key=lambda agent: agent.name)
        taken: set[str] = set()
        for agent in self._serving:
            agent.tool_name = distinct(safe_tool_name(agent.name), taken)
            taken.add(agent.tool_name)
        everyday = [agent for agent in self._serving if not is_structural(agent.name)]
        self._by_tool = {
            True: {agent.tool_name: agent for agent in self._serving},
            False: {agent.tool_name: agent for agent in everyday},
        }
        self._tools = {
            True: [agent.tool() for agent in self._serving],
            False: [agent.tool() for agent in everyday],
        }
        self.version += 1


def _is_broken(outcome: dict[str, Any]) -> bool:
    return bool(outcome.get("failure")) and not outcome.get("agents")


def _failures(outcome: dict[str, Any]) -> list[Failure]:
    found = [*outcome.get("quarantined", ()), *filter(None, [outcome.get("failure")])]
    return [Failure(item["reason"], item.get("line"), item.get("class_name") or "") for item in found]


def _failed(reason: str) -> dict[str, Any]:
    return {"agents": [], "failure": {"reason": reason, "line": None}}


def _changes(state: FileState) -> list[Change]:
    names = tuple(agent.name for agent in state.agents)
    failed = [
        Change("failed", state.file.rel, names, failure, state.good_since) for failure in state.failures
    ]
    return failed or [Change("ready", state.file.rel, names)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
