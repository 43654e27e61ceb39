"""Sessions of several participants: one thread each, whoever speaks; its record decides the order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from envelopes.envelope import DONE, ERROR, HELP, NOTE, THREAD, Envelope, new_id, thread_id
from envelopes.errors import ReportableError
from rappd.dispatch.context import Caller
from rappd.dispatch.dispatcher import Dispatcher, now
from rappd.errors import NotFoundError
from rappd.store.records import Event, ThreadInfo, ThreadRow
from rappd.store.store import Store
from rappd.tenants.tenant import HOST, Tenant
from rappd.tenants.tenants import Tenants
from rappd.tether.devices import WORKFLOW
from rappd.tether.events import SESSION_START, event_of, history
from rappd.tether.session import Say

log = logging.getLogger(__name__)

SESSION_CALLER = "session"
PAGE_EVENTS = 100
_HISTORY = 24


class Listener(Protocol):
    """Somebody who sees a session: a phone, or a screen of this computer."""

    last_seq: int

    def show(self, message: dict[str, Any]) -> None:
        """Shows a message."""
        ...


class Speaker(Protocol):
    """Somebody who asks: a device, or the owner at this computer."""

    @property
    def name(self) -> str:
        """The name that everybody sees."""
        ...

    @property
    def caps(self) -> tuple[str, ...]:
        """Capability texts of what it may do."""
        ...

    @property
    def user_guid(self) -> str:
        """The user whose memory counts."""
        ...


class Session:
    """One open session: its thread, and who listens."""

    def __init__(self, id: str, thread: str) -> None:
        self.id, self.thread = id, thread
        self.listeners: set[Listener] = set()
        self.news = asyncio.Event()


Interject = Callable[[Session, bool, Callable[[], Coroutine[Any, Any, None]]], bool]
"""Takes a sentence that interrupts a workflow over, if the speaker may and one runs; else returns False."""


class Sessions:
    """Opens sessions, takes sentences in, and shows every listener the same events in the same order."""

    def __init__(self, dispatcher: Dispatcher, store: Store, tenants: Tenants) -> None:
        self._dispatcher, self._store, self._tenants = dispatcher, store, tenants
        self._open: dict[str, Session] = {}
        self._by_thread: dict[str, Session] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.interject: Interject = lambda session, may, speak: False
        dispatcher.watch(self._on_record)

    async def open(self, id: str = "") -> Session:
        """The session of that id; a new one where there is none, or no id."""
        id = id or new_id()
        if id in self._open:
            return self._open[id]
        session = Session(id, _thread_of(id))
        self._open[id] = self._by_thread[session.thread] = session
        records = await self.records(session.thread)
        if records:
            await self._end_interrupted(session, records)
        else:
            self._store.thread(ThreadInfo(session.thread, HOST, SESSION_CALLER, f'"{id}"', "Session", now()))
            self.note(session, SESSION_START, by="system", text="")
        self._spawn(self._show_news(session))
        return session

    async def find(self, id: str) -> Session:
        """The session of that id. Raises ``NotFoundError``."""
        if id not in self._open and not await self.records(_thread_of(id), last=1):
            raise NotFoundError(f'No session "{id[:40]}".', do="Leave it out: the session used last counts.")
        return await self.open(id)

    async def listing(self) -> list[ThreadRow]:
        """The threads of all sessions, the latest used first."""
        return [row for row in await self._store.threads(500) if row.caller == SESSION_CALLER]

    def note(
        self, session: Session, kind: str, *, by: str, text: str, more: dict[str, Any] | None = None
    ) -> None:
        """Writes down an event that nobody answers."""
        data = {"kind": kind, "by": by, "text": text, **(more or {})}
        note = Envelope(new_id(), SESSION_CALLER, self._tenants.host.id, NOTE, data, {THREAD: session.thread})
        self._dispatcher.record_note(note, HOST)

    def participants(self) -> list[dict[str, str]]:
        """Everybody that can be asked: the brainstem, and the twins of this machine."""
        rows = [{"name": self._tenants.host.title, "role": "twin"}]
        rows += [{"name": one.title, "role": "twin"} for one in self._tenants.all() if one.name != HOST]
        return rows

    def names(self) -> dict[str, str]:
        """Participants' names by the ids that their records carry."""
        return {one.id: one.title for one in self._tenants.all()}

    async def join(self, session: Session, listener: Listener) -> None:
        """Shows a listener everything after its ``last_seq``, then all that comes."""
        session.listeners.add(listener)
        await self._show(session, listener)

    def leave(self, session: Session, listener: Listener) -> None:
        """Shows it nothing more."""
        session.listeners.discard(listener)

    def say(self, session: Session, device: Speaker, said: Say) -> None:
        """Asks a participant for a device, beside everything else. A repeat of the same event is asked once."""

        def speak() -> Coroutine[Any, Any, None]:
            return self._say(session, device, said)

        if said.via != "mic" or not self.interject(session, WORKFLOW in device.caps, speak):
            self._spawn(speak())

    async def close(self) -> None:
        """Ends what is under way."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _say(self, session: Session, device: Speaker, said: Say) -> None:
        caller = Caller("tether", peer="", caps=device.caps)
        try:
            tenant = await self.asked(said.to)
        except ReportableError as problem:
            self._refuse(session, device, said, self._tenants.host, problem)
            return
        data = {"user_input": said.text, "by": device.name, **({"via": said.via} if said.via else {})}
        envelope = Envelope(said.event_id, device.user_guid, tenant.id, HELP, data)
        if not caller.may(f"HELP.{tenant.name}"):
            log.warning("security: %s may not ask %s", device.name, tenant.title)
            return
        earlier = [
            one for one in await self.records(session.thread, last=_HISTORY) if one.id != said.event_id
        ]
        envelope.data["conversation_history"] = history(earlier, self.names())
        with contextlib.suppress(ReportableError):  # it stands in the log
            await self._dispatcher.dispatch(envelope, caller, named=True, thread=session.thread)

    async def asked(self, name: str) -> Tenant:
        """The participant of that name; the brainstem for "". Raises ``NoSuchTwinError``, ``TwinConflictError``."""
        wanted = name.casefold()
        host = self._tenants.host
        if not wanted or wanted == host.title.casefold():
            return host
        return await self._tenants.twin(name)

    def _refuse(
        self, session: Session, device: Speaker, said: Say, tenant: Tenant, problem: ReportableError
    ) -> None:
        asked = Envelope(
            said.event_id, device.user_guid, tenant.id, HELP, {"user_input": said.text, "by": device.name},
            {THREAD: session.thread},
        )  # fmt: skip
        self._dispatcher.record_note(asked, HOST)
        refused = asked.refusal(problem.status, str(problem), problem.code)
        refused.data["do"] = problem.do
        self._spawn(self._dispatcher.record_reply(refused, session.thread, workspace=HOST, late=True))

    def _on_record(self, envelope: Envelope, workspace: str) -> None:
        session = self._by_thread.get(envelope.thread)
        if session is not None:
            session.news.set()

    async def _show_news(self, session: Session) -> None:
        while True:
            await session.news.wait()
            session.news.clear()
            try:
                await self._store.flush()
                for listener in list(session.listeners):
                    await self._show(session, listener)
            except ReportableError as problem:
                log.error("a session cannot be shown: %s", problem)

    async def _show(self, session: Session, listener: Listener) -> None:
        """Sends what a listener has not seen, in pages."""
        names = self.names()
        while True:
            records = await self.records(session.thread, after=listener.last_seq)
            page = [
                one for one in records[:PAGE_EVENTS] if one.n > listener.last_seq
            ]  # another may have shown it
            if not page or listener not in session.listeners:
                return
            listener.last_seq = page[-1].n
            events = [event for one in page if (event := event_of(one, names)) is not None]
            more = len(records) > PAGE_EVENTS
            listener.show({"type": "events", "events": events, "last_seq": listener.last_seq, "more": more})
            if not more:
                return

    async def records(self, thread: str, *, after: int = 0, last: int | None = None) -> list[Event]:
        """The events of a session's thread; none where there is no such thread yet."""
        with contextlib.suppress(ReportableError):
            return await self._store.thread_events(thread, after=after, last=last)
        return []

    async def _end_interrupted(self, session: Session, records: list[Event]) -> None:
        """Sentences that the last run was asked and did not answer get an ERROR, once."""
        answered = {one.id for one in records if one.verb in (DONE, ERROR)}
        for one in records:
            if one.verb == HELP and one.id not in answered:
                reply = Envelope(
                    one.id, one.recipient, one.sender, ERROR,
                    {"code": 500, "msg": "This was cut off before it was done.", "reason": "interrupted", "do": "Ask again."},
                )  # fmt: skip
                await self._dispatcher.record_reply(reply, session.thread, workspace=HOST, late=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work of a session failed", exc_info=error)


def _thread_of(id: str) -> str:
    return thread_id(HOST, SESSION_CALLER, f'"{id}"')
