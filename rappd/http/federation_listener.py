"""The life of the listener for other machines: its port now, everything behind it after the start."""

from __future__ import annotations

import errno
import logging
import socket

from aiohttp import web

from rappd.daemon.app import Daemon

log = logging.getLogger(__name__)

_FURTHER = 100


class FederationListener:
    """A taken port never stops a start: a free one is used, and announced."""

    def __init__(self, daemon: Daemon) -> None:
        """Takes the port at once, so that the state of the daemon names it from the first answer on."""
        self._daemon = daemon
        self._runner: web.AppRunner | None = None
        self._socket: socket.socket | None = None
        settings = daemon.settings
        if settings.on("peers.listen"):
            self._socket = listen(settings.text("peers.address"), settings.number("peers.port"))
        daemon.federation.port = self._socket.getsockname()[1] if self._socket else 0

    def open(self) -> None:
        """Serves the port as soon as everything behind it is ready."""
        self._daemon.spawn(self._serve())

    async def close(self) -> None:
        """Serves no more, and says goodbye to the peers that are here."""
        await self._daemon.anchoring.advance(settled=True)
        await self._daemon.federation.take_leave()
        if self._runner is not None:
            await self._runner.cleanup()
        elif self._socket is not None:
            self._socket.close()

    async def _serve(self) -> None:
        machines = self._daemon.federation
        await machines.start(machines.port)
        if self._socket is not None:
            from rappd.http.federation.app import serve

            self._runner = await serve(machines, self._socket)
            log.info("the listener for other machines is open on port %d", machines.port)


def listen(address: str, port: int) -> socket.socket | None:
    """A listening socket at that port, or a free one; None when the address is not this machine's."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for wanted in (*range(port, port + _FURTHER), 0):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, wanted))
            listener.listen(256)
        except OSError as error:
            listener.close()
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            log.error("the listener for other machines cannot open at %s: %s", address, error.strerror)
            return None
        listener.setblocking(False)
        return listener
    return None
