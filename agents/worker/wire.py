"""What daemon and worker say to each other: packets on a crew's queue, frames on a worker's stream.

A packet is one request: header, then ``[op, body]`` as JSON, or, when that is large, in a memfd that
travels alongside. A frame is a 4-byte length and a JSON array: ``[kind, request id, value]`` from the
worker; ``[worked, value]``, the answer to a callback, from the daemon.
"""

from __future__ import annotations

import socket
import struct
import sys

PACKET = struct.Struct(
    "<QdII"
)  # request id, deadline (CLOCK_MONOTONIC), withdrawal number, size of the memfd
FRAME = struct.Struct(">I")
INLINE_BYTES = 60 * 1024  # a larger body travels by memfd
PACKET_BYTES = PACKET.size + INLINE_BYTES
ANSWER_BYTES = 64 * 1024 * 1024  # a larger answer is refused
_BUFFER_BYTES = 512 * 1024
END = 0  # the request id that tells a worker to end, where closing the queue is not noticed

ANSWER, RAISED, SKIPPED, CALLBACK, READY, REFUSED = range(6)


def packet_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep packets whole and, on Linux, notice the other's end."""
    if sys.platform == "linux":
        kind = socket.SOCK_SEQPACKET
    else:
        kind = socket.SOCK_DGRAM
    pair = socket.socketpair(socket.AF_UNIX, kind)
    if sys.platform != "linux":
        for one in pair:  # there the buffer's size bounds a packet's
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    return pair
