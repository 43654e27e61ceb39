"""The kernel's own asynchronous sync: on the event loop, with no thread that has to be woken twice for it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rappd.store.syncing import Waiting

if TYPE_CHECKING:
    from caio import linux_aio

log = logging.getLogger(__name__)

MOST = 8
"""Under way at once."""
_ERRNO_BITS = 1 << 64
_REFUSED = (OSError, OverflowError, SystemError, ValueError)
"""What caio makes of the kernel's errors."""


class KernelSync:
    """Used on the event loop. Where there is no such thing (another system, another processor, a kernel that has no
    more of it to give), every ``put`` is refused, and a thread syncs instead."""

    def __init__(self, told: Callable[[Waiting, OSError | None], None]) -> None:
        """``told(waiting, error)`` is called on the loop."""
        self._told = told
        self._context: linux_aio.Context | None = None
        self._opening: threading.Thread | None = None
        self._is_heard = self._finished = False
        self._under_way = 0
        self._none: asyncio.Future[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether any is under way."""
        return self._under_way > 0

    def put(self, waiting: Waiting, descriptor: int) -> bool:
        """These wait for all that was written to that file until now. False: a thread has to do it."""
        if self._context is None or self._under_way >= MOST or self._finished:
            if self._opening is None and not self._finished:
                self._opening = threading.Thread(target=self._open, name="store-kernel-sync", daemon=True)
                self._opening.start()  # to import it takes long
            return False
        if not self._is_heard:
            asyncio.get_running_loop().add_reader(self._context.fileno, self._hear)
            self._is_heard = True

        def over(result: int) -> None:
            self._over(waiting, result)

        sync = self._sync_of(descriptor)
        sync.set_callback(over)
        try:
            if self._context.submit(sync) != 1:
                return False
        except _REFUSED:
            return False
        self._under_way += 1
        # The kernel's worker has this thread's core: it passes the sync on to the disk now, not after this round.
        os.sched_yield()
        return True

    async def finish(self) -> None:
        """Returns once none is under way; from its call on, every ``put`` is refused."""
        self._finished = True
        if self._under_way:
            self._none = asyncio.get_running_loop().create_future()
            await self._none
        if self._context is not None and self._is_heard:
            asyncio.get_running_loop().remove_reader(self._context.fileno)
            self._is_heard = False

    def _open(self) -> None:
        try:
            from caio import linux_aio

            context = linux_aio.Context(max_requests=MOST)
        except (ImportError, *_REFUSED) as error:
            log.info("a thread waits for the disk: %s", error)
        else:
            os.set_inheritable(context.fileno, False)
            self._sync_of = linux_aio.Operation.fdsync
            self._context = context

    def _hear(self) -> None:
        assert self._context is not None
        with suppress(BlockingIOError):
            self._context.poll()
        self._context.process_events()

    def _over(self, waiting: Waiting, result: int) -> None:
        self._under_way -= 1
        number = _ERRNO_BITS - result if result else 0
        self._told(waiting, OSError(number, os.strerror(number)) if number else None)
        if not self._under_way and self._none is not None and not self._none.done():
            self._none.set_result(None)
