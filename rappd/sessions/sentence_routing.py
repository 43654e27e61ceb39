"""Sentences of a session: what somebody says, who is asked, and what they are told."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from envelopes.envelope import HELP, PARTICIPANT, Envelope
from envelopes.errors import ReportableError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.envelope_rows import on_thread
from rappd.errors import ConflictError, RefusedError
from rappd.sessions.events import history
from rappd.sessions.guests import Guest, GuestList
from rappd.sessions.participants import Participants, Speaker, looking_caller_of
from rappd.store.records import Event
from rappd.tenants.tenant import Tenant

MOST_TEXT = 100_000
_CALLS = re.compile(r"\s*(?:@|[^\s,:][^,:\n]{0,79}[,:])")
"""A text that may begin with a name: only then is anybody looked up."""


@dataclass(frozen=True, slots=True)
class Say:
    """Ask a participant; ``to`` is a name or ""."""

    event_id: str
    text: str
    to: str
    via: str = ""
    """``mic``: it interrupts a workflow."""


def unfit(text: str) -> str:
    """The reason why a text is no sentence; "" for one that is."""
    if not text.strip():
        return "There is nothing to send."
    if len(text) > MOST_TEXT:
        return f"More than {MOST_TEXT} characters cannot be sent at once."
    return ""


log = logging.getLogger(__name__)


def addressed(text: str, names: Iterable[str]) -> str:
    """The one of these names that a text begins with, as in ``@Rose …``, ``Rose, …`` and ``Rose: …``; "" for none."""
    sentence = text.lstrip()
    with_sign = sentence.startswith("@")
    sentence = sentence[1:] if with_sign else sentence
    for name in sorted(names, key=len, reverse=True):
        after = sentence[len(name) : len(name) + 1]
        if sentence[: len(name)].casefold() != name.casefold():
            continue
        if after in (",", ":") or (with_sign and not (after.isalnum() or after in ("_", "-", "@"))):
            return name
    return ""


class Sentences:
    """Asks participants. All calls come from the event loop."""

    def __init__(self, dispatcher: Dispatcher, participants: Participants) -> None:
        self._dispatcher, self._participants = dispatcher, participants
        self._order = asyncio.Lock()

    async def ask(
        self,
        thread: str,
        guests: GuestList,
        earlier: Sequence[Event],
        speaker: Speaker,
        sentence: Say,
        recorded: Callable[[], None],
    ) -> None:
        """Asks and records a sentence; returns once its answer, or its refusal, is recorded.

        A participant of this machine gets the conversation of the ``earlier`` events with it.

        Sentences are recorded in the order of the calls, and answered at the same time. ``recorded`` is called once
        this one is, before anybody is asked. Raises ``RefusedError`` and ``StoreError`` where it is not, and
        ``UnrecordedReplyError`` where its answer is not yet.
        """
        caller = looking_caller_of(speaker)
        async with self._order:
            try:
                found = await self._participants.answering(await self._addressee(sentence, guests), guests)
            except ReportableError as problem:
                asked = _envelope(self._participants.host, speaker, sentence)
                await self._refuse(asked, thread, problem, recorded)
                return
            if not caller.may(self._needed(found)):
                log.warning("security: %s may not ask %s", speaker.name, sentence.to[:80])
                raise RefusedError("This phone may not ask that.", do="Ask its owner: rappd devices scopes")
            if isinstance(found, Tenant):
                envelope = _envelope(found, speaker, sentence)
                names = await self._participants.names(earlier)
                envelope.data["conversation_history"] = history(earlier, names)
            else:  # another machine gets the sentence, nothing that was said before
                envelope = self._for_guest(found, speaker, sentence)
            turn = self._dispatcher.submit(envelope, caller, thread=thread, recorded=recorded)
            self._dispatcher.begin(turn)  # its first step records the sentence
        try:
            await turn.reply()
        except ConflictError as problem:  # the participant was stopped meanwhile
            await self._refuse(envelope, thread, problem, recorded)

    async def _addressee(self, sentence: Say, guests: GuestList) -> str:
        """The name that the text itself calls, before the one that was chosen beside it."""
        if not _CALLS.match(sentence.text):
            return sentence.to
        rows = await self._participants.listing(guests)
        return addressed(sentence.text, [row["name"] for row in rows]) or sentence.to

    def _needed(self, found: Tenant | tuple[str, Guest]) -> str:
        """The capability for asking a participant."""
        if isinstance(found, Tenant):
            return f"HELP.{found.name}"
        return self._participants.gateway.capability(found[1])

    def _for_guest(self, found: tuple[str, Guest], speaker: Speaker, sentence: Say) -> Envelope:
        name, guest = found
        data = {**_data(speaker, sentence), "guest": msgspec.to_builtins(guest)}
        recipient = self._participants.gateway.recipient
        return Envelope(sentence.event_id, speaker.user_guid, recipient, HELP, data, {PARTICIPANT: name})

    async def _refuse(
        self, envelope: Envelope, thread: str, problem: ReportableError, recorded: Callable[[], None]
    ) -> None:
        asked = on_thread(envelope, thread)
        await self._dispatcher.record_first(asked)
        recorded()
        refused = asked.refusal(problem.status, str(problem), problem.code)
        refused.data["do"] = problem.do
        await self._dispatcher.record_reply(refused, thread)


def _envelope(tenant: Tenant, speaker: Speaker, sentence: Say) -> Envelope:
    return Envelope(sentence.event_id, speaker.user_guid, tenant.id, HELP, _data(speaker, sentence))


def _data(speaker: Speaker, sentence: Say) -> dict[str, Any]:
    via = {"via": sentence.via} if sentence.via else {}
    return {"user_input": sentence.text, "by": speaker.name, **via}
