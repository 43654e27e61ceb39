"""Requests to one worker, as packets that the daemon can take back until the worker has read them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

from agents.workers.protocol import PACKET_BYTES

_IDENT = struct.Struct("=Q")


class RequestQueue:
    """The daemon's two ends: requests go into one, the other is the worker's, too.

    The pair is never read in the other direction, and what the worker does to its end (close it, shut it
    down) harms nobody else.
    """

    def __init__(self) -> None:
        """Raises OSError where there are no descriptors left."""
        self._into, self._from = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._into.setblocking(False)
        self._from.setblocking(False)  # for the worker, too, which waits by poll

    @property
    def worker_end(self) -> int:
        """The descriptor that the worker gets."""
        return self._from.fileno()

    def put(self, ident: int, frame: bytes) -> bool:
        """Put in a request; False when it is too large, or there is no room."""
        if len(frame) > PACKET_BYTES - _IDENT.size:
            return False
        try:
            self._into.send(_IDENT.pack(ident) + frame)
        except OSError:
            return False
        return True

    def put_notice(self, ident: int) -> bool:
        """Put in a packet that says: the request itself comes over the stream."""
        return self.put(ident, b"")

    def take_back(self) -> Iterator[int]:
        """The ids of requests that the worker has not read; it can read them no more."""
        while True:
            try:
                head = self._from.recv(_IDENT.size)  # the rest of the packet is dropped
            except OSError:
                return
            if len(head) < _IDENT.size:
                return
            yield _IDENT.unpack(head)[0]

    def end(self) -> None:
        """Tell the worker that nothing more comes. Idempotent."""
        self._into.close()

    def close(self) -> None:
        """Close both ends. Idempotent."""
        self._into.close()
        self._from.close()


def request_in(packet: bytes) -> bytes:
    """The request in a packet; empty when it comes over the stream."""
    return packet[_IDENT.size :]
