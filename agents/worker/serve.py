"""A worker's loop: take a request, perform it, answer, until the queue ends."""

from __future__ import annotations

import array
import mmap
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import orjson

from agents.worker.board import Board
from agents.worker.line import Line
from agents.worker.orphans import Orphans
from agents.worker.wire import ANSWER, ANSWER_BYTES, END, PACKET, PACKET_BYTES, RAISED, SKIPPED

_TRACE_CHARACTERS = 8000
_MESSAGE_CHARACTERS = 4000


def serve(
    queue: socket.socket, line: Line, board: Board, slot: int, handle: Callable[[str, Any], Any], home: str
) -> None:
    """Perform requests one at a time until the queue is closed and empty.

    A request is claimed on the board first; withdrawn or late ones are then reported as skipped and
    never started. ``home`` is the workspace: the line number of an error is the innermost one in it.
    """
    buffer = bytearray(PACKET_BYTES)
    view = memoryview(buffer)
    room_for_fd = socket.CMSG_SPACE(array.array("i").itemsize)
    taken, doomed, withdrawn = board.taken, board.doomed, board.withdrawn
    receive, unpack, now, getpid = queue.recvmsg_into, PACKET.unpack_from, time.monotonic, os.getpid
    me = getpid()
    orphans = Orphans()
    while True:
        if doomed[slot]:
            signal.pause()  # about to be killed: what is queued belongs to the others
            continue
        size, ancillary, _, _ = receive((buffer,), room_for_fd)
        if size < PACKET.size:
            return
        ident, deadline, number, large = unpack(buffer)
        if ident == END:
            return
        taken[slot] = ident
        failed = False
        if withdrawn[number] or now() >= deadline:
            _drop(ancillary)
            frame = orjson.dumps((SKIPPED, ident, None))
        else:
            line.current = ident
            try:
                op, body = orjson.loads(_fetch(ancillary, large) if large else view[PACKET.size : size])
                value = handle(op, body)
                frame = orjson.dumps((ANSWER, ident, value), option=orjson.OPT_NON_STR_KEYS)
                if len(frame) > ANSWER_BYTES:
                    raise ValueError(f"the answer is {len(frame)} bytes, more than {ANSWER_BYTES}")
            except BaseException as problem:  # noqa: BLE001 - whatever agent code raises is an answer
                failed = True
                frame = orjson.dumps((RAISED, ident, describe(problem, home)))
            if getpid() != me:
                os._exit(0)  # a process that agent code forked came back here; only the worker answers
            line.current = 0
        line.send(frame)
        taken[slot] = 0
        orphans.collect(now=failed)


def describe(problem: BaseException, home: str) -> dict[str, Any]:
    """An exception as the daemon needs it: ``{kind, message, line, trace}``; line 0 when unknown."""
    trace = "".join(traceback.format_exception(problem, limit=-30))
    try:
        message = problem.msg if isinstance(problem, SyntaxError) else str(problem)
    except Exception:  # noqa: BLE001 - an exception of agent code may not even be able to name itself
        message = "(its message cannot be read)"
    return {
        "kind": _clean(type(problem).__name__),
        "message": _clean(message)[:_MESSAGE_CHARACTERS],
        "line": _line_number(problem, home),
        "trace": _clean(trace)[-_TRACE_CHARACTERS:],
    }


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot travel as JSON


def _line_number(problem: BaseException, home: str) -> int:
    if isinstance(problem, SyntaxError) and problem.lineno:
        return problem.lineno
    inside = last = 0
    step: TracebackType | None = problem.__traceback__
    while step is not None:
        last = step.tb_lineno
        if step.tb_frame.f_code.co_filename.startswith(f"{home}/"):
            inside = last
        step = step.tb_next
    return inside or last


def _fetch(ancillary: list[tuple[int, int, bytes]], size: int) -> memoryview:
    for _, kind, data in ancillary:
        if kind == socket.SCM_RIGHTS:
            fd = array.array("i", data)[0]
            try:
                return memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ))
            finally:
                os.close(fd)
    raise OSError("a large request came without its contents")


def _drop(ancillary: list[tuple[int, int, bytes]]) -> None:
    for _, kind, data in ancillary:
        if kind == socket.SCM_RIGHTS:
            for fd in array.array("i", data):
                os.close(fd)
