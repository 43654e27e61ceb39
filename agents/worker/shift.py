"""One queue and the workers that take requests from it, until it is closed and they have gone.

A crew opens a new shift when its plan changes, after idling, and when the last worker of a shift is gone.
At that moment every answer is read and nobody can start anything more, so what was never claimed on the
board is known to be unstarted and goes, once, into the next shift's queue.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import termios
from typing import TYPE_CHECKING, Any

from agents.errors import CallTimeout, WorkerGone, WorkerRefused
from agents.worker.board import QUEUED, Board
from agents.worker.call import Call
from agents.worker.callbacks import begin_callback
from agents.worker.memory import anonymous_file
from agents.worker.plan import CrewPlan
from agents.worker.raised import AgentRaised
from agents.worker.template_link import TemplateLink
from agents.worker.wire import ANSWER, CALLBACK, END, INLINE_BYTES, PACKET, RAISED, SKIPPED, packet_pair
from agents.worker.worker_link import WorkerLink

if TYPE_CHECKING:
    from agents.worker.crew import Crew

_START_SECONDS = 20.0
_VANISHED_SECONDS = 0.25
_BY_CHANCE = (None, -signal.SIGKILL)  # ends of a starting worker that say nothing about what it loads


class Shift:
    """The daemon's end of the queue, the board, and a link to each worker. Making one may raise OSError."""

    def __init__(self, crew: Crew, template: TemplateLink, plan: CrewPlan, encoded: bytes) -> None:
        self.loop = asyncio.get_running_loop()
        self.template = template
        self.plan = plan
        self.sent: dict[int, Call] = {}
        self.workers: dict[int, WorkerLink] = {}
        self.closed = False
        self.staffed = 0.0  # when the last worker became ready
        self.achieved = False  # whether any request was taken from this queue
        self._crew = crew
        with contextlib.ExitStack() as undo:
            self._board = Board.create()
            undo.callback(self._board.close)
            self._plan_fd = anonymous_file(encoded)
            undo.callback(os.close, self._plan_fd)
            self._queue, self._workers_end = packet_pair()
            undo.pop_all()
        self._queue.setblocking(False)
        self._queue.shutdown(socket.SHUT_RD)  # workers must not fill it from their side
        self._free_slots = list(range(plan.most_workers))[::-1]
        self._free_numbers = list(range(QUEUED))
        self._full = False
        self._withdrawn: dict[int, Call] = {}  # over, but perhaps taken in the same moment
        self._vanished = (0, 0.0)
        self._lost_some = False

    # requests

    def offer(self, call: Call) -> bool:
        """Put ``call`` into the queue; False when it has no room now."""
        if self._full or self.closed or not self._free_numbers:
            return False
        number = self._free_numbers.pop()
        body = call.body
        try:
            if len(body) <= INLINE_BYTES:
                self._queue.send(PACKET.pack(call.ident, call.deadline, number, 0) + body)
            else:
                self._send_large(call, number)
        except BlockingIOError:
            self._free_numbers.append(number)
            self._full = True
            self.loop.add_writer(self._queue.fileno(), self._writable)
            return False
        except OSError:  # no descriptors, no memory: it is tried again when the clock ticks
            self._free_numbers.append(number)
            return False
        call.number = number
        self.sent[call.ident] = call
        return True

    def withdraw(self, call: Call, sentence: str) -> bool:
        """Make sure that ``call`` is not started, or not continued. Returns whether a worker was at it;
        that worker is ended, and ``sentence`` is why."""
        self._board.withdrawn[call.number] = 1
        for link in self.workers.values():
            if self._board.taken[link.slot] == call.ident:
                self._board.doomed[link.slot] = 1
                if self._board.taken[link.slot] != call.ident:  # it has just finished: spare it
                    self._board.doomed[link.slot] = 0
                    continue
                link.doom(sentence)
                return True
        self._withdrawn[call.ident] = call
        return False

    def waiting(self) -> Call | None:
        """The oldest request in the queue that nobody has started."""
        taken = {self._board.taken[link.slot] for link in self.workers.values()}
        for ident, call in self.sent.items():
            if ident not in taken and not call.future.done():
                return call
        return None

    # workers

    def hire(self) -> None:
        """Order one more worker, if the plan allows it."""
        if not self._free_slots or self.closed:
            return
        link = WorkerLink(self, self._free_slots.pop())
        self.workers[link.slot] = link
        try:
            link.order(self._plan_fd, self._workers_end.fileno(), self._board.fd)
        except OSError as problem:
            words = problem.strerror or str(problem)
            self.loop.call_soon(link.give_up, words)

    def has_free(self) -> bool:
        """Whether a worker performs nothing at this moment."""
        return not all(self._board.taken[slot] in self.sent for slot in self.workers)

    def flowing(self, since: float) -> int:
        """How many workers get through their requests: none of those has been at one since then. More of
        them than processors would only take turns."""
        return sum(1 for link in self.workers.values() if not link.seen or link.since > since)

    def starting(self) -> bool:
        """Whether a worker was ordered that does not serve yet."""
        return not all(link.ready for link in self.workers.values())

    def close(self) -> None:
        """Close the queue: the workers finish what is in it and end."""
        if not self.closed:
            self._close_queue()
            if not self.workers:
                self._end()

    def stop(self, sentence: str) -> None:
        """End all workers now."""
        self.close()
        for link in list(self.workers.values()):
            link.doom(sentence)

    # told by the links

    def heard(self, link: WorkerLink, kind: int, ident: int, value: Any) -> None:
        """One frame from a worker. Raises one of several errors when it makes no sense."""
        if kind == ANSWER:
            call = self._release(ident)
            if call is not None:
                call.succeed(value)
        elif kind == CALLBACK:
            operation, arguments = value
            begin_callback(link, self.sent.get(ident), operation, arguments)
        elif kind == RAISED:
            problem = _raised(value)
            call = self._release(ident)
            if call is not None:
                call.fail(problem)
        elif kind == SKIPPED:
            call = self._release(ident)
            if call is not None:
                call.fail(not_started(call))
        else:
            raise ValueError(f"frame of kind {kind}")

    def printed(self, pid: int, line: str) -> None:
        """One line that a worker wrote."""
        self._crew.printed(pid, line)

    def pump(self) -> None:
        """There may be room in the queue."""
        self._crew.pump()

    def lost(self, link: WorkerLink) -> None:
        """A worker is gone, and all it had to say was heard."""
        del self.workers[link.slot]
        ident = self._board.taken[link.slot]
        self._board.taken[link.slot] = 0
        self._board.doomed[link.slot] = 0
        self._free_slots.append(link.slot)
        self._lost_some = True
        words = link.end_in_words(self.plan.limits.cpu_seconds)
        call = self._release(ident)
        if call is not None:
            call.fail(WorkerGone(f"The worker {words}", do="ask again; see the log for what it printed"))
        if self.workers:
            self._crew.pump()
            return
        if not link.ready and (link.refusal or link.sentence or link.status not in _BY_CHANCE):
            self._crew.fail_waiting(lambda: _birth_problem(link, words))
        self._end()

    # time

    def tick(self, now: float) -> None:
        """Look at the clock: deadlines, workers that do not start, requests that a dying worker lost."""
        for call in [call for call in self.sent.values() if call.deadline <= now and not call.future.done()]:
            if self.withdraw(call, f"was stopped after {call.timeout:g} s"):
                do = "ask again, or raise its limit"
                call.fail(CallTimeout(f"The call was stopped after {call.timeout:g} s", do=do))
            else:
                call.fail(not_started(call))
        for link in self.workers.values():
            ident = self._board.taken[link.slot]
            if ident != link.seen:
                link.seen, link.since = ident, now
            elif ident in self._withdrawn:  # not being skipped: it was claimed just before the mark was set
                self.withdraw(self._withdrawn[ident], "was stopped, since nobody waits for its answer")
            if not link.ready and now - link.started > _START_SECONDS:
                link.doom(f"did not start within {_START_SECONDS:g} s")
        if self._lost_some and self.workers and not self.closed:
            self._look_for_vanished(now)

    def _look_for_vanished(self, now: float) -> None:
        """A worker killed between taking a request and claiming it takes it along. Then the queue is empty
        and a request stays unclaimed: close, so that it goes into the next shift once these are gone."""
        call = self.waiting()
        if call is None or self._queued_bytes():
            self._vanished = (0, 0.0)
        elif call.ident != self._vanished[0]:
            self._vanished = (call.ident, now)
        elif now - self._vanished[1] > _VANISHED_SECONDS:
            self._crew.replace(self)

    def _queued_bytes(self) -> int:
        size = array.array("i", [0])
        fcntl.ioctl(self._workers_end, termios.FIONREAD, size)
        return size[0]

    def _writable(self) -> None:
        self._full = False
        self.loop.remove_writer(self._queue.fileno())
        self._crew.pump()

    def _release(self, ident: int) -> Call | None:
        call = self.sent.pop(ident, None)
        if call is not None:
            self.achieved = True
            self._withdrawn.pop(ident, None)
            self._board.withdrawn[call.number] = 0
            self._free_numbers.append(call.number)
        return call

    def _send_large(self, call: Call, number: int) -> None:
        fd = anonymous_file(call.body)
        try:
            packet = PACKET.pack(call.ident, call.deadline, number, len(call.body))
            socket.send_fds(self._queue, [packet], [fd])
        finally:
            os.close(fd)

    def _close_queue(self) -> None:
        self.closed = True
        self.loop.remove_writer(self._queue.fileno())
        if sys.platform != "linux":
            for _ in self.workers:
                self._queue.send(PACKET.pack(END, 0.0, 0, 0))
        self._queue.close()

    def _end(self) -> None:
        if not self.closed:
            self._close_queue()
        unstarted = [call for call in self.sent.values() if not call.future.done()]
        self.sent.clear()
        self._workers_end.close()
        self._board.close()
        os.close(self._plan_fd)
        self._crew.ended(self, unstarted)


def not_started(call: Call) -> CallTimeout:
    """The error of a call whose time passed before any worker began it."""
    return CallTimeout(
        f"The call waited {call.timeout:g} s for a free worker and was not started",
        do="ask again, or allow more workers",
    )


def _raised(value: Any) -> AgentRaised:
    kind, message, trace = str(value["kind"]), str(value["message"]), str(value["trace"])
    return AgentRaised(kind, message, int(value["line"]), trace)


def _birth_problem(link: WorkerLink, words: str) -> Exception:
    if link.refusal is None:
        return WorkerGone(f"The worker {words} before it could serve", do="see the log for what it printed")
    what = _raised(link.refusal)
    problem = WorkerRefused(f"The worker could not be started: {what}", do="see the log")
    problem.__cause__ = what
    return problem
