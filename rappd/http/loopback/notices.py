"""The list of what waits for the owner: all of it in one list; news are dismissed."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.daemon.waiting import waiting
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok
from rappd.store.notice_table import Notice

routes = web.RouteTableDef()


@routes.get("/waiting")
@operator_only
async def all_waiting(request: web.Request) -> web.Response:
    """Lists all that waits for the owner: why this machine is not ready, quarantined files, pairings, phones, received eggs, news."""
    return ok({"waiting": await waiting(request.app[DAEMON])})


@routes.get("/notices")
@operator_only
async def notices(request: web.Request) -> web.Response:
    """Lists what happened while nobody looked, the latest first."""
    return ok({"notices": [notice_view(one) for one in request.app[DAEMON].notices.waiting()]})


@routes.post("/notices/dismiss")
@operator_only
async def dismiss(request: web.Request) -> web.Response:
    """Removes the notice `key`, or all of them with `all`."""
    body, told = await json_object(request), request.app[DAEMON].notices
    if body.get("all") is True:
        return ok({"dismissed": await told.dismiss_all()})
    await told.dismiss(text_field(body, "key"))
    return ok({"dismissed": 1})


def notice_view(notice: Notice) -> dict[str, Any]:
    """A notice as screens get it."""
    return {"key": notice.key, "kind": notice.kind, "at": notice.at, "what": notice.what, "do": notice.do}
