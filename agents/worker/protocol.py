"""Frames between the daemon and a worker, which share one stream socket pair per worker.

A frame is a 4-byte length and a JSON array: ``[kind, call id, value]`` from the worker; from the daemon
``[call id, operation, body]``, a request, or ``[worked, value]``, the answer to a callback. The daemon sends
the next request only after the answer to the one before.
"""

from __future__ import annotations

import socket
import struct

from agents.worker.syscalls import LINUX

FRAME = struct.Struct(">I")
ANSWER_BYTES = 64 * 1024 * 1024  # a larger answer is refused
_BUFFER_BYTES = 512 * 1024

ANSWER, RAISED, CALLBACK, READY, REFUSED = range(5)
KIND_NAMES = ("an answer", "an error", "a callback", "its readiness", "a failed start")


def packet_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep packets whole and, on Linux, notice the other's end."""
    kind = socket.SOCK_SEQPACKET if LINUX else socket.SOCK_DGRAM
    pair = socket.socketpair(socket.AF_UNIX, kind)
    if not LINUX:
        for one in pair:  # there the buffer's size bounds a packet's
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    return pair
