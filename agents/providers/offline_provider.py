"""The provider that needs no model: one agent call per message, or an honest answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from agents.errors import ToolsNeedModelError
from agents.providers.provider import Completion, ModelRequest, ToolCall

if TYPE_CHECKING:
    from agents.providers.offline.route import Decision


class OfflineBrain:
    """Answers without a model (architecture, "Thinking").

    In the first round it calls at most one agent, and only with every required argument found; in
    later rounds it words what the agents returned. Every text starts with ``(no model)``. It never
    raises ``ModelUnavailableError``, uses no network and keeps nothing between turns. Deciding among
    many agents takes a while the first time, so it happens beside the event loop.
    """

    name = "no model"

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    @property
    def model(self) -> str:
        return self.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Raises ``ToolsNeedModelError`` where the asking program demands a call of its own tools."""
        if request.tool_choice != "auto":
            raise ToolsNeedModelError
        notice = without_tools(len(request.clients)) if request.clients and not request.round else ""
        summaries = request.summaries() if request.summaries is not None else {}
        found = await asyncio.to_thread(_decided, request, summaries)
        if not isinstance(found, str):
            arguments = orjson.dumps(found.arguments).decode()
            call = ToolCall(f"offline-{next(self._numbers)}", found.name, arguments)
            return Completion(tool_calls=(call,), model=self.model, notice=notice)
        if request.on_text is not None:
            request.on_text(found)
        return Completion(text=found, model=self.model, notice=notice)

    async def close(self) -> None:
        """Nothing is held open."""


def without_tools(count: int) -> str:
    """The sentence for a program whose tools nobody could call."""
    what = "tool of the program was" if count == 1 else f"{count} tools of the program were"
    return f"There is no model, so the {what} not used — rappd models connect."


def _decided(request: ModelRequest, summaries: Mapping[str, str]) -> Decision | str:
    # imported by the first question, beside the event loop: their patterns and lists cost what the start must not
    from agents.providers.offline.next_step import decide
    from agents.providers.offline.responses import NO_MODEL, connecting

    if given := str(request.extra.get("without_model") or ""):
        return NO_MODEL + given
    at_computer = request.extra.get("at_computer", ())
    found = decide(request.messages, request.agents, request.round, summaries, at_computer=at_computer)
    if isinstance(found, str) and "connect" in request.extra:
        return connecting(found, str(request.extra["connect"]))
    return found
