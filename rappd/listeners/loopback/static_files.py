"""The page at ``/``: static files with a strict content policy."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

from aiohttp import web

from agents.storage.safe_fs import SafeTree, in_file_pool
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.loopback.request_guard import at_operator_origin
from rappd.listeners.web_assets import WEB, WebAssets, type_of

routes = web.RouteTableDef()

_MAX_PAGE_FILE = 64 << 20
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-src http://localhost:*; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_THEME_COOKIE = "rappd_theme"
_THEMES = frozenset({"light", "dark"})
_FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


@routes.get("/")
async def index(request: web.Request) -> web.StreamResponse:
    """The page itself, at 127.0.0.1 alone."""
    if not at_operator_origin(request):
        raise web.HTTPFound(f"http://127.0.0.1:{request.app[DAEMON].port}/")
    assets = await _assets()
    port = request.headers["Host"].rpartition(":")[2]  # frames of the daemon's own port alone
    policy = POLICY.replace("localhost:*", f"localhost:{port}")
    headers = {**HEADERS, "Content-Security-Policy": policy, "Content-Type": type_of("index.html")}
    page = assets.index
    if (theme := request.cookies.get(_THEME_COOKIE)) in _THEMES:  # before any script runs
        page = page.replace(b"<html ", f'<html data-theme="{theme}" '.encode(), 1)
    return web.Response(body=page, headers=headers)


@routes.get("/web/{name:.+}")
async def part(request: web.Request) -> web.StreamResponse:
    """The page's style sheets, modules and pictures."""
    found = (await _assets()).find(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    name, content, for_good = found
    headers = {**HEADERS, **(_FOR_GOOD if for_good else {}), "Content-Type": type_of(name)}
    return web.Response(body=content, headers=headers)


@functools.cache
def _loaded() -> WebAssets:
    return WebAssets.load(WEB)


async def _assets() -> WebAssets:
    if _loaded.cache_info().currsize:
        return _loaded()
    return await asyncio.to_thread(_loaded)


async def workspace_file(
    files: SafeTree, folder: Path, name: str, headers: dict[str, str]
) -> web.StreamResponse:
    """A file below ``folder`` of a workspace, or 404; never a link, nor one that lies behind a link."""
    try:
        content = await in_file_pool(files.read, f"{folder}/{name}", _MAX_PAGE_FILE)
    except (OSError, ValueError) as error:
        raise web.HTTPNotFound from error
    return web.Response(body=content, headers={**headers, "Content-Type": type_of(name)})
