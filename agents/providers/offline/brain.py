"""The provider that needs no model: one agent call per message, or an honest answer."""

from __future__ import annotations

import asyncio
import itertools

import orjson

from agents.providers.lazy_imports import load
from agents.providers.provider import Completion, ModelRequest, ToolCall


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
        if given := str(request.extra.get("without_model") or ""):
            responses = await load("agents.providers.offline.responses")
            return self._said(request, responses.NO_MODEL + given)
        deciding = await load("agents.providers.offline.next_step")
        summaries = request.summaries() if request.summaries is not None else {}
        found = await asyncio.to_thread(
            deciding.decide,
            request.messages,
            request.tools,
            request.round,
            summaries,
            at_computer=request.extra.get("at_computer", ()),
        )
        if not isinstance(found, str):
            arguments = orjson.dumps(found.arguments).decode()
            call = ToolCall(f"offline-{next(self._numbers)}", found.name, arguments)
            return Completion(tool_calls=(call,), model=self.model)
        if "connect" in request.extra:
            responses = await load("agents.providers.offline.responses")
            found = responses.connecting(found, str(request.extra["connect"]))
        return self._said(request, found)

    async def close(self) -> None:
        """Nothing is held open."""

    def _said(self, request: ModelRequest, text: str) -> Completion:
        if request.on_text is not None:
            request.on_text(text)
        return Completion(text=text, model=self.model)
