"""``/neighborhood/hatch``: this machine's part of a snapshot, for the operator."""

from __future__ import annotations

from aiohttp import web

from rappd.errors import UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path

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
