"""``/repos``: connected sources of agents (RAPP v1 §5.7, §8)."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from agents.storage.safe_fs import in_file_pool
from rappd.errors import NotFoundError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidFieldError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations import source_fetch
from rappd.tenants.tenant_config import origin_of
from twins.workspace.agent_files import proper_name
from twins.workspace.sources import Source

routes = web.RouteTableDef()


@routes.get("/repos")
async def repos(request: web.Request) -> web.Response:
    """The connected sources and what each offers."""
    sources = request.app[DAEMON].host.sources
    return ok({"repos": [_row(source) for source in await in_file_pool(sources.all)]})


@routes.post("/repos/connect")
@operator_only
async def connect(request: web.Request) -> web.Response:
    """Connects owner/repo, a GitHub address, or a folder or clone on this machine."""
    daemon = request.app[DAEMON]
    daemon.imports.take()
    name = source_fetch.source_name(text_field(await json_object(request), "url"))
    offered = await source_fetch.discover(name, daemon.settings)
    source = await in_file_pool(daemon.host.sources.connect, name, offered)
    row = _row(source)
    return ok({"repo": row["repo"], "agents": row["agents"]})


@routes.post("/repos/disconnect")
@operator_only
async def disconnect(request: web.Request) -> web.Response:
    """Forgets a source; its agents go out of service."""
    daemon = request.app[DAEMON]
    name = source_fetch.source_name(text_field(await json_object(request), "url"))
    await in_file_pool(daemon.host.sources.disconnect, name)
    daemon.tell(await daemon.host.refresh())
    return ok({"status": "ok"})


@routes.post("/repos/toggle")
@operator_only
async def toggle(request: web.Request) -> web.Response:
    """Puts one agent of a source into service, or out of it; the sha256 of what was fetched is kept."""
    daemon = request.app[DAEMON]
    body = await json_object(request)
    name = source_fetch.source_name(text_field(body, "url"))
    agent_id = text_field(body, "agent_id")
    enable = body.get("enable", True)
    if not isinstance(enable, bool):
        raise InvalidFieldError("enable must be true or false", do='Send {"enable": true}.')
    source = await in_file_pool(daemon.host.sources.get, name)
    if not enable:
        removed = await in_file_pool(daemon.host.sources.disable, name, agent_id)
        daemon.tell(await daemon.host.refresh())
        return ok({"status": "disabled" if removed else "no_change"})
    if agent_id in source.fetched:
        return ok({"status": "no_change"})
    offered = next((one for one in source.offered if one.id == agent_id), None)
    if offered is None:
        raise NotFoundError(f'{name} offers no "{agent_id[:80]}".', do="GET /repos lists them.")
    content = await source_fetch.fetch(offered.location)
    digest = await in_file_pool(daemon.host.sources.enable, name, agent_id, content)
    daemon.tell(await daemon.host.refresh())
    found = daemon.host.registry.outcome(origin_of(name), proper_name(f"{agent_id}.py"))
    loaded = [agent for change in found if change.kind == "ready" for agent in change.agents]
    return ok({"status": "enabled", "loaded": loaded, "sha256": digest})


def _row(source: Source) -> dict[str, Any]:
    agents = [
        {
            "id": one.id,
            "name": one.name,
            "description": one.description,
            "enabled": one.id in source.fetched,
            "sha256": source.fetched.get(one.id, ""),
        }
        for one in source.offered
    ]
    local = source.name.startswith("/")
    return {
        "url": source.name,
        "repo": source.name if not local else source.name.rsplit("/", 1)[-1],
        "agents": agents,
        "enabled_count": len(source.fetched),
    }
