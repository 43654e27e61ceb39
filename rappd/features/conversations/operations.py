"""The owner's operations on conversations: list, search, show, rename, take off the list and put back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import is_uuid
from rappd.dispatch.turns import Turn
from rappd.errors import UsageProblemError
from rappd.features.conversations.conversations import (
    ConversationList,
    Conversations,
    ConversationTurns,
    ConversationView,
    FoundConversations,
)
from rappd.features.operation import OWNER, operation
from rappd.store.store import Store

_MOST = 200
ClearContext = Callable[[str, str], Awaitable[None]]
Running = Callable[[str, str], Turn | None]
"""The turn of a user, by its id, that is under way."""


class ConversationOperations:
    """``user_guid``: whose they are; without it, those of who talks without one, as the page does."""

    def __init__(self, store: Store, running: Running, clear_context: ClearContext) -> None:
        """``clear_context`` forgets what listeners keep for a thread of a workspace."""
        self._store, self._running, self._clear_context = store, running, clear_context

    @operation("conversations.list", "GET", "/conversations", right=OWNER)
    async def listing(
        self, removed: bool = False, limit: int = 50, before: str = "", user_guid: str = ""
    ) -> ConversationList:
        """Conversations, the latest first; `?removed=1` those taken off the list, `?before=` the `next` of the page before."""
        return await self._of(user_guid).latest(
            removed=removed, limit=_bounded(limit), before=_cursor(before)
        )

    @operation("conversations.search", "GET", "/conversations/search", right=OWNER)
    async def search(
        self, words: str = "", limit: int = 20, below: int | None = None, user_guid: str = ""
    ) -> FoundConversations:
        """Conversations in which something with all of `?words=` was said, with excerpts; `?below=` looks further back."""
        if below is not None and below < 0:
            raise UsageProblemError("below must be a number", do="Send the `next` of the answer before.")
        return await self._of(user_guid).search(words, limit=_bounded(limit), below=below)

    @operation("conversations.show", "GET", "/conversations/{thread}", right=OWNER)
    async def show(
        self, thread: str, limit: int = 50, before: str = "", at: str = "", user_guid: str = ""
    ) -> ConversationTurns:
        """The last turns of a conversation; `?before=` those before a turn, `?at=` those of the course that has a turn."""
        found = await self._of(user_guid).show(
            thread, limit=_bounded(limit), before=_turn("before", before), at=_turn("at", at)
        )
        for turn in found["turns"]:
            is_open = turn["state"] == "open"
            turn["running"] = is_open and self._running(turn["from"], turn["id"]) is not None
        return found

    @operation(
        "conversations.rename", "POST", "/conversations/{thread}/rename", right=OWNER, answers="conversation"
    )
    async def rename(self, thread: str, title: str, user_guid: str = "") -> ConversationView:
        """Gives it the title `title`; "" gives back the words that it began with."""
        return await self._of(user_guid).rename(thread, title)

    @operation(
        "conversations.remove", "POST", "/conversations/{thread}/remove", right=OWNER, answers="conversation"
    )
    async def remove(self, thread: str, user_guid: str = "") -> ConversationView:
        """Takes it off the list and out of searches. What was said stays in the event log; listeners forget it."""
        found = await self._of(user_guid).remove(thread)
        await self._clear_context(found["id"], found["with"])
        return found

    @operation(
        "conversations.restore",
        "POST",
        "/conversations/{thread}/restore",
        right=OWNER,
        answers="conversation",
    )
    async def restore(self, thread: str, user_guid: str = "") -> ConversationView:
        """Puts it back into the list."""
        return await self._of(user_guid).restore(thread)

    def _of(self, user_guid: str) -> Conversations:
        return Conversations(self._store, user_guid or DEFAULT_USER_GUID)


def _bounded(limit: int) -> int:
    return max(1, min(limit, _MOST))


def _turn(name: str, id: str) -> str:
    if id and not is_uuid(id):
        raise UsageProblemError(f"{name} must be the id of a turn", do="Send a turn's id, or leave it out.")
    return id.lower()


def _cursor(text: str) -> tuple[int, str] | None:
    moment, _, id = text.partition(".")
    if not text:
        return None
    if not (moment.isdecimal() and len(moment) < 19 and is_uuid(id)):
        raise UsageProblemError("before is no place in the list", do="Send the `next` of the answer before.")
    return int(moment), id
