"""Writing down what a call came to: while the other machine's disk still takes it, where that is told."""

from __future__ import annotations

import asyncio
import logging

from envelopes.envelope import DONE, Envelope
from rappd.dispatch.dispatcher import Dispatcher
from rappd.tenants.tenant import HOST

log = logging.getLogger(__name__)


class ReplyRecorder:
    """Of one call, on its thread."""

    def __init__(self, gate: Dispatcher, thread: str) -> None:
        self._gate = gate
        self._thread = thread
        self._early: Envelope | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, reply: Envelope) -> None:
        """It came, and does not count yet. Should it never, it may come again, and is found."""
        if self._task is None:
            self._early = reply
            writing = self._gate.note(reply, self._thread, workspace=HOST, answers=True)
            self._task = asyncio.ensure_future(writing)
            self._task.add_done_callback(_noted)

    async def end(self, reply: Envelope) -> None:
        """It counts: it is durable when this returns."""
        if self._task is None:
            await self._gate.note(reply, self._thread, workspace=HOST)
            return
        await self._task
        if reply is not self._early:
            await self._gate.note(reply, self._thread, workspace=HOST, late=reply.verb == DONE)


def _noted(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("an answer could not be written down: %s", error)
