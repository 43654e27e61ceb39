"""A worker's connection to the daemon: requests come in, answers and callbacks go out."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import orjson

from agents.workers.protocol import CALLBACK, FRAME, PACKET_BYTES

_READ_BYTES = 1 << 16


class CallbackRefusedError(Exception):
    """The daemon did not do what was asked; the text says why. ``code`` is the error's slug."""

    def __init__(self, message: str, code: str = "callback") -> None:
        super().__init__(message)
        self.code = code


class WorkerChannel:
    """The worker's end.

    ``call_id`` is the id of the call being performed, 0 between calls. Requests come from ``queue`` where
    there is one.
    """

    def __init__(self, stream: socket.socket, queue: socket.socket | None) -> None:
        self.call_id = 0
        self._stream = stream
        self._queue = queue
        self._waiting = select.poll()
        if queue is not None:
            self._waiting.register(queue, select.POLLIN)
        self._owner = os.getpid()
        self._readable = select.poll()
        self._readable.register(stream, select.POLLIN)
        self._writing = threading.Lock()
        self._asking = threading.Lock()

    def send(self, frame: bytes) -> None:
        """Send one JSON array."""
        with self._writing:
            self._stream.sendall(FRAME.pack(len(frame)) + frame)

    def next_request(self) -> bytes | None:
        """The next request's JSON; None once the daemon has no more."""
        if self._queue is None:
            return self.receive()
        while True:
            try:
                packet = self._queue.recv(PACKET_BYTES)
            except BlockingIOError:
                self._waiting.poll()
            else:
                return (request_in(packet) or self.receive()) if packet else None

    def receive(self) -> bytes | None:
        """The next frame's JSON; None once the daemon has closed its end."""
        received = bytearray()
        while True:
            self._readable.poll()  # recv alone would be woken when the daemon reads an answer, too
            piece = self._stream.recv(max(_READ_BYTES, len(received)))
            if not piece:
                return None
            received += piece
            if len(received) >= FRAME.size and len(received) >= FRAME.size + FRAME.unpack_from(received)[0]:
                return bytes(received[FRAME.size :])  # the daemon sends one, then waits

    def ask(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Have the daemon perform ``operation`` for the current call. Raises CallbackRefusedError."""
        if os.getpid() != self._owner:
            raise CallbackRefusedError("only the worker itself can call back, not a process it started")
        with self._asking:  # replies come in the order of the questions
            if not self.call_id:
                raise CallbackRefusedError("no request is being performed")
            message = (CALLBACK, self.call_id, (operation, arguments))
            self.send(orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS))
            reply = self.receive()
        if reply is None:
            os._exit(0)  # the daemon is gone, nobody waits for this worker
        worked, value = orjson.loads(reply)
        if worked:
            return value
        raise CallbackRefusedError(value["message"], value["code"])

    def close(self) -> None:
        """Close this process's end."""
        self._stream.close()
        if self._queue is not None:
            self._queue.close()


_channel: WorkerChannel | None = None


def call(operation: str, arguments: dict[str, Any]) -> Any:
    """Wait for the daemon to perform ``operation``, such as a model turn; returns its JSON answer.

    Raises CallbackRefusedError when nobody handles callbacks of the current call, when none is being
    performed, or with the daemon's own words when the operation failed there.
    """
    if _channel is None:
        raise CallbackRefusedError("there is no daemon to call back: this code does not run in a worker")
    return _channel.ask(operation, arguments)


def use_channel(channel: WorkerChannel) -> None:
    """Send callbacks over ``channel`` from now on. Called once, before any agent is loaded."""
    global _channel
    _channel = channel


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
