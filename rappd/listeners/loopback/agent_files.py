"""``/agents/import``: an agent file as a form of a page sends it."""

from __future__ import annotations

from aiohttp import web

from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import ok, upload
from rappd.listeners.loopback.security import operator_only, started

routes = web.RouteTableDef()


@routes.post("/agents/import")
@operator_only
async def import_agent(request: web.Request) -> web.Response:
    """Takes in one agent file (multipart field `file`), after it loaded in a worker; with the field `keep`, a faulty one too, which does not run."""
    daemon = request.app[DAEMON]
    daemon.imports.take()
    fields: dict[str, str] = {}
    name, content = await upload(request, fields=fields)
    structure = (await started(request)).admin
    keep = bool(fields.get("keep"))
    return ok(await structure.write(name, content, reason="imported", by_operator=True, keep_faulty=keep))
