"""One question to many peers: a HELLO to all, the first that gets it done, or everything within a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal

import msgspec

from envelopes.envelope import DONE, HELLO, Envelope
from envelopes.errors import ReportableError
from neighborhoods.peer import Peer

Call = Callable[[Peer], Awaitable[Envelope]]
"""Sends a peer its envelope and waits for the final reply."""
Cancel = Callable[[Peer], Awaitable[object]]
"""Tells a peer that its answer is no longer needed. May fail."""

_CANCEL_SECONDS = 5.0


class PeerResult(msgspec.Struct, frozen=True):
    """The result of one peer.

    ``answered``: it did what was asked; ``refused``: it replied with something else (an ERROR); ``failed``:
    it could not be asked, ``trouble`` says why; ``late``: the deadline passed; ``not_needed``: another was
    faster. ``seconds`` is the time it took.
    """

    peer: Peer
    outcome: Literal["answered", "refused", "failed", "late", "not_needed"]
    seconds: float
    reply: Envelope | None = None
    trouble: str = ""
    problem: ReportableError | None = None


class FirstSuccess(msgspec.Struct, frozen=True):
    """``winner`` is the first that was done, None when nobody was; ``heard`` has everyone, as asked."""

    winner: PeerResult | None
    heard: list[PeerResult]


async def hello_all(peers: Iterable[Peer], send: Call, *, within: float = 5.0) -> list[PeerResult]:
    """Says HELLO to every peer at once, and returns what each said, in the order given."""
    return await _gathered(list(peers), send, HELLO, within, None)


async def gather_all(
    peers: Iterable[Peer], call: Call, deadline: float, *, cancel: Cancel | None = None
) -> list[PeerResult]:
    """Asks every peer at once and waits ``deadline`` seconds at most; the order given is kept.

    Who is late, and everybody under way when the waiting task is cancelled, is told by ``cancel``.
    """
    return await _gathered(list(peers), call, DONE, deadline, cancel)


async def first_done(peers: Iterable[Peer], call: Call, cancel: Cancel, deadline: float) -> FirstSuccess:
    """Asks every peer at once. The first DONE wins; everybody still under way is cancelled.

    An ERROR or a peer that cannot be reached does not end the race. Past ``deadline`` seconds, or when the
    waiting task is cancelled, there is no winner, and all that are under way are cancelled.
    """
    race = _FirstSuccess(list(peers), call, DONE)
    winner = None
    try:
        async with asyncio.timeout(deadline):
            while winner is None and race.running:
                winner = await race.next_answered()
    except TimeoutError:
        pass
    finally:
        await race.end(cancel)
    return FirstSuccess(winner, race.result("late" if winner is None else "not_needed"))


async def _gathered(
    peers: list[Peer], call: Call, wanted: str, deadline: float, cancel: Cancel | None
) -> list[PeerResult]:
    race = _FirstSuccess(peers, call, wanted)
    try:
        if race.running:
            await asyncio.wait(race.running, timeout=deadline)
    finally:
        await race.end(cancel)
    return race.result("late")


class _FirstSuccess:
    """One task for each peer, and what came of those that ended."""

    def __init__(self, peers: Sequence[Peer], call: Call, wanted: str) -> None:
        self._call = call
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._tasks = {self._loop.create_task(self._ask(peer)): peer for peer in peers}
        self._stopped_after = 0.0

    @property
    def running(self) -> list[asyncio.Task[PeerResult]]:
        return [task for task in self._tasks if not task.done()]

    async def next_answered(self) -> PeerResult | None:
        """Waits until one more ends; the first in the order asked that did what was wanted."""
        await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
        ended = (task.result() for task in self._tasks if task.done())
        return next((heard for heard in ended if heard.outcome == "answered"), None)

    async def end(self, cancel: Cancel | None) -> None:
        """Stops what is under way and tells those peers so."""
        self._stopped_after = self._loop.time() - self._began
        running = self.running
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        cancelled = [asyncio.ensure_future(cancel(self._tasks[task])) for task in running] if cancel else []
        if cancelled:
            _, hanging = await asyncio.wait(cancelled, timeout=_CANCEL_SECONDS)
            for unheard in hanging:
                unheard.cancel()
            await asyncio.gather(
                *cancelled, return_exceptions=True
            )  # who cannot be told finishes for nothing

    def result(self, stopped: Literal["late", "not_needed"]) -> list[PeerResult]:
        """Everyone in the order asked; ``stopped`` is said of those whose call was ended here."""
        return [
            PeerResult(peer, stopped, self._stopped_after) if task.cancelled() else task.result()
            for task, peer in self._tasks.items()
        ]

    async def _ask(self, peer: Peer) -> PeerResult:
        try:
            reply = await self._call(peer)
        except ReportableError as problem:
            return PeerResult(
                peer, "failed", self._loop.time() - self._began, trouble=str(problem), problem=problem
            )
        outcome: Literal["answered", "refused"] = "answered" if reply.verb == self._wanted else "refused"
        trouble = "" if outcome == "answered" else str(reply.data.get("msg", f"It answered {reply.verb}."))
        return PeerResult(peer, outcome, self._loop.time() - self._began, reply, trouble)
