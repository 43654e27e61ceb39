"""The list of what waits for the owner, on phones that may see it: news are dismissed there, code and plans are read and answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from envelopes.errors import ReportableError
from rappd.dispatch.rights import Right
from rappd.errors import ConflictError
from rappd.sessions.participants import caller_of
from rappd.tether.devices import APPROVE, NOTICES, Device
from rappd.tether.phone_session import Answer

log = logging.getLogger(__name__)

MOST_ROWS = 40


class OwnersList(Protocol):
    """All that waits for the owner."""

    async def rows(self) -> list[dict[str, Any]]:
        """A row for each matter: ``key``, ``what``, ``at``, ``news``; ``kind`` and ``sha256`` where a phone may answer."""
        ...

    async def matter(self, key: str) -> dict[str, Any]:
        """The whole of one that a phone may answer. Raises ``ReportableError``."""
        ...

    async def answer(self, key: str, sha256: str, yes: bool, by: str, device: str) -> str:
        """Answers it; returns what came of it. Raises ``ReportableError``, ``ConflictError`` for other bytes."""
        ...

    async def dismiss(self, key: str) -> None:
        """Removes one of the news. Raises ``NotFoundError``, also for what waits for an answer, ``StoreError``."""
        ...


class Screen(Protocol):
    """A phone's connection."""

    @property
    def speaker(self) -> Device | None:
        """The device with the rights that it has over this connection."""
        ...

    def withholds(self, right: Right) -> bool:
        """True for a right of the device that this connection does not give it; the phone is told so."""
        ...

    def show(self, message: dict[str, Any]) -> None:
        """Sends a message."""
        ...


class PhoneWaiting:
    """All calls come from the event loop. A phone gets the list again only when it is another one."""

    def __init__(self, owners: OwnersList) -> None:
        self._owners = owners
        self._tasks: dict[Screen, asyncio.Task[None]] = {}
        self._again: set[Screen] = set()
        """Phones whose list changed while it was read."""
        self._shown: dict[Screen, dict[str, Any]] = {}
        self._doing: set[asyncio.Task[None]] = set()

    def show(self, screen: Screen) -> None:
        """Shows a phone what it may see, soon, if that changed since."""
        if screen in self._tasks:
            self._again.add(screen)
        else:
            task = self._tasks[screen] = asyncio.ensure_future(self._show(screen, self._owners))
            task.add_done_callback(lambda done: self._done(screen, done))

    def dismiss(self, screen: Screen, key: str) -> None:
        """A phone's owner has read one of the news. A phone without the right is refused."""
        device = screen.speaker
        if device is None or screen.withholds(NOTICES):
            return
        if not may_see(device):
            text = f"This phone may not. The owner can allow it: rappd devices scopes {device.name} --notices"
            screen.show({"type": "refused", "event_id": "", "error": text})
            return
        self._do(self._dismiss(screen, self._owners, key))

    def look(self, screen: Screen, key: str) -> None:
        """A phone's owner reads what waits. A phone without the right to answer is refused."""
        if self._may_answer(screen):
            self._do(self._look(screen, key))

    def answer(self, screen: Screen, answer: Answer) -> None:
        """A phone's owner says yes or no to what was shown. A phone without the right is refused."""
        if (device := self._may_answer(screen)) is not None:
            self._do(self._answer(screen, device, answer))

    def forget(self, screen: Screen) -> None:
        """The connection of ``screen`` is over."""
        if (task := self._tasks.get(screen)) is not None:
            task.cancel()
        self._shown.pop(screen, None)
        self._again.discard(screen)

    async def close(self) -> None:
        """Ends what is under way."""
        tasks = [*self._tasks.values(), *self._doing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _may_answer(self, screen: Screen) -> Device | None:
        """The device, where it may answer over this connection; else None, and the phone is told."""
        device = screen.speaker
        if device is None or screen.withholds(APPROVE):
            return None
        if not APPROVE.admits(caller_of(device)):
            log.warning("security: %s may not answer what waits", device.name)
            text = (
                f"Only on the computer. The owner can allow it: rappd devices scopes {device.name} --approve"
            )
            screen.show({"type": "refused", "event_id": "", "error": text})
            return None
        return device

    async def _look(self, screen: Screen, key: str) -> None:
        try:
            screen.show({"type": "matter", **await self._owners.matter(key)})
        except ReportableError as problem:
            screen.show({"type": "answered", "key": key, "done": False, "text": str(problem)})
            self.show(screen)

    async def _answer(self, screen: Screen, device: Device, given: Answer) -> None:
        done, changed = False, False
        try:
            text = await self._owners.answer(given.key, given.sha256, given.yes, device.name, device.id)
            done = True
        except ReportableError as problem:
            text, changed = str(problem), isinstance(problem, ConflictError)
        screen.show({"type": "answered", "key": given.key, "done": done, "text": text})
        if changed:
            await self._look(screen, given.key)  # as it is now
        self.show(screen)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._doing.add(task)
        task.add_done_callback(self._did)

    def _did(self, task: asyncio.Task[None]) -> None:
        self._doing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an answer of a phone failed", exc_info=error)

    async def _dismiss(self, screen: Screen, owners: OwnersList, key: str) -> None:
        try:
            await owners.dismiss(key)
        except ReportableError as problem:
            screen.show({"type": "refused", "event_id": "", "error": str(problem)})
        self.show(screen)

    async def _show(self, screen: Screen, owners: OwnersList) -> None:
        device = screen.speaker
        may = device is not None and may_see(device)
        may_answer = device is not None and APPROVE.admits(caller_of(device))
        rows = await owners.rows() if may else []
        if not may_answer:
            rows = [
                {name: value for name, value in row.items() if name not in ("kind", "sha256")} for row in rows
            ]
        more = max(0, len(rows) - MOST_ROWS)
        frame = {"type": "waiting", "may": may, "rows": rows[:MOST_ROWS], "more": more}
        if self._shown.get(screen, {"type": "waiting", "may": False, "rows": [], "more": 0}) != frame:
            self._shown[screen] = frame
            screen.show(frame)

    def _done(self, screen: Screen, task: asyncio.Task[None]) -> None:
        self._tasks.pop(screen, None)
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error("what waits could not be shown to a phone", exc_info=error)
        if screen in self._again:
            self._again.discard(screen)
            self.show(screen)


def may_see(device: Device) -> bool:
    """True for a phone that may see what waits for the owner."""
    return NOTICES.admits(caller_of(device))
