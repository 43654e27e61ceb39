"""The daemon's side of one worker: its stream, its output, its beginning and its end."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING, Any, cast

import orjson

from agents.worker.fates import fate
from agents.worker.output import Output
from agents.worker.wire import ANSWER_BYTES, FRAME, READY, REFUSED

if TYPE_CHECKING:
    from agents.worker.shift import Shift

_FRAME_BYTES = ANSWER_BYTES + (1 << 20)  # room for what surrounds an answer
_GRACE = 1.0


class WorkerLink(asyncio.Protocol):
    """A worker from its order to its end, which is when its stream is at its end *and* the template has
    told how it ended: only then is every answer read and nothing more to come."""

    def __init__(self, shift: Shift, slot: int) -> None:
        self.slot = slot
        self.pid = 0
        self.ready = False
        self.asking = False  # whether it waits for the answer to a callback
        self.started = time.monotonic()
        self.since = 0.0  # when the request in hand was first seen there
        self.seen = 0  # that request's id
        self.sentence = ""  # why the daemon ends it, when the daemon does
        self.refusal: dict[str, Any] | None = None
        self.status: int | None = None
        self.cpu = 0.0
        self._shift = shift
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._wanted = FRAME.size
        self._output: Output | None = None  # from its birth on: until then nobody knows whose lines they are
        self._output_end = -1
        self._stream_ended = False
        self._told_end = False
        self._over = False

    def order(self, plan: int, queue: int, board: int) -> None:
        """Have the template fork it, with these descriptors. Raises OSError."""
        shift = self._shift
        loop = shift.loop
        ours, theirs = socket.socketpair()
        with theirs:
            self._output_end, output_in = os.pipe()
            try:
                shift.template.spawn(self.slot, [plan, queue, theirs.fileno(), board, output_in], self)
            finally:
                os.close(output_in)
        ours.setblocking(False)
        self._connecting = loop.create_task(self._connect(ours))

    def give_up(self, why: str) -> None:
        """It could not even be ordered."""
        self._stream_ended = True
        self.refused(why)

    async def _connect(self, stream: socket.socket) -> None:
        await self._shift.loop.create_unix_connection(lambda: self, sock=stream)

    def doom(self, sentence: str) -> None:
        """End it and all it started; ``sentence`` says why, as what follows "the worker "."""
        if self.sentence or self._over:
            return
        self.sentence = sentence
        if self.pid:
            self._shift.template.kill(self.pid)

    def reply(self, worked: bool, value: Any) -> None:
        """Answer its open callback. Raises TypeError for what is not JSON."""
        if self._transport is not None and not self._stream_ended:
            frame = orjson.dumps((worked, value), option=orjson.OPT_NON_STR_KEYS)
            self.asking = False
            self._transport.write(FRAME.pack(len(frame)) + frame)
            if self._transport.get_write_buffer_size() > _FRAME_BYTES:
                self.doom("asked without listening and was stopped")

    def end_in_words(self, cpu_limit: float) -> str:
        """What happened to it, as what follows "the worker "."""
        return self.sentence or fate(self.status, self.cpu, cpu_limit)

    # told by the template

    def born(self, pid: int) -> None:
        self.pid = pid
        end, self._output_end = self._output_end, -1
        self._output = Output(self._shift.loop, end, lambda line: self._shift.printed(pid, line))
        if self.sentence:
            self._shift.template.kill(pid)

    def refused(self, why: str) -> None:
        self.refusal = {"kind": "OSError", "message": why, "line": 0, "trace": ""}
        self.gone(None, 0.0)

    def gone(self, status: int | None, cpu: float, why: str = "") -> None:
        self.status, self.cpu = status, cpu
        self.sentence = self.sentence or why
        self._told_end = True
        self._settle_end()

    # told by the stream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        if self._unread:
            self._unread += data
            if len(self._unread) < self._wanted:
                return
            data = bytes(self._unread)
        position, size = 0, len(data)
        self._wanted = FRAME.size
        try:
            while size - position >= FRAME.size:
                (length,) = FRAME.unpack_from(data, position)
                if length > _FRAME_BYTES:
                    raise ValueError(f"frame of {length} bytes")
                end = position + FRAME.size + length
                if end > size:
                    self._wanted = end - position
                    break
                kind, ident, value = orjson.loads(data[position + FRAME.size : end])
                position = end
                if kind == READY:
                    self.ready = True
                    self._shift.staffed = time.monotonic()
                elif kind == REFUSED:
                    self.refusal = dict(value)
                else:
                    self._shift.heard(self, kind, ident, value)
        except (ValueError, TypeError, LookupError, AttributeError):
            self.doom("answered something unreadable and was stopped")
            position = size
        self._unread = bytearray(data[position:])
        self._shift.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stream_ended = True
        self._settle_end()

    def _settle_end(self) -> None:
        if self._over:
            return
        if self._told_end and self._stream_ended:
            self._finish()
        elif self._told_end:
            self._shift.loop.call_later(_GRACE, self._finish)
        else:
            self._shift.loop.call_later(_GRACE, self._lingers)

    def _lingers(self) -> None:
        if not self._told_end:
            self.doom("closed its line to the daemon and was stopped")
            self._shift.loop.call_later(_GRACE, self._finish)

    def _finish(self) -> None:
        if self._over:
            return
        self._over = True
        if self._transport is not None:
            self._transport.abort()
        if self._output is not None:
            self._output.close()
        elif self._output_end >= 0:
            os.close(self._output_end)
        self._shift.lost(self)
