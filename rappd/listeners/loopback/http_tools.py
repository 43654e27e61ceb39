"""``/tether/*``: agents as plain HTTP tools, the published `rapp-tether/1.0` of brainstems.

It is remote execution without a sign-in for whatever runs on this machine, so it is off unless
switched on (`http.tools`), and never offers a structural agent.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.rights import Caller
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import json_object, ok, text_field
from rappd.listeners.loopback.request_guard import caller
from rappd.tenants.tenant import HOST

routes = web.RouteTableDef()

SCHEMA = "rapp-tether/1.0"


@routes.get("/tether/healthz")
async def healthz(request: web.Request) -> web.Response:
    """The agents that can be called."""
    names = sorted(one.agent.name for one in _offered(request) if one.agent is not None)
    return ok(
        {
            "status": "ok",
            "schema": SCHEMA,
            "version": "1.0.0",
            "host": request.headers.get("Host", ""),
            "agents": names,
            "count": len(names),
        }
    )


@routes.get("/tether/tools")
async def tools(request: web.Request) -> web.Response:
    """The tool definitions of the agents."""
    found = [one.definition for one in _offered(request) if not one.exposure.mine]
    return ok({"schema": SCHEMA, "tools": found, "count": len(found), "note": "POST /tether/agent"})


@routes.post("/tether/agent")
async def agent(request: web.Request) -> web.Response:
    """Runs one agent: ``{name, args?}``."""
    daemon = request.app[DAEMON]
    body = await json_object(request)
    name = text_field(body, "name")
    offered = _offered(request)
    if daemon.dispatcher.endpoints.named(HOST, name) not in offered:
        available = [one.agent.name for one in offered if one.agent is not None]
        answer: dict[str, Any] = {
            "status": "error",
            "message": f"unknown agent: {name}",
            "available": available,
        }
        return ok(answer, 404)
    arguments = body.get("args") or {}
    if not isinstance(arguments, dict):
        return ok({"status": "error", "message": "args must be an object"}, 400)
    ran = await daemon.host.run_agent(name, arguments, caller=caller(request))
    if not ran["ok"]:
        return ok({"status": "error", "message": ran["result"]}, 500)
    return ok({"status": "ok", "output": ran["result"]})


def _offered(request: web.Request) -> list[Endpoint[Call]]:
    """The agents of the brainstem without those that are its operator's."""
    return request.app[DAEMON].dispatcher.endpoints.agents(HOST, Caller("loopback"))
