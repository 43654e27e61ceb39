"""The daemon's end of a worker's stream: length-prefixed frames, read and written without blocking."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from agents.workers.protocol import ANSWER_BYTES, FRAME

_FRAME_BYTES = ANSWER_BYTES + (1 << 20)  # room for what surrounds an answer
_READ_BYTES = 1 << 16
_MOST_BYTES = 1 << 20  # read at once of a long frame


class FrameSocket:
    """Calls ``on_frame(content)`` for each frame and ``on_end(reset)`` once; ``reset`` tells that the other end was closed with something unread.

    Plain descriptors cost a third of what a transport does.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stream: socket.socket,
        on_frame: Callable[[bytes], None],
        on_end: Callable[[bool], None],
    ) -> None:
        stream.setblocking(False)
        self.ended = False
        self._loop = loop
        self._stream = stream
        self._on_frame = on_frame
        self._on_end = on_end
        self._unread = bytearray()
        self._wanted = _READ_BYTES
        self._unsent = bytearray()
        self._reading = True
        loop.add_reader(stream.fileno(), self._read)

    def send(self, content: bytes) -> bool:
        """Send one frame, now or as soon as there is room; False when the other end does not read what it was sent."""
        if self.ended:
            return True
        frame = FRAME.pack(len(content)) + content
        if not self._unsent:
            try:
                sent = self._stream.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:
                return True  # it ended, which reading tells
            if sent == len(frame):
                return True
            frame = frame[sent:]
            self._loop.add_writer(self._stream.fileno(), self._write)
        self._unsent += frame
        return len(self._unsent) <= _FRAME_BYTES

    def read_now(self) -> None:
        """Hear what the other end has said until now."""
        while self._reading and self._read():
            pass

    def finish(self) -> None:
        """Tell the other end that nothing more comes."""
        if not self.ended:
            self._stream.shutdown(socket.SHUT_WR)

    def ignore(self) -> None:
        """Read nothing more of what it says, but its end."""
        self._reading = False
        self._unread.clear()

    def close(self) -> None:
        """Close the socket. Idempotent; ``on_end`` is not called."""
        if self._stream.fileno() >= 0:
            self._loop.remove_reader(self._stream.fileno())
            self._loop.remove_writer(self._stream.fileno())
            self._stream.close()
        self.ended = True

    def _read(self) -> bool:
        """Read once; False when there was nothing."""
        if self.ended:
            return False
        try:
            data = self._stream.recv(self._wanted)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            self._end(True)
            return False
        except OSError:
            data = b""
        if not data:
            self._end(False)
        elif self._reading:
            self._take(data)
        return bool(data)

    def _take(self, data: bytes) -> None:
        if self._unread:
            self._unread += data
            if len(self._unread) < FRAME.size + FRAME.unpack_from(self._unread)[0]:
                return
            data = bytes(self._unread)
            self._unread.clear()
        position, size = 0, len(data)
        while size - position >= FRAME.size and self._reading:
            (length,) = FRAME.unpack_from(data, position)
            end = position + FRAME.size + length
            if end > size and length <= _FRAME_BYTES:
                break
            content = data[position + FRAME.size : end] if length <= _FRAME_BYTES else b""
            position = end
            self._on_frame(content)
        if self._reading and position < size:
            self._unread += data[position:]
        self._wanted = _MOST_BYTES if self._unread else _READ_BYTES

    def _write(self) -> None:
        try:
            sent = self._stream.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._stream.fileno())

    def _end(self, reset: bool) -> None:
        self.close()
        self._on_end(reset)
