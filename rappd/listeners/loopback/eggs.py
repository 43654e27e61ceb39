"""``/eggs/out``: packed eggs that are dragged out of the page, by their links."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.request_signatures import Signature
from rappd.features.eggs.links import SECONDS, check_ticket
from rappd.features.eggs.packing import laid_egg
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import file_answer

routes = web.RouteTableDef()


@routes.get("/eggs/out/{ticket}/{signed}/{folder}/{name}")
async def dragged_out(request: web.Request) -> web.StreamResponse:
    """An egg that was packed here by the link that packing gave, signed by the page that it was given to; good once."""
    ticket, signed, folder, name = (
        request.match_info[part] for part in ("ticket", "signed", "folder", "name")
    )
    public, _, signature = signed.partition(".")
    check_ticket(ticket, f"{folder}/{name}", public)
    daemon = request.app[DAEMON]
    daemon.request_signatures.check(
        Signature.parse(signature),
        public=public,
        method=request.method,
        host=request.headers["Host"],
        target=request.raw_path.replace(f"/{signed}/", "/", 1),
        window=SECONDS * 1000,
    )
    return file_answer(laid_egg(daemon.tenants.layout, folder, name))
