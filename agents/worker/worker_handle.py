"""The daemon's side of one worker: its stream, the one call it performs, its output, its start and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from typing import Any, Protocol

import orjson

from agents.errors import WorkerGone
from agents.worker.call import Call
from agents.worker.callback_dispatch import start_callback
from agents.worker.fates import fate
from agents.worker.frame_socket import FrameSocket
from agents.worker.leftovers import LeftoverCheck
from agents.worker.output import Output
from agents.worker.plan import CrewPlan
from agents.worker.protocol import ANSWER, CALLBACK, KIND_NAMES, RAISED, READY, REFUSED
from agents.worker.raised import AgentRaised
from agents.worker.template_link import TemplateLink

_log = logging.getLogger(__name__)

_GRACE = 1.0
_START_SECONDS = 20.0


class WorkerOwner(Protocol):
    """The pool of a worker, as the worker tells it what happened."""

    key: str

    def on_ready(self, worker: WorkerHandle) -> None:
        """It can take its first call."""
        ...

    def on_call_ended(self, worker: WorkerHandle) -> None:
        """Its call is over; ``worker.idle`` tells whether it can take another."""
        ...

    def on_ending(self, worker: WorkerHandle) -> None:
        """It takes no more calls."""
        ...

    def on_exit(self, worker: WorkerHandle, unread: Call | None) -> None:
        """It is gone. ``unread`` is a call that it was sent and never read."""
        ...

    def printed(self, pid: int, line: str) -> None:
        """It wrote a line."""
        ...


class WorkerHandle:
    """A worker from its order to its end, which is when its stream is at its end *and* the template has told
    how it ended: only then is every answer read and nothing more to come.

    ``call`` is what the daemon gave it. A frame for any other call is forged: it is dropped and logged, and
    the worker is ended. So is one that has threads or processes left when its call is over.
    """

    def __init__(self, owner: WorkerOwner, template: TemplateLink, plan: CrewPlan) -> None:
        self.plan = plan
        self.pid = 0
        self.ready = False
        self.asking = False  # whether it waits for the answer to a callback
        self.call: Call | None = None
        self.assigned = 0.0  # when it was given its call
        self.used = time.monotonic()  # when its last call ended
        self.sentence = ""  # why the daemon ends it, when the daemon does
        self.refusal: dict[str, Any] | None = None
        self.status: int | None = None
        self.cpu = 0.0
        self.over = False
        self._started = time.monotonic()
        self._finishing = False
        self._owner = owner
        self._template = template
        self._loop = asyncio.get_running_loop()
        self._stream: FrameSocket | None = None
        self._reset = False  # whether it ended with something unread
        self._spoke = False  # whether anything came from it since it was given its call
        self._leftovers: LeftoverCheck | None = None
        self._output: Output | None = None  # from its start on: until then its process id is not known
        self._output_end = -1
        self._stream_ended = False
        self._told_end = False

    @property
    def idle(self) -> bool:
        """Whether it can be given a call."""
        return self.call is None and self.ready and not self.ending

    @property
    def ending(self) -> bool:
        """Whether it takes no more calls."""
        return self._finishing or self._stream_ended or self._told_end or self.sentence != ""

    def order(self, plan_fd: int) -> None:
        """Have the template fork it. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._output_end, output_in = os.pipe()
            except OSError:
                ours.close()
                raise
            try:
                self._template.spawn([plan_fd, theirs.fileno(), output_in], self)
            except OSError:
                ours.close()
                raise
            finally:
                os.close(output_in)
        self._stream = FrameSocket(self._loop, ours, self._heard, self._end_of_stream)

    def give_up(self, why: str) -> None:
        """Report an order that failed."""
        self._stream_ended = True
        self.refused(why)

    def assign(self, call: Call) -> None:
        """Give it ``call``; only while ``idle``."""
        assert self._stream is not None
        self.call = call
        self.assigned = time.monotonic()
        self._spoke = False
        self._stream.send(call.frame)

    def terminate(self, sentence: str) -> None:
        """End it and all it started; ``sentence`` says why, as what follows "the worker "."""
        if self.sentence or self.over:
            return
        self.sentence = sentence
        self._owner.on_ending(self)
        if self._stream is not None:
            self._stream.ignore()
        if self.pid:
            self._template.kill(self.pid)

    def finish(self) -> None:
        """Let it end by itself, which it does at once when it is idle, else after its call."""
        self._finishing = True
        if self.call is None and self._stream is not None and not self._stream_ended:
            self._stream.finish()
            self._loop.call_later(_GRACE, self._lingers, "did not end and was stopped")

    def reply(self, worked: bool, value: Any) -> None:
        """Answer its open callback. Raises TypeError for what is not JSON."""
        if self._stream is None or self.sentence or self._stream_ended:
            return
        frame = orjson.dumps((worked, value), option=orjson.OPT_NON_STR_KEYS)
        self.asking = False
        if not self._stream.send(frame):
            self.terminate("asked without listening and was stopped")

    def end_in_words(self) -> str:
        """How it ended, as what follows "the worker "."""
        return self.sentence or fate(self.status, self.cpu, self.plan.limits.cpu_seconds)

    def tick(self, now: float) -> None:
        """Check its start against the clock."""
        if not self.ready and now - self._started > _START_SECONDS:
            self.terminate(f"did not start within {_START_SECONDS:g} s")

    # told by the template

    def born(self, pid: int) -> None:
        self.pid = pid
        self._leftovers = LeftoverCheck(pid)
        end, self._output_end = self._output_end, -1
        self._output = Output(self._loop, end, lambda line: self._owner.printed(pid, line))
        if self.sentence:
            self._template.kill(pid)

    def refused(self, why: str) -> None:
        self.refusal = {"kind": "OSError", "message": why, "line": 0, "trace": ""}
        self.gone(None, 0.0)

    def gone(self, status: int | None, cpu: float, why: str = "") -> None:
        self.status, self.cpu = status, cpu
        self.sentence = self.sentence or why
        self._told_end = True
        self._owner.on_ending(self)
        self._settle_end()

    # told by the stream

    def _heard(self, content: bytes) -> None:
        try:
            kind, ident, value = orjson.loads(content)
            self._take(kind, ident, value)
        except (ValueError, TypeError, LookupError, AttributeError):
            self.terminate("answered something unreadable and was stopped")

    def _end_of_stream(self, reset: bool) -> None:
        self._reset = reset
        self._stream_ended = True
        self._owner.on_ending(self)
        self._settle_end()

    def _take(self, kind: Any, ident: Any, value: Any) -> None:
        """One frame. Raises one of several errors when it makes no sense."""
        self._spoke = True
        call = self.call
        if kind == ANSWER and call is not None and ident == call.ident:
            self._end_call()
            call.succeed(value)
            self._owner.on_call_ended(self)
            return
        if kind in (READY, REFUSED) and not self.ready and self.refusal is None:
            if kind == REFUSED:
                self.refusal = dict(value)
            else:
                self.ready = True
                self._owner.on_ready(self)
            return
        if kind not in (ANSWER, RAISED, CALLBACK):
            raise ValueError(f"frame of kind {kind}")
        if call is None or ident != call.ident:
            self._drop_forged(kind)
        elif kind == CALLBACK:
            operation, arguments = value
            if self.asking or not isinstance(operation, str) or not isinstance(arguments, dict):
                raise ValueError("not a callback")
            self.asking = True
            start_callback(self, call, operation, arguments)
        elif kind == RAISED:
            problem = raised(value)
            self._end_call()
            call.fail(problem)
            self._owner.on_call_ended(self)

    def _end_call(self) -> None:
        """Its call is answered. It takes the next one only when nothing of this one is left."""
        self.call = None
        self.used = time.monotonic()
        left = self._leftovers.find() if self._leftovers is not None else ""
        if left or self.asking:
            left = left or "an open callback"
            _log.info("worker %s[%d] left %s behind and is replaced", self._owner.key, self.pid, left)
            self.terminate(f"left {left} behind and was stopped")
        elif self._finishing:
            self.finish()
        if self._template.adopts:
            self._template.sweep()

    def _drop_forged(self, kind: int) -> None:
        had = "another call than its own" if self.call is not None else "a call that it does not have"
        _log.warning(
            "security: worker %s[%d] sent %s for %s; that was dropped, and the worker is ended",
            self._owner.key,
            self.pid,
            KIND_NAMES[kind],
            had,
        )
        self.terminate(f"sent {KIND_NAMES[kind]} for {had} and was stopped")

    def _settle_end(self) -> None:
        if self.over:
            return
        if self._told_end and self._stream_ended:
            self._finish_end()
        elif self._told_end:
            self._loop.call_later(_GRACE, self._finish_end)
        else:
            self._loop.call_later(_GRACE, self._lingers, "closed its line to the daemon and was stopped")

    def _lingers(self, sentence: str) -> None:
        if not self._told_end:
            self.terminate(sentence)
            self._loop.call_later(_GRACE, self._finish_end)

    def _finish_end(self) -> None:
        if self.over:
            return
        self.over = True
        if self._stream is not None:
            self._stream.close()
        if self._leftovers is not None:
            self._leftovers.close()
        if self._output is not None:
            self._output.close()
        elif self._output_end >= 0:
            os.close(self._output_end)
        call, self.call = self.call, None
        unread = call if self._reset and not self._spoke else None
        if call is not None and unread is None:
            words = f"The worker {self.end_in_words()}"
            call.fail(WorkerGone(words, do="ask again; see the log for what it printed"))
        self._owner.on_exit(self, unread)


def raised(value: Any) -> AgentRaised:
    """The error that a worker reported. Raises LookupError, TypeError or ValueError for anything else."""
    kind, message, trace = str(value["kind"]), str(value["message"]), str(value["trace"])
    return AgentRaised(kind, message, int(value["line"]), trace)
