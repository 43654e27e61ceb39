"""Closes connections whose request does not arrive in time: half a head, half a body, or nothing at all.

A request's head has ``ARRIVAL_SECONDS`` from its first byte (the first one from the connection's start). Its
body has as long as it makes progress: ``PROGRESS_BYTES`` in each ``ARRIVAL_SECONDS``. What is whole, is being
answered or streamed, and connections that are idle between requests are left alone.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger(__name__)

ARRIVAL_SECONDS = 10.0
PROGRESS_BYTES = 1024
_SWEEP_SECONDS = 1.0
_ANSWER = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)
_TEXT = b'{"error":"The request did not arrive in time.","do":"Send it at once.","code":"too_slow"}'

_UNREADABLE = b'{"error":"This is no request that can be read.","do":"Send HTTP/1.1, and the body as it is.","code":"bad_body"}'


class Arrival:
    """The time that a request on its way in has left."""

    __slots__ = ("_received", "_since")

    def __init__(self, now: float, received: int = 0) -> None:
        self._since = now
        self._received = received

    def is_late(self, now: float, received: int, *, body: bool) -> bool:
        """True when time is up; ``received`` counts the bytes so far. A ``body`` that makes progress has more."""
        if now - self._since < ARRIVAL_SECONDS:
            return False
        if body and received - self._received >= PROGRESS_BYTES:
            self._since, self._received = now, received
            return False
        return True


def _close_late(transport: asyncio.Transport, *, answer: bool) -> None:
    """Ends a connection whose request is late; with an ``answer`` where none has begun."""
    if answer:
        transport.write(_ANSWER % (len(_TEXT), _TEXT))
    if transport.get_write_buffer_size():
        transport.abort()
    else:
        transport.close()


class TimedRequestHandler(RequestHandler):
    """One connection of the web framework, under the time limits of this module."""

    __slots__ = ("_body", "_head", "_received", "is_owners")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_owners: bool | None = None
        """True once the process that connected to a socket of the owner's was found to be no worker; False over TCP, None until known."""
        self._received = 0
        self._head: Arrival | None = None  # of a head that is on its way
        self._body: Arrival | None = None  # of the latest request whose head is whole

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._head = Arrival(self._loop.time())
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        self._received += len(data)
        if self._request_count != before:
            self._head, self._body = None, Arrival(self._loop.time(), self._received)
        elif self._head is None and self._waiter is not None and data:
            self._head = Arrival(self._loop.time())

    def log_exception(self, *args: Any, **options: Any) -> None:
        """A body that cannot be read is its sender's fault, and was refused: the log is for this machine's."""
        if not isinstance(options.get("exc_info"), web.RequestPayloadError | HttpProcessingError):
            super().log_exception(*args, **options)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuses in JSON, and without a line in the log, a request that is no HTTP or is packed in a way that cannot be read."""
        if status >= 500 or request.writer.output_size:
            return super().handle_error(request, status, exc, message)
        refused = web.Response(status=status, body=_UNREADABLE, content_type="application/json")
        refused.force_close()
        return refused

    def close_if_late(self, now: float) -> None:
        """Ends the connection when the request that it brings is late."""
        transport, request = self.transport, self._current_request
        if transport is None or transport.is_closing():
            return
        if request is None:
            if self._head is not None and self._head.is_late(now, self._received, body=False):
                _close_late(transport, answer=self._received > 0)
        elif not request.content.is_eof() and self._body is not None:
            if not transport.is_reading():  # it waits for its reader
                self._body = Arrival(now, self._received)
            elif self._body.is_late(now, self._received, body=True):
                _close_late(transport, answer=not request.writer.output_size)


class TimedServer(web.Server):
    """Creates a ``TimedRequestHandler`` per connection and closes late ones, once a second."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sweep = asyncio.get_running_loop().create_task(self._close_late_connections())

    def __call__(self) -> TimedRequestHandler:
        return TimedRequestHandler(self, loop=self._loop, **self._kwargs)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the framework's signature
        self._sweep.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweep
        await super().shutdown(timeout)

    async def _close_late_connections(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = loop.time()
            for connection in cast(list[TimedRequestHandler], self.connections):
                try:
                    connection.close_if_late(now)
                except Exception:
                    log.exception("closing a late connection failed")


class TimedRunner(web.AppRunner):
    """Runs an application whose connections are under the time limits of this module."""

    async def _make_server(self) -> TimedServer:
        made = await super()._make_server()
        return TimedServer(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            **made._kwargs,
        )
