"""The loopback listener as one web application; TCP and the control socket share it."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.app import Daemon
from rappd.features.operation import OperationTable
from rappd.listeners import a2a, acp, mcp, ollama, openai, openai_responses, program_requests, webhooks
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.loopback import (
    agent_files,
    chat,
    eggs,
    health,
    http_tools,
    login,
    openapi,
    operator_routes,
    rapps,
    services,
    session_frames,
    static_files,
    voice_routes,
    well_known,
)
from rappd.listeners.loopback.operation_routes import routes_of, routes_of_twins
from rappd.listeners.loopback.security import HOSTS, TENANT, guard, under_twins
from rappd.tenants.tenant import Tenant


def build(daemon: Daemon, table: OperationTable) -> web.Application:
    """Every route of the listener, those of the ``table`` among them, behind its guard; a twin's own once more under its name."""
    app = _empty(daemon, daemon.host, daemon.hosts)
    tables = [
        chat,
        health,
        agent_files,
        login,
        voice_routes,
        rapps,
        operator_routes,
        static_files,
        openapi,
        services,
    ]
    tables += [eggs, session_frames, well_known]
    tables += [a2a, acp, mcp, ollama, openai, openai_responses, webhooks]
    program_requests.end_at_stop(app)
    if daemon.settings.on("http.tools"):
        tables.append(http_tools)
    for module in tables:
        app.add_routes(module.routes)
    app.add_routes([*routes_of(table), *routes_of_twins(table)])
    app.add_routes(under_twins(chat.routes, agent_files.routes))
    return app


def build_for_twin(daemon: Daemon, tenant: Tenant, port: int, table: OperationTable) -> web.Application:
    """Builds the application for a booted twin's own port: the RAPP surface, no page, no structure."""
    app = _empty(daemon, tenant, {f"127.0.0.1:{port}", f"localhost:{port}"})
    for module in (chat, health, agent_files, login, voice_routes, services):
        app.add_routes(module.routes)
    for below in ("/models", "/agents", "/chat"):
        app.add_routes(routes_of(table, below=below))
    return app


def _empty(daemon: Daemon, tenant: Tenant, hosts: set[str]) -> web.Application:
    app = web.Application(middlewares=[guard], client_max_size=daemon.settings.number("http.body_mb") << 20)
    app[DAEMON], app[TENANT], app[HOSTS] = daemon, tenant, hosts
    return app
