"""Conversations of one caller: the list, what was said, titles, and a search. Those of other callers do not exist here.

Those of foreign programs are a list of their own; one by its id, and the search, have them too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

import orjson

from envelopes.codecs.pictures import Picture, recorded
from envelopes.envelope import HELP
from rappd.dispatch.envelope_rows import now
from rappd.errors import NotFoundError, UsageProblemError
from rappd.store.conversation_table import (
    PROGRAM_SESSION,
    SEARCH_EVENTS,
    ConversationRow,
    Said,
    TurnStart,
    asked_query,
    list_query,
    one_query,
    remove,
    rename,
    said_query,
    titled_query,
    titles_query,
    turns_query,
)
from rappd.store.records import Event, ThreadRow
from rappd.store.store import Store
from rappd.transcript.excerpts import excerpt
from rappd.transcript.exchanges import exchanges
from rappd.transcript.turns import PathTurn, TurnRow, is_turn, shown_path, turn_row

LONGEST_TITLE = 120
LONGEST_SEARCH = 200
MOST_WORDS = 8
SEARCH_SECONDS = 1.0
"""A search answers after so long with what it has, and where to go on."""
THREAD_EVENTS = 400
"""Events of a thread in one answer."""
MOST_TURNS = 1000
BEFORE_WANTED = 5
PROGRAMS = "programs"
"""In place of the name of a protocol: programs over all of them."""
_EXCERPTS = 3


ConversationView = TypedDict(
    "ConversationView",
    {
        "program": str,
        "by": str,
        "id": str,
        "title": str,
        "with": str,
        "session": Any,
        "created": int,
        "updated": int,
        "count": int,
        "removed": int | None,
        "state": str,
    },
)
"""A conversation as ``conversation_view`` describes it. ``session``: whatever its client calls it."""


class ConversationList(TypedDict):
    """Conversations, and what to hand in for more; None at the end."""

    conversations: list[ConversationView]
    next: str | None


class ConversationTurns(TypedDict):
    """A part of a conversation; ``earlier``: the number of turns before it."""

    conversation: ConversationView
    turns: list[TurnRow]
    earlier: int


class Excerpt(TypedDict):
    """The text around words that were found; ``yours``: in a sentence, not in an answer."""

    turn: str
    at: int
    yours: bool
    text: str


class FoundConversation(TypedDict):
    """A conversation with some of the places in which words were found; none where its title has them."""

    conversation: ConversationView
    excerpts: list[Excerpt]


class FoundConversations(TypedDict):
    """The results of a search, the words that it looked for, and what to hand in to look further back."""

    found: list[FoundConversation]
    words: list[str]
    next: int | None


class ThreadPart(TypedDict):
    """A part of a thread; ``before`` leads to the part before it, None at the beginning."""

    turns: list[TurnRow]
    before: int | None


class Conversations:
    """``caller`` is the user whose conversations these are. Raises ``ReportableError``."""

    def __init__(self, store: Store, caller: str) -> None:
        self._store = store
        self._caller = caller

    async def latest(
        self,
        *,
        removed: bool = False,
        limit: int = 50,
        before: tuple[int, str] | None = None,
        of_programs: str = "",
        everything: bool = False,
    ) -> ConversationList:
        """The latest first, or those that were taken off the list; ``next`` is what to hand in for more, or None.

        ``of_programs``: those of foreign programs in their place, over one protocol or all (``PROGRAMS``).
        ``everything``: the caller's own, and those that programs have in its name.
        """
        await self._store.flush()
        beginning = of_programs and PROGRAM_SESSION + ("" if of_programs == PROGRAMS else f"{of_programs}:")
        rows = await self._rows(
            list_query(
                self._caller,
                removed=removed,
                limit=limit + 1,
                before=before,
                of_programs=beginning,
                everything=everything,
            )
        )
        last = rows[limit - 1] if len(rows) > limit else None
        return {
            "conversations": [conversation_view(row) for row in rows[:limit]],
            "next": f"{last.updated}.{last.id}" if last is not None else None,
        }

    async def find(self, thread: str) -> ConversationRow:
        """One by its id. Raises ``NotFoundError``, also for that of another caller."""
        await self._store.flush()
        rows = await self._rows(one_query(self._caller, thread.strip().lower()))
        if not rows:
            raise NotFoundError("There is no such conversation.", do="Look in the list of conversations.")
        return rows[0]

    async def show(
        self, thread: str, *, limit: int = 50, before: str = "", at: str = ""
    ) -> ConversationTurns:
        """The last turns of a conversation, or those before the turn ``before``.

        ``at``: on the course that has that turn, from a little before it on. ``earlier`` tells how
        many turns come before the first one here.
        """
        found = await self.find(thread)
        starts = [TurnStart(*row) for row in await self._store.rows(*turns_query(found.id))]
        path = shown_path(starts, at or before)
        end = next((place for place, turn in enumerate(path) if turn.id == before), len(path))
        first = max(0, end - limit)
        wanted = next((place for place, turn in enumerate(path) if turn.id == at), None)
        if wanted is not None:
            first = max(0, min(first, wanted - BEFORE_WANTED), end - MOST_TURNS)
        turns = await self._turns(found.id, starts, path[first:end])
        return {"conversation": conversation_view(found), "turns": turns, "earlier": first}

    async def rename(self, thread: str, title: str) -> ConversationView:
        """Gives it another title; an empty one gives back the words that it began with."""
        found = await self.find(thread)
        title = " ".join(title.split())
        if len(title) > LONGEST_TITLE:
            raise UsageProblemError(
                f"The title has {len(title)} characters, {LONGEST_TITLE} fit.", do="Shorten it."
            )
        await self._store.change(rename(found.id, title))
        return conversation_view(await self.find(found.id))

    async def remove(self, thread: str) -> ConversationView:
        """Takes it off the list, and out of searches. What was said stays in the event log."""
        return await self._mark(thread, now())

    async def restore(self, thread: str) -> ConversationView:
        """Puts it back into the list."""
        return await self._mark(thread, 0)

    async def search(self, text: str, *, limit: int = 20, below: int | None = None) -> FoundConversations:
        """Conversations in which one sentence or answer, or the title, has all words; the latest sentence first.

        ``next`` is what to hand in as ``below`` to look further back, None at the beginning of the event log; ``until``
        is the moment (µs since 1970) down to which it looked.
        """
        words = _words(text)
        await self._store.flush()
        found: dict[str, list[Excerpt]] = {}
        if below is None:
            for row in await self._rows(titled_query(self._caller)):
                if _has(row.title, words):
                    found[row.id] = []
        place = below if below is not None else (await self._store.counts()).events
        ends = time.monotonic() + SEARCH_SECONDS
        while place > 0 and len(found) < limit and time.monotonic() < ends:
            rows = await self._store.rows(*said_query(self._caller, words, place))
            place = max(0, place - SEARCH_EVENTS)
            for one in map(Said._make, rows):
                excerpts = found.get(one.thread)
                if excerpts is None and len(found) >= limit:
                    place = one.seq
                    break
                if (excerpts is None or len(excerpts) < _EXCERPTS) and (shown := _excerpt(one, words)):
                    found.setdefault(one.thread, []).append(shown)
        return {
            "found": [
                {"conversation": conversation_view(await self.find(id)), "excerpts": excerpts}
                for id, excerpts in found.items()
            ],
            "words": words,
            "next": place or None,
        }

    async def _mark(self, thread: str, removed: int) -> ConversationView:
        found = await self.find(thread)
        await self._store.change(remove(found.id, removed))
        return conversation_view(await self.find(found.id))

    async def _rows(self, query: tuple[str, tuple[Any, ...]]) -> list[ConversationRow]:
        return [ConversationRow(*row) for row in await self._store.rows(*query)]

    async def _turns(self, thread: str, starts: list[TurnStart], wanted: list[PathTurn]) -> list[TurnRow]:
        """The turns as rows. Turns beside each other in the log are read at once."""
        rows: dict[str, TurnRow] = {}
        for run in _runs(wanted):
            # An answer may come after the next question: what two tabs asked at once lies in between.
            end = starts[run[-1].place + 3].n if run[-1].place + 3 < len(starts) else None
            events = await self._store.thread_events(
                thread,
                after=starts[run[0].place].n - 1,
                first=None if end is None else end - starts[run[0].place].n,
            )
            rows |= {row["id"]: row for row in turn_rows(events, {turn.id for turn in run})}
        return [
            {**rows[turn.id], "follows": turn.follows, "versions": list(turn.versions)}
            for turn in wanted
            if turn.id in rows
        ]


async def given_titles(store: Store) -> dict[str, str]:
    """Titles that somebody gave, by thread."""
    return dict(await store.rows(*titles_query()))


def titled(thread: ThreadRow, titles: Mapping[str, str]) -> ThreadRow:
    """The thread under the title that somebody gave it."""
    return replace(thread, title=titles[thread.id]) if thread.id in titles else thread


async def pictures_of(store: Store, thread: ThreadRow, turn: str) -> list[Picture]:
    """The pictures that went with a turn's sentence, as they were sent. Raises ``NotFoundError`` without such a turn."""
    await store.flush()
    rows = await store.rows(*asked_query(thread.id, turn))
    if not rows:
        raise NotFoundError("There is no such turn.", do="Look in the conversation.")
    return await asyncio.to_thread(lambda: recorded(orjson.loads(rows[0][0])))


async def whole_thread(store: Store, thread: ThreadRow, before: int | None = None) -> ThreadPart:
    """All sentences of a thread by all speakers, in order of time: the last part, or the part before ``before``.

    ``before`` in the answer leads to the part before this one, None at the beginning.
    """
    end = min(thread.count, (before or thread.count + 1) - 1)
    after = max(0, end - THREAD_EVENTS)
    events = await store.thread_events(thread.id, after=after, first=end - after) if end else []
    # Between two parts no turn is cut, unless it alone is longer than a part.
    starts = (place for place, event in enumerate(events) if after == 0 or _begins(event))
    events = events[next(starts, 0) :]
    turns = [turn_row(one) for one in await asyncio.to_thread(exchanges, events)]
    first = events[0].n if events else 1
    return {"turns": turns, "before": first if first > 1 else None}


def _begins(event: Event) -> bool:
    return event.verb == HELP and b'"user_input"' in event.body


def turn_rows(events: list[Event], ids: set[str]) -> list[TurnRow]:
    """The turns of these ids among events."""
    return [
        turn_row(one)
        for one in exchanges(events)
        if is_turn(one) and one.asked is not None and one.asked.event.id in ids
    ]


def conversation_view(row: ConversationRow) -> ConversationView:
    """A conversation as screens get it. ``with`` is the brainstem's name in the record, or a twin's key.

    ``program`` is the protocol over which a foreign program has it, "" for everybody else's; ``by`` is its caller then.
    """
    session = orjson.loads(row.session)
    of_program = isinstance(session, str) and session.startswith(PROGRAM_SESSION)
    program = session.split(":")[1] if of_program else ""
    return {
        "program": program,
        "by": row.caller if program else "",
        "id": row.id,
        "title": row.title,
        "with": row.workspace,
        "session": session,
        "created": row.created,
        "updated": row.updated,
        "count": row.records,
        "removed": row.removed or None,
        "state": row.state,
    }


def _runs(turns: Iterable[PathTurn]) -> list[list[PathTurn]]:
    runs: list[list[PathTurn]] = []
    for turn in turns:
        if runs and runs[-1][-1].place + 1 == turn.place:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return runs


def _words(text: str) -> list[str]:
    words = list(dict.fromkeys(text[: LONGEST_SEARCH + 1].lower().split()))
    if not words:
        raise UsageProblemError("There is nothing to search for.", do="Type a word that was said.")
    if len(text) > LONGEST_SEARCH or len(words) > MOST_WORDS:
        raise UsageProblemError(
            f"A search takes up to {MOST_WORDS} words and {LONGEST_SEARCH} characters.", do="Use fewer words."
        )
    return words


def _has(text: str, words: list[str]) -> bool:
    low = text.lower()
    return all(word in low for word in words)


def _excerpt(one: Said, words: list[str]) -> Excerpt | None:
    """The text around the words found in a sentence or an answer; None where it does not hold all of them."""
    try:
        data = orjson.loads(one.body)["data"]
        text = data["user_input"] if one.verb == "HELP" else data["response"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(text, str) or not _has(text, words):
        return None
    return {"turn": one.id, "at": one.at, "yours": one.verb == "HELP", "text": excerpt(text, words)}
