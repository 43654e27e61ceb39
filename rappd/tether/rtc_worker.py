"""The process that speaks WebRTC: the only importer of aiortc. It holds no key and knows no protocol above the channel.

JSON lines over one socket pair. From the daemon: ``{op: offer, id, transport}``, ``{op: send|close, id, …}``; to it:
``{op: ready}``, ``{op: answer, id, transport | error}``, ``{op: open, id, fingerprint}``, ``{op: closed, id}``,
``{op: message, id, text}``. ``fingerprint`` is of the certificate that DTLS verified, in hex.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from typing import Any, Literal

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256

from rappd.tether.webrtc_parameters import MOST_CANDIDATES, Candidate, TransportParameters, description

FRAME_BYTES = 16 << 10
OPEN_SECONDS = 15.0
MOST_UNSENT = 1 << 20
MOST_CONNECTIONS = 40
LINE_BYTES = 1 << 20


class RtcWorker:
    """Every connection by the id that the daemon gave it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._connections: dict[str, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, **message: Any) -> None:
        """Sends one line to the daemon."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    def on_line(self, line: bytes) -> None:
        """Performs one line of the daemon."""
        message = json.loads(line)
        id = message["id"]
        found = self._connections.get(id)
        if message["op"] == "offer":
            self._spawn(self._answer(id, msgspec.convert(message["transport"], TransportParameters)))
        elif message["op"] == "send" and found is not None:
            found.send(message["text"])
        elif message["op"] == "close" and found is not None:
            self._spawn(self.end(id))

    async def end(self, id: str) -> None:
        """Closes a connection and says so, once."""
        found = self._connections.pop(id, None)
        if found is not None:
            self.tell(op="closed", id=id)
            await found.close()

    def end_soon(self, id: str) -> None:
        """``end`` as a task of its own: a callback of aiortc must not close what calls it."""
        self._spawn(self.end(id))

    async def _answer(self, id: str, offered: TransportParameters) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            self.tell(op="answer", id=id, error="busy")
            return
        connection = self._connections[id] = _Connection(self, id)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                answer = await connection.answer(offered)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's offer does to the library
            self.tell(op="answer", id=id, error=str(error)[:200] or type(error).__name__)
            await self.end(id)
            return
        self.tell(op="answer", id=id, transport=msgspec.to_builtins(answer))
        connection.expect(OPEN_SECONDS)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Connection:
    def __init__(self, worker: RtcWorker, id: str) -> None:
        from aiortc import RTCConfiguration, RTCPeerConnection

        self._worker, self._id = worker, id
        self._channel: Any = None
        self._late: asyncio.TimerHandle | None = None
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._peer.on("datachannel", self._on_channel)
        self._peer.on("connectionstatechange", self._on_state)

    @property
    def is_open(self) -> bool:
        return self._channel is not None and self._channel.readyState == "open"

    async def answer(self, offered: TransportParameters) -> TransportParameters:
        from aiortc import RTCSessionDescription

        await self._peer.setRemoteDescription(RTCSessionDescription(description(offered), "offer"))
        await self._peer.setLocalDescription(await self._peer.createAnswer())
        return own_parameters(self._peer, "passive" if offered.setup == "active" else "active")

    def expect(self, seconds: float) -> None:
        """Ends it unless a channel opens in that time."""
        if self._channel is None:
            self._late = asyncio.get_running_loop().call_later(seconds, self._worker.end_soon, self._id)

    def send(self, text: str) -> None:
        if not self.is_open:
            return
        if self._channel.bufferedAmount > MOST_UNSENT:  # it does not read; it asks again after reconnecting
            self._worker.end_soon(self._id)
            return
        self._channel.send(text)

    async def close(self) -> None:
        self._cancel_timer()
        await self._peer.close()

    def _on_channel(self, channel: Any) -> None:
        if self._channel is not None or channel.label != "rapp" or not channel.ordered:
            self._worker.end_soon(self._id)
            return
        self._channel = channel
        self._cancel_timer()
        channel.on("message", self._on_message)
        channel.on("close", lambda: self._worker.end_soon(self._id))
        self._worker.tell(op="open", id=self._id, fingerprint=verified_print(self._peer).hex())

    def _cancel_timer(self) -> None:
        if self._late is not None:
            self._late.cancel()

    def _on_message(self, text: object) -> None:
        # What raises here would close the connection without a word.
        if isinstance(text, str) and len(text) <= FRAME_BYTES and len(text.encode()) <= FRAME_BYTES:
            self._worker.tell(op="message", id=self._id, text=text)
        else:
            self._worker.end_soon(self._id)

    def _on_state(self) -> None:
        if self._peer.connectionState in ("failed", "closed"):
            self._worker.end_soon(self._id)


async def serve(descriptor: int) -> None:
    """Works for the daemon at the other end of the socket until that end closes."""
    import aiortc  # noqa: F401 - ready means: it can be imported

    stream = socket.socket(fileno=descriptor)
    reader, writer = await asyncio.open_connection(sock=stream, limit=LINE_BYTES)
    worker = RtcWorker(writer)
    worker.tell(op="ready")
    with contextlib.suppress(ConnectionResetError):  # the daemon went without reading all that it was told
        while line := await reader.readline():
            worker.on_line(line)


def own_parameters(peer: Any, setup: Literal["actpass", "active", "passive"]) -> TransportParameters:
    """The parameters of an ``RTCPeerConnection`` with a local description. No text is read for them."""
    dtls = peer.sctp.transport
    gatherer = dtls.transport.iceGatherer
    ice = gatherer.getLocalParameters()
    prints = [one.value for one in dtls.getLocalParameters().fingerprints if one.algorithm == "sha-256"]
    candidates = [
        Candidate(one.ip, one.port, one.priority)
        for one in gatherer.getLocalCandidates()
        if one.type == "host" and one.protocol.lower() == "udp"
    ]
    return TransportParameters(
        ice.usernameFragment, ice.password, setup, prints[0], tuple(candidates[:MOST_CANDIDATES])
    )


def verified_print(peer: Any) -> bytes:
    """SHA-256 of the certificate whose key the other side has proved by DTLS; empty when aiortc does not tell.

    aiortc 1.16 has no public way to it (``getRemoteCertificates`` of the standard), so this reads its private one.
    An empty answer fits no phone: without this check nobody is let in.
    """
    connection = getattr(peer.sctp.transport, "_ssl", None)
    certificate = connection.get_peer_certificate(as_cryptography=True) if connection is not None else None
    return b"" if certificate is None else certificate.fingerprint(SHA256())


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
