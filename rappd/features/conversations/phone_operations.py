"""Operations of phones that talk: turns, and conversations of the user whose memory counts while the phone talks.

They are asked for over a phone's own connection (``rappd.tether.phone_requests``) at the paths that the page uses. No
argument says whose they are: the device does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Literal, TypedDict

from agents.providers.selection import ProviderSelector
from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.chat import ChatRequest, decode_request, last_event, request_envelope
from envelopes.codecs.pictures import Picture
from envelopes.envelope import new_id
from envelopes.errors import MalformedError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, RefusedError
from rappd.features.conversations.conversations import (
    ConversationList,
    Conversations,
    ConversationTurns,
    ConversationView,
    FoundConversations,
    pictures_of,
)
from rappd.features.conversations.operations import ClearContext, ConversationOperations
from rappd.features.models.operations import TakesPictures
from rappd.features.operation import Reader, Stream, operation
from rappd.sessions.participants import looking_caller_of
from rappd.store.store import Store
from rappd.tenants.tenant import Tenant
from rappd.tenants.tenants import Tenants
from rappd.tether.devices import TALK, Device
from twins.workspace.listing import scan


class Answering(TypedDict):
    """The provider that answers."""

    name: str
    model: str
    where: str
    state: str


class PhoneHealth(TypedDict):
    """The machine, and who answers."""

    name: str
    node: str
    voice_mode: bool
    provider: Answering


class PhoneRights(TypedDict):
    """A phone is no operator, and reads conversations."""

    operator: Literal[False]
    reads: Literal[True]


class TwinName(TypedDict):
    """A twin that can be talked with."""

    key: str
    name: str


class PhoneTwins(TypedDict):
    """The twins that can be talked with."""

    twins: list[TwinName]
    unreadable: list[str]


class TurnCancelled(TypedDict):
    """A turn that was stopped."""

    status: Literal["ok"]
    turn_id: str


class ConversationsForPhones:
    """``device`` is the phone that asks, with the rights that it has over its connection."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        tenants: Tenants,
        providers: ProviderSelector,
        clear_context: ClearContext,
    ) -> None:
        self._store, self._dispatcher, self._tenants, self._providers = store, dispatcher, tenants, providers
        self._recorded = ConversationOperations(store, dispatcher.running, clear_context)

    @operation("phone_chat.health", "GET", "/health", right=TALK)
    async def health(self, device: Device) -> PhoneHealth:
        """The machine's name, and the model that answers."""
        host, thinking = self._tenants.host, self._providers.describe()
        return {
            "name": host.title,
            "node": host.node,
            "voice_mode": host.settings.voice,
            "provider": {
                "name": thinking.name,
                "model": thinking.model,
                "where": thinking.where,
                "state": thinking.state,
            },
        }

    @operation("phone_chat.rights", "GET", "/operator/session", right=TALK)
    async def rights(self, device: Device) -> PhoneRights:
        """A phone is never the operator; it reads the conversations of its user."""
        return {"operator": False, "reads": True}

    @operation("phone_chat.twins", "GET", "/twins", right=TALK)
    async def twins(self, device: Device) -> PhoneTwins:
        """Names and keys of the twins that can be talked with."""
        found = await asyncio.to_thread(scan, self._tenants.layout)
        return {"twins": [{"key": one.key, "name": one.name} for one in found.twins], "unreadable": []}

    @operation("phone_chat.pictures", "GET", "/models/pictures", right=TALK)
    async def takes_pictures(self, device: Device, model: str = "") -> TakesPictures:
        """Tells if the current model takes `pictures`: true or false, or null where only trying tells."""
        current = self._providers.current
        return {"model": current, "pictures": await self._providers.takes_pictures(current)}

    @operation("phone_chat.stream", "POST", "/chat/stream", right=TALK)
    async def stream(self, device: Device, reader: Reader, body: bytes) -> Stream:
        """A turn with the brainstem, as `/chat/stream` has it; asked again with the same `turn_id`, the same turn."""
        return await self._talk(device, reader, self._tenants.host, body)

    @operation("phone_chat.stream_of_twin", "POST", "/twins/{twin}/chat/stream", right=TALK)
    async def stream_of_twin(self, device: Device, reader: Reader, body: bytes, twin: str) -> Stream:
        """The same with a twin."""
        return await self._talk(device, reader, await self._tenants.twin(twin), body)

    @operation("phone_chat.cancel", "POST", "/chat/cancel", right=TALK)
    async def cancel(self, device: Device, turn_id: str) -> TurnCancelled:
        """Stops a running turn of this user's, its model call and its agent calls."""
        turn = self._dispatcher.running(device.user_guid, turn_id.lower())
        if turn is None:
            raise NotFoundError("No such turn is running.", do="It may have ended already.")
        turn.cancel()
        return {"status": "ok", "turn_id": turn_id}

    @operation("phone_conversations.list", "GET", "/conversations", right=TALK)
    async def listing(
        self, device: Device, removed: bool = False, limit: int = 50, before: str = ""
    ) -> ConversationList:
        """Conversations, the latest first."""
        return await self._recorded.listing(removed, limit, before, device.user_guid)

    @operation("phone_conversations.search", "GET", "/conversations/search", right=TALK)
    async def search(
        self, device: Device, words: str = "", limit: int = 20, below: int | None = None
    ) -> FoundConversations:
        """Conversations in which something with all of `?words=` was said."""
        return await self._recorded.search(words, limit, below, device.user_guid)

    @operation("phone_conversations.show", "GET", "/conversations/{thread}", right=TALK)
    async def show(
        self, device: Device, thread: str, limit: int = 50, before: str = "", at: str = ""
    ) -> ConversationTurns:
        """The last turns of a conversation."""
        return await self._recorded.show(thread, limit, before, at, device.user_guid)

    @operation(
        "phone_conversations.pictures",
        "GET",
        "/threads/{thread}/pictures/{turn}",
        right=TALK,
        answers="pictures",
    )
    async def pictures(self, device: Device, thread: str, turn: str) -> list[Picture]:
        """The pictures that went with the sentence of a turn."""
        found = await Conversations(self._store, device.user_guid).find(thread)
        return await pictures_of(self._store, await self._store.find_thread(found.id), turn.lower())

    @operation(
        "phone_conversations.rename",
        "POST",
        "/conversations/{thread}/rename",
        right=TALK,
        answers="conversation",
    )
    async def rename(self, device: Device, thread: str, title: str) -> ConversationView:
        """Gives it the title `title`."""
        return await self._recorded.rename(thread, title, device.user_guid)

    @operation(
        "phone_conversations.remove",
        "POST",
        "/conversations/{thread}/remove",
        right=TALK,
        answers="conversation",
    )
    async def remove(self, device: Device, thread: str) -> ConversationView:
        """Takes it off the list."""
        return await self._recorded.remove(thread, device.user_guid)

    @operation(
        "phone_conversations.restore",
        "POST",
        "/conversations/{thread}/restore",
        right=TALK,
        answers="conversation",
    )
    async def restore(self, device: Device, thread: str) -> ConversationView:
        """Puts it back into the list."""
        return await self._recorded.restore(thread, device.user_guid)

    async def _talk(self, device: Device, reader: Reader, tenant: Tenant, body: bytes) -> Stream:
        caller = looking_caller_of(device)
        if not caller.may(f"HELP.{tenant.name}"):
            raise RefusedError("This phone may not ask that.", do="Ask its owner: rappd devices scopes")
        asked = await asyncio.to_thread(_decoded, body)
        # Whose they are is not for the phone to say, and its owner chooses the model.
        asked.user_guid, asked.model, asked.twin_chat = device.user_guid, "", None
        asked.turn_id = asked.turn_id or new_id()
        session = asked.session_id if asked.session_id is not None else new_id()
        envelope = request_envelope(asked, recipient=tenant.id)
        turn = self._dispatcher.submit(envelope, caller, session=session, named=True)
        return Stream(_events(turn, tenant, int(reader.last[:9]) if reader.last.isdecimal() else 0))


def _decoded(body: bytes) -> ChatRequest:
    """The request, bounded before it is parsed."""
    try:
        bounded_json(body, most_bytes=len(body))
    except ValueError as error:
        raise MalformedError(
            f"The request cannot be read: {error}.", do="Load the phone's page again."
        ) from error
    return decode_request(body)


async def _events(
    turn: Turn, tenant: Tenant, after: int
) -> AsyncGenerator[tuple[int | None, bytes | dict[str, Any]], None]:
    async for number, event in turn.events(after):
        yield number, event
    modes = tenant.settings
    reply = await turn.end()
    last = last_event(reply, session_id=turn.session, voice_mode=modes.voice, twin_mode=modes.twin)
    yield turn.number + 1, last
