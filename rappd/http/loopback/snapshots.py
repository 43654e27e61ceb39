"""``/neighborhood``: this machine's part of a snapshot, and scheduled snapshots; for the operator."""

from __future__ import annotations

from aiohttp import web

from rappd.errors import UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.schedule.snapshot_timer import KEEP

routes = web.RouteTableDef()


@routes.post("/neighborhood/hatch")
@operator_only
async def hatch(request: web.Request) -> web.Response:
    """Hatches this machine's part of the snapshot at `path`; twins that are running rest meanwhile.

    `options` as in its plan. `approved`, which must be there, is the digest of that part of the plan; another
    one by now is refused with `plan_changed`.
    """
    body = await json_object(request)
    options = body.get("options", {})
    if not isinstance(options, dict):
        raise UsageProblemError("`options` must be an object.", do='Send {"options": {}}.')
    path = whole_path(text_field(body, "path"))
    daemon = request.app[DAEMON]
    return ok(await daemon.snapshots.hatch_local(path, options, approved=text_field(body, "approved")))


@routes.get("/neighborhood/schedule")
@operator_only
async def schedule(request: web.Request) -> web.Response:
    """The schedule of snapshots: its rule, next moment and last outcome; null when there is none."""
    return ok(request.app[DAEMON].snapshot_schedule.show())


@routes.put("/neighborhood/schedule")
@operator_only
async def set_schedule(request: web.Request) -> web.Response:
    """Takes snapshots by `rule` in `zone`, and keeps the last `keep` whole ones of them."""
    body = await json_object(request)
    keep, zone = body.get("keep", KEEP), body.get("zone", "")
    if not isinstance(keep, int) or isinstance(keep, bool) or not isinstance(zone, str):
        raise UsageProblemError("`keep` must be a whole number and `zone` a text.", do='Send {"keep": 7}.')
    rule = text_field(body, "rule")
    return ok(await request.app[DAEMON].snapshot_schedule.set(rule, keep=keep, zone=zone))


@routes.delete("/neighborhood/schedule")
@operator_only
async def switch_off(request: web.Request) -> web.Response:
    """Takes no more snapshots; those that are there stay."""
    return ok(await request.app[DAEMON].snapshot_schedule.switch_off())
