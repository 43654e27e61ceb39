"""The carrier to paired machines: calls by a line that stays open; batches and fetching by HTTPS, else by the line."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import aiohttp

from envelopes.codecs import wire
from envelopes.envelope import ERROR, Envelope
from envelopes.errors import MalformedError, ReportableError
from neighborhoods.auth.tls import TlsFiles, client_context
from neighborhoods.delivery.delivery_route import RETRIABLE
from neighborhoods.errors import (
    DeclinedError,
    KeyChangedError,
    NotPairedError,
    PeerOfflineError,
    PeerRefusedError,
    RetriableError,
)
from neighborhoods.peer import Peer
from neighborhoods.transport.connector import CONNECT_SECONDS, Connector
from neighborhoods.transport.exchanges import Exchange, Exchanges
from neighborhoods.transport.http_client import session, upload, whole
from neighborhoods.transport.open_connection_delivery import bring
from neighborhoods.transport.peer_connection import (
    GOING_AWAY,
    HEARTBEAT,
    MAX_FRAME,
    PROTOCOLS,
    Answer,
    OnStream,
    PeerConnection,
)
from neighborhoods.transport.peer_events import PeerEvents
from neighborhoods.transport.replies import (
    arrived,
    check_sender,
    envelope_of,
    no_envelope,
    not_trusted,
    unwelcome,
)
from twins.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

BATCH_SECONDS = 30.0
SHORTEST_PATIENCE, LONGEST_PATIENCE = 0.3, 2.0
DOUBTS_APART = 5.0
"""Seconds: work that takes long is no reason to ask more often whether somebody is there."""
LARGEST_ANSWER = 110 << 20
LARGEST_REFUSAL = 64 << 10
SILENT_SECONDS = 90.0
"""A peer that copies a large twin before it sends it may say nothing for so long."""

Requests = Callable[[Peer], Answer]
"""Gives the function that works on what a peer asks over the line."""


class PeerClient:
    """Carries envelopes to peers, each over mutual TLS to the key that is pinned and no other."""

    def __init__(
        self,
        ways: Connector,
        own: TlsFiles,
        requests: Requests,
        events: PeerEvents,
    ) -> None:
        self._ways = ways
        self._events = events
        self._own = own
        self._requests = requests
        self._lines: dict[str, PeerConnection] = {}
        self._every: dict[str, set[PeerConnection]] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._round_trips: dict[str, float] = {}
        self._doubted_at: dict[str, float] = {}
        self._doubted: dict[str, PeerConnection] = {}
        self._reading = BackgroundTasks("reading from a peer failed")
        self._exchanges = Exchanges()
        self._http: aiohttp.ClientSession | None = None

    def round_trip(self, fingerprint: str) -> float:
        """Seconds that the last probe's answer took on its open connection; 0.0 before the first."""
        return self._round_trips.get(fingerprint, 0.0)

    async def probe(self, peer: Peer, hello: bytes, *, wait: float) -> Envelope:
        """Like ``send``.

        Where a line says nothing for a moment, another is opened beside it, by whichever address leads to the
        peer now: it may have moved, and a connection to where it was is believed for long. The first answer
        counts; a line on which nothing at all was heard meanwhile ends. A line that was doubted is asked, also
        where the peer opened another since: calls wait on it.
        """
        loop = asyncio.get_running_loop()
        connection = self._doubted.pop(peer.fingerprint, None)
        if connection is None or not connection.open:
            connection = await self._line(peer)
        since, before = loop.time(), connection.heard
        asked = asyncio.ensure_future(self._ask(peer, connection, hello, wait))
        tries: list[asyncio.Future[Envelope]] = [asked]
        try:
            await asyncio.wait(tries, timeout=self._patience(peer))
            if not asked.done():
                self._ways.doubt(peer)
                tries.append(asyncio.ensure_future(self._by_another_line(peer, hello, wait)))
            reply = await _first_of(tries)
        except PeerOfflineError:
            if connection.heard == before:
                self._ways.forget(peer)
                await connection.close()
            raise
        finally:
            for task in tries:
                task.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
        self._round_trips[peer.fingerprint] = loop.time() - since
        if connection.heard == before:
            await connection.close()
        return reply

    async def send(
        self,
        peer: Peer,
        envelope: bytes,
        *,
        wait: float,
        on_stream: OnStream | None = None,
    ) -> Envelope:
        """``EnvelopeTransport.send``, with the STREAMs of the reply to ``on_stream``."""
        with self._counted(peer):
            return await self._ask(peer, await self._line(peer), envelope, wait, on_stream)

    async def _ask(
        self,
        peer: Peer,
        connection: PeerConnection,
        envelope: bytes,
        wait: float,
        on_stream: OnStream | None = None,
    ) -> Envelope:
        loop = asyncio.get_running_loop()
        watch = loop.call_later(self._patience(peer), self._doubt, peer, connection, connection.heard)
        try:
            reply = await connection.ask(envelope, _id_of(envelope), wait=wait, on_stream=on_stream)
        finally:
            watch.cancel()
        reply = check_sender(peer, reply)
        code = reply.data.get("code")
        if reply.verb == ERROR and reply.data.get("reason") == NotPairedError.code:
            raise not_trusted(peer)
        self._events.on_sign_of_life(peer.fingerprint, self._ways.address(peer))
        if reply.verb == ERROR and code in RETRIABLE:
            raise RetriableError(str(reply.data.get("msg", ""))[:300], answered=code)
        return reply

    async def tell(self, peer: Peer, envelope: bytes) -> None:
        """One envelope that asks for no reply, if the peer can be had."""
        with self._counted(peer):
            await (await self._line(peer)).tell(envelope)

    async def send_batch(self, peer: Peer, envelopes: list[bytes]) -> list[Envelope | None]:
        """Several envelopes, and their replies in order; None for what was left without one.

        They go in one request to the peer's listener. Where it has none that is known or answers, they go on a
        line that is open, also one that the peer opened: it proved its key there.
        """
        if self._ways.address(peer) or not self.has_line(peer.fingerprint):
            try:
                return [*await self._post_batch(peer, envelopes)]
            except (PeerOfflineError, KeyChangedError, DeclinedError) as problem:
                if not self.has_line(peer.fingerprint) or not _has_no_listener(problem):
                    raise
                log.debug("%s has no listener: %s", peer.name, problem)
        return await self._bring(peer, envelopes)

    async def _bring(self, peer: Peer, envelopes: list[bytes]) -> list[Envelope | None]:
        with self._counted(peer):
            replies = await bring(peer, await self._line(peer), envelopes)
        self._events.on_sign_of_life(peer.fingerprint, "")
        return replies

    async def _post_batch(self, peer: Peer, envelopes: list[bytes]) -> list[Envelope]:
        body = b"[" + b",".join(envelopes) + b"]"
        status, raw = await self._request(peer, "POST", "/envelopes/batch", body)
        if status == 401:
            with self._counted(peer):
                raise unwelcome(peer, raw, "takes no calls of this machine")
        if status in RETRIABLE:
            raise RetriableError(f"{peer.name} is busy ({status}).", answered=status)
        if status != 200:
            raise DeclinedError(f"{peer.name} answered {status} to a batch.", answered=status)
        try:
            found = await asyncio.to_thread(wire.decode_batch, raw)
        except MalformedError as problem:
            raise no_envelope(peer, problem) from problem
        return [check_sender(peer, envelope_of(peer, one)) for one in found]

    async def fetch(self, peer: Peer, id: str, envelope: bytes = b"") -> Envelope | None:
        """Returns the state or reply of an envelope; None when the peer does not know it.

        A peer without a listener is sent the ``envelope`` again on its line: a known id is not performed twice.
        """
        if envelope and not self._ways.address(peer) and self.has_line(peer.fingerprint):
            return (await self._bring(peer, [envelope]))[0]
        status, raw = await self._request(peer, "GET", f"/envelopes/{id}", None)
        if status == 404:
            return None
        try:
            return check_sender(peer, wire.decode(raw))
        except MalformedError as problem:
            if status == 401:
                with self._counted(peer):
                    raise unwelcome(peer, raw, "tells this machine nothing of its calls") from problem
            if status in RETRIABLE:
                raise RetriableError(f"{peer.name} is busy ({status}).", answered=status) from problem
            raise no_envelope(peer, problem) from problem

    async def send_egg(self, peer: Peer, id: str, name: str, file: Path) -> dict[str, Any]:
        """``EggTransport.send_egg``: uploads an egg, whole or not at all."""
        context = client_context(peer.certificate, self._own)
        headers = {
            "Content-Type": "application/octet-stream",
            "X-Rappd-Id": id,
            "X-Rappd-Name": quote(name, safe=""),
        }

        async def post(address: str) -> tuple[int, bytes]:
            return await upload(self._session(), f"https://{address}/eggs", file, headers, context)

        async with self._exchanges.with_peer(peer):
            with self._counted(peer):
                status, raw = await self._ways.first(peer, post)
                self._took(peer, status)
                return arrived(peer, status, raw)

    async def egg(self, peer: Peer, id: str) -> dict[str, Any] | None:
        """``EggTransport.egg``: the peer's result for an egg that was sent before."""
        status, raw = await self._request(peer, "GET", f"/eggs/{id}", None)
        with self._counted(peer):
            return None if status in (404, 405) else arrived(peer, status, raw)

    async def open_response(self, peer: Peer, path: str) -> aiohttp.ClientResponse:
        """The response to a GET with its body unread, which the caller closes.

        A body of which nothing comes for ``SILENT_SECONDS`` raises ``TimeoutError`` while it is read.
        """
        context = client_context(peer.certificate, self._own)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)

        async def ask(address: str) -> aiohttp.ClientResponse:
            return await self._session().get(f"https://{address}{path}", ssl=context, timeout=limits)

        with self._counted(peer):
            try:
                response = await self._ways.first(peer, ask)
            except PeerOfflineError as problem:
                if not self.has_line(peer.fingerprint):
                    raise
                raise DeclinedError(
                    f"{peer.name} is here but has no listener, so nothing can be read there.", answered=404
                ) from problem
            self._took(peer, response.status)
            if response.status == 401:
                with closing(response):
                    raise unwelcome(
                        peer, await whole(response, LARGEST_REFUSAL), "lets this machine read nothing"
                    )
        return response

    def adopt(self, peer: Peer, connection: PeerConnection) -> None:
        """A line that the peer opened serves for calls to it, too: the latest, for one of them may have moved."""
        self._every.setdefault(peer.fingerprint, set()).add(connection)
        self._lines[peer.fingerprint] = connection

    def dropped(self, peer: Peer, connection: PeerConnection) -> None:
        """Removes a connection that ended; another to the same peer takes its place."""
        if connection.left:
            self._events.on_goodbye(peer.fingerprint)
        elif connection.lost:
            self._events.on_loss(peer.fingerprint)
        every = self._every.get(peer.fingerprint, set())
        every.discard(connection)
        if not every:
            self._every.pop(peer.fingerprint, None)
        if self._lines.get(peer.fingerprint) is connection:
            del self._lines[peer.fingerprint]
            if (other := next((one for one in every if one.open), None)) is not None:
                self._lines[peer.fingerprint] = other

    def address(self, peer: Peer) -> str:
        """Returns the address at which the peer was last reached since the start, or ""."""
        return self._ways.address(peer)

    def has_line(self, fingerprint: str) -> bool:
        """True while a connection to that peer is open."""
        connection = self._lines.get(fingerprint)
        return connection is not None and connection.open

    async def part_from(self, fingerprint: str) -> None:
        """Closes all connections to a peer at once, and breaks off what is under way or being opened."""
        self._exchanges.end(fingerprint)
        self._lines.pop(fingerprint, None)
        self._round_trips.pop(fingerprint, None)
        self._doubted_at.pop(fingerprint, None)
        self._doubted.pop(fingerprint, None)
        await _end(self._every.pop(fingerprint, set()))

    async def hang_up(self) -> None:
        """Says goodbye on every line; new ones may come."""
        self._lines.clear()
        await _end({connection for every in self._every.values() for connection in every}, GOING_AWAY)

    async def close(self) -> None:
        """Ends everything."""
        await self.hang_up()
        await self._reading.close()
        if self._http is not None:
            await self._http.close()

    async def _line(self, peer: Peer) -> PeerConnection:
        connection = self._lines.get(peer.fingerprint)
        if connection is not None and connection.open:
            return connection
        async with self._opening.setdefault(peer.fingerprint, asyncio.Lock()):
            connection = self._lines.get(peer.fingerprint)
            if connection is None or not connection.open:
                async with self._exchanges.with_peer(peer) as exchange:
                    connection = await self._open(peer, exchange)
                    self.adopt(peer, connection)
            return connection

    async def _open(self, peer: Peer, exchange: Exchange) -> PeerConnection:
        context = client_context(peer.certificate, self._own)

        async def connect(address: str) -> aiohttp.ClientWebSocketResponse[Literal[False]]:
            async with asyncio.timeout(CONNECT_SECONDS):
                try:
                    return await self._session().ws_connect(
                        f"https://{address}/line",
                        ssl=context,
                        protocols=PROTOCOLS,
                        heartbeat=HEARTBEAT,
                        max_msg_size=MAX_FRAME + 1024,
                        decode_text=False,
                    )
                except aiohttp.WSServerHandshakeError as error:
                    if error.status == 401:  # by a connection that is older than the end of the trust
                        raise await self._why_no_line(peer, address, context) from error
                    raise

        socket = await self._ways.first(peer, connect)
        if exchange.ended:
            await socket.close()
            exchange.check(peer)
        connection = PeerConnection(socket, self._requests(peer), name=peer.name, protocol=socket.protocol)
        self._reading.spawn(self._read(peer, connection))
        return connection

    async def _why_no_line(self, peer: Peer, address: str, context: ssl.SSLContext) -> ReportableError:
        """The error for a ``/line`` that answers 401: the peer ended the trust, or its own words."""
        limits = aiohttp.ClientTimeout(total=CONNECT_SECONDS)
        what = "lets this machine open no line"
        try:
            async with self._session().get(
                f"https://{address}/line", ssl=context, timeout=limits
            ) as response:
                return unwelcome(peer, await whole(response, LARGEST_REFUSAL), what)
        except (OSError, aiohttp.ClientError, TimeoutError):
            return unwelcome(peer, b"", what)

    async def _by_another_line(self, peer: Peer, hello: bytes, wait: float) -> Envelope:
        """The peer's answer by a new connection, which takes the place of the one that was there."""
        async with self._exchanges.with_peer(peer) as exchange:
            async with self._opening.setdefault(peer.fingerprint, asyncio.Lock()):
                connection = await self._open(peer, exchange)
            try:
                reply = await self._ask(peer, connection, hello, wait)
                exchange.check(peer)
            except BaseException:
                await connection.close()
                raise
            self.adopt(peer, connection)
            return reply

    def _patience(self, peer: Peer) -> float:
        """Seconds without a word after which a line is doubted: more where words take longer."""
        known = self._round_trips.get(peer.fingerprint, 0.0)
        return min(LONGEST_PATIENCE, max(SHORTEST_PATIENCE, 4 * known))

    def _doubt(self, peer: Peer, connection: PeerConnection, before: int) -> None:
        if not connection.open or connection.heard != before:
            return
        loop = asyncio.get_running_loop()
        wait = self._doubted_at.get(peer.fingerprint, float("-inf")) + DOUBTS_APART - loop.time()
        if wait > 0:
            loop.call_later(wait, self._doubt, peer, connection, before)
            return
        self._doubted_at[peer.fingerprint] = loop.time()
        self._doubted[peer.fingerprint] = connection
        self._events.on_doubt(peer.fingerprint)

    async def _read(self, peer: Peer, connection: PeerConnection) -> None:
        try:
            await connection.run()
        finally:
            self.dropped(peer, connection)

    async def _request(
        self,
        peer: Peer,
        method: str,
        path: str,
        body: bytes | None,
    ) -> tuple[int, bytes]:
        context = client_context(peer.certificate, self._own)
        sent = {"Content-Type": "application/json; charset=utf-8"}

        async def ask(address: str) -> tuple[int, bytes]:
            limits = aiohttp.ClientTimeout(total=BATCH_SECONDS, sock_connect=CONNECT_SECONDS)
            async with self._session().request(
                method, f"https://{address}{path}", data=body, headers=sent, ssl=context, timeout=limits
            ) as response:
                return response.status, await whole(response, LARGEST_ANSWER)

        async with self._exchanges.with_peer(peer):
            with self._counted(peer):
                found = await self._ways.first(peer, ask)
                self._took(peer, found[0])
        return found

    def _took(self, peer: Peer, status: int) -> None:
        if status != 401:
            self._events.on_sign_of_life(peer.fingerprint, self._ways.address(peer))

    @contextmanager
    def _counted(self, peer: Peer) -> Iterator[None]:
        """Reports a call that fails because of the peer, not because of what is asked."""
        try:
            yield
        except DeclinedError:
            raise
        except (KeyChangedError, NotPairedError, PeerOfflineError, PeerRefusedError) as problem:
            if not (_has_no_listener(problem) and self.has_line(peer.fingerprint)):
                self._events.on_failed_call(peer.fingerprint, problem)
            raise

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = session(aiohttp.TCPConnector(limit=0, limit_per_host=4, keepalive_timeout=30))
        return self._http


def _has_no_listener(problem: ReportableError) -> bool:
    """True where nobody of that key takes batches at the peer's addresses; its line may be open all the same."""
    if isinstance(problem, PeerOfflineError):
        return not problem.maybe_sent
    return isinstance(problem, KeyChangedError) or getattr(problem, "answered", 0) in (404, 405, 426, 501)


async def _first_of(tries: list[asyncio.Future[Envelope]]) -> Envelope:
    """The first reply. When there is none, the error that tells more than that the peer is away."""
    active_requests = set(tries)
    while active_requests:
        done, active_requests = await asyncio.wait(active_requests, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.exception() is None:
                return task.result()
    errors = [task.exception() for task in tries]
    raise next(
        (one for one in errors if one and not isinstance(one, PeerOfflineError)),
        errors[0] or PeerOfflineError(""),
    )


async def _end(lines: set[PeerConnection], code: int = aiohttp.WSCloseCode.OK) -> None:
    await asyncio.gather(*(connection.close(code) for connection in lines))


def _id_of(envelope: bytes) -> str:
    """Envelopes are written with their id first: ``{"id":"…36…"``."""
    return envelope[7:43].decode()
