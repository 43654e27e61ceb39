"""``GET /line``: a WebSocket on which two machines ask each other at any time."""

from __future__ import annotations

from aiohttp import web

from neighborhoods.errors import NotPairedError
from neighborhoods.transport.peer_connection import HEARTBEAT, MAX_FRAME, PROTOCOLS, PeerConnection
from rappd.http.federation.authentication import FEDERATION, caller

routes = web.RouteTableDef()


@routes.get("/line")
async def line(request: web.Request) -> web.StreamResponse:
    """Paired machines only. It ends when either side ends it, and when the trust ends."""
    machines = request.app[FEDERATION]
    who, _ = caller(request)
    peer = machines.peer_store.get(who.peer)
    if peer is None:
        raise NotPairedError("Only paired machines have a line.", do="rappd peers pair")
    socket = web.WebSocketResponse(
        protocols=PROTOCOLS,
        heartbeat=HEARTBEAT,
        max_msg_size=MAX_FRAME + 1024,
        compress=False,
        decode_text=False,
    )
    await socket.prepare(request)
    opened = PeerConnection(socket, machines.requests(peer), name=peer.name, protocol=socket.ws_protocol)
    machines.parts.carrier.adopt(peer, opened)
    try:
        await opened.run()
    finally:
        machines.parts.carrier.dropped(peer, opened)
    return socket
