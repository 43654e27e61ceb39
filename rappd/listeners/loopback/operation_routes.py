"""The routes of the table of operations: their arguments from path, query and body, their answers as JSON."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import RappdError, disk_problem
from rappd.features.operation import (
    ANYBODY,
    Download,
    FormFile,
    OperationTable,
    Reader,
    ShownTurn,
    Stream,
    Upload,
)
from rappd.features.operation_paths import OPERATION_PATHS
from rappd.listeners.bodies import InvalidBodyError, file_answer, json_object, ok, upload
from rappd.listeners.event_stream import is_wanted, opened
from rappd.listeners.later_routes import Handler, later
from rappd.listeners.loopback.request_guard import caller, for_twin, operator_only, started

_CHUNK = 1 << 20

log = logging.getLogger(__name__)


def routes_of(table: Callable[[], OperationTable], *, below: str = "") -> list[web.RouteDef]:
    """A route for each operation whose path begins with ``below``, behind its right.

    The ``table`` is made by the first request.
    """
    found = ((name, method, path.removeprefix("@")) for name, (method, path) in OPERATION_PATHS.items())
    return [
        web.RouteDef(method, path, later(partial(_route, table, name)), {})
        for name, method, path in found
        if path.startswith(below)
    ]


def routes_of_twins(table: Callable[[], OperationTable]) -> list[web.RouteDef]:
    """A route below ``/twins/{twin}`` for each operation that is of twins, too."""
    return [
        web.RouteDef(method, f"/twins/{{twin}}{path[1:]}", later(partial(_of_twin, table, name)), {})
        for name, (method, path) in OPERATION_PATHS.items()
        if path.startswith("@")
    ]


def _route(table: Callable[[], OperationTable], name: str) -> Handler:
    one, perform = table()[name]

    async def answer(request: web.Request) -> web.StreamResponse:
        sent = await json_object(request) if one.has_body else {}
        in_form = FormFile(*await upload(request, fields=sent)) if one.takes_form else None
        given = one.read({**request.query, **sent, **request.match_info}, as_text=not one.has_body)
        for name, kind in one.of_request.items():
            if kind is FormFile:
                given[name] = in_form
            else:
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

    answer.__doc__ = one.function.__doc__
    handler = answer if one.right == ANYBODY else operator_only(answer)
    handler.operation = one  # type: ignore[attr-defined]  # read by /openapi.json, and where signatures are checked
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
    async with opened(request) as stream_out:
        async for _, event in turn.events():
            await stream_out.send(shown(event))
        await stream_out.send(await _last_event(turn))
    return stream_out.response


async def _streaming(request: web.Request, stream: Stream) -> web.StreamResponse:
    async with aclosing(stream.events) as events, opened(request) as stream_out:
        if stream.greets:
            await stream_out.comment("here")
        async for number, event in events:
            await stream_out.send(event, number)
    return stream_out.response


async def _last_event(turn: Turn) -> dict[str, Any]:
    try:
        return {"type": "done", **(await turn.reply()).data}
    except ReportableError as found:
        problem: ReportableError = found
    except Exception as error:
        log.exception("what was asked for failed")
        problem = disk_problem(error) or RappdError(
            "Something went wrong inside; the log has it.", do="rappd logs"
        )
    return {"type": "error", **problem.as_json(), "status": problem.status}


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


def _of_twin(table: Callable[[], OperationTable], name: str) -> Handler:
    handler = for_twin(_route(table, name))
    handler.operation, _ = table()[name]  # type: ignore[attr-defined]
    return handler
