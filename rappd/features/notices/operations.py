"""The owner's operations on news: all that waits, what happened, and having seen it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypedDict

from rappd.daemon.waiting_list import WaitingRow
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import OWNER, operation
from rappd.notices.notices import Notices


class NoticeRow(TypedDict):
    """A piece of news."""

    key: str
    kind: str
    at: float
    what: str
    do: str


class NoticeOperations:
    """``waiting`` gives everything that waits for the owner, news among it."""

    def __init__(self, notices: Notices, waiting: Callable[[], Awaitable[list[WaitingRow]]]) -> None:
        self._notices, self._waiting = notices, waiting

    @operation("notices.waiting", "GET", "/waiting", right=OWNER, answers="waiting")
    async def waiting(self) -> list[WaitingRow]:
        """Lists all that waits for the owner: why this machine is not ready, quarantined files, pairings, phones, received eggs, news."""
        return await self._waiting()

    @operation("notices.list", "GET", "/notices", right=OWNER, answers="notices")
    async def listing(self) -> list[NoticeRow]:
        """Lists what happened while nobody looked, the latest first."""
        return [
            {"key": one.key, "kind": one.kind, "at": one.at, "what": one.what, "do": one.do}
            for one in self._notices.waiting()
        ]

    @operation("notices.tell", "POST", "/notices/tell", right=OWNER, answers="told")
    async def tell(self) -> list[str]:
        """Gives the news that no terminal has told yet, in plain words, and counts them as told; they go on waiting."""
        return self._notices.take()

    @operation("notices.dismiss", "POST", "/notices/dismiss", right=OWNER, answers="dismissed")
    async def dismiss(self, key: str = "", all: bool = False) -> int:
        """Removes the notice `key`, or all of them with `all`."""
        if all:
            return await self._notices.dismiss_all()
        if not key:
            raise MissingArgumentError("key is required", do='Send {"key": "…"}.')
        await self._notices.dismiss(key)
        return 1
