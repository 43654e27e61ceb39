"""The page at ``/``: static files with a strict content policy."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import mimetypes
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from agents.storage.safe_fs import SafeTree, in_file_pool
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.loopback.security import at_operator_origin

routes = web.RouteTableDef()

WEB = Path(__file__).parents[2] / "web"
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
    headers = {**HEADERS, "Content-Security-Policy": policy, "Content-Type": _type_of("index.html")}
    page = assets.index
    if (theme := request.cookies.get(_THEME_COOKIE)) in _THEMES:  # before any script runs
        page = page.replace(b"<html ", f'<html data-theme="{theme}" '.encode(), 1)
    return web.Response(body=page, headers=headers)


@routes.get("/web/{name:.+}")
async def part(request: web.Request) -> web.StreamResponse:
    """Its style sheets, modules and pictures."""
    found = (await _assets()).find(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    name, content, for_good = found
    headers = {**HEADERS, **(_FOR_GOOD if for_good else {}), "Content-Type": _type_of(name)}
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
    return web.Response(body=content, headers={**headers, "Content-Type": _type_of(name)})


_TYPES = {"js": "text/javascript", "webmanifest": "application/manifest+json", "woff2": "font/woff2"}
"""Those that a computer may know under another name, or not at all."""


def _type_of(name: str) -> str:
    kind = _TYPES.get(name.rpartition(".")[2]) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


_VERSION_LENGTH = 16
_STYLES = "page.css"
_SHEET = re.compile(r' *<link rel="stylesheet" href="/web/([^"]+)">\n')
_MAIN = re.compile(r' *<script type="module" src="/web/([^"]+)"></script>\n')
_IMPORT = re.compile(r"""^(?:import|export)\b[^;"']*?["'](\.{1,2}/[^"']+)["']""", re.MULTILINE)
_VERSIONED = re.compile(rf"([0-9a-f]{{{_VERSION_LENGTH}}})/(.+)")


@dataclass(frozen=True)
class WebAssets:
    """All files of the page by name, the page itself, and the hash of their contents."""

    files: dict[str, bytes]
    index: bytes
    version: str

    @classmethod
    def load(cls, folder: Path) -> WebAssets:
        """Read the page's files and prepare ``index.html``. Raises ``OSError``."""
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        index = files.pop("index.html").decode()
        sheets = _SHEET.findall(index)
        files[_STYLES] = b"\n".join(files[sheet] for sheet in sheets)
        digest = hashlib.sha256(index.encode())
        for name, content in files.items():
            digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
        version = digest.hexdigest()[:_VERSION_LENGTH]
        return cls(files, _prepared(index, files, version).encode(), version)

    def find(self, address: str) -> tuple[str, bytes, bool] | None:
        """Name and content of the file at ``address``, and whether browsers may keep it for good; or None."""
        versioned = _VERSIONED.fullmatch(address)
        name = versioned[2] if versioned else address
        content = self.files.get(name)
        if content is None:
            return None
        return name, content, versioned is not None and versioned[1] == self.version


def static_imports(files: dict[str, bytes], start: str) -> list[str]:
    """Names of the modules that ``start`` imports, directly or not, nearest first; ``start`` is the first."""
    found = [start]
    for name in found:  # grows while it is read
        for target in _IMPORT.findall(files[name].decode()):
            module = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if module not in found:
                found.append(module)
    return found


def _prepared(index: str, files: dict[str, bytes], version: str) -> str:
    def links(match: re.Match[str]) -> str:
        lines = [f'  <link rel="stylesheet" href="/web/{_STYLES}">\n']
        lines += [
            f'  <link rel="modulepreload" href="/web/{name}">\n' for name in static_imports(files, match[1])
        ]
        return "".join(lines) + match[0]

    return _MAIN.sub(links, _SHEET.sub("", index)).replace('"/web/', f'"/web/{version}/')
