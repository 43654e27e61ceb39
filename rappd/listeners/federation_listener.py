"""The life of the listener for other machines: its port now, everything behind it after the start."""

from __future__ import annotations

import logging
import socket

from aiohttp import web

from rappd.daemon.app import Daemon
from rappd.listeners.listening_sockets import listen

log = logging.getLogger(__name__)


class FederationListener:
    """A taken port never stops a start: a free one is used, and announced."""

    def __init__(self, daemon: Daemon) -> None:
        """Takes the port at once, so that the state of the daemon names it from the first answer on."""
        self._daemon = daemon
        self._runner: web.AppRunner | None = None
        self._sockets: tuple[socket.socket, ...] = ()
        settings = daemon.settings
        if settings.on("peers.listen"):
            self._sockets = listen(settings.text("peers.address"), settings.number("peers.port"))
        hosts = tuple(one.getsockname()[0] for one in self._sockets)
        daemon.federation.listens_at(hosts, self._sockets[0].getsockname()[1] if self._sockets else 0)

    def open(self) -> None:
        """Serves the port as soon as everything behind it is ready."""
        self._daemon.spawn(self._serve())

    async def close(self) -> None:
        """Serves no more, and says goodbye to the peers that are here."""
        await self._daemon.anchoring.advance(settled=True)
        await self._daemon.federation.take_leave()
        if self._runner is not None:
            await self._runner.cleanup()
        for listener in self._sockets:
            listener.close()

    async def _serve(self) -> None:
        machines = self._daemon.federation
        await machines.start()
        if self._sockets:
            from rappd.listeners.federation.app import serve

            self._runner = await serve(self._daemon, self._sockets)
            log.info("the listener for other machines is open on port %d", machines.port)
