"""Long work on eggs that is under way, by the id that its caller gave it, so that it can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rappd.errors import ConflictError, NotFoundError
from twins.work_progress import Cancellation


class EggWork:
    """All calls come from the event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, tuple[Cancellation, asyncio.Event]] = {}

    @contextmanager
    def begun(self, work: str) -> Iterator[Cancellation]:
        """Gives what cancels it, for as long as it lasts. ``work`` "" cannot be named, and so not be cancelled."""
        cancellation, ended = Cancellation(), asyncio.Event()
        if work in self._under_way:
            raise ConflictError("That work is under way already.", do="Give each its own id.")
        if work:
            self._under_way[work] = cancellation, ended
        try:
            yield cancellation
        finally:
            self._under_way.pop(work, None)
            ended.set()

    async def cancel(self, work: str) -> dict[str, Any]:
        """Returns once it has ended. Raises ``NotFoundError``, and ``TooLateToCancelError`` when it goes on."""
        known = self._under_way.get(work)
        if known is None:
            raise NotFoundError("Nothing of that id is under way.", do="It may be done: rappd egg hatchings")
        cancellation, ended = known
        cancellation.cancel()
        await ended.wait()
        return {"cancelled": True}
