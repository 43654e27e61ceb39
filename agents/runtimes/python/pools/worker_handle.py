"""The daemon's side of one worker: its stream, the calls it was given, its output, its start and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from collections.abc import Hashable
from typing import Any, Protocol

import msgspec
import orjson

from agents.errors import AgentError, WorkerDiedError
from agents.runtimes.python.network.host_proxy import Upstream
from agents.runtimes.python.network.way_out import WayOut
from agents.runtimes.python.pools.call import Call, LeftoverCheck, read_callback, start_callback
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.errors import AgentRaisedError, describe_exit
from agents.runtimes.python.pools.zygote_client import ZygoteClient
from agents.runtimes.python.sandbox.needs import Use, checked_uses
from agents.runtimes.python.sandbox.syscalls import LINUX
from agents.runtimes.python.worker.frame_socket import FrameSocket, RequestQueue
from agents.runtimes.python.worker.printed_output import Output
from agents.runtimes.python.worker.protocol import (
    ANSWER,
    CALLBACK,
    KIND_NAMES,
    NOTE_BYTES,
    RAISED,
    READY,
    REFUSED,
)

_log = logging.getLogger(__name__)

_GRACE = 1.0
_START_SECONDS = 20.0
_WAIT = 0.02  # seconds that a call may be expected to wait behind others
_NOT_QUICK = 2 * _WAIT  # what a call is taken to last before any was seen
_SLOW = 0.02  # seconds after which those that were sent behind a call are taken back
_UNREAD_SECONDS = 1.0  # after which a worker that has not read its call is ended, and another takes it
_AHEAD = 64  # calls that it is sent besides the one it performs
_LOOK_SECONDS = 0.005  # between two looks for leftovers while calls follow each other
_FRAME = re.compile(rb"\s*\[\s*([0-4])\s*,\s*(\d{1,20})\s*,")  # up to its value, which is read for its kind
_UNREADABLE = "answered something unreadable and was stopped"


class WorkerOwner(Protocol):
    """The pool of a worker, as the worker tells it what happened."""

    key: str

    def on_ready(self, worker: WorkerHandle) -> None:
        """The worker can take its first call."""
        ...

    def on_call_ended(self, worker: WorkerHandle) -> None:
        """A call of it is over; ``worker.idle`` tells whether it can take another."""
        ...

    def on_ending(self, worker: WorkerHandle) -> None:
        """The worker takes no more calls."""
        ...

    def on_taken_back(self, calls: list[Call]) -> None:
        """The worker did not start ``calls`` and never will."""
        ...

    def on_exit(self, worker: WorkerHandle, unread: Call | None) -> None:
        """The worker is gone. ``unread`` is a call that it was sent and never read."""
        ...

    def printed(self, pid: int, line: str) -> None:
        """The process ``pid`` wrote a line."""
        ...

    def is_own_port(self, port: int) -> bool:
        """True for a port of this machine at which rappd itself listens."""
        ...


class WorkerHandle:
    """A worker from its order to its end.

    The end is when its stream is at its end *and* the zygote has reported the exit: only then is every answer
    read and nothing more to come.

    It performs one call after another: ``call`` is the one it is at, and a frame for any other is forged: it
    is dropped and logged, and the worker is ended. So is one that has threads or processes left when it is
    done with what it has. While its calls are quick, others of the same agent and caller are sent ahead; what
    it has not read can be taken back.
    """

    def __init__(self, owner: WorkerOwner, zygote: ZygoteClient, plan: PoolConfig) -> None:
        self.plan = plan
        self.pid = 0
        self.ready = False  # whether it can serve, and its process id is known
        self.asking = False  # whether it waits for the answer to a callback
        self.calls: dict[int, Call] = {}  # what it was given, in order
        self.assigned = 0.0  # when it began with the first of them
        self.used = time.monotonic()  # when its last call ended
        self.sentence = ""  # why the daemon ends it, when the daemon does
        self.refusal: AgentRaisedError | None = None
        self.status: int | None = None
        self.cpu = 0.0
        self.over = False
        self._started = time.monotonic()
        self._finishing = False
        self._owner = owner
        self._zygote = zygote
        self._loop = asyncio.get_running_loop()
        self._stream: FrameSocket | None = None
        self._reset = False  # whether it ended with something unread
        self._spoke = False  # whether anything came from it since it was given its call
        self._streamed = False  # whether its call was sent over the stream
        self._average = _NOT_QUICK  # seconds that its last calls took
        self._together: Hashable | None = None  # of the calls that the average is of
        self._queue: RequestQueue | None = None
        self._leftovers: LeftoverCheck | None = None
        self._looked = 0.0  # when it was last looked at for leftovers
        self._way_out: WayOut | None = None  # where its code declares hosts
        self._output: Output | None = None  # from its start on: until then its process id is not known
        self._output_end = -1
        self._said_ready = False
        self._stream_ended = False
        self._told_end = False

    @property
    def call(self) -> Call | None:
        """The call that it is at."""
        return next(iter(self.calls.values())) if self.calls else None

    @property
    def idle(self) -> bool:
        """True when it has no call and can be given one."""
        return not self.calls and self.ready and not self.ending

    def takes_ahead(self, call: Call) -> bool:
        """True when ``call`` may be sent while the worker is at another call.

        Only where every call it has is of the same agent and caller: then nothing can be read that is not
        theirs.
        """
        now = self.call
        return (
            now is not None
            and now.together is not None
            and now.together == call.together
            and len(self.calls) <= _AHEAD
            and len(self.calls) * self._average < _WAIT
            and not (self.asking or self._streamed or self.ending)
        )

    @property
    def ending(self) -> bool:
        """True when it takes no more calls."""
        return self._finishing or self._stream_ended or self._told_end or self.sentence != ""

    def spawn(self, plan_fd: int) -> None:
        """Have the zygote fork it. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._queue = RequestQueue() if LINUX else None
                self._output_end, output_in = os.pipe()
            except OSError:
                ours.close()
                raise
            queue = [self._queue.worker_end] if self._queue is not None else []
            try:
                self._zygote_spawn([plan_fd, theirs.fileno(), output_in, *queue])
            except OSError:
                ours.close()
                raise
            finally:
                os.close(output_in)
        self._stream = FrameSocket(self._loop, ours, self._on_frame, self._on_stream_end)

    def _zygote_spawn(self, fds: list[int]) -> None:
        needs = self.plan.needs
        if needs is None or not needs.hosts or not LINUX:
            self._zygote.spawn(fds, self)
            return
        env, owner = self.plan.env, self._owner
        self._way_out = WayOut(needs.servers(env), self._on_host, owner.is_own_port, Upstream.of(env))
        with self._way_out.worker_end() as network:
            self._zygote.spawn([*fds, network], self)

    def _on_host(self, name: str, given: bool) -> None:
        if (call := self.call) is not None and call.on_use is not None:
            call.on_use(name, given)

    def give_up(self, why: str) -> None:
        """Report an order that failed."""
        self._stream_ended = True
        self.on_failed(why)

    def assign(self, call: Call) -> None:
        """Give it ``call``; only while ``idle``."""
        assert self._stream is not None
        self.calls[call.ident] = call
        self.assigned = time.monotonic()
        self._spoke = False
        if call.together != self._together:
            self._together, self._average = call.together, _NOT_QUICK
        self._streamed = self._queue is None or not self._queue.put(call.ident, call.frame)
        if not self._streamed:
            return
        if self._queue is None or self._queue.put_notice(call.ident):
            self._stream.send(call.frame)
        else:
            del self.calls[call.ident]
            self._owner.on_taken_back([call])
            self.terminate("took no more requests and was stopped")

    def assign_ahead(self, call: Call) -> bool:
        """Send it ``call`` behind those it has; only when ``takes_ahead`` says so.

        False when there is no room for it.
        """
        if self._queue is None or not self._queue.put(call.ident, call.frame):
            return False
        self.calls[call.ident] = call
        return True

    def take_back(self) -> None:
        """Give the calls that it has not begun back to its owner."""
        if unread := self._take_unread():
            self._owner.on_taken_back(unread)

    def _take_unread(self) -> list[Call]:
        if self._queue is None or self._streamed:
            return []
        return [self.calls.pop(ident) for ident in self._queue.take_back() if ident in self.calls]

    def settle(self) -> None:
        """Take back what it has not begun, and hear what it has said: it has the call that it is at, or none."""
        if self.ending or self._stream is None or not self.calls:
            return
        self.take_back()
        if self.calls:
            self._stream.read_now()
        else:
            self._owner.on_call_ended(self)

    def terminate(self, sentence: str) -> None:
        """End it and all it started; ``sentence`` says why, as what follows "the worker "."""
        if self.sentence or self.over:
            return
        self.sentence = sentence
        self.take_back()
        self._owner.on_ending(self)
        if self._stream is not None:
            self._stream.ignore()
        if self.pid:
            self._zygote.kill(self.pid)

    def finish(self) -> None:
        """Let it end by itself, which it does at once when it is idle, else after the call that it is at."""
        self._finishing = True
        self.take_back()
        if not self.calls and self._stream is not None and not self._stream_ended:
            if self._queue is not None:
                self._queue.end()
            self._stream.finish()
            self._loop.call_later(_GRACE, self._force_end, "did not end and was stopped")

    def reply(self, worked: bool, value: Any) -> None:
        """Answer its open callback. Raises TypeError for what is not JSON."""
        if self._stream is None or self.sentence or self._stream_ended:
            return
        frame = orjson.dumps((worked, value), option=orjson.OPT_NON_STR_KEYS)
        self.asking = False
        if not self._stream.send(frame):
            self.terminate("asked without listening and was stopped")

    def end_in_words(self) -> str:
        """The worker's end in words, as what follows "the worker "."""
        return self.sentence or describe_exit(self.status, self.cpu, self.plan.limits.cpu_seconds)

    def tick(self, now: float) -> None:
        """Check its start against the clock, and let nothing wait behind a slow call."""
        if len(self.calls) > 1 and now - self.assigned > _SLOW:
            self._average = _NOT_QUICK
            self.settle()
        if self.calls and now - self.assigned > _UNREAD_SECONDS:
            at = self.call
            self.take_back()
            if self.call is not at:
                self.terminate("took no request and was stopped")
        if not self.ready and now - self._started > _START_SECONDS:
            self.terminate(f"did not start within {_START_SECONDS:g} s")

    # told by the zygote

    def on_started(self, pid: int) -> None:
        self.pid = pid
        self._leftovers = LeftoverCheck(pid)
        end, self._output_end = self._output_end, -1
        if end >= 0:  # closed where it was given up before it was known: its number may be another file's now
            self._output = Output(self._loop, end, lambda line: self._owner.printed(pid, line))
        if self.sentence:
            self._zygote.kill(pid)
        self._begin()

    def on_failed(self, why: str) -> None:
        self.refusal = AgentRaisedError("OSError", why)
        self.on_exit(None, 0.0)

    def on_exit(self, status: int | None, cpu: float, why: str = "") -> None:
        self.status, self.cpu = status, cpu
        self.sentence = self.sentence or why
        self._told_end = True
        self._owner.on_ending(self)
        self._settle_end()

    # told by the stream

    def _on_frame(self, content: bytes) -> None:
        head, content = _FRAME.match(content), content.rstrip()
        try:
            if head is None or not content.endswith(b"]"):
                raise ValueError("not a frame")
            self._handle_frame(int(head[1]), int(head[2]), content[head.end() : -1])
        except (ValueError, TypeError, RecursionError):
            self.terminate(_UNREADABLE)

    def _on_stream_end(self, reset: bool) -> None:
        self._reset = reset
        self._stream_ended = True
        self._owner.on_ending(self)
        self._settle_end()

    def _handle_frame(self, kind: int, ident: int, value: bytes) -> None:
        """One frame with its value as JSON. Raises ValueError, TypeError or RecursionError when it makes no sense."""
        self._spoke = True
        call = self.call
        if kind == ANSWER and call is not None and ident == call.ident:
            self._take_answer(call, value)
            return
        if kind in (READY, REFUSED):
            if self._said_ready or self.refusal is not None:
                raise ValueError(f"frame of kind {kind}")
            if kind == REFUSED:
                self.refusal = raised(value)
            else:
                self._said_ready = True
                self._begin()
            return
        if call is None or ident != call.ident:
            self._drop_forged(kind)
        elif kind == CALLBACK:
            operation, arguments = read_callback(value)
            if self.asking:
                raise ValueError("not one callback at a time")
            self.asking = True
            self.take_back()
            start_callback(self, call, operation, arguments)
        elif kind == RAISED:
            problem = raised(value)
            self._end_call(call)
            call.fail(problem)
            self._owner.on_call_ended(self)

    def _take_answer(self, call: Call, value: bytes) -> None:
        try:
            answer = call.read(value)
        except Exception as problem:  # noqa: BLE001 - agent code wrote it, and whatever it does is this call's failure
            _log.warning("worker %s[%d] sent a wrong answer: %.500s", self._owner.key, self.pid, problem)
            words = "The agent's worker sent an answer that is none"
            call.fail(
                AgentError(words, do="see the log, and ask the author of the agent", code="wrong_answer")
            )
            self.terminate(_UNREADABLE)
            return
        self._end_call(call)
        call.succeed(answer)
        self._owner.on_call_ended(self)

    def _begin(self) -> None:
        """Take calls, once it said that it can and is watched: both are told in either order."""
        if self._said_ready and self.pid and not self.ready:
            self.ready = True
            self._owner.on_ready(self)

    def _end_call(self, call: Call) -> None:
        """``call`` is answered.

        Others of the same caller may be sent ahead: then what is left running may be of the next, and is
        looked for now and then. Else it takes another call only if nothing is left.
        """
        del self.calls[call.ident]
        now = time.monotonic()
        self._average += (now - self.assigned - self._average) / 8
        self.assigned = self.used = now
        self._streamed = False
        left = ""
        if self._leftovers is not None and (not self.calls or now - self._looked > _LOOK_SECONDS):
            self._looked = now
            left = self._leftovers.find()
        if left and self.calls:
            self._average = _NOT_QUICK
            self.take_back()
        if (left and not self.calls) or self.asking:
            left = left or "an open callback"
            _log.info("worker %s[%d] left %s behind and is replaced", self._owner.key, self.pid, left)
            self.terminate(f"left {left} behind and was stopped")
        elif self._finishing and not self.calls:
            self.finish()
        if self._zygote.adopts:
            self._zygote.sweep()

    def _drop_forged(self, kind: int) -> None:
        had = "another call than its own" if self.calls else "a call that it does not have"
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
            self._loop.call_later(_GRACE, self._force_end, "closed its line to the daemon and was stopped")

    def _force_end(self, sentence: str) -> None:
        if not self._told_end:
            self.terminate(sentence)
            self._loop.call_later(_GRACE, self._finish_end)

    def _finish_end(self) -> None:
        if self.over:
            return
        self.over = True
        first, unread = self.call, self._take_unread()
        lost = unread.pop(0) if unread and unread[0] is first else None
        if unread:
            self._owner.on_taken_back(unread)
        if self._stream is not None:
            self._stream.close()
        if self._queue is not None:
            self._queue.close()
        if self._leftovers is not None:
            self._leftovers.close()
        if self._way_out is not None:
            self._way_out.close()
        if self._output is not None:
            self._output.close()
        elif self._output_end >= 0:
            os.close(self._output_end)
            self._output_end = -1
        calls = list(self.calls.values())
        self.calls.clear()
        if calls and self._streamed and self._reset and not self._spoke:
            lost = calls.pop()
        for call in calls:
            words = f"The worker {self.end_in_words()}"
            call.fail(WorkerDiedError(words, do="ask again; see the log for what it printed"))
        self._owner.on_exit(self, lost)


class _Raised(msgspec.Struct):
    kind: str
    message: str
    line: int
    trace: str
    uses: list[Use] = []


_read_raised = msgspec.json.Decoder(_Raised).decode


def raised(value: bytes) -> AgentRaisedError:
    """The error that a worker reported. Raises ValueError or RecursionError for anything else."""
    if len(value) > NOTE_BYTES:
        raise ValueError("a report that is too long")
    found = _read_raised(value)
    return AgentRaisedError(found.kind, found.message, found.line, found.trace, checked_uses(found.uses))
