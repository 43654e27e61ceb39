"""Anchors of the event log, for its owner: how it stands to them, and what other machines keep."""

from __future__ import annotations

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok

routes = web.RouteTableDef()


@routes.get("/anchors")
@operator_only
async def anchors(request: web.Request) -> web.Response:
    """Compares the event log with its newest anchor, and lists kept anchors of other machines."""
    daemon = request.app[DAEMON]
    report = {**daemon.anchoring.report.as_json(), "problems": daemon.anchoring.problems}
    return ok({"anchor": report, "kept": daemon.federation.witness.kept()})


@routes.post("/anchors/ask")
@operator_only
async def ask(request: web.Request) -> web.Response:
    """Asks each machine of the same owner which anchors of this one it keeps."""
    machines = request.app[DAEMON].federation
    await machines.available()
    return ok({"witnesses": await machines.ask_witnesses()})


@routes.post("/anchors/forget")
@operator_only
async def forget(request: web.Request) -> web.Response:
    """Drops the anchors that are kept of `peer`, evidence included."""
    machines = request.app[DAEMON].federation
    await machines.available()
    node = machines.witness.find(text_field(await json_object(request), "peer"))
    return ok({"forgotten": await machines.witness.forget(node)})
