"""The daemon's ends of a worker's sockets: frames on a stream, and the queue of its requests; nothing blocks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

from agents.runtimes.python.worker.protocol import ANSWER_BYTES, FRAME, PACKET_BYTES, PACKET_ID

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
        if len(frame) > PACKET_BYTES - PACKET_ID.size:
            return False
        try:
            self._into.send(PACKET_ID.pack(ident) + frame)
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
                head = self._from.recv(PACKET_ID.size)  # the rest of the packet is dropped
            except OSError:
                return
            if len(head) < PACKET_ID.size:
                return
            yield PACKET_ID.unpack(head)[0]

    def end(self) -> None:
        """Tell the worker that nothing more comes. Idempotent."""
        self._into.close()

    def close(self) -> None:
        """Close both ends. Idempotent."""
        self._into.close()
        self._from.close()
