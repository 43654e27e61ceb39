"""``/peers/{peer}/snapshot``: a paired machine as its rappd gives it, for snapshots that this machine's owner takes."""

from __future__ import annotations

import asyncio

from aiohttp import web

from neighborhoods.errors import MemberError
from neighborhoods.peer import Peer
from neighborhoods.transport.peer_snapshots import PeerSnapshots
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only

STALLED_SECONDS = 90.0

routes = web.RouteTableDef()


@routes.get("/peers/{peer}/snapshot")
@operator_only
async def probe(request: web.Request) -> web.Response:
    """The state of a peer before it is read: `version`, `host`, `free_bytes`."""
    reader, peer = await _peer(request)
    return _as_it_came(await reader.answer(peer, ""))


@routes.get("/peers/{peer}/snapshot/twins")
@operator_only
async def listing(request: web.Request) -> web.Response:
    """A peer's twins, with `?archived=1` archived ones too, and its brainstem's agent files."""
    reader, peer = await _peer(request)
    return _as_it_came(await reader.answer(peer, f"/twins{_archived(request)}"))


@routes.get("/peers/{peer}/snapshot/twins/{twin:[0-9A-Za-z_-][0-9A-Za-z_.-]*}")
@operator_only
async def read_twin(request: web.Request) -> web.StreamResponse:
    """The files of a peer's twin as tar, as they come. Nothing in them is checked yet."""
    return await _stream(request, f"/twins/{request.match_info['twin']}{_archived(request)}")


@routes.get("/peers/{peer}/snapshot/agents")
@operator_only
async def read_agents(request: web.Request) -> web.StreamResponse:
    """The agent files of a peer's brainstem as tar, as they come. Nothing in them is checked yet."""
    return await _stream(request, "/agents")


def _as_it_came(octets: bytes) -> web.Response:
    """The peer's answer unread: the command that asked parses it, within bounds, and not this event loop."""
    return web.Response(body=octets, content_type="application/json")


async def _peer(request: web.Request) -> tuple[PeerSnapshots, Peer]:
    machines = request.app[DAEMON].federation
    parts = await machines.available()
    return PeerSnapshots(parts.carrier), machines.peer_store.find(request.match_info["peer"])


def _archived(request: web.Request) -> str:
    return "?archived=1" if request.query.get("archived") == "1" else ""


async def _stream(request: web.Request, path: str) -> web.StreamResponse:
    """Passes a stream on; where it breaks off there, it breaks off here."""
    reader, peer = await _peer(request)
    response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
    async with reader.stream(peer, path) as stream:
        response.content_length = stream.size
        await response.prepare(request)
        try:
            async for piece in stream.pieces:
                async with asyncio.timeout(STALLED_SECONDS):
                    await response.write(piece)
        except (MemberError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
    return response
