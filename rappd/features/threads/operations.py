"""The owner's operations on the event log: its records, how it stands to its anchors, and what other machines keep."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal, TypedDict

from envelopes.codecs.pictures import Picture
from rappd.daemon.activity_feed import ActivityFeed
from rappd.daemon.anchoring import Anchoring
from rappd.daemon.security_events import SecurityEvents
from rappd.features.conversations.conversations import (
    ThreadPart,
    given_titles,
    pictures_of,
    titled,
    whole_thread,
)
from rappd.features.operation import OWNER, Download, Stream, Text, operation
from rappd.federation.greetings import Greetings
from rappd.federation.startup_state import Availability
from rappd.federation.witness import AnchorWitness, KeptAnchors, WitnessRow
from rappd.store.anchor_signing import AnchorView
from rappd.store.peer_table import NAMES
from rappd.store.records import Event, ThreadRow
from rappd.store.store import Store
from rappd.transcript.jsonl import export_jsonl
from rappd.transcript.markdown import export_markdown
from rappd.transcript.speakers import Speakers
from rappd.transcript.thread_rows import EventRow, ThreadView, event_row, thread_row
from rappd.transcript.thread_tree import MOST_EVENTS, ThreadTree, in_order, tree

_MOST = 5000


class Anchors(TypedDict):
    """The newest anchor here, and the anchors kept of others."""

    anchor: AnchorView
    kept: list[KeptAnchors]


class SecurityEventRow(TypedDict):
    """A security event since the start."""

    at: float
    text: str


class Activity(TypedDict):
    """The latest records and security events."""

    events: list[EventRow]
    security: list[SecurityEventRow]


class ThreadRecords(TypedDict):
    """A conversation with all its records."""

    thread: ThreadView
    events: list[EventRow]


class ThreadTurns(ThreadPart):
    """A part of a conversation as it was said."""

    thread: ThreadView


class AnchorOperations:
    """The anchors of this machine, and those that it keeps for others."""

    def __init__(
        self, anchoring: Anchoring, availability: Availability, witness: AnchorWitness, greetings: Greetings
    ) -> None:
        self._anchoring, self._availability = anchoring, availability
        self._witness, self._greetings = witness, greetings

    @operation("anchors.show", "GET", "/anchors", right=OWNER)
    async def show(self) -> Anchors:
        """Compares the event log with its newest anchor, and lists kept anchors of other machines."""
        report = self._anchoring.report.as_json()
        return {
            "anchor": {**report, "problems": self._anchoring.problems},
            "kept": self._witness.kept(),
        }

    @operation("anchors.ask", "POST", "/anchors/ask", right=OWNER, answers="witnesses")
    async def ask(self) -> list[WitnessRow]:
        """Asks each machine of the same owner which anchors of this one it keeps."""
        await self._availability.wait()
        return await self._greetings.ask_witnesses()

    @operation("anchors.forget", "POST", "/anchors/forget", right=OWNER, answers="forgotten")
    async def forget(self, peer: Text) -> int:
        """Drops the anchors that are kept of `peer`, evidence included."""
        await self._availability.wait()
        node = self._witness.find(peer)
        return await self._witness.forget(node)


class RecordOperations:
    """The records of all conversations. ``thread``: an id, or its beginning."""

    def __init__(
        self, store: Store, feed: ActivityFeed, security: SecurityEvents, name: str, node: str
    ) -> None:
        """``name`` and ``node``: this machine's, for transcripts."""
        self._store, self._feed, self._security = store, feed, security
        self._name, self._node = name, node

    @operation("threads.activity", "GET", "/activity", right=OWNER)
    async def activity(self, limit: int = 200) -> Activity:
        """The latest records, and the latest security events since the start: `at` and `text`."""
        events = await self._store.recent_events(limit=_bounded(limit))
        security: list[SecurityEventRow] = [{"at": one.at, "text": one.text} for one in self._security.recent]
        return {"events": [event_row(event) for event in events], "security": security}

    @operation("threads.follow", "GET", "/activity/stream", right=OWNER)
    async def follow(self) -> Stream:
        """Records and agent files as they come, as server-sent events."""
        return Stream((None, line) async for line in self._feed.follow())

    @operation("threads.list", "GET", "/threads", right=OWNER, answers="threads")
    async def listing(self, limit: int = 100) -> list[ThreadView]:
        """Conversations, the latest first."""
        titles = await given_titles(self._store)
        found = await self._store.threads(limit=_bounded(limit))
        return [thread_row(titled(thread, titles)) for thread in found]

    @operation("threads.show", "GET", "/threads/{thread}", right=OWNER)
    async def show(self, thread: str) -> ThreadRecords:
        """Shows the records of a conversation."""
        found = await self._store.find_thread(thread)
        events = await self._store.thread_events(found.id)
        return {"thread": thread_row(found), "events": [event_row(event) for event in events]}

    @operation("threads.tree", "GET", "/threads/{thread}/tree", right=OWNER, answers="tree")
    async def tree(self, thread: str) -> ThreadTree:
        """Shows a conversation with the threads below it, as steps inside one another."""
        found = await self._store.tree(thread)
        return await asyncio.to_thread(tree, found, await self._events(found, MOST_EVENTS))

    @operation(
        "threads.pictures", "GET", "/threads/{thread}/pictures/{turn}", right=OWNER, answers="pictures"
    )
    async def pictures(self, thread: str, turn: str) -> list[Picture]:
        """The pictures that went with the sentence of a turn, as they were sent."""
        return await pictures_of(self._store, await self._store.find_thread(thread), turn.lower())

    @operation("threads.turns", "GET", "/threads/{thread}/turns", right=OWNER)
    async def turns(self, thread: str, before: int | None = None) -> ThreadTurns:
        """A conversation as it was said, the last part; `?before=` the `before` of the answer before it."""
        found = titled(await self._store.find_thread(thread), await given_titles(self._store))
        return {**await whole_thread(self._store, found, before), "thread": thread_row(found)}

    @operation("threads.export", "GET", "/threads/{thread}/export", right=OWNER)
    async def export(self, thread: str, format: Literal["jsonl", "markdown"] = "jsonl") -> Download:
        """A conversation as JSONL or Markdown, with the threads below it."""
        threads = await self._store.tree(thread)
        found = titled(threads[0], await given_titles(self._store))
        events = await self._events(threads)
        if format == "markdown":
            names = Speakers(self._name, self._node, dict(await self._store.rows(NAMES)))
            text = await asyncio.to_thread(export_markdown, found, in_order(events), names)
            return Download(Path(f"{found.id[:8]}.md"), text.encode(), "text/markdown; charset=utf-8")
        content = await asyncio.to_thread(lambda: b"".join(export_jsonl(events)))
        return Download(Path(f"{found.id[:8]}.jsonl"), content, "application/x-ndjson")

    async def _events(self, threads: list[ThreadRow], most: int | None = None) -> list[Event]:
        """The events of these threads, the first ones where there are more than ``most``."""
        events: list[Event] = []
        for one in threads:
            left = None if most is None else most - len(events)
            events += await self._store.thread_events(one.id, first=left) if left != 0 else []
        return events


def _bounded(limit: int) -> int:
    return min(max(limit, 0), _MOST)
