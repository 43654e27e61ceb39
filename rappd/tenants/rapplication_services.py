"""The services of one workspace: HTTP code of rapplications, run in workers that hold it to the needs that it declares."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any, NamedTuple

from agents.contract.declared_needs import declared_in
from agents.contract.imported_files import Neighbours
from agents.contract.may_run import YOURS, Allowed, Quarantined, Verdict
from agents.runtimes.python.pools.answers import read_service_reply
from agents.runtimes.python.pools.call import OnCallback
from agents.runtimes.python.pools.runner import WorkerPools
from agents.runtimes.python.pools.use_log import UseLog, refusal
from agents.runtimes.python.sandbox.needs import UNCONFINED, Confines, Needs, Use
from agents.runtimes.python.worker.service_files import (
    ServiceFailedError,
    ServiceFault,
    ServiceIndex,
    ServiceReply,
    read_service,
)
from agents.storage.safe_fs import in_file_pool
from rappd.dispatch.rights import Caller
from rappd.errors import RefusedError
from rappd.tenants.tenant_config import TenantSettings
from twins.trust.trust import WorkspaceTrust
from twins.workspace.agent_files import sha256
from twins.workspace.workspace import Workspace

log = logging.getLogger(__name__)


class ServiceFile(NamedTuple):
    """A service's file as it was read once. ``path`` is relative to the workspace."""

    file: Path
    path: str
    sha256: str
    needs: Needs | None
    verdict: Verdict
    confines: Confines = UNCONFINED

    @property
    def waits(self) -> str:
        """The reason for which it waits for the owner's yes, to its text or to its needs; "" for one that does not."""
        return self.verdict.why if isinstance(self.verdict, Quarantined) else ""


class WorkspaceServices:
    """Finds services by name, asks them, and notes what they were refused."""

    def __init__(
        self,
        workspace: Workspace,
        trust: WorkspaceTrust,
        pools: WorkerPools,
        neighbours: Neighbours,
        settings: TenantSettings,
        uses: UseLog,
    ) -> None:
        self._workspace = workspace
        self._index = ServiceIndex(workspace.files, workspace.organs, workspace.services)
        self._trust = trust
        self._pools = pools
        self._neighbours = neighbours
        self._settings = settings
        self._uses = uses

    async def ask(
        self,
        method: str,
        name: str,
        path: str,
        body: Any,
        caller: Caller,
        on_callback: OnCallback,
        whose: str,
    ) -> ServiceReply | None:
        """Hands a request to a service in a worker; None when there is no such service.

        ``whose`` ends the command that approves it. Raises ``RefusedError`` for one that waits, or that asked for more
        than it declares.
        """
        found = await in_file_pool(self._found, name)
        if found is None:
            return None
        file, verdict = found.file, found.verdict
        if not isinstance(verdict, Allowed):
            raise RefusedError(
                f"{file.name} is quarantined: {verdict.why}", do=f"rappd agents approve {file.name}{whose}"
            )
        uses: list[Use] = []
        pool = self._pools.for_principal(verdict.apart or YOURS, (caller.principal, file), found.confines)
        reply, new_uses = await pool.request(
            "service",
            {
                "file": {"path": str(file), "sha256": found.sha256},
                "method": method,
                "path": path,
                "body": body,
            },
            timeout=self._settings.call_seconds,
            on_callback=on_callback,
            read=read_service_reply,
            on_use=lambda host, given: uses.append(("hosts", host, given)),
        )
        uses += new_uses
        if found.needs is not None and uses:
            self._uses.note(YOURS, found.path, found.sha256, uses)
            if refused := refusal(file.name, uses):
                log.warning("security: %s", refused)
                raise RefusedError(refused, do=f'"needs" in {file.name}')
        answer: ServiceReply = reply
        return answer

    async def faults(self) -> list[ServiceFault]:
        """Service files that cannot be used as they are."""
        return await asyncio.to_thread(self._index.faults)

    def waiting(self) -> list[ServiceFile]:
        """The services that wait for the owner's yes. Blocks on the disk."""
        found = []
        for file in self._index.files():
            with contextlib.suppress(ServiceFailedError):  # told among the faults
                if (one := self._read(file)) is not None and one.waits:
                    found.append(one)
        return found

    def named(self, name: str) -> ServiceFile | None:
        """The service of this file name, or path in the workspace. Blocks on the disk."""
        for file in self._index.files():
            if name in (file.name, str(file.relative_to(self._workspace.root))):
                return self._read(file)
        return None

    def _found(self, name: str) -> ServiceFile | None:
        self._trust.look()
        file = self._index.find(name)
        return None if file is None else self._read(file)

    def _read(self, file: Path) -> ServiceFile | None:
        """The file, and whether that may run; None for one that is gone."""
        try:
            content = read_service(file, self._workspace.files)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            raise ServiceFailedError(
                f"{file.name} cannot be read: {reason}", do="Put a plain file there."
            ) from error
        digest = sha256(content)
        needs, fault, line = declared_in(file.name, content)
        if fault:
            where = f" line {line}" if line else ""
            raise ServiceFailedError(f"{file.name}{where}: {fault}", do="Fix and save; it reloads by itself.")
        verdict = self._trust.may_run(YOURS, file, digest, needs)
        confines = UNCONFINED
        if needs is not None:
            private = isinstance(verdict, Allowed) and verdict.private
            imported = self._neighbours.imported_by(file.name, content)
            confines = Confines(needs, private, (str(file),), imported)
        path = str(file.relative_to(self._workspace.root))
        return ServiceFile(file, path, digest, needs, verdict, confines)
