"""``/cartridges``: what the page needs to run a LisPy cartridge itself. Nothing runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from agents.providers.lazy_imports import load
from agents.storage.safe_fs import in_file_pool
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok

if TYPE_CHECKING:
    from rappd.operations.cartridge_index import CartridgeIndex

routes = web.RouteTableDef()

_NAME = 200


@routes.get("/cartridges")
@operator_only
async def cartridges(request: web.Request) -> web.Response:
    """The `.lispy.json` beside the agents of the brainstem and its twins; one that cannot be read says why in `problem`."""
    return ok(await in_file_pool((await _shelf(request)).listing))


@routes.get("/cartridges/{file:.+}")
@operator_only
async def read(request: web.Request) -> web.Response:
    """The `text` of one, and who signed it; `?twin=` is the key of the twin whose it is."""
    twin = request.query.get("twin", "")
    return ok(await in_file_pool((await _shelf(request)).read, request.match_info["file"], twin))


@routes.post("/cartridges/signer")
@operator_only
async def signer(request: web.Request) -> web.Response:
    """The signer of a file, by its `sha256` and the text of the `signature` that came with it."""
    body = await json_object(request)
    digest, signature = text_field(body, "sha256"), text_field(body, "signature")
    name = str(body.get("name") or "The file")[:_NAME]
    return ok(await in_file_pool((await _shelf(request)).signer, digest, signature, name=name))


@routes.post("/cartridges/signature")
@operator_only
async def signature(request: web.Request) -> web.Response:
    """Signs a cartridge (the body is the file, `?name=` what it is called) with this machine's key.

    `signature` is the text of the file that belongs beside it.
    """
    octets, name = await request.read(), request.query.get("name", "")[:_NAME]
    if not octets or not name:
        raise InvalidBodyError("A cartridge and its name are needed.", do="The body is the file; add ?name=.")
    return ok(await in_file_pool((await _shelf(request)).sign, octets, name=name))


async def _shelf(request: web.Request) -> CartridgeIndex:
    shelf: type[CartridgeIndex] = (await load("rappd.operations.cartridge_index")).CartridgeIndex
    daemon = request.app[DAEMON]
    return shelf(daemon.home, daemon.host.workspace)
