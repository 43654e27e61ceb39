"""``/.well-known/``: the owner's beacon and estate for programs of this machine, while ``estate.beacon`` is on."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from neighborhoods.places.estate_file import SCHEMA as ESTATE_SCHEMA
from neighborhoods.places.estate_file import Estate
from rappd.errors import NotFoundError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import ok

SCHEMA = "rapp-network-beacon/1.1"
PATH = "/.well-known/rapp-network.json"
ESTATE_PATH = "/.well-known/rapp-estate.json"
_IMPLEMENTS = ("brainstem-egg/2.3-estate", "brainstem-egg/2.3-neighborhood", "rapp-egg/2.0")


def beacon(estate: Estate, *, base_url: str, private_pointer: str = "") -> dict[str, Any]:
    """The document. It asks not to be indexed; of the private tier it holds the pointer and nothing else."""
    return {
        "schema": SCHEMA,
        "operator_rappid": estate.owner or None,
        "github": estate.github or None,
        "estate_url": f"{base_url}{ESTATE_PATH}",
        "grail_url": None,
        "protocol": {
            "spec_version": "rapp-protocol/1.0",
            "estate_schema": ESTATE_SCHEMA,
            "implements": list(_IMPLEMENTS),
            "spec_url": None,
        },
        "discovery": {"indexable": False, "consent": "owner", "federation_hints": []},
        "private_estate_pointer": private_pointer or None,
        "private_estate_commitment": None,
        "private_door_count": None,
        "minted_at": estate.updated_at,
    }


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
    return ok((await _estate(request)).as_json())


async def _estate(request: web.Request) -> Estate:
    daemon = request.app[DAEMON]
    if not daemon.settings.on("estate.beacon"):
        raise NotFoundError(f"No such path: {request.path}", do="See /openapi.json")
    found = await asyncio.to_thread(Estate.read, daemon.home.root)
    if found is None:
        raise NotFoundError("There is no estate yet.", do="rappd estate rebuild")
    return found
