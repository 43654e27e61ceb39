"""A session's thread in the event log: read in pages, continued after a restart, copied into a branch."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from envelopes.codecs import emergence
from envelopes.envelope import DONE, ERROR, HELP, NOTE, THREAD, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.envelope_rows import now
from rappd.dispatch.unrecorded_replies import UnrecordedReplyError
from rappd.errors import NotFoundError
from rappd.sessions.events import SESSION_END
from rappd.sessions.recorded_sessions import OPENED, SESSION_CALLER, SessionRow, session_rows, thread_of
from rappd.store.records import Event, Record, ThreadInfo
from rappd.store.store import Store
from rappd.store.writer import Follower
from rappd.tenants.tenant import HOST

PAGE_EVENTS = 250
_PAGE_BYTES = 256 << 10
_COPIED_AT_ONCE = 500


class SessionRecord:
    """Reads and writes the threads of sessions."""

    def __init__(self, dispatcher: Dispatcher, store: Store, host: str) -> None:
        """``host`` is the brainstem's id."""
        self._dispatcher, self._store, self._host = dispatcher, store, host

    async def rows(self) -> list[SessionRow]:
        """All sessions, the one opened last first; those that began a moment ago included."""
        await self._store.flush()
        opened = await self._store.last_notes(SESSION_CALLER, OPENED)
        return session_rows(await self._store.threads_by(SESSION_CALLER), opened)

    async def is_closed(self, thread: str) -> bool:
        """True once it was closed."""
        return await self._store.noted(thread, SESSION_END)

    def begin(self, id: str) -> None:
        """Makes the thread of a session known."""
        self._store.thread(ThreadInfo(thread_of(id), HOST, SESSION_CALLER, f'"{id}"', "Session", now()))

    def note(self, thread: str, kind: str, by: str, text: str, more: dict[str, Any]) -> None:
        """Writes down an event that nobody answers."""
        self._dispatcher.record_note(self._noted(thread, kind, by, text, more))

    async def note_first(self, thread: str, kind: str, by: str, text: str, more: dict[str, Any]) -> None:
        """Returns once the event is committed: for what counts from then on. Raises ``StoreError``."""
        await self._dispatcher.record_first(self._noted(thread, kind, by, text, more))

    async def events(
        self, thread: str, *, after: int = 0, first: int | None = None, last: int | None = None
    ) -> list[Event]:
        """The thread's events in order; none where there is no such thread yet."""
        with contextlib.suppress(NotFoundError):
            return await self._store.thread_events(thread, after=after, first=first, last=last)
        return []

    def follow(self, thread: str, follower: Follower) -> None:
        """Calls ``follower`` for each event of a thread from now on."""
        self._store.follow(thread, follower)

    async def page(self, thread: str, after: int) -> tuple[list[Event], list[Event]]:
        """The next events that go into one message, and events that follow them, if there are more."""
        return page_of(await self.events(thread, after=after, first=PAGE_EVENTS + 1))

    async def flush(self) -> None:
        """Returns once all that was written down is committed. Raises ``StoreError``."""
        await self._store.flush()

    async def end_interrupted(self, thread: str, records: list[Event]) -> None:
        """Writes an ERROR for each HELP that an earlier run was asked and did not answer; later on a full disk."""
        for asked, data in _unanswered(records):
            refusal = {"code": 500, "msg": "This was cut off before it was done.", "reason": "interrupted"}
            refusal |= {"agent": data["agent"]} if "agent" in data else {"do": "Ask again."}
            reply = Envelope(asked.id, asked.recipient, asked.sender, ERROR, refusal)
            with contextlib.suppress(UnrecordedReplyError):  # a session can be read without
                await self._dispatcher.record_reply(reply, thread)

    async def copy(self, parent: str, id: str, at_seq: int) -> None:
        """Begins a session with copies of a thread's events up to ``at_seq``, at the same places and moments.

        A sentence that was answered later gets an ERROR in its place.
        """
        thread, after = thread_of(id), 0
        self.begin(id)
        copied: list[Event] = []
        while after < at_seq:
            records = await self.events(parent, after=after, first=min(_COPIED_AT_ONCE, at_seq - after))
            if not records:
                break
            for one in records:
                self._store.queue(_moved(one, thread))
            copied += records
            after = records[-1].n
            await self.flush()
        for asked, data in _unanswered(copied):
            refusal = {"code": 409, "msg": "It was answered in the other session.", "reason": "branched"}
            refusal |= {"agent": data["agent"]} if "agent" in data else {"do": "Ask again."}
            reply = Envelope(asked.id, asked.recipient, asked.sender, ERROR, refusal)
            await self._dispatcher.record_reply(reply, thread)

    def _noted(self, thread: str, kind: str, by: str, text: str, more: dict[str, Any]) -> Envelope:
        data = {"kind": kind, "by": by, "text": text, **more}
        return Envelope(new_id(), SESSION_CALLER, self._host, NOTE, data, {THREAD: thread})


def page_of(records: list[Event]) -> tuple[list[Event], list[Event]]:
    """The first of these events, as many as go into one message, and the rest."""
    count = size = 0
    for one in records[:PAGE_EVENTS]:
        size += len(one.body)
        if count and size > _PAGE_BYTES:
            break
        count += 1
    return records[:count], records[count:]


def _unanswered(records: list[Event]) -> list[tuple[Event, dict[str, Any]]]:
    answered = {one.id for one in records if one.verb in (DONE, ERROR)}
    open_ = [one for one in records if one.verb == HELP and one.id not in answered]
    return [(one, orjson.loads(one.body)["data"]) for one in open_]


def _moved(event: Event, thread: str) -> Record:
    found = orjson.loads(event.body)
    extensions = {key: value for key, value in found.items() if key.startswith("_x_")}
    envelope = Envelope(
        event.id, event.sender, event.recipient, event.verb, found["data"], {**extensions, THREAD: thread}
    )
    body = emergence.encode(envelope)
    return Record(
        thread, event.verb, event.sender, event.recipient, event.id, body, event.at, parent=event.parent
    )
