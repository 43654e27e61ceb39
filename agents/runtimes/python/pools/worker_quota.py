"""Limits the workers of several pools together: all that run one workspace's code."""

from __future__ import annotations

from typing import Protocol


class LimitedPool(Protocol):
    """A pool whose workers are counted."""

    @property
    def occupying(self) -> int:
        """The number of its workers that count: all but those that end, or wait for the daemon."""
        ...

    @property
    def waiting_since(self) -> float:
        """The time when its oldest unassigned call came; ``inf`` for none."""
        ...

    def idle_since(self) -> float:
        """Since when its longest idle worker is idle; ``inf`` for none."""
        ...

    def release_idle(self) -> None:
        """End its longest idle worker."""
        ...

    def pump(self) -> None:
        """Assign what waits, and start a worker where one is needed."""
        ...


class WorkerQuota:
    """At most ``limit`` workers at work in all pools that joined.

    A worker that waits for the answer to a callback does not count: what it asked for may need a worker.
    """

    def __init__(self, limit: int) -> None:
        self.refused = False  # whether a pool waits for a worker that it was refused
        self._limit = limit
        self._pools: list[LimitedPool] = []

    def join(self, pool: LimitedPool) -> None:
        """Count the workers of ``pool``, too."""
        self._pools.append(pool)

    def leave(self, pool: LimitedPool) -> None:
        """Count them no more."""
        self._pools.remove(pool)

    def admit(self, pool: LimitedPool) -> bool:
        """Return whether ``pool`` may start a worker now; an idle one of another pool is ended for it."""
        if sum(one.occupying for one in self._pools) < self._limit:
            return True
        others = [one for one in self._pools if one is not pool]
        longest = min(others, key=lambda one: one.idle_since(), default=None)
        if longest is None or longest.idle_since() == float("inf"):
            self.refused = True
            return False
        longest.release_idle()
        return True

    def pass_on(self, pool: LimitedPool) -> bool:
        """Return whether a worker of ``pool`` that just became idle should end, for a pool that has none and has waited longer."""
        starved = [one for one in self._pools if not one.occupying and one.waiting_since != float("inf")]
        self.refused = bool(starved)
        if sum(one.occupying for one in self._pools) < self._limit:
            return False
        since = pool.waiting_since
        return any(one.waiting_since < since for one in starved)

    def pump(self) -> None:
        """Let the pools that wait try again, the one that waited longest first."""
        for pool in sorted(self._pools, key=lambda one: one.waiting_since):
            if pool.waiting_since == float("inf"):
                return
            pool.pump()
