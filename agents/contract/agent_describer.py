"""Describing agent files: in a worker, with their packages, and with the last good version kept."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from agents.contract.agent import QUARANTINED_CODE, Agent, Failure, FileState, Key, needs_trust
from agents.contract.declared_needs import Declared, declared_in
from agents.contract.file_discovery import AgentFile
from agents.contract.good_versions import GoodVersions
from agents.contract.imported_files import Neighbours
from agents.contract.may_run import SHIPPED, Allowed, Refused, Trust, Verdict
from agents.contract.shipped_descriptions import description_of, needs_of
from agents.errors import AgentError, CallTimeoutError, WorkerDiedError
from agents.runtimes.python.pools.answers import reader_of_descriptions, reader_of_texts
from agents.runtimes.python.pools.call import OnCallback, ReadAnswer
from agents.runtimes.python.sandbox.needs import UNCONFINED, Confines
from agents.storage.safe_fs import SafeTree, in_file_pool

log = logging.getLogger(__name__)

LOAD_SECONDS = 20.0
_BATCH = 50
_TOGETHER = 25  # files for which one worker is started; it forks for each
_NO_STAMP = (0, 0, 0)  # no file on disk has it, so a worker takes the kept copy

Installer = Callable[[list[str]], Awaitable[str]]
"""Installs packages into the workspace's ``.deps``; gives "" or what went wrong."""


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
        """Sends a request to a worker and returns its answer, as ``WorkerPool.request`` does."""
        ...


class DescribingPools(Protocol):
    """Workers of one workspace, as agent files are described in them."""

    def program(self) -> RequestPool:
        """The pool in which files of the program run."""
        ...

    def apart(self, confines: Confines = UNCONFINED) -> AbstractAsyncContextManager[RequestPool]:
        """A pool for files with these confines, whose worker ends with the block."""
        ...


@dataclass(frozen=True, slots=True)
class AgentStorage:
    """Places of a workspace that agents are described from: its tree, copies of good versions, packages, modules."""

    files: SafeTree
    kept: Path
    deps: Path
    neighbours: Neighbours


class CheckedFile(NamedTuple):
    """A file as it was read once: the bytes that were asked about are those that a worker runs."""

    key: Key
    file: AgentFile
    content: bytes
    sha256: str
    verdict: Verdict
    declared: Declared = Declared(None)
    imported: tuple[str, ...] = ()
    """The modules of its workspace that it may read, where it declares its needs."""

    @property
    def origin(self) -> str:
        """The origin that keeps its code apart from that of others."""
        return (self.verdict.apart if isinstance(self.verdict, Allowed) else "") or self.key[0]

    @property
    def confines(self) -> Confines:
        """The bounds in which it is described. It is not readable there: its text comes with the request."""
        needs = self.declared.needs
        return UNCONFINED if needs is None else Confines(needs, imported=self.imported)

    def body(self) -> dict[str, Any]:
        """The file in a request to a worker, which runs no other bytes than these."""
        body = {**_body(self.file), "sha256": self.sha256}
        if self.declared.needs is None:
            return body
        return {**body, "content": base64.b64encode(self.content).decode()}


class AgentDescriber:
    """Turns files into ``FileState``."""

    def __init__(
        self, pools: DescribingPools, storage: AgentStorage, trust: Trust, installer: Installer | None
    ) -> None:
        self._pools = pools
        self._storage = storage
        self._good_versions = GoodVersions(storage.files, storage.kept)
        self._trust = trust
        self._installer = installer

    async def describe(
        self, todo: Sequence[tuple[Key, AgentFile]], before: Mapping[Key, FileState]
    ) -> dict[Key, FileState]:
        """The state of each file now; a broken one keeps serving the version of ``before``."""
        done: dict[Key, FileState] = {}
        by_origin: dict[str, list[CheckedFile]] = {}
        for one in await in_file_pool(lambda: [self.check(key, file) for key, file in todo]):
            if isinstance(one.verdict, Allowed):
                by_origin.setdefault(one.origin, []).append(one)
            else:  # it must not even be loaded: nothing of it runs
                done[one.key] = FileState(
                    one.file,
                    one.key[0],
                    [],
                    [Failure(one.verdict.why)],
                    verdict=one.verdict,
                    needs=one.declared.needs,
                    sha256=one.sha256,
                )
        found = await asyncio.gather(
            *(self._describe(origin, files, before) for origin, files in by_origin.items())
        )
        for states in found:
            done.update(states)
        return {key: done[key] for key, _ in todo}

    def check(self, key: Key, file: AgentFile, kept: Path | None = None) -> CheckedFile:
        """Reads a file, or the ``kept`` copy of it, and asks whether that may run. Blocks on the disk."""
        try:
            content = file.content() if kept is None else self._storage.files.read(kept)
        except OSError as error:
            refused = Refused(f"it cannot be read: {error.strerror or error}")
            return CheckedFile(key, file, b"", "", refused)
        sha256 = hashlib.sha256(content).hexdigest()
        declared = needs_of(sha256) or declared_in(file.rel, content)
        verdict = self._trust.may_run(key[0], file.path, sha256, declared.needs)
        imported: tuple[str, ...] = ()
        if declared.needs is not None and key[0] != SHIPPED:
            imported = self._storage.neighbours.imported_by(file.rel, content)
        return CheckedFile(key, file, content, sha256, verdict, declared, imported)

    async def _describe(
        self, origin: str, todo: Sequence[CheckedFile], before: Mapping[Key, FileState]
    ) -> dict[Key, FileState]:
        """The same for files of one code origin."""
        done = {}
        for start in range(0, len(todo), _BATCH):
            batch = todo[start : start + _BATCH]
            outcomes = await self._request(origin, batch)
            for one, outcome in zip(batch, outcomes, strict=True):
                outcome = await self._with_packages(origin, one, outcome)
                state = None
                if one.key not in before and _is_broken(outcome):
                    state = await self._from_copy(one, outcome)
                if state is None:
                    state = await in_file_pool(self._build_state, one, outcome, before.get(one.key))
                done[one.key] = state
        return done

    async def _from_copy(self, broken: CheckedFile, outcome: dict[str, Any]) -> FileState | None:
        """The last good version of a file that is broken at the start, if a copy of it was kept that may run."""
        kept = await in_file_pool(self._good_versions.newest, *broken.key)
        copy = AgentFile(broken.file.rel, broken.file.path, _NO_STAMP, self._storage.files)
        earlier = await in_file_pool(self.check, broken.key, copy, kept)
        if not earlier.content or not isinstance(earlier.verdict, Allowed) or earlier.declared.fault:
            return None
        try:
            async with self._pools.apart(earlier.confines) as pool:
                (found,) = await self._ask(pool, [{**earlier.body(), "source_path": str(kept)}])
        except AgentError:
            return None
        if not found["agents"]:
            return None
        agents = self._agents_of(earlier, found, str(kept))
        good_since = (await in_file_pool(self._storage.files.stat, kept)).st_mtime
        return FileState(
            broken.file,
            broken.key[0],
            agents,
            _failures(outcome),
            good_since,
            _lacks(outcome),
            broken.verdict,
            broken.declared.needs,
            broken.sha256,
        )

    async def _request(self, origin: str, batch: Sequence[CheckedFile]) -> Sequence[dict[str, Any]]:
        """The outcome of each file.

        Those of the program are loaded together. Each other one has a process of its own: beside others it
        could answer for them, and tell how they describe themselves.
        """
        if origin == SHIPPED:
            return await self._of_program(batch)
        by_confines: dict[Confines, list[CheckedFile]] = {}
        done: dict[Key, dict[str, Any]] = {}
        for one in batch:
            if one.declared.fault:  # it is not known what it may do: nothing of it runs
                done[one.key] = _failed(one.declared.fault, one.declared.line)
            else:
                by_confines.setdefault(one.confines, []).append(one)
        parts = [
            files[start : start + _TOGETHER]
            for files in by_confines.values()
            for start in range(0, len(files), _TOGETHER)
        ]
        for part, outcomes in zip(parts, await asyncio.gather(*map(self._apart, parts)), strict=True):
            done |= {one.key: outcome for one, outcome in zip(part, outcomes, strict=True)}
        return [done[one.key] for one in batch]

    async def _of_program(self, batch: Sequence[CheckedFile]) -> Sequence[dict[str, Any]]:
        """The outcomes of the program's own files: known since it was built, but for those that were changed since."""
        known = [description_of(one.file.rel, one.sha256) for one in batch]
        changed = [one for one, outcome in zip(batch, known, strict=True) if outcome is None]
        loaded = iter(await self._loaded(self._pools.program(), changed) if changed else ())
        return [next(loaded) if outcome is None else outcome for outcome in known]

    async def _apart(self, batch: Sequence[CheckedFile]) -> Sequence[dict[str, Any]]:
        """The outcomes of files of equal confines that one worker runs in forks of itself."""
        files = [one.body() for one in batch]
        try:
            async with self._pools.apart(batch[0].confines) as pool:
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

    async def _alone(self, one: CheckedFile) -> dict[str, Any]:
        """The outcome of a file that gave none, or whose neighbour ended their worker."""
        for again in (True, False):
            async with self._pools.apart(one.confines) as pool:
                try:
                    return (await self._ask(pool, [one.body()]))[0]
                except CallTimeoutError:
                    return _failed(f"it was still loading after {LOAD_SECONDS:g} s")
                except AgentError as error:
                    if not (
                        again and isinstance(error, WorkerDiedError)
                    ):  # it may have ended for another reason
                        return _failed(f"loading it {error}")
        raise AssertionError("the second attempt returned")

    async def _loaded(self, pool: RequestPool, batch: Sequence[CheckedFile]) -> Sequence[dict[str, Any]]:
        try:
            return await self._ask(pool, [one.body() for one in batch])
        except AgentError:
            return await asyncio.gather(*map(self._alone, batch))  # one of them does it: find out which

    @staticmethod
    async def _ask(pool: RequestPool, files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The outcomes of ``files``. Raises AgentError."""
        read = reader_of_descriptions(len(files))
        answer = await pool.request("describe", {"files": files}, timeout=LOAD_SECONDS, read=read)
        outcomes: list[dict[str, Any]] = answer["files"]
        return outcomes

    async def _with_packages(self, origin: str, one: CheckedFile, outcome: dict[str, Any]) -> dict[str, Any]:
        tried: set[str] = set()
        while (missing := (outcome.get("failure") or {}).get("missing_module")) and missing not in tried:
            tried.add(missing)
            from agents.packages import install_packages  # rarely needed, and every start would pay for it

            wanted = install_packages.requirements_for(one.content, missing)
            problem = await self._installer(wanted) if wanted and self._installer is not None else ""
            if wanted and not problem and self._installer is not None:
                outcome = (await self._request(origin, [one]))[0]
                if (outcome.get("failure") or {}).get("missing_module") != missing:
                    continue
            hint = install_packages.hint_for(one.content, missing, self._storage.deps)
            outcome["failure"]["reason"] += f"; {problem}; {hint}" if problem else f"; {hint}"
            break
        return outcome

    def _build_state(self, one: CheckedFile, outcome: dict[str, Any], before: FileState | None) -> FileState:
        origin = one.key[0]
        agents: list[Agent] = []
        good_since = 0.0
        if not _is_broken(outcome):
            kept = self._good_versions.keep(*one.key, one.sha256, one.content) if origin != SHIPPED else ""
            agents, good_since = self._agents_of(one, outcome, kept), time.time()
        elif before is not None:
            agents, good_since = before.agents, before.good_since
        return FileState(
            one.file,
            origin,
            agents,
            _failures(outcome),
            good_since,
            _lacks(outcome),
            one.verdict,
            one.declared.needs,
            one.sha256,
        )

    def _agents_of(self, one: CheckedFile, outcome: dict[str, Any], kept: str) -> list[Agent]:
        is_structural = isinstance(one.verdict, Allowed) and one.verdict.structural
        return [
            Agent(
                name=item["name"],
                tool_name=item["tool_name"],
                description=item["description"],
                parameters=item["parameters"],
                file=one.file,
                origin=one.key[0],
                code_origin=one.origin,
                sha256=one.sha256,
                kept=kept,
                class_name=item["class_name"],
                has_context=item.get("has_system_context", False),
                idempotent=item.get("idempotent", False),
                one_worker=item.get("one_worker", False),
                task_only=item.get("task_only", False),
                summary=item.get("manifest", {}).get("summary", ""),
                trusted=is_structural and needs_trust(item["name"]),
                listener=item.get("listener"),
                needs=one.declared.needs,
                private=isinstance(one.verdict, Allowed) and one.verdict.private,
                imported=one.imported,
            )
            for item in outcome.get("agents", ())
        ]


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


def _failed(reason: str, line: int | None = None) -> dict[str, Any]:
    return {"agents": [], "failure": {"reason": reason, "line": line}}
