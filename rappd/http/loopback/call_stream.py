"""``/call/stream``: a call of another machine, with what it says on the way."""

from __future__ import annotations

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.features.calls.operations import CallOperations
from rappd.features.operation import Operation
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import json_object
from rappd.http.event_stream import opened
from rappd.http.loopback.security import operator_only

routes = web.RouteTableDef()

_CALL: Operation = CallOperations.call.operation  # type: ignore[attr-defined]  # the same arguments


@routes.post("/call/stream")
@operator_only
async def call_stream(request: web.Request) -> web.StreamResponse:
    """The same as `/call` as server-sent events, as `/chat/stream` has them; the last is `done`, with the `call`, or `error`.

    A caller that disconnects does not stop the call.
    """
    given = _CALL.read(await json_object(request), as_text=False)
    under_way = await request.app[DAEMON].calls.submit(given.pop("peer"), **given, stream=True)
    async with opened(request) as events:
        async for number, event in under_way.turn.events():
            await events.send(event, number)
        try:
            last = {"type": "done", **await under_way.row()}
        except ReportableError as found:
            last = {"type": "error", **found.as_json(), "status": found.status}
        await events.send(last, under_way.turn.number + 1)
    return events.response
