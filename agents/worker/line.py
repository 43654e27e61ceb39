"""A worker's own stream to the daemon: answers go out, callbacks go out and come back."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

import orjson

from agents.worker.wire import CALLBACK, FRAME


class CallbackRefused(Exception):
    """The daemon did not do what was asked; the text says why. ``code`` is the error's slug."""

    def __init__(self, message: str, code: str = "callback") -> None:
        super().__init__(message)
        self.code = code


class Line:
    """The worker's end. ``current`` is the id of the request being performed, 0 between requests."""

    def __init__(self, stream: socket.socket) -> None:
        self.current = 0
        self._stream = stream
        self._owner = os.getpid()
        self._writing = threading.Lock()
        self._asking = threading.Lock()

    def send(self, frame: bytes) -> None:
        """Send one JSON array."""
        with self._writing:
            self._stream.sendall(FRAME.pack(len(frame)) + frame)

    def ask(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Have the daemon perform ``operation`` for the current request; raises CallbackRefused."""
        if os.getpid() != self._owner:
            raise CallbackRefused("only the worker itself can call back, not a process it started")
        frame = orjson.dumps((CALLBACK, self.current, (operation, arguments)), option=orjson.OPT_NON_STR_KEYS)
        with self._asking:  # replies come in the order of the questions
            self.send(frame)
            (length,) = FRAME.unpack(self._receive(FRAME.size))
            worked, value = orjson.loads(self._receive(length))
        if worked:
            return value
        raise CallbackRefused(value["message"], value["code"])

    def _receive(self, size: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < size:
            piece = self._stream.recv(min(size - len(chunks), 1 << 20))
            if not piece:
                os._exit(0)  # the daemon is gone, nobody waits for this worker
            chunks += piece
        return bytes(chunks)
