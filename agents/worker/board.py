"""The memory that a crew's workers and the daemon share: who performs what, and what was withdrawn."""

from __future__ import annotations

import mmap
import os

from agents.worker.memory import anonymous_file, fix_size

WORKERS = 64  # at most so many workers in a crew
QUEUED = 256  # at most so many requests in the queue and in hand

_DOOMED = WORKERS * 8
_WITHDRAWN = _DOOMED + WORKERS
_SIZE = 4096


class Board:
    """One page shared by ``fd``.

    ``taken[slot]`` is the id of the request that the worker in that slot performs, 0 for none; the
    worker writes it *before* it looks whether the request was withdrawn. ``doomed[slot]`` asks a worker
    to take nothing more, since it is about to be killed. ``withdrawn[number]`` marks a queued request,
    by the number in its packet, that must not be started.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._whole = memoryview(self._map)
        self.taken = self._whole[:_DOOMED].cast("Q")
        self.doomed = self._whole[_DOOMED:_WITHDRAWN]
        self.withdrawn = self._whole[_WITHDRAWN : _WITHDRAWN + QUEUED]

    @classmethod
    def create(cls) -> Board:
        """A new page of zeros. No worker can cut it short, which would crash the daemon."""
        fd = anonymous_file(bytes(_SIZE))
        fix_size(fd)
        return cls(fd)

    def close(self) -> None:
        """Give the page back; the views must not be used any more."""
        for view in (self.taken, self.doomed, self.withdrawn, self._whole):
            view.release()
        self._map.close()  # it holds a descriptor of its own
        os.close(self.fd)
