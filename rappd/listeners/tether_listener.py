"""The listener for phones: the page at ``/t`` with its files, and ``/tether/v2/*``; nothing else."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from envelopes.codecs.privileged import refuse_privileged, refuse_privileged_text
from envelopes.errors import ReportableError
from neighborhoods.discovery.address_text import network_of
from rappd.daemon.rate_limit import AddressLimit, RateLimit
from rappd.errors import RefusedError
from rappd.features.eggs.phone_operations import EggsForPhones
from rappd.features.operation import Operation, OperationTable
from rappd.listeners.bodies import (
    InvalidBodyError,
    UnsupportedMediaTypeError,
    ok,
    plain,
    refused,
)
from rappd.listeners.connection_admission import AdmittedRunner, ConnectionAdmission, mark_authenticated
from rappd.listeners.listening_sockets import listen
from rappd.listeners.phone_page import page_files
from rappd.listeners.remote_operations import answer
from rappd.tether.connection_offer import MOST_BYTES
from rappd.tether.devices import Device
from rappd.tether.errors import OfferTooLongError, TetherUnavailableError
from rappd.tether.framing import FRAME_BYTES
from rappd.tether.phones import Phones

log = logging.getLogger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' ws: wss:; "
    "manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PHONES = web.AppKey("phones", Phones)
OFFERS = web.AppKey("offers", AddressLimit)
DEVICE_OFFERS = web.AppKey("device_offers", RateLimit)
_STRANGERS, _OF_DEVICE, _MINUTE = 10, 30, 60.0
"""Offers in a minute: of an address for those that are no registered device, and of each device.

A family's phones share an address behind a hotspot. A page whose network fails comes back every 1 to 15 s.
"""
_HELLO_SECONDS = 10.0
_STRANGER_SECONDS = 120.0
"""The page is read, a code is typed, and the offer goes over the same connection."""
_LAST_SECONDS = 2.0
_IDLE_SECONDS = 60.0
"""A connection that proved a token is counted among strangers no more, and the framework keeps it for an hour."""

routes = web.RouteTableDef()
FEATURES: tuple[type, ...] = (EggsForPhones,)


class TetherListener:
    """Opened with the first window, closed when no device is left."""

    def __init__(
        self,
        address: str,
        phones: Phones,
        addresses: Callable[[], list[str]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``addresses`` returns ``host:port`` of this machine, as phones reach it."""
        self.port = 0
        self.bound: tuple[str, ...] = ()
        self._address, self._phones, self._addresses, self._tls = address, phones, addresses, tls
        self._runner: web.AppRunner | None = None

    async def open(self, port: int) -> None:
        """Listens at ``port`` or a free one. Raises ``TetherUnavailableError``. Idempotent."""
        if self._runner is not None:
            return
        listeners = await asyncio.to_thread(listen, self._address, port)
        if not listeners:
            raise TetherUnavailableError(
                f"Phones cannot be listened for at {self._address}.",
                do="rappd config set tether.address any",
            )
        self.port = listeners[0].getsockname()[1]
        self.bound = tuple(one.getsockname()[0] for one in listeners)
        entrance = ConnectionAdmission(
            self._tls, seconds=_STRANGER_SECONDS, admits=self._phones.networks.admits
        )
        runner = AdmittedRunner(
            _build(self._phones, self), entrance, shutdown_timeout=1.0, idle_seconds=_IDLE_SECONDS
        )
        await runner.setup()
        runner.open(*listeners)
        self._runner = runner
        asyncio.get_running_loop().run_in_executor(None, page_files)  # the first phone need not wait for it
        log.info("the listener for phones is open on port %d", self.port)

    async def close(self) -> None:
        """Listens no more. Idempotent."""
        runner, self._runner = self._runner, None
        self.port, self.bound = 0, ()
        if runner is not None:
            await runner.cleanup()
            log.info("the listener for phones is closed")

    def hosts(self) -> frozenset[str]:
        """``Host`` headers that it answers to: this machine's own addresses."""
        return frozenset(self._addresses())


LISTENER = web.AppKey("listener", TetherListener)


@routes.get("/t")
async def index(request: web.Request) -> web.StreamResponse:
    """The phone's page."""
    request.app[PHONES].visited()
    await asyncio.to_thread(page_files)
    return _file(request, "index.html")


@routes.get("/t/{name:.+}")
async def part(request: web.Request) -> web.StreamResponse:
    """A file of the page; below `web/` those of the computer's page."""
    await asyncio.to_thread(page_files)
    return _file(request, request.match_info["name"])


@routes.post("/tether/v2/offer")
async def offer(request: web.Request) -> web.StreamResponse:
    """A browser's offer: `{window | device, transport, commit}`, answered by `{transport, nonce, host_key, subject, machine}`.

    `transport` is `{ufrag, pwd, setup, fingerprint, candidates}`; no session description travels.
    """
    body = await _json(request)
    _count(request, body)
    return ok(await request.app[PHONES].offer(body, request.remote or ""))


@routes.get("/tether/v2/socket")
async def socket(request: web.Request) -> web.StreamResponse:
    """The same protocol over a WebSocket, for networks that block UDP; the first frame is the offer without `transport`."""
    websocket = web.WebSocketResponse(max_msg_size=FRAME_BYTES, compress=False)
    await websocket.prepare(request)
    channel = _SocketChannel(websocket, request)
    connection = None
    try:
        async with asyncio.timeout(_HELLO_SECONDS):
            first = await websocket.receive_str()
        try:
            asked = _object(first)
            _count(request, asked)
            connection, opened = request.app[PHONES].socket(asked, channel, request.remote or "")
        except ReportableError as found:
            channel.send(_text({"type": "stopped", "reason": found.code, **found.as_json()}))
            return websocket
        mark_authenticated(request)  # few at a time, and gone without a proof in ``HANDSHAKE_SECONDS``
        channel.send(_text(opened))
        async for message in websocket:
            if message.type is not WSMsgType.TEXT:
                break
            connection.on_text(message.data)
    except (TimeoutError, TypeError, ReportableError):
        pass  # it said nothing that is understood; the connection ends
    finally:
        if connection is not None:
            connection.on_closed()
        await channel.finish()
    return websocket


def _count(request: web.Request, offer: dict[str, Any]) -> None:
    """Counts an offer. Raises ``RateLimitedError``.

    A device is counted at each network apart: a stranger who names it from elsewhere does not use up its share.
    """
    address = request.remote or ""
    if device := request.app[PHONES].registered(offer.get("device")):
        request.app[DEVICE_OFFERS].take(f"{device} {network_of(address)}")
    else:
        request.app[OFFERS].take(address)


def _token(request: web.Request) -> str:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if kind == "Bearer" else ""


def _operation_route(
    one: Operation, perform: Callable[..., Awaitable[Any]]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A route for phones with a token, which stands for the operation's right and ends with it."""

    async def handle(request: web.Request) -> web.StreamResponse:
        phones = request.app[PHONES]
        device = phones.token_bearer(_token(request), one.right)
        mark_authenticated(request)
        with phones.egg_transfer(device) as transfer:
            return await answer(request, one, perform, {Device: device}, transfer, HEADERS)

    return handle


class _SocketChannel:
    """Frames go out in order by one task; a phone that does not read is cut off."""

    def __init__(self, websocket: web.WebSocketResponse, request: web.Request) -> None:
        self.secure = request.secure
        self._websocket, self._transport = websocket, request.transport
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(256)
        self._sending = asyncio.create_task(self._send_all())
        self._ending: asyncio.TimerHandle | None = None

    def send(self, frame: str) -> None:
        try:
            self._queue.put_nowait(frame)
        except asyncio.QueueFull:
            self._cut()

    def close(self) -> None:
        """Lets go out what waits, for ``_LAST_SECONDS``: a phone that does not read would hold it open."""
        if self._queue.full():
            self._cut()
        elif self._ending is None:
            self._queue.put_nowait(None)
            self._ending = asyncio.get_running_loop().call_later(_LAST_SECONDS, self._cut)

    async def finish(self) -> None:
        self.close()
        await asyncio.gather(self._sending, return_exceptions=True)
        if self._ending is not None:
            self._ending.cancel()

    def _cut(self) -> None:
        self._sending.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _send_all(self) -> None:
        try:
            while (text := await self._queue.get()) is not None:
                await self._websocket.send_str(text)
        except ConnectionError:
            return
        finally:
            await self._websocket.close()


def _text(frame: dict[str, Any]) -> str:
    return json.dumps(frame, ensure_ascii=False)


def _build(phones: Phones, listener: TetherListener) -> web.Application:
    app = web.Application(middlewares=[_guard], client_max_size=MOST_BYTES)
    app[PHONES], app[LISTENER] = phones, listener
    app[OFFERS], app[DEVICE_OFFERS] = AddressLimit(_STRANGERS, _MINUTE), RateLimit(_OF_DEVICE, _MINUTE)
    app.add_routes(routes)
    table = OperationTable(EggsForPhones(phones.eggs, phones.current_session))
    app.add_routes([web.RouteDef(one.method, one.path, _operation_route(one, act), {}) for one, act in table])
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Only this machine's own addresses as Host, only its own page as Origin; every error in one shape."""
    try:
        host = request.headers.get("Host", "")
        if host not in request.app[LISTENER].hosts():
            raise RefusedError("This listener answers to its own address only.", do="Scan the QR code again.")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{request.scheme}://{host}":
            raise RefusedError(
                "Pages of other sites may not use this listener.", do="Scan the QR code again."
            )
        return await handler(request)
    except ReportableError as found:
        return await refused(request, found, listener="for phones")
    except web.HTTPException as found:
        if found.status < 400:
            return found
        return plain(
            found.status, "There is nothing here." if found.status == 404 else found.reason, "refused"
        )
    except (HttpProcessingError, web.RequestPayloadError):
        return plain(400, "The request's body cannot be read.", "bad_body")
    except Exception:
        log.exception("%s %s failed", request.method, request.path[:200])
        return plain(500, "Something went wrong inside; the log has it.", "failed")


async def _json(request: web.Request) -> dict[str, Any]:
    if request.content_type != "application/json":
        raise UnsupportedMediaTypeError("The body is not application/json.", do="Send JSON.")
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise OfferTooLongError from None
    return _object(body.decode(errors="replace"))


def _object(text: str) -> dict[str, Any]:
    """The JSON object that the text is, each name in it once: of two equal ones another reader takes the other."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        refuse_privileged_text(text.encode(errors="replace"), listener="for phones")
        raise InvalidBodyError("The body is no JSON object.", do="Send {…}.")
    refuse_privileged(found, listener="for phones")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _file(request: web.Request, name: str) -> web.Response:
    found = page_files().get(name)
    if found is None:
        raise web.HTTPNotFound
    headers = {**HEADERS, "Content-Type": found.kind, "Vary": "Accept-Encoding"}
    if found.compressed and "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=found.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=found.content, headers=headers)
