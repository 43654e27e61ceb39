"""``/.well-known/``: the owner's beacon and estate for programs of this machine, while ``estate.beacon`` is on."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from neighborhoods.estate.beacon import ESTATE_PATH, PATH, beacon
from neighborhoods.estate.estate_file import Estate
from rappd.errors import NotFoundError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import ok

routes = web.RouteTableDef()


@routes.get(PATH)
async def network(request: web.Request) -> web.Response:
    """The beacon of this machine's owner (`rapp-network-beacon/1.1`); none unless `estate.beacon` is on."""
    estate, daemon = await _estate(request), request.app[DAEMON]
    pointer = daemon.settings.text("estate.private")
    return ok(beacon(estate, base_url=f"http://{request.host}", private_pointer=pointer))


@routes.get(ESTATE_PATH)
async def estate(request: web.Request) -> web.Response:
    """The estate of this machine's owner (`rapp-estate/1.1`); none unless `estate.beacon` is on."""
    found: dict[str, Any] = (await _estate(request)).as_json()
    return ok(found)


async def _estate(request: web.Request) -> Estate:
    daemon = request.app[DAEMON]
    if not daemon.settings.on("estate.beacon"):
        raise NotFoundError(f"No such path: {request.path}", do="See /openapi.json")
    found = await asyncio.to_thread(Estate.read, daemon.home.root)
    if found is None:
        raise NotFoundError("There is no estate yet.", do="rappd estate rebuild")
    return found
