"""Sentences of a session: each is asked of one participant, and recorded whatever comes of it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

from envelopes.codecs.chat import DEFAULT_USER_GUID
from envelopes.envelope import HELP, Envelope
from envelopes.errors import ReportableError
from rappd.dispatch.context import Caller
from rappd.dispatch.dispatcher import Dispatcher, on_thread
from rappd.errors import ConflictError
from rappd.tenants.tenant import HOST, Tenant
from rappd.tether.devices import OWNER, SCOPES, WORKFLOW
from rappd.tether.events import history
from rappd.tether.participants import Participants
from rappd.tether.sentence import Say
from rappd.tether.session_record import SessionRecord

log = logging.getLogger(__name__)

_HISTORY = 24


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


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner at this computer. In a session with phones, what they said is read by the model, too: no other rights."""

    name: str = OWNER
    caps: tuple[str, ...] = (*SCOPES["talk"], WORKFLOW)
    user_guid: str = DEFAULT_USER_GUID


class Sentences:
    """Asks participants. All calls come from the event loop."""

    def __init__(self, dispatcher: Dispatcher, record: SessionRecord, participants: Participants) -> None:
        self._dispatcher, self._record, self._participants = dispatcher, record, participants
        self._order = asyncio.Lock()

    async def ask(self, thread: str, speaker: Speaker, said: Say) -> None:
        """Asks and records a sentence; returns once its answer, or its refusal, is recorded.

        Sentences are recorded in the order of the calls, and answered at the same time.
        """
        caller = Caller("tether", caps=speaker.caps)
        async with self._order:
            try:
                tenant = await self._participants.named(said.to)
            except ReportableError as problem:
                await self._refuse(_envelope(self._participants.host, speaker, said), thread, problem)
                return
            if not caller.may(f"HELP.{tenant.name}"):
                log.warning("security: %s may not ask %s", speaker.name, tenant.title)
                return
            earlier = await self._record.events(thread, last=_HISTORY)
            envelope = _envelope(tenant, speaker, said)
            envelope.data["conversation_history"] = history(earlier, await self._participants.names(earlier))
            asking = asyncio.ensure_future(self._dispatcher.dispatch(envelope, caller, thread=thread))
        try:
            await asking  # its first step records the sentence
        except ConflictError as problem:  # the participant was stopped meanwhile
            await self._refuse(envelope, thread, problem)

    async def _refuse(self, envelope: Envelope, thread: str, problem: ReportableError) -> None:
        asked = on_thread(envelope, thread)
        self._dispatcher.record_note(asked, HOST)
        refused = asked.refusal(problem.status, str(problem), problem.code)
        refused.data["do"] = problem.do
        await self._dispatcher.record_reply(refused, thread, workspace=HOST)


def _envelope(tenant: Tenant, speaker: Speaker, said: Say) -> Envelope:
    via = {"via": said.via} if said.via else {}
    data = {"user_input": said.text, "by": speaker.name, **via}
    return Envelope(said.event_id, speaker.user_guid, tenant.id, HELP, data)
