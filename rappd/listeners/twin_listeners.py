"""A booted twin's own port, 7081-7199 on 127.0.0.1: the RAPP surface, on its behalf (RAPP v1 §10, §18.13)."""

from __future__ import annotations

import errno
import socket

from aiohttp import web

from rappd.daemon.app import Daemon
from rappd.daemon.ports import TWIN_PORTS
from rappd.errors import ConflictError
from rappd.listeners.loopback import app as loopback
from rappd.listeners.request_timeout import TimedRunner
from rappd.tenants.tenant import Tenant


class TwinListeners:
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
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            continue
        listener.setblocking(False)
        return listener
    raise ConflictError("All ports from 7081 to 7199 are taken.", do="rappd twins stop NAME")
