"""Model servers that are found on this machine: the settings about them, and the owner's yes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypedDict

from agents.providers.local_servers import Address
from agents.providers.selection import ProviderSelector
from agents.runtimes.python.network.tcp_owners import worker_serves
from agents.runtimes.python.pools.started_processes import is_worker_process
from agents.runtimes.python.sandbox.syscalls import LINUX
from rappd.daemon.ports import holder
from rappd.errors import ConflictError
from rappd.settings.load import Settings
from rappd.settings.registry import LAST_PORT

log = logging.getLogger(__name__)

_LOG_AGAIN_SECONDS = 60.0


class OfferedServer(TypedDict):
    """A model server of this machine that waits for a yes."""

    server: str
    name: str
    where: str
    model: str


class LocalServers(TypedDict):
    """The server that waits for a yes, and the addresses of those that are agents' processes."""

    offered: OfferedServer | None
    refused: list[str]


class WorkerServerCheck:
    """Tells whether a worker serves an address of this machine; each one found is a security event."""

    def __init__(self, zygote_pid: Callable[[], int | None]) -> None:
        self._zygote_pid = zygote_pid
        self._logged: dict[Address, float] = {}

    def __call__(self, server: Address, client: Address | None = None) -> bool:
        """True when the zygote process or something below it listens there. Blocks on ``/proc``."""
        zygote = self._zygote_pid()
        if not zygote or not _is_served(zygote, server, client):
            return False
        now = time.monotonic()
        if now - self._logged.get(server, -_LOG_AGAIN_SECONDS) >= _LOG_AGAIN_SECONDS:
            self._logged[server] = now
            log.warning(
                "security: an agent's process listens at %s:%d, where a model server is expected; it is not used",
                *server,
            )
        return True


def local_urls(settings: Settings) -> tuple[str, ...]:
    """The addresses at which a model server of this machine is looked for; () when none is wanted."""
    if settings.choice("provider.local") == "off":
        return ()
    ports = [text for text in settings.items("provider.local_ports") if text.isascii() and text.isdecimal()]
    return tuple(f"http://127.0.0.1:{port}" for text in ports if 0 < (port := int(text[:6])) <= LAST_PORT)


def describe_local(thinking: ProviderSelector) -> LocalServers:
    """For screens: the server that waits for a yes (or None), and those that are agents' processes."""
    refused, found = list(thinking.refused), thinking.offered
    if found is None:
        return {"offered": None, "refused": refused}
    where = found.url.removeprefix("http://")
    offered: OfferedServer = {
        "server": found.label,
        "name": found.name,
        "where": where,
        "model": found.models[0],
    }
    return {"offered": offered, "refused": refused}


async def offered_server(thinking: ProviderSelector, server: str) -> str:
    """The label of the server that is offered now, looked for again.

    Raises ``ConflictError`` when it is not ``server``; any other text than "" names the server that the owner
    saw.
    """
    await thinking.look()
    offered = thinking.offered
    if offered is None:
        refused = thinking.refused
        if refused:
            raise ConflictError(f"{refused[0]} is an agent's process, and never used.", do="rappd logs")
        raise ConflictError("No model server waits for a yes on this machine.", do="rappd models list")
    if server and server != offered.label:
        raise ConflictError(f"Another model server answers now: {offered.label}.", do="rappd models list")
    return offered.label


def _is_served(zygote: int, server: Address, client: Address | None) -> bool:
    if LINUX:
        return worker_serves(zygote, server, client)
    pid = holder(server[1]).pid
    return bool(pid) and is_worker_process(pid, zygote)
