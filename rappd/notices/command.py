"""``notify.command``: a program of the owner's choice that runs for each notice. No shell is involved."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agents.programs.programs import DESKTOP, ProgramNotFoundError, find, from_owner, run, why_not_used
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
            arguments = [*arguments_of(command), as_argument(notice.what), as_argument(notice.do)]
            ended = run(arguments, environment=from_owner(*DESKTOP), home=True, seconds=_SECONDS)
        except ProgramNotFoundError as error:
            log.warning("notify.command: %s", error)
        except (UsageProblemError, OSError) as error:
            log.warning("notify.command failed: %s", error)
        else:
            if ended.code:
                log.warning("notify.command ended with %d: %s", ended.code, ended.text[-200:])


def as_argument(text: str) -> str:
    """Returns a notice's text in a form that no program takes for anything but text.

    It may begin with the name that a stranger's machine gives itself: ``--config=…`` would be an option, and
    ``@/etc/passwd`` a file to send after ``curl -d``. ``--`` is no help: not every program knows it.
    """
    return text if not text or text[0].isalnum() or text[0] == "“" else f"Notice: {text}"


class Obstacle(NamedTuple):
    """``what`` keeps a command from being run, as a sentence without its stop, and what to ``do``.

    ``replaceable``: its program lies where agents could write, so it is never run. ``missing``: it may be installed later.
    """

    what: str
    do: str
    replaceable: bool = False
    missing: bool = False


def obstacle_to(command: str) -> Obstacle | None:
    """Returns what keeps a command from being run here and now; None for one that can be run, or is empty."""
    if not command.strip():
        return None
    try:
        program = arguments_of(command)[0]
    except UsageProblemError as problem:
        return Obstacle(str(problem).rstrip("."), problem.do)
    if find(program) is not None:
        return None
    if why := why_not_used(program):
        name = Path(program).name
        do = f"put {name} where only root can write, such as /usr/local/bin; then set notify.command anew"
        return Obstacle(why, do, replaceable=True)
    if Path(program).is_file():
        return Obstacle(f"{program} is no program", f"chmod +x {shlex.quote(program)}")
    do = "install it for the whole system, or name the program by its full path"
    return Obstacle(f"there is no program {program}", do, missing=True)


def refuse_unusable(command: str) -> None:
    """Raises ``UsageProblemError`` for a command that cannot be read or would never be run.

    One whose program is merely not there passes: it may be installed later.
    """
    if not command.strip():
        return
    arguments_of(command)
    found = obstacle_to(command)
    if found is not None and found.replaceable:
        raise UsageProblemError(f"notify.command would never run: {found.what}.", do=found.do)


def arguments_of(command: str) -> list[str]:
    """The words of a command, with quotes as a shell has them. Raises ``UsageProblemError`` for open quotes."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageProblemError(f"notify.command cannot be read: {error}.", do="Close its quotes.") from error
    if not words:
        raise UsageProblemError("notify.command names no program.", do="rappd config unset notify.command")
    return words
