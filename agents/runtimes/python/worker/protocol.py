"""Frames between the daemon and a worker, which share one stream socket pair per worker.

A frame is a 4-byte length and a JSON array: ``[kind, call id, value]`` from the worker; from the daemon
``[worked, value]``, the answer to a callback, or ``[call id, operation, body]``, a request. On Linux requests
travel beside the stream, as packets that can be taken back (see ``RequestQueue``): over the stream comes only
what is too large for one. The daemon sends nothing over the stream before the answer to what it sent there.
"""

from __future__ import annotations

import socket
import struct

from agents.runtimes.python.sandbox.syscalls import LINUX

FRAME = struct.Struct(">I")
PACKET_ID = struct.Struct("=Q")  # begins a packet: the id of its request
ANSWER_BYTES = 64 * 1024 * 1024  # a larger answer is refused
CALLBACK_BYTES = 16 * 1024 * 1024  # room for the messages of a model turn, pictures among them
CALLBACK_PARTS = 100_000  # objects and lists: making them takes the daemon longer than reading the bytes
NOTE_BYTES = 256 * 1024  # what a worker says of itself, or of an exception
PACKET_BYTES = 60 * 1024  # a larger request goes over the stream
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
