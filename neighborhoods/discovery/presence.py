"""The presence of paired peers: a peer is here while its last answer is at most 15 seconds old.

Announcements are no proof, so peers are asked: those that are here every 10 s, those that are away ever more
rarely (5 s to 5 min), and at once when something was received of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

import msgspec

from neighborhoods.discovery.discovered_nodes import Change, DiscoveredNode
from neighborhoods.discovery.interfaces import slept

State = Literal["here", "away"]

_log = logging.getLogger(__name__)


class ProbePolicy(msgspec.Struct, frozen=True):
    """Intervals of probes in seconds, and the number of probes at once."""

    every: float = 10.0
    here: float = 15.0
    first: float = 5.0
    most: float = 300.0
    patience: float = 5.0
    apart: float = 1.0
    at_once: int = 16
    urgent_only: int = 4
    a_second: float = 10.0


class ProbeResult(NamedTuple):
    """``ms`` is the last answer's, None while it is away; ``since`` is microseconds since 1970.

    Of a peer that is here, ``since`` is when it came; of one that is away, when it last gave a sign of
    life, 0 for never.
    """

    state: State
    ms: float | None
    since: int


Probe = Callable[[str], Awaitable[float]]
"""Asks the peer with a fingerprint and returns the milliseconds it took. Any exception means: no answer."""


_SAME_MOMENT = 0.01


class Presence:
    """Asks the watched peers and knows who is here. ``changed(fingerprint, state)`` is told of changes.

    With so many peers that ``a_second`` questions are not enough for one every ``every`` seconds, each is
    asked less often, and counts as here for half as long again as that.
    """

    def __init__(
        self,
        probe: Probe,
        *,
        changed: Callable[[str, State], None] = lambda fingerprint, state: None,
        pace: ProbePolicy | None = None,
    ) -> None:
        self._probe, self._changed, self._pace = probe, changed, pace or ProbePolicy()
        self._watched: dict[str, _Watched] = {}
        self._due: list[tuple[float, int, _Watched]] = []
        self._urgent: dict[str, _Watched] = {}
        self._count = itertools.count()
        self._asking: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._allowance, self._filled_at, self._slept = self._pace.a_second, time.monotonic(), slept()

    def start(self) -> None:
        """Begins to ask; returns at once."""
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="presence")

    async def close(self) -> None:
        """Stops, and gives up the questions under way."""
        tasks = [task for task in (self._task, *self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def watch(self, fingerprint: str, seen_at: int = 0) -> None:
        """Watches a peer from now on; ``seen_at`` is its last sign of life (microseconds since 1970)."""
        if fingerprint not in self._watched:
            watched = self._watched[fingerprint] = _Watched(fingerprint, seen_at, self._pace.first)
            self._plan(watched, 0.0)

    def forget(self, fingerprint: str) -> None:
        """Watches a peer no longer."""
        watched = self._watched.pop(fingerprint, None)
        self._urgent.pop(fingerprint, None)
        if watched is not None:
            watched.turn = -1

    def heard_from(self, fingerprint: str, milliseconds: float | None = None) -> None:
        """Takes a sign of life that proves who it is from: a request of the peer, an answer of it."""
        watched = self._watched.get(fingerprint)
        if watched is not None:
            ago = time.monotonic() - watched.answered_at
            if ago < _SAME_MOMENT and milliseconds is None and fingerprint not in self._urgent:
                return  # thousands come in a second
            lately = ago < self._pace.every / 50
            came = self._reading(watched).state == "away"
            self._lives(watched, milliseconds)
            if not watched.owed:
                self._urgent.pop(fingerprint, None)
            if came and milliseconds is None:
                watched.owed = True  # its answer says how long one takes, and further signs do not
                self._hurry(watched)
            elif not (lately or watched.owed):  # else its next turn was planned just now
                self._plan(watched, self._every())

    def hurry(self, fingerprint: str) -> None:
        """Asks a peer at once, for something hints that it came or went. At most once a second each."""
        watched = self._watched.get(fingerprint)
        if watched is not None:
            self._hurry(watched)

    def tell(self, fingerprint: str) -> None:
        """Asks a peer at once. The question tells it something new, or tries a connection: no sign of life takes its place."""
        watched = self._watched.get(fingerprint)
        if watched is not None:
            watched.owed = True
            self._hurry(watched)

    def left(self, fingerprint: str) -> None:
        """Takes a sure sign that a peer is not here: it said goodbye, or a call did not reach it."""
        watched = self._watched.get(fingerprint)
        if watched is not None:
            watched.backoff = self._pace.first
            self._plan(watched, watched.backoff)
            self._leaves(watched)

    def suspect(self, fingerprint: str) -> None:
        """Asks a peer at once, for a call or a connection failed; if it does not answer now, it is away."""
        watched = self._watched.get(fingerprint)
        if watched is not None:
            watched.suspected = True
            self._hurry(watched)

    def on_sighting(self, change: Change, sighting: DiscoveredNode) -> None:
        """A listener for sightings: what is announced anew is asked after at once, what is only repeated when it is away."""
        watched = self._watched.get(sighting.fingerprint)
        if watched is not None and (change != "heard" or self._reading(watched).state == "away"):
            self._hurry(watched)

    def presence(self, fingerprint: str) -> ProbeResult:
        """Returns the present state of a peer. One that is not watched is away."""
        watched = self._watched.get(fingerprint)
        return ProbeResult("away", None, 0) if watched is None else self._reading(watched)

    def _reading(self, watched: _Watched) -> ProbeResult:
        if watched.answered_at and time.monotonic() - watched.answered_at <= self._here():
            return ProbeResult("here", watched.ms, watched.came_at)
        return ProbeResult("away", None, watched.seen_at)

    def _every(self) -> float:
        return max(self._pace.every, len(self._watched) / (self._pace.a_second * 0.75))

    def _here(self) -> float:
        return max(self._pace.here, 1.5 * self._every() if self._every() > self._pace.every else 0.0)

    def _plan(self, watched: _Watched, seconds: float) -> None:
        watched.turn = next(self._count)
        at = time.monotonic() + seconds * random.uniform(0.9, 1.0)  # noqa: S311 - spread, not secret
        if not self._due or at < self._due[0][0]:
            self._wake.set()
        heapq.heappush(self._due, (at, watched.turn, watched))
        if len(self._due) > 4 * len(self._watched) + 64:
            self._due = [one for one in self._due if one[1] == one[2].turn]
            heapq.heapify(self._due)

    def _hurry(self, watched: _Watched) -> None:
        wait = watched.asked_at + self._pace.apart - time.monotonic()
        if watched.busy:
            watched.again = True
        elif wait > 0:
            self._plan(watched, wait)
        else:
            self._urgent[watched.fingerprint] = watched
            self._wake.set()

    async def _keep(self) -> None:
        while True:
            self._wake.clear()
            wait = self._ask_who_is_due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            now_slept = slept()
            if now_slept - self._slept > 2:
                for watched in self._watched.values():
                    watched.answered_at = 0.0
                    self._hurry(watched)
            self._slept = now_slept

    def _ask_who_is_due(self) -> float:
        """Begins every question that may begin now; returns after how many seconds to look again."""
        pace, now = self._pace, time.monotonic()
        self._allowance = min(pace.a_second, self._allowance + (now - self._filled_at) * pace.a_second)
        self._filled_at = now
        while self._urgent and len(self._asking) < pace.at_once and self._allowance >= 1:
            fingerprint = next(iter(self._urgent))
            self._begin(self._urgent.pop(fingerprint), now)
        while self._due and (self._due[0][0] <= now or self._due[0][1] != self._due[0][2].turn):
            _, turn, watched = self._due[0]
            if turn == watched.turn and watched.fingerprint not in self._urgent:
                if len(self._asking) >= pace.at_once - pace.urgent_only or self._allowance < 1:
                    return 1 / pace.a_second if self._allowance < 1 else 5.0
                self._begin(watched, now)
            heapq.heappop(self._due)
        if self._urgent:
            return 1 / pace.a_second
        return min(5.0, max(0.001, self._due[0][0] - now)) if self._due else 5.0

    def _begin(self, watched: _Watched, now: float) -> None:
        self._allowance -= 1
        watched.asked_at, watched.turn = now, next(self._count)
        owed, watched.busy, watched.again, watched.owed = watched.owed, True, False, False
        task = asyncio.get_running_loop().create_task(self._ask(watched, owed))
        self._asking.add(task)
        task.add_done_callback(self._asked)

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking.discard(task)
        self._wake.set()

    async def _ask(self, watched: _Watched, owed: bool) -> None:
        milliseconds: float | None = None
        try:
            async with asyncio.timeout(self._pace.patience):
                milliseconds = await self._probe(watched.fingerprint)
        except Exception as error:  # noqa: BLE001 - no answer, whatever the reason
            _log.debug("%s did not answer: %r", watched.fingerprint[:4], error)
        finally:
            watched.busy = False
        if self._watched.get(watched.fingerprint) is not watched:
            return
        if milliseconds is None:
            watched.owed = watched.owed or owed
            self._missed(watched)
            if watched.again:
                self._hurry(watched)
        else:
            self._lives(watched, milliseconds)
            if watched.owed:
                self._hurry(watched)
            else:
                self._plan(watched, self._every())

    def _lives(self, watched: _Watched, milliseconds: float | None) -> None:
        before = self._reading(watched).state
        watched.answered_at, watched.seen_at = time.monotonic(), time.time_ns() // 1000
        watched.backoff, watched.suspected = self._pace.first, False
        watched.ms = watched.ms if milliseconds is None else milliseconds
        if before == "away":
            watched.came_at, watched.ms = watched.seen_at, milliseconds
        self._tell(watched, "here")

    def _missed(self, watched: _Watched) -> None:
        if self._reading(watched).state == "here" and not watched.suspected:
            self._plan(watched, min(2.0, self._pace.every / 5))
            return
        self._plan(watched, watched.backoff)
        watched.backoff = min(self._pace.most, watched.backoff * 2)
        self._leaves(watched)

    def _leaves(self, watched: _Watched) -> None:
        watched.answered_at, watched.suspected = 0.0, False
        self._tell(watched, "away")

    def _tell(self, watched: _Watched, state: State) -> None:
        if watched.reported == state:
            return
        watched.reported = state
        try:
            self._changed(watched.fingerprint, state)
        except Exception:  # noqa: BLE001 - a failing listener must not end the probes
            _log.exception("A listener to presence failed")


class _Watched:
    __slots__ = (
        "again",
        "answered_at",
        "asked_at",
        "backoff",
        "busy",
        "came_at",
        "fingerprint",
        "ms",
        "owed",
        "reported",
        "seen_at",
        "suspected",
        "turn",
    )

    def __init__(self, fingerprint: str, seen_at: int, backoff: float) -> None:
        self.fingerprint, self.seen_at, self.backoff = fingerprint, seen_at, backoff
        self.answered_at = 0.0  # monotonic
        self.asked_at = float("-inf")
        self.came_at = 0
        self.ms: float | None = None
        self.reported: State = "away"
        self.turn = -1
        self.busy = self.again = self.suspected = self.owed = False
