"""``/agents``: listing, import, export, removal, approval."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from agents.storage.safe_fs import in_file_pool
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import json_object, ok, text_field, upload
from rappd.http.loopback.security import from_control, operator_only, started, tenant_of
from rappd.tenants.tenant import reference_to

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


@routes.get("/agents/export/{filename:.+}")
@operator_only
async def export(request: web.Request) -> web.Response:
    """An agent file as a download."""
    source = await tenant_of(request).admin.exported(request.match_info["filename"])
    name = source["file"].rsplit("/", 1)[-1]
    return web.Response(
        body=source["source"].encode(),
        headers={
            "Content-Type": "text/x-python; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{name}"',
        },
    )


@routes.post("/agents/test")
@operator_only
async def test(request: web.Request) -> web.Response:
    """Runs the contract tests over one `agent`, or over a text that is not saved: `filename` and `source`.

    Over the control socket also over the file at a `path`, wherever it lies.
    """
    body, tenant = await json_object(request), await started(request)
    if "source" in body:
        name, text = text_field(body, "filename"), text_field(body, "source")
        return ok(await tenant.admin.editor.test(name, text.encode()))
    if "path" in body and from_control(request):
        found = await tenant.test_file(await in_file_pool(reference_to, Path(text_field(body, "path"))))
        return ok({"tests": found["tests"]})
    return ok({"tests": await tenant.test_agent(text_field(body, "agent"))})
