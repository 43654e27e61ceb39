"""Operations that take a while: how far they are, as server-sent events, and then what came of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.dispatch.turns import Turn
from rappd.errors import RappdError, disk_problem
from rappd.http.bodies import ok
from rappd.http.event_stream import is_wanted, opened

log = logging.getLogger(__name__)


async def following(
    request: web.Request, turn: Turn, *, shown: Callable[[bytes], bytes | dict[str, Any]] = bytes
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
