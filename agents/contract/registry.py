"""The roster: which agents a workspace serves now, and why the others are not served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from agents.contract.agent import Agent, Change, Failure, FileState, Folder, Key
from agents.contract.agent_contract import distinct, safe_tool_name
from agents.contract.agent_describer import AgentDescriber, AgentStorage, DescribingPools, Installer
from agents.contract.file_discovery import AgentFile, find_agent_files, find_shipped_files
from agents.contract.may_run import Origin, Trust
from agents.storage.safe_fs import in_file_pool

_Seen = tuple[int, Sequence[object]]  # when installed packages last changed, and the rules


class AgentRegistry:
    """Agents of one workspace. The daemon's side: files are described by workers, never loaded here."""

    def __init__(
        self,
        pools: DescribingPools,
        folders: Callable[[], Sequence[Folder]],
        storage: AgentStorage,
        trust: Trust,
        installer: Installer | None = None,
        offers: Callable[[Agent], bool] = lambda _: True,
        given_name: Callable[[Agent], str] = lambda _: "",
    ) -> None:
        """``offers``: False for an agent that its owner's list does not name; it is described, and does not serve.

        ``given_name``: the name that the list gives a listener whose file names it by nothing but its own name; "" for none.
        """
        self._describer = AgentDescriber(pools, storage, trust, installer)
        self._storage = storage
        self._folders = folders
        self._trust = trust
        self.offers, self._given_name = offers, given_name
        self._deps_seen = 0
        self.rules_seen: Sequence[object] = (None,)
        """The rules of the last refresh, as ``Trust.look`` gave them; the first is the quarantine."""
        self._states: dict[Key, FileState] = {}
        self._serving: list[Agent] = []
        self._lock = asyncio.Lock()

    def serving(self) -> list[Agent]:
        """Agents that answer now, in alphabetical order."""
        return [agent for agent in self._serving if self.offers(agent)]

    def unlisted(self) -> list[Agent]:
        """Agents that would serve, and that their owner's list does not name."""
        return [agent for agent in self._serving if not self.offers(agent)]

    def named(self, name: str) -> Agent | None:
        """The serving agent called ``name``, by its own name or its tool name, any case."""
        serving, lowered = self.serving(), name.casefold()
        found = next((agent for agent in serving if agent.tool_name == name), None)
        return found or next((agent for agent in serving if agent.name.casefold() == lowered), None)

    def is_hidden(self, name: str) -> bool:
        """True for the name of an agent that would serve, and that its owner's list does not name."""
        return name.casefold() in {one.name.casefold() for one in self.unlisted()}

    def states(self) -> list[FileState]:
        """Every file, in load order."""
        return list(self._states.values())

    def outcome(self, origin: Origin, rel: str) -> list[Change]:
        """The changes found by the refresh that first saw this version of a file."""
        state = self._states.get((origin, rel))
        return _changes(state) if state is not None else []

    def unavailable(self) -> list[str]:
        """Names of files that have faults and serve nothing."""
        return [
            state.file.rel for state in self._states.values() if _serves_nothing(state) and not state.waits
        ]

    def waiting(self) -> list[str]:
        """Names of files that serve nothing until the operator approves them, or what they import."""
        return [state.file.rel for state in self._states.values() if _serves_nothing(state) and state.waits]

    async def refresh(self) -> list[Change]:
        """Looks at the folders again and describes what is new or changed."""
        async with self._lock:
            found, todo, seen = await in_file_pool(self._look)
            changes = [
                Change("gone", state.file.rel, tuple(agent.name for agent in state.agents))
                for key, state in self._states.items()
                if key not in found
            ]
            fresh = await self._describer.describe(todo, self._states)
            if fresh or found.keys() != self._states.keys():
                self._states = {key: fresh.get(key) or self._states[key] for key in found}
                self.settle()
            for key in fresh:
                changes.extend(_changes(self._states[key]))
            # Not before: one that is cancelled leaves them to the next, and who asks meanwhile waits for this one.
            self._deps_seen, self.rules_seen = seen
            return changes

    async def forget(self, origin: Origin, rel: str) -> None:
        """Describes a file anew at the next refresh, though its stamp is the same."""
        async with self._lock:
            self._states.pop((origin, rel), None)

    def _look(self) -> tuple[dict[Key, AgentFile], list[tuple[Key, AgentFile]], _Seen]:
        """The files, those to describe, and what that was decided by.

        To describe are new and changed ones, those whose missing module may have come, and those that were approved, or
        are held by now.
        """
        found = self._discover()
        deps = (
            self._storage.files.stat(self._storage.deps).st_mtime_ns
            if self._storage.files.is_folder(self._storage.deps)
            else 0
        )
        rules = self._trust.look()
        other_rules = list(map(id, rules)) != list(map(id, self.rules_seen))
        moved = other_rules or deps != self._deps_seen or any(self._is_new(*one) for one in found.items())
        todo = [
            (key, file)
            for key, file in found.items()
            if moved
            and (
                self._is_new(key, file)
                or self._states[key].lacks
                or (other_rules and self._states[key].verdict != self._describer.check(key, file).verdict)
            )
        ]
        return found, todo, (deps, rules)

    def _is_new(self, key: Key, file: AgentFile) -> bool:
        return key not in self._states or self._states[key].file.stamp != file.stamp

    def _discover(self) -> dict[Key, AgentFile]:
        found = {}
        for folder in self._folders():
            listed = (
                find_agent_files(folder.path, folder.files)
                if folder.files
                else find_shipped_files(folder.path)
            )
            for file in listed:
                if file.rel not in folder.but and (folder.only is None or file.rel in folder.only):
                    found[(folder.origin, file.rel)] = file
        return found

    def settle(self) -> None:
        """Decides anew who serves which name: of two agents that claim one, the later in load order.

        A listener never takes the place of another agent or listener of its origin: it is quarantined, whatever its
        file is called.
        """
        winners: dict[str, Agent] = {}
        for state, agent in self._in_order():
            earlier = winners.get(agent.name)
            if (first := _clash(agent, earlier, winners)) is not None:
                agent.clashes = True
                state.failures.append(_clash_failure(agent, first))
                continue
            if earlier is not None:
                earlier.shadowed_by = agent.file.rel
            winners[agent.name] = agent
        self._serving = sorted(winners.values(), key=lambda agent: agent.name)
        used_names: set[str] = set()
        for agent in self._serving:
            agent.tool_name = distinct(safe_tool_name(agent.name), used_names)
            used_names.add(agent.tool_name)

    def _in_order(self) -> list[tuple[FileState, Agent]]:
        """All agents under their names: by origin, and in each the agents, the listeners that serve, and new ones, the oldest file first."""
        served = {(one.origin, one.file.rel, one.name) for one in self._serving if one.listener is not None}
        origins: dict[Origin, int] = {}
        found: list[tuple[tuple[int, int, int], FileState, Agent]] = []
        for state in self._states.values():
            state.failures = [one for one in state.failures if not one.clash]
            for agent in state.agents:
                agent.shadowed_by, agent.clashes = "", False
                _rename(agent, self._given_name(agent))
                place = origins.setdefault(agent.origin, len(origins))
                rank = (place, 0, 0)
                if agent.listener is not None:
                    serves = (agent.origin, agent.file.rel, agent.name) in served
                    rank = (place, 1, 0) if serves else (place, 2, agent.file.stamp[0])
                found.append((rank, state, agent))
        return [(state, agent) for _, state, agent in sorted(found, key=lambda one: one[0])]


def _rename(agent: Agent, given: str) -> None:
    own = agent.own_name or agent.name
    name = given or own
    if agent.listener is not None and name != agent.name:
        agent.name, agent.own_name = name, own if given else ""
        agent.listener = replace(agent.listener, name=name)


def _clash(agent: Agent, earlier: Agent | None, winners: dict[str, Agent]) -> Agent | None:
    """The agent or listener of the same origin that has the name of a listener already."""
    if agent.listener is None:
        return None
    name = safe_tool_name(agent.name).casefold()
    found = earlier or next(
        (one for one in winners.values() if safe_tool_name(one.name).casefold() == name), None
    )
    return found if found is not None and found.origin == agent.origin else None


def _clash_failure(agent: Agent, serving: Agent) -> Failure:
    assert agent.listener is not None
    reason = f"{agent.name} is the name of {serving.class_name or serving.name} in {serving.file.rel}, which serves it"
    return Failure(reason, agent.listener.line, agent.class_name, clash=True)


def _serves_nothing(state: FileState) -> bool:
    return bool(state.failures) and not state.able


def _changes(state: FileState) -> list[Change]:
    names = tuple(agent.name for agent in state.able)
    kind: Literal["waits", "failed"] = "waits" if state.waits else "failed"
    failed = [Change(kind, state.file.rel, names, failure, state.good_since) for failure in state.failures]
    return failed or [Change("ready", state.file.rel, names)]
