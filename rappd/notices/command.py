"""``notify.command``: a program of the owner's choice that runs for each notice. No shell is involved."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable

from agents.runtime.programs import DESKTOP, ProgramNotFoundError, from_owner, run
from rappd.errors import UsageProblemError
from rappd.store.notice_table import Notice

log = logging.getLogger(__name__)

_SECONDS = 10.0
_PAUSE = 1.0
_MOST_WAITING = 20


class NotifyCommand:
    """Runs the command once for each notice, one after the other, at most one a second; failures go to the log."""

    def __init__(self, setting: Callable[[], str]) -> None:
        self._setting = setting
        self._queue: asyncio.Queue[Notice] = asyncio.Queue(_MOST_WAITING)

    def tell(self, notice: Notice) -> None:
        """Queues a notice; with many waiting it is left to the screens."""
        if self._setting() and not self._queue.full():
            self._queue.put_nowait(notice)

    async def follow(self) -> None:
        """Runs the command for what is queued, until it is cancelled."""
        while True:
            notice = await self._queue.get()
            if command := self._setting():
                await asyncio.to_thread(self._run, command, notice)
                await asyncio.sleep(_PAUSE)

    def _run(self, command: str, notice: Notice) -> None:
        try:
            arguments = [*arguments_of(command), notice.what, notice.do]
            ended = run(arguments, environment=from_owner(*DESKTOP), home=True, seconds=_SECONDS)
        except ProgramNotFoundError as error:
            log.warning("notify.command: %s", error)
        except (UsageProblemError, OSError) as error:
            log.warning("notify.command failed: %s", error)
        else:
            if ended.code:
                log.warning("notify.command ended with %d: %s", ended.code, ended.text[-200:])


def arguments_of(command: str) -> list[str]:
    """The words of a command, with quotes as a shell has them. Raises ``UsageProblemError`` for open quotes."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageProblemError(f"notify.command cannot be read: {error}.", do="Close its quotes.") from error
    if not words:
        raise UsageProblemError("notify.command names no program.", do="rappd config unset notify.command")
    return words
