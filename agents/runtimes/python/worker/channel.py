"""A worker's connection to the daemon: requests come in, answers and callbacks go out."""

from __future__ import annotations

import os
import select
import socket
import threading
from typing import Any

import orjson

from agents.runtimes.python.worker.protocol import CALLBACK, FRAME, PACKET_BYTES, PACKET_ID

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


def request_in(packet: bytes) -> bytes:
    """The request in a packet; empty when it comes over the stream."""
    return packet[PACKET_ID.size :]
