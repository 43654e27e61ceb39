"""``/neighborhood``: the machines together, snapshots of them, and bringing one back, for the operator."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from rappd.errors import UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.long_operations import following
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.operations.snapshot_work import SnapshotWork

routes = web.RouteTableDef()


@routes.get("/neighborhood")
@operator_only
async def overview(request: web.Request) -> web.Response:
    """The machines, the snapshots, the newest first, their `schedule`, and the `work` that is under way. Asks no machine."""
    return ok(await request.app[DAEMON].snapshots.overview())


@routes.post("/neighborhood/probe")
@operator_only
async def probe(request: web.Request) -> web.Response:
    """Asks every machine whether a snapshot can read it now, and which twins live there."""
    return ok(await request.app[DAEMON].snapshots.probe())


@routes.get("/neighborhood/work")
@operator_only
async def work(request: web.Request) -> web.Response:
    """The snapshot, drill or restore that is under way, and how far it is; else null."""
    return ok({"work": request.app[DAEMON].snapshots.under_way()})


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


@routes.post("/neighborhood/cancel")
@operator_only
async def cancel(request: web.Request) -> web.Response:
    """Cancels the snapshot that was begun with the id `work`, and answers once it has ended.

    Machines that were read already are not read again by the next one. Once its egg is written it is refused.
    """
    return ok(await request.app[DAEMON].snapshots.cancel(text_field(await json_object(request), "work")))


@routes.post("/neighborhood/drill")
@operator_only
async def drill(request: web.Request) -> web.StreamResponse:
    """Hatches a `snapshot` (name or path) into a scratch folder and compares every file. Events as of a snapshot."""
    body = await json_object(request)
    wanted, snapshots = text_field(body, "snapshot"), request.app[DAEMON].snapshots

    return await _following(request, await snapshots.begin_drill(wanted, id=_text(body, "work")))


@routes.post("/neighborhood/diff")
@operator_only
async def diff(request: web.Request) -> web.Response:
    """The differences between two snapshots, `before` and `after`, each by its name or path."""
    body = await json_object(request)
    verbs = request.app[DAEMON].snapshots.verbs
    found = await asyncio.to_thread(verbs.diff, text_field(body, "before"), text_field(body, "after"))
    return ok(found.as_json())


@routes.post("/neighborhood/plan")
@operator_only
async def plan(request: web.Request) -> web.Response:
    """The plan for bringing a `snapshot` back with these `options`; writes nothing anywhere."""
    body = await json_object(request)
    return ok(await request.app[DAEMON].snapshots.plan(text_field(body, "snapshot"), _options(body)))


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


@routes.post("/neighborhood/hatch")
@operator_only
async def hatch(request: web.Request) -> web.Response:
    """Hatches this machine's part of the snapshot at `path`; twins that are running rest meanwhile.

    `options` as in its plan. `approved`, which must be there, is the digest of that part of the plan; another
    one by now is refused with `plan_changed`.
    """
    body = await json_object(request)
    options, path = _options(body), whole_path(text_field(body, "path"))
    daemon = request.app[DAEMON]
    return ok(await daemon.snapshots.hatch_local(path, options, approved=text_field(body, "approved")))


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
