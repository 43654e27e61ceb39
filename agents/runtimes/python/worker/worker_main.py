"""A worker's loop: take a request, perform it, answer, until the daemon closes the channel."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from agents.runtimes.python.sandbox.private_paths import explain
from agents.runtimes.python.sandbox.syscalls import LINUX
from agents.runtimes.python.worker import use_notes
from agents.runtimes.python.worker.channel import WorkerChannel
from agents.runtimes.python.worker.protocol import ANSWER, ANSWER_BYTES, RAISED

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
    """Wait for joined threads, which may still be on their way out: the daemon would take them for ones that were left running, and end the worker.

    ``tasks`` is the folder of this process's threads.
    """
    end = 0.0
    with contextlib.suppress(OSError):  # agent code may close any descriptor
        while os.fstat(tasks).st_nlink > _LINKS_WITH_ONE_THREAD and threading.active_count() == 1:
            end = end or time.monotonic() + _THREAD_SECONDS
            if time.monotonic() > end:
                return
            time.sleep(0.0002)


def describe(problem: BaseException, home: str) -> dict[str, Any]:
    """An exception as the daemon needs it: ``{kind, message, line, trace, uses}``; line 0 when unknown."""
    trace = "".join(traceback.format_exception(problem, limit=-30))
    try:
        message = problem.msg if isinstance(problem, SyntaxError) else str(problem)
    except Exception:  # noqa: BLE001 - an exception of agent code may not even be able to name itself
        message = "(its message cannot be read)"
    explanation = use_notes.explain(problem)
    message += explain(problem) if explanation is None else explanation
    return {
        "kind": _clean(type(problem).__name__),
        "message": _clean(message)[:_MESSAGE_CHARACTERS],
        "line": _line_number(problem, home),
        "trace": _clean(trace)[-_TRACE_CHARACTERS:],
        "uses": use_notes.taken(),
    }


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot travel as JSON


def _line_number(problem: BaseException, home: str) -> int:
    if isinstance(problem, SyntaxError) and problem.lineno:
        return problem.lineno
    if isinstance(line := vars(problem).get("perform_line"), int) and line:
        return line
    inside = last = 0
    step: TracebackType | None = problem.__traceback__
    while step is not None:
        last = step.tb_lineno
        if step.tb_frame.f_code.co_filename.startswith(f"{home}/"):
            inside = last
        step = step.tb_next
    return inside or last


SECONDS = 1.0
_MANY = 16


class ZombieReaper:
    """The ended children of this process that nobody here will ask about.

    A child that a ``Popen`` still stands for is left to it. Another is collected when it is found ended
    twice, a while apart: agent code may have forked it and be about to wait for it. A crowd is
    collected at once.
    """

    def __init__(self) -> None:
        self._next = 0.0
        self._seen: set[int] = set()

    def collect(self, *, now: bool = False) -> None:
        """Look, at most once a second unless ``now``."""
        if not LINUX:
            return  # elsewhere, orphans go to the system's first process
        moment = time.monotonic()
        if moment < self._next and not now:
            return
        self._next = moment + SECONDS
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
        except ChildProcessError:
            return
        ended = {pid for pid in _children() if _has_ended(pid)} - _awaited()
        for pid in ended if len(ended) > _MANY else ended & self._seen:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._seen = ended


def _children() -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            found.update(map(int, (thread / "children").read_bytes().split()))
    return found


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False  # the numbers in this /proc are not ours


def _awaited() -> set[int]:
    processes = (one for one in gc.get_objects() if isinstance(one, subprocess.Popen))
    return {process.pid for process in processes if process.returncode is None}
