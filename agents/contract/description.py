"""Describing agent files: in a worker, with their packages, and with the last good version kept."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from agents.contract.agent import (
    QUARANTINED_CODE,
    SHIPPED,
    Agent,
    Failure,
    FileState,
    Key,
    Origin,
    needs_trust,
)
from agents.contract.file_discovery import AgentFile
from agents.contract.shipped_descriptions import description_of
from agents.errors import AgentError, CallTimeoutError, WorkerDiedError
from agents.runtime.answers import reader_of_descriptions, reader_of_texts
from agents.storage.safe_fs import SafeTree, in_file_pool
from agents.workers.call import OnCallback, ReadAnswer

log = logging.getLogger(__name__)

LOAD_SECONDS = 20.0
_BATCH = 50
_TOGETHER = 25  # files for which one worker is started; it forks for each
_NO_STAMP = (0, 0, 0)  # no file on disk has it, so a worker takes the kept copy

Installer = Callable[[list[str]], Awaitable[str]]
"""Installs packages into the workspace's ``.deps``; gives "" or what went wrong."""


class Quarantine(Protocol):
    """Tells which files of a workspace must not run until they are approved."""

    def look(self) -> object:
        """Reads anew what is held; what it returns is another object when that changed. Blocks on the disk."""
        ...

    def reason(self, path: Path, sha256: str) -> str:
        """The reason why the file must not run with the content of that hash; "" when it may."""
        ...


class RequestPool(Protocol):
    """Workers that answer requests."""

    async def request(
        self,
        op: str,
        body: dict[str, Any],
        *,
        timeout: float | None,  # noqa: ASYNC109 - as ``WorkerPool.request``
        on_callback: OnCallback | None = None,
        read: ReadAnswer = orjson.loads,
    ) -> Any:
        """See ``WorkerPool.request``."""
        ...


class DescribingPools(Protocol):
    """Workers of one workspace, as agent files are described in them."""

    def program(self) -> RequestPool:
        """The pool in which files of the program run."""
        ...

    def apart(self) -> AbstractAsyncContextManager[RequestPool]:
        """A pool for one file, whose worker ends with the block."""
        ...


class CodeOrigins(Protocol):
    """Tells files of the owner's own folder that came with an egg."""

    def look(self) -> object:
        """Reads anew; what it returns is another object when something changed. Blocks on the disk."""
        ...

    def egg_of(self, path: Path, sha256: str) -> str:
        """The egg's origin; "" for what none brought."""
        ...


@dataclass(frozen=True, slots=True)
class AgentStorage:
    """Places of a workspace that agents are described from: its tree, copies of good versions, packages."""

    files: SafeTree
    kept: Path
    deps: Path


@dataclass(frozen=True, slots=True)
class CodeRules:
    """Rules for files of agents.

    ``trusted(origin, sha256)`` says whether exactly these bytes may change structure; ``held`` why they must
    not run at all; ``origins`` which egg they came with.
    """

    trusted: Callable[[Origin, str], bool]
    held: Quarantine
    origins: CodeOrigins | None = None


class AgentDescriber:
    """Turns files into ``FileState``."""

    def __init__(
        self, pools: DescribingPools, storage: AgentStorage, rules: CodeRules, installer: Installer | None
    ) -> None:
        self._pools = pools
        self._storage = storage
        self._rules = rules
        self._installer = installer

    async def describe(
        self, todo: Sequence[tuple[Key, AgentFile]], before: Mapping[Key, FileState]
    ) -> dict[Key, FileState]:
        """The state of each file now; a broken one keeps serving the version of ``before``."""
        asked = todo
        done = await in_file_pool(self._quarantined, todo)
        todo = [one for one in todo if one[0] not in done]
        by_origin = await in_file_pool(self._by_code_origin, todo)
        found = await asyncio.gather(
            *(self._describe(origin, files, before) for origin, files in by_origin.items())
        )
        for states in found:
            done.update(states)
        return {key: done[key] for key, _ in asked}

    async def _describe(
        self, origin: str, todo: Sequence[tuple[Key, AgentFile]], before: Mapping[Key, FileState]
    ) -> dict[Key, FileState]:
        """The same for files of one code origin."""
        done = {}
        for start in range(0, len(todo), _BATCH):
            batch = todo[start : start + _BATCH]
            outcomes = await self._request(origin, batch)
            for (key, file), outcome in zip(batch, outcomes, strict=True):
                outcome = await self._with_packages(origin, key, file, outcome)
                state = None
                if key not in before and _is_broken(outcome):
                    state = await self._from_copy(key, file, outcome)
                if state is None:
                    state = await in_file_pool(self._build_state, key, file, outcome, before.get(key))
                state.code_origin = origin
                for agent in state.agents:
                    agent.code_origin = origin
                done[key] = state
        return done

    def code_origin(self, key: Key, file: AgentFile) -> str:
        """The origin that keeps its code apart from that of others. Blocks on the disk."""
        if key[0] == SHIPPED or self._rules.origins is None:
            return key[0]
        return self._rules.origins.egg_of(file.path, hashlib.sha256(_read(file)).hexdigest()) or key[0]

    def _by_code_origin(
        self, todo: Sequence[tuple[Key, AgentFile]]
    ) -> dict[str, list[tuple[Key, AgentFile]]]:
        found: dict[str, list[tuple[Key, AgentFile]]] = {}
        for key, file in todo:
            found.setdefault(self.code_origin(key, file), []).append((key, file))
        return found

    def quarantine_reason(self, key: Key, file: AgentFile) -> str:
        """The reason why the file must not run as it is now; "" when it may. Blocks on the disk."""
        if key[0] == SHIPPED:
            return ""
        try:
            content = file.content()
        except FileNotFoundError:
            return ""
        except OSError as error:  # what cannot be told apart from held code does not run
            return f"it cannot be read: {error.strerror or error}"
        return self._rules.held.reason(file.path, hashlib.sha256(content).hexdigest())

    def _quarantined(self, todo: Sequence[tuple[Key, AgentFile]]) -> dict[Key, FileState]:
        """The files that must not even be loaded: nothing of them runs."""
        states = {}
        for key, file in todo:
            why = self.quarantine_reason(key, file)
            if why:
                origin = self.code_origin(key, file)
                states[key] = FileState(file, key[0], [], [Failure(why)], held=True, code_origin=origin)
        return states

    async def _from_copy(self, key: Key, file: AgentFile, outcome: dict[str, Any]) -> FileState | None:
        """The last good version of a file that is broken at the start, if a copy of it was kept."""
        kept = self._copy_path(*key)
        content = await in_file_pool(self._read_copy, kept)
        if not content:
            return None
        earlier = AgentFile(file.rel, file.path, _NO_STAMP)
        body = {**_body(earlier), "source_path": str(kept)}
        try:
            async with self._pools.apart() as pool:
                (found,) = await self._ask(pool, [body])
        except AgentError:
            return None
        if not found["agents"]:
            return None
        agents = self._agents_of(key[0], earlier, found, hashlib.sha256(content).hexdigest(), str(kept))
        good_since = (await in_file_pool(self._storage.files.stat, kept)).st_mtime
        return FileState(file, key[0], agents, _failures(outcome), good_since, _lacks(outcome))

    async def _request(self, origin: str, batch: Sequence[tuple[Key, AgentFile]]) -> Sequence[dict[str, Any]]:
        """The outcome of each file.

        Those of the program are loaded together. Each other one has a process of its own: beside others it
        could answer for them, and tell how they describe themselves.
        """
        if origin == SHIPPED:
            return await self._of_program(batch)
        parts = [batch[start : start + _TOGETHER] for start in range(0, len(batch), _TOGETHER)]
        found = await asyncio.gather(*map(self._apart, parts))
        return [outcome for outcomes in found for outcome in outcomes]

    async def _of_program(self, batch: Sequence[tuple[Key, AgentFile]]) -> Sequence[dict[str, Any]]:
        """The outcomes of the program's own files: known since it was built, but for those that were changed since."""
        known = await in_file_pool(lambda: [description_of(file) for _, file in batch])
        changed = [one for one, outcome in zip(batch, known, strict=True) if outcome is None]
        loaded = iter(await self._loaded(self._pools.program(), changed) if changed else ())
        return [next(loaded) if outcome is None else outcome for outcome in known]

    async def _apart(self, batch: Sequence[tuple[Key, AgentFile]]) -> Sequence[dict[str, Any]]:
        """The outcomes of files that one worker runs in forks of itself."""
        files = [_body(file) for _, file in batch]
        try:
            async with self._pools.apart() as pool:
                read = reader_of_texts(len(files))
                found = await pool.request(
                    "describe_apart", {"files": files}, timeout=LOAD_SECONDS, read=read
                )
        except AgentError:
            found = [None] * len(batch)
        return await asyncio.gather(
            *(
                self._alone(one) if outcome is None else _at_hand(outcome)
                for one, outcome in zip(batch, found, strict=True)
            )
        )

    async def _alone(self, one: tuple[Key, AgentFile]) -> dict[str, Any]:
        """The outcome of a file that gave none, or whose neighbour ended their worker."""
        for again in (True, False):
            async with self._pools.apart() as pool:
                try:
                    return (await self._ask(pool, [_body(one[1])]))[0]
                except CallTimeoutError:
                    return _failed(f"it was still loading after {LOAD_SECONDS:g} s")
                except AgentError as error:
                    if not (
                        again and isinstance(error, WorkerDiedError)
                    ):  # it may have ended for another reason
                        return _failed(f"loading it {error}")
        raise AssertionError("the second attempt returned")

    async def _loaded(
        self, pool: RequestPool, batch: Sequence[tuple[Key, AgentFile]]
    ) -> Sequence[dict[str, Any]]:
        try:
            return await self._ask(pool, [_body(file) for _, file in batch])
        except AgentError:
            return await asyncio.gather(*map(self._alone, batch))  # one of them does it: find out which

    @staticmethod
    async def _ask(pool: RequestPool, files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The outcomes of ``files``. Raises AgentError."""
        read = reader_of_descriptions(len(files))
        answer = await pool.request("describe", {"files": files}, timeout=LOAD_SECONDS, read=read)
        outcomes: list[dict[str, Any]] = answer["files"]
        return outcomes

    async def _with_packages(
        self, origin: str, key: Key, file: AgentFile, outcome: dict[str, Any]
    ) -> dict[str, Any]:
        tried: set[str] = set()
        while (missing := (outcome.get("failure") or {}).get("missing_module")) and missing not in tried:
            tried.add(missing)
            from agents.packages import install_packages  # rarely needed, and every start would pay for it

            source = await in_file_pool(_read, file)
            wanted = install_packages.requirements_for(source, missing)
            problem = await self._installer(wanted) if wanted and self._installer is not None else ""
            if wanted and not problem and self._installer is not None:
                outcome = (await self._request(origin, [(key, file)]))[0]
                if (outcome.get("failure") or {}).get("missing_module") != missing:
                    continue
            hint = install_packages.hint_for(source, missing, self._storage.deps)
            outcome["failure"]["reason"] += f"; {problem}; {hint}" if problem else f"; {hint}"
            break
        return outcome

    def _build_state(
        self, key: Key, file: AgentFile, outcome: dict[str, Any], before: FileState | None
    ) -> FileState:
        origin = key[0]
        failures = _failures(outcome)
        lacks = _lacks(outcome)
        if _is_broken(outcome):
            if before is not None and before.agents:
                return FileState(file, origin, before.agents, failures, before.good_since, lacks)
            return FileState(file, origin, [], failures, lacks=lacks)
        content = _read(file)
        sha256 = hashlib.sha256(content).hexdigest()
        kept = self._keep_copy(origin, file, content) if origin != SHIPPED else ""
        agents = self._agents_of(origin, file, outcome, sha256, kept)
        return FileState(file, origin, agents, failures, time.time(), lacks)

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
                summary=item.get("manifest", {}).get("summary", ""),
                trusted=self._rules.trusted(origin, sha256) and needs_trust(item["name"]),
            )
            for item in outcome.get("agents", ())
        ]

    def _copy_path(self, origin: Origin, rel: str) -> Path:
        name = hashlib.sha256(f"{origin}\n{rel}".encode()).hexdigest()[:16]
        return self._storage.kept / f"{name}.py"

    def _read_copy(self, kept: Path) -> bytes:
        try:
            return self._storage.files.read(kept)
        except OSError:
            return b""

    def _keep_copy(self, origin: Origin, file: AgentFile, content: bytes) -> str:
        target = self._copy_path(origin, file.rel)
        try:
            self._storage.files.write_unsynced(target, content)
        except OSError as error:
            log.warning("no copy of %s kept: %s", file.rel, error)
            return ""
        return str(target)


async def _at_hand(outcome: dict[str, Any]) -> dict[str, Any]:
    return outcome


def _body(file: AgentFile) -> dict[str, Any]:
    return {"rel": file.rel, "path": str(file.path), "stamp": list(file.stamp)}


def _is_broken(outcome: dict[str, Any]) -> bool:
    return bool(outcome.get("failure")) and not outcome.get("agents")


def _lacks(outcome: dict[str, Any]) -> str:
    """Names of modules that were missing, where these may come without the file changing."""
    missing: str = (outcome.get("failure") or {}).get("missing_module") or ""
    return QUARANTINED_CODE if outcome.get("waits") else missing


def _failures(outcome: dict[str, Any]) -> list[Failure]:
    found = [*outcome.get("quarantined", ()), *filter(None, [outcome.get("failure")])]
    return [Failure(item["reason"], item.get("line"), item.get("class_name") or "") for item in found]


def _failed(reason: str) -> dict[str, Any]:
    return {"agents": [], "failure": {"reason": reason, "line": None}}


def _read(file: AgentFile) -> bytes:
    try:
        return file.content()
    except OSError:
        return b""
