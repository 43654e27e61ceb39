"""GitHub Copilot as a model server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from agents.errors import ModelUnavailableError
from agents.providers.abilities import Limit
from agents.providers.answer_request import RequestLimits
from agents.providers.copilot_session import HEADERS, CopilotSessions, Session
from agents.providers.local_servers import WorkerServes
from agents.providers.model_help import ModelTraits
from agents.providers.openai_server import OpenAIServer, ServerAddress, ServerWording
from agents.providers.provider import Completion, ModelRequest
from agents.providers.refusals import Meaning

DEFAULT_MODEL = "gpt-4o"
_WITH_PICTURES = {"Copilot-Vision-Request": "true"}
"""Without it Copilot refuses every picture."""
_BUILT_IN = {
    "gpt-4o": "GPT-4o",
    "gpt-4.1": "GPT-4.1",
    "gpt-5-mini": "GPT-5 mini",
    "claude-haiku-4.5": "Claude Haiku 4.5",
    "claude-sonnet-4.5": "Claude Sonnet 4.5",
    "gemini-2.5-pro": "Gemini 2.5 Pro",
}


class Copilot:
    """Answers with the asked model; when that one is refused (400, 429, 5xx), with gpt-4o, then any other.

    A 401 ends the session; it is exchanged anew and asked once more.
    """

    name = "GitHub Copilot"

    def __init__(
        self,
        sessions: CopilotSessions,
        *,
        model: str = "",
        max_retries: int = 1,
        timeout: float = 60.0,
        worker_serves: WorkerServes | None = None,
    ) -> None:
        self.model = model or DEFAULT_MODEL
        self.sessions = sessions
        self._timeout = timeout
        self._max_retries = max_retries
        self._worker_serves = worker_serves
        self._server: OpenAIServer | None = None
        self._catalogue: list[dict[str, Any]] = []

    async def complete(self, request: ModelRequest) -> Completion:
        """Asks the model once. Raises ModelUnavailableError with what the asked model's server said."""
        asked = request.model or self.model
        request = replace(request, prompt=_once(request.prompt))
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._timeout
        first, refusal = await self._try(request, asked)
        if first is not None:
            return first
        assert refusal is not None
        # The person who chose a model that is gone is told so.
        gone = refusal.meaning == Meaning.NO_MODEL and request.chosen == asked
        if gone or not _others_may_answer(refusal.upstream_status):
            raise refusal
        for model in await self._others(asked):
            if loop.time() > give_up:
                break
            completion, problem = await self._try(request, model)
            if completion is not None:
                completion.notice = f"{asked} didn't answer; {model} did."
                return completion
            if problem is not None and not _others_may_answer(problem.upstream_status):
                break
        raise refusal

    async def models(self) -> list[dict[str, Any]]:
        """``[{"id", "name", "available", "pictures"?}]``; without a catalogue six built-in ones, without ``available``."""
        if not self._catalogue:
            try:
                self._catalogue = await self._fetch()
            except ModelUnavailableError:
                return [{"id": model, "name": name} for model, name in _BUILT_IN.items()]
        return [dict(entry) for entry in self._catalogue]

    async def takes_pictures(self, model: str) -> bool | None:
        """True or False as the catalogue tells; None for a model that is not in it."""
        for entry in await self.models():
            if entry["id"] == model:
                sees = entry.get("pictures")
                return sees if isinstance(sees, bool) else None
        return None

    def limits(self, model: str) -> list[Limit]:
        """Limits of this model that were learnt here."""
        return self._server.limits(model) if self._server is not None else []

    async def look(self, model: str) -> None:
        """Nothing is to be learnt of its models beforehand."""

    def traits(self, model: str) -> ModelTraits:
        """The traits of a model that GitHub published."""
        return self._server.traits(model) if self._server is not None else ModelTraits()

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()

    async def _try(
        self, request: ModelRequest, model: str
    ) -> tuple[Completion | None, ModelUnavailableError | None]:
        try:
            session = await self.sessions.get()
            try:
                return await self._at(session).complete(request, model=model), None
            except ModelUnavailableError as problem:
                if problem.upstream_status != 401:
                    return None, problem
            await self.sessions.end(session)
            session = await self.sessions.get()
            return await self._at(session).complete(request, model=model), None
        except ModelUnavailableError as problem:
            return None, problem

    async def _others(self, asked: str) -> list[str]:
        known = [entry["id"] for entry in await self.models() if entry.get("available", True)]
        ordered = [DEFAULT_MODEL, *(model for model in known if model != DEFAULT_MODEL)]
        return [model for model in ordered if model != asked]

    async def _fetch(self) -> list[dict[str, Any]]:
        server = self._at(await self.sessions.get())
        entries, problem = await server.listing()
        if problem is not None:
            raise problem
        return [
            {
                "id": entry["id"],
                "name": str(entry.get("name") or entry["id"]),
                "available": _available(entry),
                **_pictures(entry),
            }
            for entry in entries
            if isinstance(entry.get("id"), str) and _for_chat(entry)
        ]

    def _at(self, session: Session) -> OpenAIServer:
        if self._server is None:
            self._server = OpenAIServer(
                ServerAddress(session.endpoint, self.model, session.token, HEADERS, _WITH_PICTURES),
                ServerWording(self.name, "Copilot", "check the connection"),
                RequestLimits(self._max_retries, self._timeout),
                self._worker_serves,
            )
        else:
            self._server.point(session.endpoint, session.token)
        return self._server


def _once(prompt: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
    """The same text for every model that is tried, built for the first."""
    built: list[str] = []

    async def text() -> str:
        if not built:
            built.append(await prompt())
        return built[0]

    return text


def _others_may_answer(status: int) -> bool:
    return status in (400, 429) or status >= 500


def _for_chat(entry: dict[str, Any]) -> bool:
    capabilities = entry.get("capabilities")
    kind = capabilities.get("type") if isinstance(capabilities, dict) else None
    return kind in (None, "chat")


def _pictures(entry: dict[str, Any]) -> dict[str, bool]:
    capabilities = entry.get("capabilities")
    supports = capabilities.get("supports") if isinstance(capabilities, dict) else None
    sees = supports.get("vision") if isinstance(supports, dict) else None
    # A catalogue that tells what a model supports leaves out what it does not.
    return {"pictures": bool(sees)} if isinstance(supports, dict) else {}


def _available(entry: dict[str, Any]) -> bool:
    policy = entry.get("policy")
    state = policy.get("state") if isinstance(policy, dict) else None
    return state in (None, "enabled")
