"""``/neighborhood``: the machines together, snapshots of them, and bringing one back, for the operator."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.errors import UsageProblemError
from rappd.features.snapshots.work import SnapshotWork
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import json_object, text_field
from rappd.http.loopback.long_operations import following
from rappd.http.loopback.security import operator_only

routes = web.RouteTableDef()


@routes.post("/neighborhood/snapshot")
@operator_only
async def snapshot(request: web.Request) -> web.StreamResponse:
    """Takes a snapshot of all machines, called `name`, and drills it. `options` as in its manifest.

    With `Accept: text/event-stream` it tells how far each machine is, `{"type": "work", "work": …}`, before it
    answers. `work` is an id of your own, for `/neighborhood/cancel`. It goes on when the caller disconnects.
    """
    body = await json_object(request)
    name, options, snapshots = _text(body, "name"), _options(body), request.app[DAEMON].snapshots

    return await _following(
        request, await snapshots.begin_snapshot(options, name=name, id=_text(body, "work"))
    )


@routes.post("/neighborhood/drill")
@operator_only
async def drill(request: web.Request) -> web.StreamResponse:
    """Hatches a `snapshot` (name or path) into a scratch folder and compares every file. Events as of a snapshot."""
    body = await json_object(request)
    wanted, snapshots = text_field(body, "snapshot"), request.app[DAEMON].snapshots

    return await _following(request, await snapshots.begin_drill(wanted, id=_text(body, "work")))


@routes.post("/neighborhood/restore")
@operator_only
async def restore(request: web.Request) -> web.StreamResponse:
    """Brings a `snapshot` back, here and on the other machines. Events as of a snapshot.

    `approved`, which must be there, is the digest of the plan for these `options`; another one by now is
    refused with `plan_changed`, and nothing is written.
    """
    body = await json_object(request)
    wanted, approved = text_field(body, "snapshot"), text_field(body, "approved")
    options, snapshots = _options(body), request.app[DAEMON].snapshots

    begun = await snapshots.begin_restore(wanted, options, approved=approved, id=_text(body, "work"))
    return await _following(request, begun)


async def _following(request: web.Request, work: SnapshotWork) -> web.StreamResponse:
    assert work.turn is not None
    return await following(request, work.turn)


def _text(body: dict[str, Any], field: str) -> str:
    found = body.get(field)
    return found[:100] if isinstance(found, str) else ""


def _options(body: dict[str, Any]) -> dict[str, Any]:
    options = body.get("options", {})
    if not isinstance(options, dict):
        raise UsageProblemError("`options` must be an object.", do='Send {"options": {}}.')
    return options
