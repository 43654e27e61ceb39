"""Operations on rapplications: what can be installed, what is, installing and uninstalling."""

from __future__ import annotations

from collections.abc import Callable

from agents.contract.agent import Change
from agents.storage.safe_fs import in_file_pool
from rappd.daemon.rate_limit import RateLimit
from rappd.features.operation import ANYBODY, OWNER, Text, operation
from rappd.tenants import rapps
from rappd.tenants.rapps import RappInstalled, RappRemoved, RappRow
from rappd.tenants.tenant import Tenant


class RappOperations:
    """``tell`` is called with the agents that came and went; ``port`` is that of their pages."""

    def __init__(
        self, host: Tenant, port: Callable[[], int], imports: RateLimit, tell: Callable[[list[Change]], None]
    ) -> None:
        self._host, self._port, self._imports, self._tell = host, port, imports, tell

    @operation("rapps.list", "GET", "/rapps", right=ANYBODY, answers="rapps")
    async def listing(self) -> list[RappRow]:
        """Shipped and installed rapplications."""
        return await in_file_pool(rapps.listing, self._host.workspace, self._port())

    @operation("rapps.install", "POST", "/rapps/install", right=OWNER)
    async def install(self, id: Text) -> RappInstalled:
        """Installs a shipped rapplication by id, or one from a folder or zip on this machine by path."""
        self._imports.take()
        found = await rapps.install(self._host, id)
        self._tell(await self._host.refresh())
        return found

    @operation("rapps.uninstall", "POST", "/rapps/uninstall", right=OWNER)
    async def uninstall(self, id: Text) -> RappRemoved:
        """Deletes a rapplication's files; what it remembered stays."""
        found = await rapps.uninstall(self._host, id)
        self._tell(await self._host.refresh())
        return found
