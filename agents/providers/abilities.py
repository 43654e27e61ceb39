"""Abilities of a model behind its server, learnt from refusals and kept for its next requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from agents.providers.refusals import Meaning

_OF_REQUEST = (400, 422)
"""Statuses by which servers refuse what a request has."""


class Abilities(msgspec.Struct, frozen=True):
    """Parts of a request that a model, or its server, takes. Everything, until a refusal says otherwise.

    ``tool_stream``: a streamed answer to a request with tools. ``system``: a message of the role "system".
    ``repeated_roles``: two messages of one role after another. ``refused`` are parameters that are not sent any more.
    """

    tools: bool = True
    tool_stream: bool = True
    stream_usage: bool = True
    system: bool = True
    repeated_roles: bool = True
    refused: frozenset[str] = frozenset()

    def without(self, meaning: Meaning, body: Mapping[str, Any]) -> Abilities | None:
        """The abilities that are left after a refusal of ``body``; None where it had nothing that could be left out."""
        streams_tools = self.tool_stream and "tools" in body and body.get("stream") is True
        has_system = any(message.get("role") == "system" for message in body["messages"])
        if meaning is Meaning.NO_STREAM_USAGE and "stream_options" in body:
            return replace(self, stream_usage=False)
        if meaning in (Meaning.NO_TOOL_STREAM, Meaning.BROKE_OFF) and streams_tools:
            return replace(self, tool_stream=False)
        if meaning is Meaning.NO_TOOLS and self.tools and _speaks_of_tools(body):
            return replace(self, tools=False)
        if meaning is Meaning.NO_SYSTEM and has_system:
            return replace(self, system=False)
        if meaning is Meaning.ALTERNATE and self.repeated_roles:
            return replace(self, repeated_roles=False)
        if (
            meaning is Meaning.ALTERNATE and has_system
        ):  # templates that count the system message as one of the roles
            return replace(self, system=False)
        return None

    def without_parameters(
        self, parameters: Mapping[str, Any], sentence: str, status: int, meaning: Meaning
    ) -> Abilities | None:
        """The abilities left after a refusal that names one of a program's ``parameters``, or may be meant for them.

        None where it is about something else.
        """
        sent = parameters.keys() - self.refused
        if status not in _OF_REQUEST:
            return None
        named = {name for name in sent if re.search(rf"\b{re.escape(name)}\b", sentence)}
        if not named and meaning is Meaning.REQUEST:
            named = set(sent)
        return replace(self, refused=self.refused | named) if named else None


class Limit(msgspec.Struct, frozen=True):
    """A limit of a model or its server: the part of a request that it cannot take, and words for people."""

    part: str
    text: str


_WORDS = {
    "tools": "cannot use agents",
    "tool_stream": "answers all at once where it may use agents",
    "system": "gets its instructions with your first sentence",
    "repeated_roles": "gets two sentences in a row as one",
    "stream_usage": "does not count tokens while it writes",
    "pictures": "cannot see pictures",
}


def limits(abilities: Abilities, sees: bool | None) -> list[Limit]:
    """The limits that are known of a model; ``sees`` is None where only trying tells if it takes pictures."""
    lacks = {part for part, able in msgspec.structs.asdict(abilities).items() if not able}
    if sees is False:
        lacks.add("pictures")
    if not abilities.tools:
        lacks.discard("tool_stream")  # it is offered none
    return [Limit(part, text) for part, text in _WORDS.items() if part in lacks]


def _speaks_of_tools(body: Mapping[str, Any]) -> bool:
    return "tools" in body or any(
        message.get("role") == "tool" or message.get("tool_calls") for message in body["messages"]
    )
