"""A model request in the form that its server takes: fitted to the context, and changed by each refusal that tells how."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from agents.providers import chat_request, context_window
from agents.providers.abilities import Abilities
from agents.providers.constant_text import with_first_text
from agents.providers.lazy_imports import load
from agents.providers.model_help import SYSTEM_SHARE, TOOLS_SHARE
from agents.providers.provider import ModelRequest
from agents.providers.refusals import Meaning, Refusal

_BYTES_PER_TOKEN = 3.0
"""Of JSON, before a server counted any: English has about four, other languages fewer."""
_SHORT_ANSWER = 512
"""Tokens that an answer may have however long the question is."""
_SHORT_SYSTEM = 600
"""Characters of a system text that are always kept."""
_FOR_ANSWER = 0.15
"""Share of the context that is left to the answer."""


class AdaptedRequest:
    """A request of the brainstem as a body for one model; ``mend`` and ``offer_less`` change it after a refusal."""

    def __init__(
        self,
        request: ModelRequest,
        system: str,
        model: str,
        abilities: Abilities,
        context: int,
        longest: int = 0,
    ) -> None:
        """``system`` is the system text, ``abilities`` and ``context`` (tokens, 0 unknown) are what is known of the model.

        ``longest``: tokens that an answer may have, where the context is known; 0 sets no limit.
        """
        self.model = model
        self.abilities = abilities
        self.context = context
        self._before = abilities
        self._request = request
        self._system = system
        self._most = 0
        self._left_out = 0
        self._tools = request.tools
        self._longest = longest
        self._offered_less = False
        if context:
            self._most = int(context * (1 - _FOR_ANSWER) * _BYTES_PER_TOKEN)

    def body(self) -> dict[str, Any]:
        """The body to send, as far as is known what the model takes."""
        fitted = self._fitted()
        self._left_out = fitted.left_out
        body = chat_request.request_body(
            replace(self._request, tools=self._tools),
            fitted.messages,
            self._system,
            self.model,
            self.abilities,
        )
        if self.context and self._longest:
            # llama.cpp fails at the end of its context, and what was not streamed is lost; at a limit it sends what
            # there is.
            left = self.context - int(context_window.size(body) / _BYTES_PER_TOKEN)
            most = max(min(left, self._longest), min(_SHORT_ANSWER, self.context // 4))
            wanted = body.get("max_tokens")
            body["max_tokens"] = min(most, wanted) if isinstance(wanted, int) else most
        return body

    async def fit_context(self) -> None:
        """Offers the tools that fit the question best, and cuts the system text, where a known context is short."""
        if self.context:
            room = self.context * _BYTES_PER_TOKEN
            await self._fit_tools(int(room * TOOLS_SHARE))
            self._fit_system(max(0, int(room * SYSTEM_SHARE) - len(with_first_text(" "))))

    async def offer_less(self, refusal: Refusal) -> bool:
        """Leaves out half of the tools, else half of the system text, where the messages alone do not fit either."""
        if refusal.meaning is not Meaning.CONTEXT:
            return False
        if self._tools and self.abilities.tools:
            await self._fit_tools(0 if self._offered_less else context_window.size(self._tools) // 2)
            self._offered_less = True
            return True
        return self._fit_system(len(self._system) // 2) if len(self._system) > _SHORT_SYSTEM else False

    async def _fit_tools(self, most: int) -> None:
        if context_window.size(self._tools) > most:
            matching = await load("agents.providers.offline.next_step")
            self._tools = await asyncio.to_thread(
                matching.best_tools, chat_request.question(self._request.messages), self._tools, most
            )

    def _fit_system(self, most: int) -> bool:
        """Keeps whole paragraphs from the beginning, the soul first; False where nothing is left out."""
        before = len(self._system)
        if before > most:
            kept = self._system[:most]
            self._system = (kept.rpartition("\n\n")[0] or kept.rpartition("\n")[0] or kept).strip()
        return len(self._system) < before

    def mend(self, refusal: Refusal, body: dict[str, Any]) -> bool:
        """Changes what is asked for as a refusal tells; False where nothing is left to change."""
        if refusal.meaning is Meaning.CONTEXT:
            return self._shrink(refusal, body)
        if (left := self._without_parameters(refusal, body)) is not None:
            self.abilities = left
            return True
        left = self.abilities.without(refusal.meaning, body)
        if left is None:
            return False
        self.abilities = left
        return True

    def _without_parameters(self, refusal: Refusal, body: dict[str, Any]) -> Abilities | None:
        names = [*self._request.parameters, "max_completion_tokens"]
        sent = {name: body[name] for name in names if name in body}
        if body.get("tool_choice", "auto") != "auto":
            sent["tool_choice"] = body["tool_choice"]
        texts = f"{refusal.server_sentence} {refusal.sent}"
        return (
            self.abilities.without_parameters(sent, texts, refusal.status, refusal.meaning) if sent else None
        )

    def ask_plainly(self) -> bool:
        """Offers no agent any more; False where none was offered, or one has told something already.

        A model of 135 M behind llama.cpp for Python, which has it choose between talking and a call, talks emptily.
        """
        if not self._tools or not self.abilities.tools or self._request.round:
            return False
        self._tools = []
        return True

    def notices(self) -> list[str]:
        """Sentences for the person of how the question was asked."""
        found = []
        if self._left_out:
            them = "message was" if self._left_out == 1 else f"{self._left_out} messages were"
            found.append(f"The oldest {them} left out: the context of {self.model} is full.")
        if self._before.tools and not self.abilities.tools:
            found.append(f"{self.model} cannot use agents; it answered without them.")
        return found

    def _fitted(self) -> context_window.Fitted:
        messages = self._request.messages
        if not self._most:
            return context_window.Fitted(messages)
        return context_window.fit(messages, self._most - self._fixed())

    def _fixed(self) -> int:
        """Bytes of what is never left out beside the question: soul and tools."""
        tools = self._tools if self.abilities.tools else []
        return len(with_first_text(self._system)) + (context_window.size(tools) if tools else 0)

    def _shrink(self, refusal: Refusal, body: dict[str, Any]) -> bool:
        """Leaves older messages out; by the server's own figures where it names them."""
        whole = self._fixed() + context_window.size(self._request.messages)
        sent = self._fixed() + context_window.size(body["messages"])
        if refusal.context_tokens:
            self.context = refusal.context_tokens
        most = int(sent * 0.6)
        if refusal.context_tokens and refusal.needed:
            most = min(
                int(sent * refusal.context_tokens / refusal.needed * (1 - _FOR_ANSWER)), int(sent * 0.9)
            )
        before, self._most = self._left_out, most
        fitted = self._fitted()
        return whole > 0 and fitted.left_out > before
