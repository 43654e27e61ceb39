"""Rapplications: what can be installed, what is, and their pages on an origin of their own."""

from __future__ import annotations

from aiohttp import web

from rappd.listeners.app_keys import DAEMON
from rappd.listeners.loopback.request_guard import at_operator_origin
from rappd.listeners.loopback.static_files import workspace_file
from rappd.tenants import rapps

routes = web.RouteTableDef()

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors http://127.0.0.1:*"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@routes.get("/rapps/{id}/{name:.*}")
async def page(request: web.Request) -> web.StreamResponse:
    """A rapplication's page.

    It lives at ``localhost``, the operator's page at ``127.0.0.1``: to a browser these are different sites,
    so neither cookie nor script passes between them.
    """
    if at_operator_origin(request):
        raise web.HTTPFound(f"http://localhost:{request.app[DAEMON].port}{request.rel_url}")
    workspace = request.app[DAEMON].host.workspace
    root = rapps.page_folder(workspace, request.match_info["id"])
    return await workspace_file(workspace.files, root, request.match_info["name"] or "index.html", _HEADERS)
