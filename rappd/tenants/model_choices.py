"""Models chosen for a conversation and for a twin, beside the one for everybody. Kept in the record.

The first that there is answers: the model that a request names, the conversation's, the twin's, everybody's. Requests
of phones, of other machines and of workflows name none and have none of their conversation's.
"""

from __future__ import annotations

from typing import TypedDict

import msgspec

from agents.providers.selection import ProviderSelector
from envelopes.envelope import THREAD
from rappd.dispatch.turns import RequestContext
from rappd.store import model_table
from rappd.store.store import Store

_IN_REQUEST = "name another model"
_FOR_CONVERSATION = "choose another model for this conversation"
_FOR_TWIN = "choose another model for this twin"


class ModelChoice(msgspec.Struct, frozen=True):
    """The model that answers, "" for everybody's; ``do`` helps where its server has it no more."""

    model: str = ""
    do: str = ""


_EVERYBODYS = ModelChoice()


class ChosenModel(TypedDict):
    """The model that answers a conversation, by whose choice, and the choices that there are; "" for none."""

    model: str
    by: str
    conversation: str
    twin: str
    everybody: str


class ModelChoices:
    """Choices by thread and by twin; all of them are in memory, once they were read."""

    def __init__(self, store: Store, providers: ProviderSelector) -> None:
        self._store = store
        self._providers = providers
        self._conversations: dict[str, str] = {}
        self._twins: dict[str, str] = {}
        self._read = False

    async def of_turn(self, context: RequestContext) -> ModelChoice:
        """The model for a turn. Raises ``UnknownModelError`` for one in the request that the server does not list."""
        if not self._read:
            await self._load()
        if context.caller.caps is None:
            named = context.envelope.data.get("model")
            if isinstance(named, str) and named:
                await self._providers.check_model(named)
                return ModelChoice(named, _IN_REQUEST)
            if chosen := self._conversations.get(context.envelope.extensions[THREAD], ""):
                return ModelChoice(chosen, _FOR_CONVERSATION)
        if chosen := self._twins.get(context.workspace, ""):
            return ModelChoice(chosen, _FOR_TWIN)
        return _EVERYBODYS

    async def of_twin(self, workspace: str) -> str:
        """The model chosen for a twin, "" for none of its own."""
        await self._load()
        return self._twins.get(workspace, "")

    async def choose_for_conversation(self, thread: str, model: str) -> None:
        """Has ``model`` answer a conversation from now on; "" for none of its own. Raises ``UnknownModelError``."""
        await self._check(model)
        await self._store.change(model_table.choose_for_conversation(thread, model))
        _put(self._conversations, thread, model)

    async def choose_for_twin(self, twin: str, model: str) -> None:
        """Has ``model`` answer for a twin from now on; "" for none of its own. Raises ``UnknownModelError``."""
        await self._check(model)
        await self._store.change(model_table.choose_for_twin(twin, model))
        _put(self._twins, twin, model)

    async def describe(self, thread: str, workspace: str) -> ChosenModel:
        """For screens: the model that answers a conversation, by whose choice, and the choices that there are."""
        await self._load()
        found = {
            "conversation": self._conversations.get(thread, ""),
            "twin": self._twins.get(workspace, ""),
            "everybody": self._providers.current,
        }
        by = next((whose for whose, model in found.items() if model), "everybody")
        return {
            "model": found[by],
            "by": by,
            "conversation": found["conversation"],
            "twin": found["twin"],
            "everybody": found["everybody"],
        }

    async def _check(self, model: str) -> None:
        await self._load()
        if model:
            await self._providers.check_model(model)

    async def _load(self) -> None:
        if self._read:
            return
        conversations = await self._store.rows(*model_table.conversations_query())
        twins = await self._store.rows(*model_table.twins_query())
        if not self._read:  # somebody else read them meanwhile, and may have chosen since
            self._conversations, self._twins, self._read = dict(conversations), dict(twins), True


def _put(choices: dict[str, str], key: str, model: str) -> None:
    if model:
        choices[key] = model
    else:
        choices.pop(key, None)
