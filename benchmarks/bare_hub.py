"""A hub of bare aiortc peers in a process of its own, as rappd's is: a text of one goes to all of them.

JSON lines: the SDP of an offer comes in, that of the answer goes out. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


async def serve() -> None:
    """Answers each offer, until the input ends."""
    from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

    peers: list[Any] = []
    channels: list[Any] = []

    def fan_out(text: str) -> None:
        for channel in channels:
            channel.send(text)

    def found(channel: Any) -> None:
        channel.on("message", fan_out)
        channels.append(channel)

    offers = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(offers), sys.stdin
    )
    while line := await offers.readline():
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        peers.append(peer)
        peer.on("datachannel", found)
        await peer.setRemoteDescription(RTCSessionDescription(json.loads(line), "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        print(json.dumps(peer.localDescription.sdp), flush=True)
    for peer in peers:
        await peer.close()


if __name__ == "__main__":
    asyncio.run(serve())
