"""Listening for requests to a home: the sockets of the loopback and of the control listener, and the other listeners.

A home that is only read does not import this, and so no aiohttp.
"""

from __future__ import annotations

import errno
import socket
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from rappd.daemon.app import Daemon, UpperParts
from rappd.daemon.ports import TWIN_PORTS, another, holder
from rappd.daemon.waiting_answers import OwnersList
from rappd.errors import ConflictError
from rappd.features.later_features import operations_for_agents, table_of, table_of_phones
from rappd.listeners.legacy_listener import LegacyListener
from rappd.listeners.listening_sockets import BACKLOG, FAMILY_MISSING, listening_socket
from rappd.listeners.loopback import app as loopback
from rappd.listeners.request_timeout import TimedRunner
from rappd.settings.load import Settings
from rappd.tenants.tenant import Tenant

if TYPE_CHECKING:
    import ssl

    from rappd.listeners.tether_listener import TetherListener
    from rappd.tether.phones import Phones


class PortTakenError(ConflictError):
    """Another program listens on the port."""

    code = "port_taken"

    def __init__(self, port: int) -> None:
        super().__init__(
            f"Port {port} is taken by {holder(port).name}.",
            do=f"stop it, or `PORT={another(port)} rappd start`",
        )


def upper_parts(settings: Settings) -> UpperParts:
    """Makers of the listeners that a daemon opens later, by itself, of the list that phones get, and of operations."""
    phones = partial(_tether_listener, settings.text("tether.address"))
    return UpperParts(
        _TwinListeners, LegacyListener, phones, OwnersList, operations_for_agents, table_of, table_of_phones
    )


def _tether_listener(
    address: str, phones: Phones, addresses: Callable[[], list[str]], tls: ssl.SSLContext | None
) -> TetherListener:
    from rappd.listeners.tether_listener import TetherListener

    return TetherListener(address, phones, addresses, tls)


def sockets_at(port: int) -> list[socket.socket]:
    """Sockets for 127.0.0.1 and, where there is one, ::1, so that no other program can answer for ``localhost``."""
    sockets: list[socket.socket] = []
    for host in ("127.0.0.1", "::1"):
        try:
            sockets.append(listening_socket(host, port))
        except OSError as error:
            if error.errno in FAMILY_MISSING and (sockets or error.errno != errno.EADDRNOTAVAIL):
                continue
            for other in sockets:
                other.close()
            if error.errno == errno.EADDRINUSE:
                raise PortTakenError(port) from error
            raise ConflictError(
                f"Port {port} cannot be used: {error.strerror}.", do="PORT=7171 rappd start"
            ) from error
        port = sockets[0].getsockname()[1]
    return sockets


async def open_listeners(
    daemon: Daemon, control: Path, sockets: list[socket.socket], *, patience: float = 3.0
) -> TimedRunner:
    """Listens. ``patience``: the seconds that requests under way have at the end."""
    runner = TimedRunner(
        loopback.build(daemon, lambda: daemon.table),
        access_log=None,
        handle_signals=False,
        shutdown_timeout=patience,
    )
    await runner.setup()
    for listener in (*sockets, _control_socket(control)):
        await web.SockSite(runner, listener, backlog=BACKLOG).start()
    return runner


def _control_socket(path: Path) -> socket.socket:
    """A socket at ``path`` for this account alone: nobody can connect before it listens, and it does not until its mode is set."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


class _TwinListeners:
    """Opens and closes twins' ports for the daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._runners: dict[str, web.AppRunner] = {}
        self._listeners: dict[str, socket.socket] = {}
        self._reserved: dict[str, socket.socket] = {}

    async def open(self, tenant: Tenant, wanted: int | None) -> int:
        """Listens for a twin and returns the port. Raises ``ConflictError`` when none is free."""
        listener = self._reserved.pop(tenant.name, None) or _listen(wanted)
        port: int = listener.getsockname()[1]
        daemon = self._daemon
        app = loopback.build_for_twin(daemon, tenant, port, lambda: daemon.table)
        runner = TimedRunner(app, access_log=None, handle_signals=False, shutdown_timeout=3.0)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        self._runners[tenant.name] = runner
        self._listeners[tenant.name] = listener
        return port

    def hold(self, key: str) -> None:
        """Keeps a twin's port from others until it is opened again, or released. Requests meanwhile wait."""
        if key in self._listeners and key not in self._reserved:
            self._reserved[key] = self._listeners[key].dup()

    def let_go(self, key: str) -> None:
        """Releases the port; waiting requests are refused."""
        reserved = self._reserved.pop(key, None)
        if reserved is not None:
            reserved.close()

    async def close(self, key: str) -> None:
        """Stops listening for a twin."""
        self._listeners.pop(key, None)
        runner = self._runners.pop(key, None)
        if runner is not None:
            await runner.cleanup()

    async def close_all(self) -> None:
        """Stops listening for all of them; they are booted again at the next start."""
        for key in list(self._runners):
            await self.close(key)
        for key in list(self._reserved):
            self.let_go(key)


def _listen(wanted: int | None) -> socket.socket:
    ports = [wanted, *TWIN_PORTS] if wanted in TWIN_PORTS else list(TWIN_PORTS)
    for port in ports:
        try:
            return listening_socket("127.0.0.1", port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise ConflictError("All ports from 7081 to 7199 are taken.", do="rappd twins stop NAME")
