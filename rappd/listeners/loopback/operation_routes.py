"""The routes of the table of operations: their arguments from path, query and body, their answers as JSON."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import RappdError, disk_problem
from rappd.features.operation import (
    ANYBODY,
    Download,
    Operation,
    OperationTable,
    Reader,
    ShownTurn,
    Stream,
    Upload,
)
from rappd.listeners.bodies import InvalidBodyError, file_answer, json_object, ok
from rappd.listeners.event_stream import is_wanted, opened
from rappd.listeners.loopback.security import caller, for_twin, operator_only, started
from rappd.listeners.loopback.signed_requests import streams_body

_CHUNK = 1 << 20

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def routes_of(table: OperationTable, *, below: str = "") -> list[web.RouteDef]:
    """A route for each operation whose path begins with ``below``, behind its right."""
    return [
        web.RouteDef(one.method, one.path, _route(one, perform), {})
        for one, perform in table
        if one.path.startswith(below)
    ]


def routes_of_twins(table: OperationTable) -> list[web.RouteDef]:
    """A route below ``/twins/{twin}`` for each operation that is of twins, too."""
    return [
        web.RouteDef(one.method, f"/twins/{{twin}}{one.path}", _of_twin(one, perform), {})
        for one, perform in table
        if one.of_tenant
    ]


def _route(one: Operation, perform: Callable[..., Awaitable[Any]]) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        sent = await json_object(request) if one.has_body else {}
        given = one.read({**request.query, **sent, **request.match_info}, as_text=not one.has_body)
        for name, kind in one.of_request.items():
            given[name] = await _whole(request) if kind is bytes else _OF_REQUEST[kind](request)
        whose = (await started(request),) if one.of_tenant else ()
        found = await perform(*whose, **given)
        if isinstance(found, Turn):
            return await _following(request, found)
        if isinstance(found, ShownTurn):
            return await _following(request, found.turn, found.shown)
        if isinstance(found, Stream):
            return await _streaming(request, found)
        return file_answer(*found) if isinstance(found, Download) else ok(found)

    answer.__doc__ = one.about
    handler = streams_body(answer) if one.takes_stream else answer
    handler = handler if one.right == ANYBODY else operator_only(handler)
    handler.operation = one  # type: ignore[attr-defined]  # read by /openapi.json
    return handler


async def _following(
    request: web.Request, turn: Turn, shown: Callable[[bytes], bytes | dict[str, Any]] = bytes
) -> web.StreamResponse:
    """Answers with what a turn comes to as JSON, or, for callers that accept events, with its events, as ``shown``.

    The last is ``{"type": "done", …}`` with the answer or ``{"type": "error", …}`` with the refusal. The turn goes on
    when the caller disconnects.
    """
    if not is_wanted(request):
        return ok((await turn.reply()).data)
    async with opened(request) as told:
        async for _, event in turn.events():
            await told.send(shown(event))
        await told.send(await _last_event(turn))
    return told.response


async def _streaming(request: web.Request, stream: Stream) -> web.StreamResponse:
    async with aclosing(stream.events) as events, opened(request) as told:
        if stream.greets:
            await told.comment("here")
        async for number, event in events:
            await told.send(event, number)
    return told.response


async def _last_event(turn: Turn) -> dict[str, Any]:
    try:
        return {"type": "done", **(await turn.reply()).data}
    except ReportableError as found:
        told: ReportableError = found
    except Exception as error:
        log.exception("what was asked for failed")
        told = disk_problem(error) or RappdError(
            "Something went wrong inside; the log has it.", do="rappd logs"
        )
    return {"type": "error", **told.as_json(), "status": told.status}


def _reader(request: web.Request) -> Reader:
    return Reader(request.headers.get("Last-Event-ID", ""), lambda: request.transport is not None)


def _upload(request: web.Request) -> Upload:
    return Upload(_pieces(request), request.content_length or 0)


async def _pieces(request: web.Request) -> AsyncIterator[bytes]:
    is_empty = True
    try:
        async for piece in request.content.iter_chunked(_CHUNK):
            is_empty = False
            yield piece
    except ConnectionError as error:
        raise InvalidBodyError("The upload broke off; nothing was kept.", do="Send it again.") from error
    if is_empty:
        raise _no_file()


async def _whole(request: web.Request) -> bytes:
    if not (content := await request.read()):
        raise _no_file()
    return content


def _no_file() -> InvalidBodyError:
    return InvalidBodyError("No file was sent", do="The body is the file.")


_OF_REQUEST: dict[type, Callable[[web.Request], Any]] = {Caller: caller, Upload: _upload, Reader: _reader}


def _of_twin(one: Operation, perform: Callable[..., Awaitable[Any]]) -> Handler:
    handler = for_twin(_route(one, perform))
    handler.operation = one  # type: ignore[attr-defined]
    return handler
