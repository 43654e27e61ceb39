"""Sessions of several participants: one thread for all speakers; its record decides the order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import orjson

from envelopes.envelope import HELP, new_id
from envelopes.errors import ReportableError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.errors import NotFoundError, StoreError
from rappd.sessions.errors import AskedElsewhereError, SessionClosedError
from rappd.sessions.events import BRANCH, CLEAR, SESSION_END, SESSION_START, event_of
from rappd.sessions.guests import BACKEND, INVITED, LEFT, Guest, GuestList
from rappd.sessions.participants import WORKFLOWS, Participants, Speaker, caller_of
from rappd.sessions.recorded_sessions import OPENED, SessionRow, find_session, thread_of
from rappd.sessions.sentence_routing import Say, Sentences
from rappd.sessions.session_record import SessionRecord, page_of
from rappd.store.records import Event
from rappd.store.store import Store
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

Work = Coroutine[Any, Any, None]
_LOOK_SECONDS = 2.0
_RECENT = 24


class Listener(Protocol):
    """A screen that shows a session: a phone, or a page of this computer.

    ``behind`` is True once it got a page that others follow: it gets them when it asks.
    """

    last_seq: int
    behind: bool

    @property
    def name(self) -> str:
        """The name under which the others see it."""
        ...

    def show(self, message: dict[str, Any]) -> None:
        """Shows a message."""
        ...


@dataclass(frozen=True, slots=True)
class Asking:
    """A sentence under way: ``recorded`` is done once it stands in the record, ``answered`` once its answer does.

    Both raise the ``ReportableError`` because of which it does not.
    """

    recorded: asyncio.Future[None]
    answered: asyncio.Task[None]


class Session:
    """An open session: its thread and its listeners. ``recorded_ids`` are the ids of its recorded sentences."""

    def __init__(self, id: str) -> None:
        self.id, self.thread = id, thread_of(id)
        self.recent: deque[Event] = deque(maxlen=_RECENT)
        """The session's last events, as far as they were shown: what a participant that is asked knows of it."""
        self.last_seq = 0
        self.fresh: list[Event] = []
        """Events that were recorded after those."""
        self.listeners: set[Listener] = set()
        self.news = asyncio.Event()
        self.recorded_ids: set[str] = set()
        self.asking: dict[str, Asking] = {}
        """Sentences under way, by their ids: those before their place in the record, too."""
        self.guests = GuestList()
        self.closed = False

    @property
    def here(self) -> list[str]:
        """Names of all who listen."""
        return sorted({one.name for one in self.listeners})

    def on_events(self, records: list[Event]) -> None:
        """Called after ``records`` were recorded."""
        self.fresh += records
        self.news.set()

    def take(self, records: list[Event]) -> None:
        """Appends the session's next events."""
        self.recent.extend(records)
        self.last_seq = records[-1].n if records else self.last_seq


_Pages = dict[int, dict[str, Any] | None]
"""Messages by the number of the event that they come after."""


class Sessions:
    """Opens sessions, takes sentences in, and shows every listener the same events in the same order."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        store: Store,
        participants: Participants,
        changed: Callable[[], None],
        interject: Callable[[Session, Callable[[], Work]], Work | None],
    ) -> None:
        """``changed`` is called when a session begins or ends, or somebody joins or leaves.

        ``interject`` interrupts the workflow of a session for a sentence, which it asks; None where none runs.
        """
        self.participants = participants
        self.record = SessionRecord(dispatcher, store, participants.host.id)
        self._changed, self._interject = changed, interject
        self._looking: set[str] = set()
        self._sentences = Sentences(dispatcher, self.participants)
        self._open: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self._tasks = BackgroundTasks(_work_failed)

    async def open(self, id: str = "") -> Session:
        """The session of that id; a new one where there is none, or no id."""
        id = id or new_id()
        async with self._opening:
            return self._open.get(id) or await self._take_up(Session(id))

    def opened(self, id: str) -> Session | None:
        """A session that is open already."""
        return self._open.get(id)

    async def find(self, prefix: str) -> SessionRow:
        """The session whose id begins so; the one opened last for "". Raises ``NotFoundError``, ``AmbiguousError``."""
        return find_session(await self.record.rows(), prefix)

    async def branch(self, row: SessionRow, at_seq: int, by: str) -> Session:
        """A new session that begins with another's events up to ``at_seq``."""
        id = new_id()
        await self.record.copy(row.thread, id, at_seq)
        text = f"Branches from session {row.id[:8]} after event {at_seq}."
        await self.record.note_first(thread_of(id), BRANCH, by, text, {"parent": row.id, "at_seq": at_seq})
        return await self.open(id)

    def note(self, session: Session, kind: str, *, by: str, text: str, **more: Any) -> None:
        """Writes down an event that nobody answers."""
        self.record.note(session.thread, kind, by, text, more)

    async def note_first(self, session: Session, kind: str, *, by: str, text: str, **more: Any) -> None:
        """The same for what counts only once it is committed. Raises ``StoreError``."""
        await self.record.note_first(session.thread, kind, by, text, more)

    async def opened_again(self, session: Session, by: str) -> None:
        """Writes down that the owner went back to a session: it is the one that phones join, after a restart, too."""
        await self.note_first(session, OPENED, by=by, text="")
        self._changed()

    async def clear(self, session: Session, by: str) -> None:
        """Empties all screens. The record keeps what was said. Raises ``SessionClosedError``, ``StoreError``."""
        self._check_open(session)
        await self.note_first(session, CLEAR, by=by, text=f"{by} cleared the screen.")

    async def end(self, session: Session, by: str) -> None:
        """Takes no further sentences; what was asked is still answered. Idempotent. Raises ``StoreError``."""
        if not session.closed:
            session.closed = True  # another call writes no second end meanwhile
            try:
                await self.note_first(session, SESSION_END, by=by, text="This session is closed.")
            except StoreError:
                session.closed = False
                raise
            self._changed()

    async def invite(self, session: Session, name: str, by: str) -> None:
        """Lets somebody on another machine answer in a session. Raises ``NotFoundError``, ``SessionClosedError``."""
        self._check_open(session)
        guest, shown = await self._found(name)
        if guest not in session.guests.invited:
            await self._change_guests(
                session, INVITED, by, f"{by} invited {shown}.", guest=msgspec.to_builtins(guest)
            )

    async def uninvite(self, session: Session, name: str, by: str) -> None:
        """Ends that. Raises ``NotFoundError``."""
        found = await self.participants.answering(name or " ", session.guests)
        if not isinstance(found, tuple):
            raise NotFoundError(f"{name[:60]} was not invited.", do="rappd sessions show")
        shown, guest = found
        await self._change_guests(session, LEFT, by, f"{shown} left.", guest=msgspec.to_builtins(guest))

    async def answer_by(self, session: Session, name: str, by: str) -> None:
        """Chooses who answers what is addressed to nobody: a twin, a guest, or "" for the brainstem.

        Raises ``NotFoundError``, ``SessionClosedError``.
        """
        self._check_open(session)
        host = self.participants.host.title
        if not name or name.casefold() == host.casefold():
            await self._change_guests(session, BACKEND, by, f"{host} answers here.", twin="")
            return
        names = {row["name"].casefold(): row for row in await self.participants.listing(GuestList())}
        if (twin := names.get(name.casefold())) is not None:
            await self._change_guests(
                session, BACKEND, by, f"{twin['name']} answers here.", twin=twin["name"]
            )
            return
        await self.invite(session, name, by)
        guest, shown = await self._found(name)
        await self._change_guests(
            session, BACKEND, by, f"{shown} answers here.", guest=msgspec.to_builtins(guest)
        )

    async def join(self, session: Session, listener: Listener) -> None:
        """Shows a listener everything after its ``last_seq``, a page at a time, then all that comes."""
        session.listeners.add(listener)
        self._show_presence(session)
        await self.more(session, listener)

    async def more(self, session: Session, listener: Listener) -> None:
        """Shows it the next page."""
        listener.behind = False
        await self._show(session, listener)

    def leave(self, session: Session, listener: Listener) -> None:
        """Shows it nothing more."""
        if listener in session.listeners:
            session.listeners.discard(listener)
            self._show_presence(session)

    def say(self, session: Session, speaker: Speaker, sentence: Say) -> Asking | None:
        """Asks a participant, beside everything else.

        An event is asked once, however often it is repeated: a repeat of one under way gets that one, and None is
        for what was asked before. What could not be recorded counts as never asked. Raises
        ``SessionClosedError``, ``AskedElsewhereError``.
        """
        id = sentence.event_id
        if id in session.asking:
            return session.asking[id]
        if id in session.recorded_ids:
            return None
        self._check_open(session)
        if any(id in other.recorded_ids or id in other.asking for other in self._open.values()):
            raise AskedElsewhereError
        recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def is_recorded() -> None:
            session.recorded_ids.add(id)
            if not recorded.done():
                recorded.set_result(None)

        def speak() -> Work:
            return self._sentences.ask(
                session.thread, session.guests, session.recent, speaker, sentence, is_recorded
            )

        interrupting = sentence.via == "mic" and WORKFLOWS.admits(caller_of(speaker))
        work = (self._interject(session, speak) if interrupting else None) or speak()
        asking = session.asking[id] = Asking(recorded, self._tasks.spawn(work))
        asking.answered.add_done_callback(lambda task: _over(session, id, asking))
        return asking

    async def close(self) -> None:
        """Ends what is under way."""
        await self._tasks.close()

    async def _take_up(self, session: Session) -> Session:
        if not await self.record.events(session.thread, last=1):
            self.record.begin(session.id)
            await self.note_first(session, SESSION_START, by="system", text="")  # lists have it from now on
        self.record.follow(session.thread, session.on_events)
        records = await self.record.events(session.thread)
        await self.record.end_interrupted(session.thread, records)
        session.closed = await self.record.is_closed(session.thread)
        session.recorded_ids = await asyncio.to_thread(_sentences_of, records)
        session.guests.take(records)
        session.take(records)
        self._look_after(session)
        self._open[session.id] = session
        self._tasks.spawn(self._show_news(session))
        self._changed()
        return session

    async def _found(self, name: str) -> tuple[Guest, str]:
        guest = await self.participants.gateway.find(name)
        row = self.participants.gateway.row(guest)
        return guest, str(row["name"]) if row else name

    async def _change_guests(self, session: Session, kind: str, by: str, text: str, **more: Any) -> None:
        await self.note_first(session, kind, by=by, text=text, **more)
        session.guests.apply(kind, more)
        self._look_after(session)
        self._tasks.spawn(self._show_participants(session))

    def _look_after(self, session: Session) -> None:
        """Shows from now on who of a session's guests comes and goes."""
        if session.guests.invited and session.id not in self._looking:
            self._looking.add(session.id)
            self._tasks.spawn(self._look(session))

    async def _look(self, session: Session) -> None:
        seen: object = None
        while session.guests.invited:
            rows = [self.participants.gateway.row(one) for one in session.guests.invited]
            if rows != seen and seen is not None:
                await self._show_participants(session)
            seen = rows
            await asyncio.sleep(_LOOK_SECONDS)
        self._looking.discard(session.id)

    async def _show_participants(self, session: Session) -> None:
        rows = await self.participants.listing(session.guests)
        for listener in list(session.listeners):
            listener.show({"type": "participants", "participants": rows})

    def _check_open(self, session: Session) -> None:
        if session.closed:
            raise SessionClosedError

    async def _show_news(self, session: Session) -> None:
        while True:
            await session.news.wait()
            session.news.clear()
            try:
                pages = await self._news(session)
                for listener in list(session.listeners):
                    if not listener.behind:
                        await self._show(session, listener, pages)
            except ReportableError as problem:
                log.error("a session cannot be shown: %s", problem)

    async def _news(self, session: Session) -> _Pages:
        """Takes in what was recorded meanwhile, and returns it."""
        pages: _Pages = {}
        rest = [one for one in session.fresh if one.n > session.last_seq]
        session.fresh.clear()
        while rest:
            after = session.last_seq
            records, rest = page_of(rest)
            session.take(records)
            pages[after] = await self._message(records, bool(rest))
        return pages

    async def _show(self, session: Session, listener: Listener, pages: _Pages | None = None) -> None:
        """Sends one page of what a listener has not seen. Listeners that have seen the same share ``pages``."""
        pages = {} if pages is None else pages
        while (after := listener.last_seq) not in pages:
            records, rest = await self.record.page(session.thread, after)
            pages[after] = await self._message(
                records, bool(rest)
            )  # meanwhile another call may have shown a part
        page = pages[after]
        if page is None or listener not in session.listeners:
            return
        listener.last_seq, listener.behind = page["last_seq"], page["more"]
        listener.show(page)

    async def _message(self, records: list[Event], more: bool) -> dict[str, Any] | None:
        if not records:
            return None
        names = await self.participants.names(records)
        events = [event for one in records if (event := event_of(one, names)) is not None]
        return {"type": "events", "events": events, "last_seq": records[-1].n, "more": more}

    def _show_presence(self, session: Session) -> None:
        for listener in list(session.listeners):
            listener.show({"type": "presence", "here": session.here})
        self._changed()


def _work_failed(error: BaseException) -> None:
    if isinstance(error, ReportableError):  # told to the phone that waits for it
        log.warning("work of a session was refused: %s", error)
    else:
        log.error("work of a session failed", exc_info=error)


def _over(session: Session, id: str, asking: Asking) -> None:
    """Forgets a sentence that is over; one that ended before it was recorded was never asked."""
    del session.asking[id]
    if asking.recorded.done():
        return
    problem = None if asking.answered.cancelled() else asking.answered.exception()
    if problem is None:
        asking.recorded.cancel()
    else:
        asking.recorded.set_exception(problem)
        asking.recorded.exception()  # nobody may be waiting


def _sentences_of(records: list[Event]) -> set[str]:
    """Ids of the sentences among records."""
    return {one.id for one in records if one.verb == HELP and "user_input" in orjson.loads(one.body)["data"]}
