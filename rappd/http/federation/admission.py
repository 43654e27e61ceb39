"""The way in to the listener for other machines: those who have proven nothing get little room and little time.

Connections are taken one by one, before TLS. A caller that proves to be a peer, or to have a permission, may
stay; strangers are few at a time, and the one that has been there the longest makes room for the next.
So a flood of them costs a paired machine no more than a moment.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from neighborhoods.auth.tls import presented_certificate
from rappd.daemon.rate_limit import RateLimit
from rappd.dispatch.context import Caller
from rappd.federation.service import FederationService

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
STRANGER_SECONDS = 30.0
"""A stranger's connection lives no longer; pairing takes a new one for each step."""
STRANGERS = 256
STRANGERS_OF_ONE_ADDRESS = 64
BURST = 200
A_SECOND = 50.0
"""New connections of one address: so many at once, and then in a second."""
_SWEEP_SECONDS = 2.0

Protocols = Callable[[], asyncio.BaseProtocol]


@dataclass(slots=True, eq=False)
class _Connection:
    address: str
    since: float
    task: asyncio.Task[None] | None = None
    protocol: int = 0
    transport: asyncio.BaseTransport | None = None


class ConnectionAdmission:
    """``open`` takes connections at a listening socket until ``close``."""

    def __init__(self, context: ssl.SSLContext, is_peer: Callable[[bytes], bool]) -> None:
        """``is_peer``: whether a certificate (DER) is one of a paired machine."""
        self._context = context
        self._is_peer = is_peer
        self._strangers: dict[_Connection, None] = {}  # in the order in which they came
        self._by_protocol: dict[int, _Connection] = {}
        self._tokens: dict[str, tuple[float, float]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: socket.socket | None = None
        self.turned_away = 0

    def open(self, listener: socket.socket, protocols: Protocols) -> None:
        """From now on every connection gets one of ``protocols``, over TLS."""
        self._listener = listener
        self._tasks = [
            asyncio.ensure_future(self._take(listener, protocols)),
            asyncio.ensure_future(self._sweep_now_and_then()),
        ]

    def mark_authenticated(self, protocol: asyncio.BaseProtocol) -> None:
        """Marks the other end of a connection as authenticated."""
        visit = self._by_protocol.pop(id(protocol), None)
        if visit is not None:
            self._strangers.pop(visit, None)

    async def close(self) -> None:
        """Takes nobody any more; strangers go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        for visit in list(self._strangers):
            self._end(visit)

    async def _take(self, listener: socket.socket, protocols: Protocols) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peername = await loop.sock_accept(listener)
            except OSError as error:  # no more files, say
                log.error("a connection could not be taken: %s", error)
                self._make_room()
                await asyncio.sleep(0.1)
                continue
            address = str(peername[0])
            if not self._may_come(address):
                self.turned_away += 1
                connection.close()
                continue
            visit = _Connection(address, time.monotonic())
            self._strangers[visit] = None
            visit.task = asyncio.ensure_future(self._meet(visit, connection, protocols))

    async def _meet(self, visit: _Connection, connection: socket.socket, protocols: Protocols) -> None:
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.BaseProtocol:
            made = protocols()
            visit.protocol = id(made)
            self._by_protocol[visit.protocol] = visit
            return made

        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport, _ = await loop.connect_accepted_socket(
                protocol, connection, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except Exception as error:  # noqa: BLE001 - a stranger's handshake may fail in any way
            if not isinstance(error, OSError | TimeoutError):
                log.info("a connection of %s failed: %s", visit.address, error)
            connection.close()
            self._end(visit)
            return
        except asyncio.CancelledError:
            connection.close()
            raise
        visit.task = None
        visit.transport = transport
        shown = presented_certificate(transport.get_extra_info("ssl_object"))
        if shown is not None and self._is_peer(shown):
            self._by_protocol.pop(visit.protocol, None)
            self._strangers.pop(visit, None)

    def _may_come(self, address: str) -> bool:
        now = time.monotonic()
        left, at = self._tokens.get(address, (float(BURST), now))
        left = min(float(BURST), left + (now - at) * A_SECOND)
        if left < 1.0:
            self._tokens[address] = (left, now)
            return False
        self._tokens[address] = (left - 1.0, now)
        if len(self._strangers) >= STRANGERS_OF_ONE_ADDRESS:
            self._forget_gone()
            same = [visit for visit in self._strangers if visit.address == address]
            if len(same) >= STRANGERS_OF_ONE_ADDRESS:
                self._end(same[0])
            if len(self._strangers) >= STRANGERS:
                self._make_room()
        return True

    def _make_room(self) -> None:
        if (longest := next(iter(self._strangers), None)) is not None:
            self._end(longest)

    def _end(self, visit: _Connection) -> None:
        self._strangers.pop(visit, None)
        self._by_protocol.pop(visit.protocol, None)
        if visit.task is not None and visit.task is not asyncio.current_task():
            visit.task.cancel()
        if visit.transport is not None:
            with suppress(RuntimeError, OSError):
                visit.transport.abort()  # type: ignore[attr-defined]  # every transport of a socket has it

    def _forget_gone(self) -> None:
        for visit in [one for one in self._strangers if one.transport and one.transport.is_closing()]:
            self._end(visit)

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._forget_gone()
            now = time.monotonic()
            for visit in [one for one in self._strangers if now - one.since > STRANGER_SECONDS]:
                self._end(visit)
            if len(self._tokens) > 1024:
                self._tokens = {
                    address: (left, at)
                    for address, (left, at) in self._tokens.items()
                    if left + (now - at) * A_SECOND < BURST
                }


_SCHEME = "bearer "


def caller(request: web.Request) -> tuple[Caller, str]:
    """The caller, and the name its envelopes are from when it has a token and no machine of its own.

    Raises ``BadTokenError``, ``NotPairedError``.
    """
    transport = request.transport
    certificate = presented_certificate(transport.get_extra_info("ssl_object") if transport else None)
    shown = request.headers.get("Authorization", "")
    token = shown[len(_SCHEME) :].strip() if shown[: len(_SCHEME)].lower() == _SCHEME else ""
    machines = request.app[FEDERATION]
    found, name = machines.parts.credentials.who(token, certificate)
    if found.peer or found.caps:
        mark_authenticated(request)
    if found.peer:
        machines.on_sign_of_life(found.peer, "")
    return found, name


def mark_authenticated(request: web.Request) -> None:
    """Marks the other end of the request's connection as authenticated."""
    request.app[ENTRANCE].mark_authenticated(request.protocol)


FEDERATION = web.AppKey("machines", FederationService)
ENTRANCE = web.AppKey("entrance", ConnectionAdmission)
HELLO_LIMIT = web.AppKey("hello_limit", RateLimit)
"""Limits HELLOs of unauthenticated callers, for each address."""
SIGNED_LIMIT = web.AppKey("signed_limit", RateLimit)
"""Limits other requests of unauthenticated callers, which take time to verify."""
