"""A worker's loop: take a request, perform it, answer, until the daemon closes the channel."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import orjson

from agents.workers.channel import WorkerChannel
from agents.workers.protocol import ANSWER, ANSWER_BYTES, RAISED
from agents.workers.syscalls import LINUX
from agents.workers.zombie_reaper import ZombieReaper

_TRACE_CHARACTERS = 8000
_MESSAGE_CHARACTERS = 4000
_LINKS_WITH_ONE_THREAD = 3  # of /proc/self/task: two as any folder, and one for each thread
_THREAD_SECONDS = 0.005


def serve(channel: WorkerChannel, handle: Callable[[str, Any], Any], home: str) -> None:
    """Perform requests one at a time until the daemon closes the channel.

    ``home`` is the workspace: the line number of an error is the innermost one in it.
    """
    me = os.getpid()
    orphans = ZombieReaper()
    tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if LINUX else -1
    while (request := channel.next_request()) is not None:
        ident, op, body = orjson.loads(request)
        channel.call_id = ident
        failed = False
        try:
            value = handle(op, body)
            frame = orjson.dumps((ANSWER, ident, value), option=orjson.OPT_NON_STR_KEYS)
            if len(frame) > ANSWER_BYTES:
                raise ValueError(f"the answer is {len(frame)} bytes, more than {ANSWER_BYTES}")
        except BaseException as problem:  # noqa: BLE001 - whatever agent code raises is an answer
            failed = True
            frame = orjson.dumps((RAISED, ident, describe(problem, home)))
        if os.getpid() != me:
            os._exit(0)  # a process that agent code forked came back here; only the worker answers
        channel.call_id = 0
        request = body = value = None
        if LINUX:
            _wait_for_ended_threads(tasks)
        channel.send(frame)
        orphans.collect(now=failed)
        if not LINUX and threading.active_count() > 1:
            return  # the daemon cannot see threads there


def _wait_for_ended_threads(tasks: int) -> None:
    """Wait for joined threads, which may still be on their way out: the daemon would take them for ones that
    were left running, and end the worker. ``tasks`` is the folder of this process's threads."""
    end = 0.0
    with contextlib.suppress(OSError):  # agent code may close any descriptor
        while os.fstat(tasks).st_nlink > _LINKS_WITH_ONE_THREAD and threading.active_count() == 1:
            end = end or time.monotonic() + _THREAD_SECONDS
            if time.monotonic() > end:
                return
            time.sleep(0.0002)


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
