"""``/agents``: listing, import, export, removal, approval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web

from agents.contract.scaffold import scaffold
from agents.storage.safe_fs import in_file_pool
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import from_control, is_operator, operator_only, started, tenant_of
from rappd.http.request_body import InvalidFieldError, json_object, text_field, upload
from rappd.http.responses import ok
from rappd.tenants.agent_summary import listing
from rappd.tenants.tenant import reference_to
from rappd.tenants.tenant_config import LIBRARY

routes = web.RouteTableDef()


@routes.get("/agents")
async def agents(request: web.Request) -> web.Response:
    """Agent files and the agents they hold; `cards` tells what a screen needs about each.

    `ssh_keys` at a card: this agent, which did not come with rappd, can use your SSH keys.
    """
    ssh_keys = await in_file_pool(request.app[DAEMON].agents_can_use_ssh_keys)
    files: dict[tuple[str, str], dict[str, Any]] = {}
    for row in listing((await started(request)).registry):
        file = files.setdefault(
            (row["origin"], row["file"]), {"filename": row["file"], "agents": [], "cards": []}
        )
        if row["name"]:
            file["agents"].append(row["name"])
        file["cards"].append({**row, "ssh_keys": ssh_keys and row["origin"] != LIBRARY})
    return ok({"files": list(files.values())})


@routes.get("/agents/held")
@operator_only
async def held(request: web.Request) -> web.Response:
    """Quarantined code of agents, services and senses, and a quarantined `.env`: `path`, `why`, `origin`, `at`, `sha256`."""
    return ok({"held": await tenant_of(request).admin.held()})


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


@routes.get("/agents/source/{filename:.+}")
@operator_only
async def source(request: web.Request) -> web.Response:
    """An agent file's text; `fault` what is wrong with it, `read_only` why it cannot be edited."""
    name, with_values = request.match_info["filename"], is_operator(request)
    return ok(await tenant_of(request).admin.source(name, with_values=with_values))


@routes.put("/agents/source/{filename:.+}")
@operator_only
async def save(request: web.Request) -> web.Response:
    """Saves an edited file: `source`, and `base`, the SHA-256 of what was read, else 409. With `keep` faulty text, too; it does not run."""
    body = await json_object(request)
    name, text, base = request.match_info["filename"], text_field(body, "source"), body.get("base") or ""
    request.app[DAEMON].imports.take()
    editor = tenant_of(request).admin.editor
    return ok(await editor.save(name, text.encode(), base=str(base), keep_faulty=bool(body.get("keep"))))


@routes.get("/agents/generations/{filename:.+}")
@operator_only
async def generations(request: web.Request) -> web.Response:
    """Earlier versions of an agent file, oldest first; with `generation`, the text of that one as `source`."""
    name, number = request.match_info["filename"], request.query.get("generation", "")
    editor = tenant_of(request).admin.editor
    if number:
        if not number.isdecimal() or len(number) > 9:
            raise InvalidFieldError("generation must be a number", do="Ask for the generations first.")
        return ok({"generation": int(number), "source": await editor.generation(name, int(number))})
    return ok({"generations": await editor.generations(name)})


@routes.post("/agents/undo")
@operator_only
async def undo(request: web.Request) -> web.Response:
    """Brings a removed file back."""
    body = await json_object(request)
    return ok(await (await started(request)).admin.undo(text_field(body, "undo")))


@routes.post("/agents/approve")
@operator_only
async def approve(request: web.Request) -> web.Response:
    """Lets the present bytes of a quarantined file run; of any other, change structure. With the `sha256` that was read, no others."""
    body = await json_object(request)
    name, digest = text_field(body, "filename"), body.get("sha256") or ""
    done = await (await started(request)).admin.approve(name, str(digest))
    request.app[DAEMON].tether.workflows_changed()
    return ok(done)


@routes.post("/agents/refuse")
@operator_only
async def refuse(request: web.Request) -> web.Response:
    """Takes a quarantined file out of its place; the answer's `undo` brings it back, quarantined as before."""
    body = await json_object(request)
    return ok(await tenant_of(request).admin.refuse(text_field(body, "filename")))


@routes.post("/agents/new")
@operator_only
async def new(request: web.Request) -> web.Response:
    """Writes a new agent file, refusing to replace one: `filename` and `source`, or `name` and `description` for one to fill in."""
    body = await json_object(request)
    if "name" in body:
        described = body.get("description") or ""
        name, text = scaffold(text_field(body, "name"), str(described))
    else:
        name, text = text_field(body, "filename"), text_field(body, "source")
    structure = (await started(request)).admin
    return ok(await structure.write(name, text.encode(), reason="new", replace=False, by_operator=True))


@routes.post("/agents/run")
@operator_only
async def run(request: web.Request) -> web.Response:
    """Runs one agent with given arguments, as a recorded call."""
    body = await json_object(request)
    arguments = body.get("args") or {}
    found = await (await started(request)).run_agent(
        text_field(body, "agent"), arguments if isinstance(arguments, dict) else {}
    )
    return ok(found)


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


@routes.delete("/agents/{filename:.+}")
@operator_only
async def delete(request: web.Request) -> web.Response:
    """Takes an agent file out of service; the answer's `undo` brings it back."""
    return ok(await (await started(request)).admin.remove(request.match_info["filename"]))
