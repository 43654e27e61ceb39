"""The way in to every listener on the network: those who have proven nothing get little room and little time.

Connections are taken one by one, before TLS. A caller that proves to be a peer, a phone or whom the owner listed may
stay; strangers are few at a time, and the one that has been there the longest makes room for the next.
So a flood of them costs others no more than a moment, and never the daemon's descriptors.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from envelopes.ip_addresses import source_text
from neighborhoods.auth.tls import presented_certificate
from neighborhoods.discovery.address_text import network_of
from rappd.listeners.request_timeout import TimedRunner

BURST = 200
A_SECOND = 50.0
"""New connections of one address: so many at once, and then in a second."""
NETWORK_SHARE = 4
"""So many times as many of one IPv6 network: a machine gives itself as many addresses there as it likes."""
MOST_PROVEN = 256
_MOST_KEPT = 1024


class ConnectionRate:
    """Token buckets. An address that proved itself keeps its own, whatever others of its network use up.

    Otherwise a stranger in the network of a paired machine, which is known only after TLS, could keep that out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        self._proven: dict[str, None] = {}

    def take(self, address: str) -> bool:
        """Counts one connection; False when the address, or its network, has used its share."""
        network = network_of(address)
        # The network first: an address that it refuses is not even remembered.
        if network != address and address not in self._proven and not self._take(network, NETWORK_SHARE):
            return False
        return self._take(address, 1)

    def prove(self, address: str) -> None:
        """Notes that somebody at the address proved to be known here."""
        self._proven.pop(address, None)
        self._proven[address] = None
        if len(self._proven) > MOST_PROVEN:
            del self._proven[next(iter(self._proven))]

    def forget_full(self) -> None:
        """Forgets who has a full share again, where many are remembered."""
        if len(self._left) > _MOST_KEPT:
            now = self._clock()
            # A network's share is larger and grows as much faster: it is full after the same time at most.
            self._left = {
                key: (left, at) for key, (left, at) in self._left.items() if (now - at) * A_SECOND < BURST
            }

    def _take(self, key: str, share: int) -> bool:
        now, most = self._clock(), float(share * BURST)
        left, at = self._left.get(key, (most, now))
        left = min(most, left + (now - at) * share * A_SECOND)
        self._left[key] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0


log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
STRANGER_SECONDS = 30.0
"""A stranger's connection lives no longer; pairing takes a new one for each step."""
STRANGERS = 256
STRANGERS_OF_ONE_ADDRESS = 64
"""Of one IPv6 network, too: a machine has as many addresses there as it likes."""
_SWEEP_SECONDS = 2.0
_REFUSALS_LOGGED_SECONDS = 60.0

Protocols = Callable[[], asyncio.BaseProtocol]


@dataclass(slots=True, eq=False)
class _Connection:
    address: str
    network: str
    since: float
    task: asyncio.Task[None] | None = None
    protocol: int = 0
    transport: asyncio.BaseTransport | None = None


class ConnectionAdmission:
    """``open`` takes connections at a listening socket until ``close``."""

    def __init__(
        self,
        context: ssl.SSLContext | None,
        is_peer: Callable[[bytes], bool] = lambda _: False,
        *,
        seconds: float = STRANGER_SECONDS,
        admits: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """``is_peer``: whether a certificate (DER) is one of a paired machine. ``context`` None: without TLS.

        ``seconds``: how long a stranger's connection lives. ``admits``: whether anybody at an address may come in.
        """
        self._context = context
        self._is_peer = is_peer
        self._admits = admits
        self._seconds = seconds
        self._strangers: dict[_Connection, None] = {}  # in the order in which they came
        self._peers: dict[_Connection, bytes] = {}  # with the certificates that they showed
        self._by_protocol: dict[int, _Connection] = {}
        self._rate = ConnectionRate()
        self._tasks: list[asyncio.Task[None]] = []
        self._listeners: Sequence[socket.socket] = ()
        self._refusal_logged = float("-inf")
        self.turned_away = 0

    def open(self, listeners: Sequence[socket.socket], protocols: Protocols) -> None:
        """From now on every connection gets one of ``protocols``, over TLS where there is a context."""
        self._listeners = listeners
        self._tasks = [
            *(asyncio.ensure_future(self._take(listener, protocols)) for listener in listeners),
            asyncio.ensure_future(self._sweep_now_and_then()),
        ]

    def mark_authenticated(self, protocol: asyncio.BaseProtocol) -> None:
        """Marks the other end of a connection as authenticated."""
        visit = self._by_protocol.pop(id(protocol), None)
        if visit is not None:
            self._strangers.pop(visit, None)
            self._rate.prove(visit.address)

    async def close(self) -> None:
        """Takes nobody any more; strangers go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
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
            address = source_text(str(peername[0]))
            if self._is_admitted(str(peername[0])) and self._may_come(address):
                visit = _Connection(address, network_of(address), time.monotonic())
                self._strangers[visit] = None
                visit.task = asyncio.ensure_future(self._meet(visit, connection, protocols))
                visit.task.add_done_callback(partial(_close_unless_met, visit, connection))
            else:
                self.turned_away += 1
                connection.close()
            # ``sock_accept`` does not wait while others are queued: the loop would stand still
            await asyncio.sleep(0)

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
                protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._context is not None else None,
            )
        except Exception as error:  # noqa: BLE001 - a stranger's handshake may fail in any way
            if not isinstance(error, OSError | TimeoutError):
                log.info("a connection of %s failed: %s", visit.address, error)
            self._end(visit)
            return
        visit.task = None
        visit.transport = transport
        shown = presented_certificate(transport.get_extra_info("ssl_object"))
        if shown is not None and self._is_peer(shown):
            self._by_protocol.pop(visit.protocol, None)
            self._strangers.pop(visit, None)
            self._peers[visit] = shown
            self._rate.prove(visit.address)

    def _is_admitted(self, source: str) -> bool:
        """Tests whether anybody at the address may come in, and logs now and then that somebody may not."""
        if self._admits(source):
            return True
        now = time.monotonic()
        if now - self._refusal_logged >= _REFUSALS_LOGGED_SECONDS:
            self._refusal_logged = now
            log.warning(
                "security: a connection from %s was refused: it is of none of this machine's networks. "
                "If it is yours: rappd config set listen.networks %s",
                source,
                network_of(source),
            )
        return False

    def _may_come(self, address: str) -> bool:
        if not self._rate.take(address):
            return False
        if len(self._strangers) >= STRANGERS_OF_ONE_ADDRESS:
            self._forget_gone()
            network = network_of(address)
            same = [visit for visit in self._strangers if visit.network == network]
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

    def _distrust(self, now: float) -> None:
        """Machines whose trust ended are strangers again: one that reads nothing would stay for good."""
        for visit, shown in list(self._peers.items()):
            if visit.transport is None or visit.transport.is_closing():
                del self._peers[visit]
            elif not self._is_peer(shown):
                del self._peers[visit]
                visit.since = now
                self._strangers[visit] = None
                self._by_protocol[visit.protocol] = visit

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._forget_gone()
            now = time.monotonic()
            self._distrust(now)
            for visit in [one for one in self._strangers if now - one.since > self._seconds]:
                self._end(visit)
            self._rate.forget_full()


def _close_unless_met(visit: _Connection, connection: socket.socket, _: asyncio.Task[None]) -> None:
    """For a task that failed, or was cancelled, perhaps before its first step."""
    if visit.transport is None:
        connection.close()


class ClientErrorLogFilter(logging.Filter):
    """Logs malformed requests of unauthenticated callers now and then, without a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._last < 1.0:
            return False
        self._last = now
        found = record.exc_info[1] if record.exc_info else None
        record.msg, record.args = "%s (%s)", (record.getMessage()[:200], type(found).__name__)
        record.exc_info, record.levelno, record.levelname = None, logging.INFO, "INFO"
        return True


PROTOCOL = logging.getLogger(f"{__name__}.http")
"""Without traces of what strangers sent: each would take the log's room from what happened before."""
PROTOCOL.addFilter(ClientErrorLogFilter())


class AdmittedRunner(TimedRunner):
    """Runs an application at one listening socket, behind an entrance of its own."""

    def __init__(
        self,
        app: web.Application,
        entrance: ConnectionAdmission,
        *,
        shutdown_timeout: float,
        idle_seconds: float = 3630.0,
    ) -> None:
        """``idle_seconds``: how long a connection stays open without a request."""
        super().__init__(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=shutdown_timeout,
            keepalive_timeout=idle_seconds,
            logger=PROTOCOL,
        )
        app[ENTRANCE] = entrance
        self._entrance = entrance

    def open(self, *listeners: socket.socket) -> None:
        """After ``setup``: serves at sockets that listen already."""
        assert self.server is not None
        self._entrance.open(listeners, self.server)

    async def cleanup(self) -> None:
        """Ends the listener."""
        await self._entrance.close()
        await super().cleanup()


def mark_authenticated(request: web.Request) -> None:
    """Marks the other end of the request's connection as authenticated."""
    request.app[ENTRANCE].mark_authenticated(request.protocol)


ENTRANCE = web.AppKey("entrance", ConnectionAdmission)
