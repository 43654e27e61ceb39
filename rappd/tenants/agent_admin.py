"""Structural operations on a tenant's agents: the one place behind page, command line and LearnNew."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from agents.contract.agent import FileState
from agents.contract.agent_contract import Description, is_molt_of
from agents.contract.may_run import YOURS
from agents.runtimes.python.sandbox.needs import in_words
from agents.runtimes.python.worker.service_files import ServiceFailedError
from agents.storage.safe_fs import in_file_pool
from agents.storage.text_file import shown_python
from rappd.errors import ConflictError, NotFoundError
from rappd.tenants.agent_editor import AgentChange, AgentEditor, why_read_only
from rappd.tenants.agent_summary import change_text, example_for, failure_text
from rappd.tenants.rapplication_services import ServiceFile
from rappd.tenants.staged_agent import checked, clear_disk_errors
from rappd.tenants.tenant_context import TenantContext
from twins.eggs.readers.workspace_paths import decides, is_workflow
from twins.errors import BadFileError
from twins.trust.quarantined_files import PREFIX as REFUSED
from twins.trust.quarantined_files import QuarantinedFile, RefusedFiles, held_files, named
from twins.workspace.agent_files import sha256
from twins.workspace.workspace_env import FILE as ENV_FILE
from twins.workspace.workspace_env import masked


class HeldFile(TypedDict):
    """A quarantined file of a workspace, and in what it came."""

    path: str
    file: str
    sha256: str
    why: str
    origin: str
    at: str


class Fault(TypedDict):
    """The line and the reason of what is wrong with a file."""

    line: int | None
    reason: str


class AgentSource(TypedDict):
    """The text of an agent's file. ``read_only``: why it cannot be edited, "" where it can."""

    file: str
    source: str
    agents: list[str]
    origin: str
    sha256: str
    fault: Fault | None
    read_only: str


class AgentAdmin:
    """Agent files in, out, molted and restored. Each change is checked in a worker before it counts."""

    def __init__(self, tenant: TenantContext) -> None:
        self._tenant = tenant
        self._refused = RefusedFiles(tenant.workspace, tenant.trust.quarantine)
        self._lock = asyncio.Lock()
        self.editor = AgentEditor(tenant, self._lock, self._report)

    async def write(
        self,
        filename: str,
        content: bytes,
        *,
        reason: str = "",
        molt: bool = False,
        replace: bool = True,
        by_operator: bool = False,
        keep_faulty: bool = False,
    ) -> AgentChange:
        """Stages a file, loads it in a worker, and only then moves it into place.

        A molt must keep name and parameters of what it replaces (RAPP v1 §11); a file that does not
        load is refused and nothing changes. With ``keep_faulty`` it is kept, not running, and an earlier version
        of it works on. What the operator brings in himself is approved by that, should
        these very bytes be quarantined there. Returns ``{file, agents, try, message}``.
        """
        files = self._tenant.files
        async with self._lock, clear_disk_errors(filename):
            name, staged = await in_file_pool(files.stage, filename, content, faulty=keep_faulty)
            try:
                outcome = await checked(self._tenant, name, staged, keep_faulty=keep_faulty)
                before = self._state(name)
                if before is not None and not replace:
                    raise BadFileError(f"{name} exists already.", do="Choose another name, or molt it.")
                if molt:
                    self._check_molt(name, outcome)
                await in_file_pool(files.place, name, staged, reason=reason)
                if by_operator:
                    release = self._tenant.trust.quarantine.release
                    await in_file_pool(lambda: release(files.path(name), sha256(content)))
            finally:
                await in_file_pool(files.discard, staged)
            await self._tenant.registry.forget(YOURS, name)
            await self._tenant.refresh()
        return self._report(name)

    async def remove(self, filename: str) -> AgentChange:
        """Takes a file out; the answer's ``undo`` brings it back."""
        async with self._lock:
            token = await in_file_pool(self._tenant.files.remove, filename)
            await self._tenant.refresh()
        return {"status": "ok", "message": f"{filename} is out of service.", "undo": token}

    async def refuse(self, name: str, digest: str = "") -> AgentChange:
        """Takes a file that waits out of its place; the answer's ``undo`` brings it back, waiting as before.

        ``name`` and ``digest`` as in ``approve``. Raises ``NotFoundError`` for what does not wait, ``BadFileError`` for
        a file of a source.
        """
        async with self._lock:
            waiting = await in_file_pool(self._waiting, name)
            if waiting is None and (state := self._state(name)) is not None and state.is_quarantined:
                return await self._refuse_needs(state, digest)
            if waiting is None and (service := await self._service(name)) is not None and service.waits:
                do = f"Take {service.path} away, or approve it: rappd agents approve {service.file.name}"
                raise BadFileError(f"{service.file.name} is a service of yours, and does not run.", do=do)
            if waiting is None:
                raise _waits_not(name)
            _check_read(waiting.path, waiting.sha256, digest)
            token = await in_file_pool(self._refused.put_aside, waiting.path)
            await self._moved(waiting.path)
        filename = waiting.path.removeprefix("agents/")
        return {"status": "ok", "file": filename, "message": f"{filename} was refused.", "undo": token}

    async def _refuse_needs(self, state: FileState, digest: str) -> AgentChange:
        filename = state.file.rel
        _check_read(filename, state.sha256, digest)
        if state.origin != YOURS:
            raise BadFileError(
                f"{filename} comes from a source of agents.", do="Switch the source off, in Settings."
            )
        token = await in_file_pool(self._tenant.files.remove, filename)
        await self._tenant.refresh()
        return {"status": "ok", "file": filename, "message": f"{filename} was refused.", "undo": token}

    async def undo(self, token: str) -> AgentChange:
        """Brings a removed or refused file back."""
        async with self._lock:
            if token.startswith(REFUSED):
                path = await in_file_pool(self._refused.bring_back, token)
                await self._moved(path)
                return {"status": "ok", "file": path, "message": f"{path} waits for your approval again."}
            name = await in_file_pool(self._tenant.files.undo, token)
            await self._tenant.refresh()
        return self._report(name)

    async def restore(self, filename: str, number: int) -> AgentChange:
        """Puts an earlier generation back in service."""
        async with self._lock:
            await in_file_pool(self._tenant.files.restore, filename, number)
            await self._tenant.refresh()
        return self._report(filename)

    async def approve(self, name: str, digest: str = "", *, waiting_only: bool = False) -> AgentChange:
        """Lets exactly the present bytes of a file run, if it was quarantined; else change structure.

        ``name`` is an agent's, an agent file's, or a path in the workspace (``services/x_service.py``). ``digest``
        is the SHA-256 of what was read: other bytes are refused with ``ConflictError``. With ``waiting_only``
        ``NotFoundError`` for what is not quarantined: of two answers to one matter the first counts.
        """
        async with self._lock:
            return await self._approve(name, digest, waiting_only)

    async def _approve(self, name: str, digest: str, waiting_only: bool) -> AgentChange:
        waiting, state = await in_file_pool(self._waiting, name), self._state(name)
        if waiting is None and state is not None and state.is_quarantined:
            return await self._approve_needs(state, digest)
        if waiting is None and (service := await self._service(name)) is not None and service.waits:
            _check_read(service.path, service.sha256, digest)
            await self._allow_service(service)
            return _approved(service)
        if waiting is None and waiting_only:
            raise _waits_not(name)
        if waiting is not None:
            _check_read(waiting.path, waiting.sha256, digest)
            filename = waiting.path.removeprefix("agents/")
            await in_file_pool(self._tenant.trust.quarantine.release, waiting.file, waiting.sha256)
            if (known := self._state(filename)) is not None and known.sha256 == waiting.sha256:
                await self._allow_needs(known)
            elif (service := await self._service(filename)) is not None and service.sha256 == waiting.sha256:
                await self._allow_service(service)
            if filename == ENV_FILE:
                await self._tenant.reload_variables()
                text = f"{filename} is approved; agents have its variables from their next call on."
                return {
                    "status": "ok",
                    "file": filename,
                    "sha256": waiting.sha256,
                    "message": text,
                    "agents": [],
                }
            if is_workflow(filename) or decides(waiting.path):
                return {
                    "status": "ok",
                    "file": filename,
                    "sha256": waiting.sha256,
                    "message": f"{filename} is approved.",
                    "agents": [],
                }
            await self._tenant.registry.forget(YOURS, filename)
            await self._tenant.refresh()
            report = self._report(filename)
            is_running = report["status"] == "ok"
            text = f"{filename} is approved, and runs." if is_running else f"Approved. {report['message']}"
            return {**report, "sha256": waiting.sha256, "message": text}
        filename = name if state is None else state.file.rel
        content = await in_file_pool(self._tenant.files.read, filename)
        _check_read(filename, sha256(content), digest)
        await in_file_pool(self._tenant.trust.approvals.add, filename, sha256(content))
        await self._tenant.registry.forget(YOURS, filename)
        await self._tenant.refresh()
        return {
            "status": "ok",
            "message": f"{filename} is approved.",
            "file": filename,
            "sha256": sha256(content),
        }

    async def _approve_needs(self, state: FileState, digest: str) -> AgentChange:
        """Lets a file run that waits for what it declares, or does not declare, alone."""
        filename = state.file.rel
        _check_read(filename, state.sha256, digest)
        await self._allow_needs(state)
        await self._tenant.registry.forget(state.origin, filename)
        await self._tenant.refresh()
        report = self._report(filename)
        text = (
            f"{filename} is approved, and runs."
            if report["status"] == "ok"
            else f"Approved. {report['message']}"
        )
        return {**report, "sha256": state.sha256, "message": text}

    async def _allow_needs(self, state: FileState) -> None:
        await in_file_pool(self._tenant.trust.allow_needs, state.file.rel, state.sha256, state.needs)

    async def _service(self, name: str) -> ServiceFile | None:
        """The service of this file name or path, and whether it waits."""
        try:
            return await in_file_pool(self._tenant.services.named, name)
        except (
            ServiceFailedError
        ):  # what cannot be read, or declares what cannot be held, has nothing to allow
            return None

    async def _allow_service(self, service: ServiceFile) -> None:
        await in_file_pool(self._tenant.trust.allow_needs, service.path, service.sha256, service.needs)

    async def _moved(self, path: str) -> None:
        if path == ENV_FILE:
            await self._tenant.reload_variables()
        await self._tenant.registry.forget(YOURS, path.removeprefix("agents/"))
        await self._tenant.refresh()

    async def held(self) -> list[HeldFile]:
        """Returns the quarantined files of this workspace: agents, services, senses."""
        files = await in_file_pool(held_files, self._tenant.trust.quarantine, self._tenant.workspace)
        return [
            {
                "path": one.path,
                "file": str(one.file),
                "sha256": one.sha256,
                "why": one.why,
                "origin": one.origin,
                "at": one.at,
            }
            for one in files
        ]

    def _waiting(self, name: str) -> QuarantinedFile | None:
        return named(held_files(self._tenant.trust.quarantine, self._tenant.workspace), name)

    async def exported(self, name: str) -> AgentSource:
        """As ``source``, for a file that leaves this machine. Raises ``BadFileError`` for a hard link."""
        found = await self.source(name)
        if found["origin"] == YOURS and not (await in_file_pool(self._waiting, name)):
            await in_file_pool(self._tenant.files.check_export, found["file"])
        return found

    async def source(self, name: str, *, with_values: bool = False) -> AgentSource:
        """The text of an agent's file, by file name or agent name; of quarantined services and senses, too.

        Of a quarantined ``.env`` the names alone, unless ``with_values``.
        """
        state = self._state(name)
        if state is not None:
            file, origin = state.file.rel, state.origin
            content = await in_file_pool(state.file.content)
        elif (waiting := await in_file_pool(self._waiting, name)) is not None:
            file, origin = waiting.path, YOURS
            content = await in_file_pool(self._tenant.workspace.files.read, waiting.file)
        elif (service := await self._service(name)) is not None:
            file, origin = service.path, YOURS
            content = await in_file_pool(self._tenant.workspace.files.read, service.file)
        else:
            raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
        is_masked = file == ENV_FILE and not with_values
        return {
            "file": file,
            "source": masked(content) if is_masked else shown_python(content),
            "agents": [agent.name for agent in state.agents] if state else [],
            "origin": origin,
            "sha256": sha256(content),
            "fault": _fault(state),
            "read_only": "" if state is None else why_read_only(file, origin, state.waits, content),
        }

    def _state(self, name: str) -> Any:
        states = self._tenant.registry.states()
        for state in reversed(states):
            if state.file.rel == name or any(agent.name == name for agent in state.agents):
                return state
        return None

    def _check_molt(self, name: str, outcome: dict[str, Any]) -> None:
        state = self._state(name)
        if state is None or not state.agents:
            raise NotFoundError(f"{name} is no agent that could molt.", do="rappd agents list")
        after = {item["name"]: item for item in outcome["agents"]}
        for agent in state.agents:
            if agent.name not in after:
                raise BadFileError(
                    f"The new {name} has lost {agent.name}.", do="A molt keeps names and parameters."
                )
            reasons = is_molt_of(agent.described(), Description(**after[agent.name]))
            if reasons:
                raise BadFileError(
                    f"The new {agent.name} is no molt: {reasons[0]}.", do="Only additions are allowed."
                )

    def _report(self, name: str) -> AgentChange:
        change = next(iter(self._tenant.registry.outcome(YOURS, name)), None)
        if change is not None and change.failure is not None:
            return {"status": "quarantined", "file": name, "message": failure_text(change), "agents": []}
        state = self._state(name)
        agents = [agent.name for agent in state.agents] if state else []
        registry = self._tenant.registry
        example = ""
        if state and state.agents and not registry.is_hidden(state.agents[0].name):
            example = example_for(state.agents[0])
        return {
            "status": "ok",
            "file": name,
            "agents": agents,
            "try": example,
            "message": change_text(registry, agents, example),
            "reach": in_words(state.needs if state else None),
        }


def _approved(service: ServiceFile) -> AgentChange:
    text = f"{service.path} is approved, and runs."
    return {"status": "ok", "file": service.path, "sha256": service.sha256, "message": text, "agents": []}


def _waits_not(name: str) -> NotFoundError:
    return NotFoundError(f'"{name[:80]}" does not wait for approval.', do="rappd agents approve")


def _check_read(file: str, present: str, read: str) -> None:
    if read and read != present:
        raise ConflictError(f"{file} is not what you read: it changed.", do="Read it again, then approve.")


def _fault(state: Any) -> Fault | None:
    """The line and the reason of what is wrong with a file; None where nothing is, or it only waits."""
    if state is None or state.waits or not state.failures:
        return None
    return {"line": state.failures[0].line, "reason": state.failures[0].reason}
