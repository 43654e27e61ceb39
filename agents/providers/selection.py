"""Chooses the provider for each model round; keyword matching takes over when it fails (architecture, "Thinking")."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NotRequired, TypedDict

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from agents.errors import AgentError, ModelUnavailableError
from agents.providers import error_messages
from agents.providers.abilities import Limit
from agents.providers.fallbacks import (
    OFFLINE_CALL,
    answers_without_model,
    complete,
    replied_without,
)
from agents.providers.github_login import GitHubLogin
from agents.providers.helped_model import HelpedModels
from agents.providers.local_servers import LocalServer, WorkerServes
from agents.providers.managed_provider import ManagedProvider
from agents.providers.model_help import Help
from agents.providers.model_names import nearest
from agents.providers.openai_server import OpenAIServer
from agents.providers.provider import Completion, FakeModel, ModelRequest, Prices, Provider
from agents.providers.provider_pool import ProviderPool
from agents.providers.refusals import REMEDIES, Meaning
from agents.providers.settings import ProviderSettings

__all__ = [
    "Meter",
    "ProviderDescription",
    "ProviderSelector",
    "ProviderSettings",
    "Remember",
    "UnknownModelError",
]

Remember = Callable[[str], Awaitable[object]]
"""Persists the model picked on a screen; ``""`` is automatic."""

_NO_MODEL_DO = "start Ollama, or rappd models connect"
_SILENCE = (Meaning.SILENT, Meaning.SLOW, Meaning.BROKE_OFF)
"""Meanings of errors where nothing refused: nobody answered, or not to the end."""
_OFFERED_DO = "rappd models use local"


class UnknownModelError(AgentError):
    """The provider does not offer that model."""

    code = "unknown_model"
    status = 400


class Meter(msgspec.Struct):
    """Counts since the start: rounds answered, those answered without the model, tokens as told."""

    rounds: int = 0
    degraded: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class ProviderDescription(msgspec.Struct, frozen=True):
    """For screens. ``state`` is ready, looking, "doesn't answer", "refused" or "no model"; ``do`` what would help.

    ``helped``: keyword matching chooses agents for the model where it is sure.
    ``refusal`` is the last error of the server in its own words, ``refused_at`` its epoch time, until it answers again.
    """

    name: str
    model: str
    where: str
    state: str
    do: str = ""
    refusal: str = ""
    refused_at: float = 0.0
    helped: bool = False


class ModelSet(TypedDict):
    """The model that answers until further notice; ``auto``: nobody chose it."""

    model: str
    auto: NotRequired[bool]


class ProviderSelector:
    """The provider that a brainstem uses.

    In order: what is configured, the fake model, a local server that answers and was accepted, Copilot with
    a token, keyword matching. A server that the operator did not configure gets no structural tools. When the
    model fails, keyword matching takes the rest of that turn: the completion carries a ``notice`` and
    ``request.extra["problem"]`` the ModelUnavailableError.
    ``start`` begins looking for local servers and tokens; without it nothing is looked for.
    """

    def __init__(
        self,
        settings: ProviderSettings,
        offline: Provider,
        *,
        remember: Remember | None = None,
        worker_serves: WorkerServes | None = None,
    ) -> None:
        self.meter = Meter()
        self._offline = offline
        self._remember = remember
        self._helped = HelpedModels()
        self._pool = ProviderPool(settings, worker_serves)
        self._take(settings)

    @property
    def name(self) -> str:
        """The present provider, as screens show it."""
        managed = self._pool.first
        if managed is not None:
            return managed.provider.name
        return self._fake.name if self._fake else self._offline.name

    @property
    def current(self) -> str:
        """The model asked for at present."""
        managed = self._pool.first
        if managed is not None:
            offered = not managed.known or self._chosen in managed.known
            return self._chosen if self._chosen and offered else managed.provider.model
        return self._fake.model if self._fake else self._offline.model

    @property
    def model(self) -> str:
        return self.current

    @property
    def login(self) -> GitHubLogin:
        """Signing in to GitHub; a new token is used from then on."""
        return self._pool.login

    @property
    def kind(self) -> str:
        """The sort of provider in use: "server", "azure", "local", "copilot", "fake"; "" is keyword matching."""
        return self._pool.kind or ("fake" if self._fake else "")

    @property
    def worker_serves(self) -> WorkerServes | None:
        """The check that no agent poses as a model server."""
        return self._pool.worker_serves

    @property
    def copilot_state(self) -> str:
        """For ``/health``: ``""`` without a GitHub token, else ``"✓"``, ``"pending"`` or ``"no_access"``."""
        return self._pool.sessions.state if self._pool.github.known else ""

    @property
    def offered(self) -> LocalServer | None:
        """A model server of this machine that answers and waits for the operator's yes."""
        return self._pool.offered

    @property
    def refused(self) -> tuple[str, ...]:
        """Labels of servers that are never used: worker processes listen there."""
        return self._pool.refused

    async def complete(self, request: ModelRequest) -> Completion:
        """Always an answer: by the model, or without it. A model that the request names comes before the usual one."""
        self.meter.rounds += 1
        if self._fake is not None:
            completion = await self._fake.complete(request)
            completion.provider = self._fake.name
            return completion
        if not self._pool.looked.is_set():
            await self._pool.looked.wait()
        managed = self._pool.first
        if managed is None:
            if request.pictures:
                raise error_messages.no_model_for_pictures(_NO_MODEL_DO)
            if self.offered is not None:
                request.extra["connect"] = _OFFERED_DO
            completion = await self._offline.complete(request)
            completion.provider = self._offline.name
        elif answers_without_model(request):
            completion = await self._without(request, None)
        else:
            completion = await self._with(managed, request)
        self.meter.input_tokens += completion.input_tokens
        self.meter.output_tokens += completion.output_tokens
        if completion.input_tokens or completion.output_tokens:
            completion.cost_usd = self._prices.cost(completion)
        return completion

    @property
    def has_model(self) -> bool:
        """True when something other than keyword matching thinks at present."""
        return self._fake is not None or self._pool.first is not None

    async def model_turn(self, request: ModelRequest) -> Completion:
        """Asks a model, never keyword matching, for one answer. Raises ModelUnavailableError."""
        completion = await self.complete(request) if self.has_model else None
        if completion is None or "problem" in request.extra:
            raise ModelUnavailableError("No model answers", do=_NO_MODEL_DO)
        return completion

    async def hand_on(self, path: str, body: bytes, content_type: str, via: str = "") -> tuple[str, bytes]:
        """Media type and bytes of what the configured server answers at ``path``. Raises ModelUnavailableError.

        For what no turn does: vectors, speech. ``via``: the machines that the request came through.
        """
        managed = self._pool.first
        if self._pool.kind != "server" or managed is None or not isinstance(managed.provider, OpenAIServer):
            raise ModelUnavailableError("There is no model server for that.", do=_NO_MODEL_DO)
        async with managed.in_use():
            return await managed.provider.hand_on(path, body, content_type, via)

    def asked_itself(self, via: str) -> bool:
        """True for the ``Via`` of a request that came from here: a model server that it asks is this machine."""
        return self._pool.via in (one.strip() for one in via.split(","))

    async def models(self) -> list[dict[str, Any]]:
        """``[{"id", "name", "available"?, "limits"?}]`` of the provider in use; ``limits`` of models where some are known."""
        managed = self._pool.first
        if managed is not None:
            found = [(entry, managed.limits(entry["id"])) for entry in await managed.listing()]
            return [{**entry, "limits": to_builtins(known)} if known else entry for entry, known in found]
        return [{"id": self.current, "name": self.name}]

    async def takes_pictures(self, model: str = "") -> bool | None:
        """True or False for ``model``, else the one asked for at present; None where only trying tells."""
        managed = self._pool.first
        if managed is None:
            return self._fake is not None
        return await managed.takes_pictures(model or self.current)

    def known_limits(self) -> dict[str, list[Limit]]:
        """Limits of models of the provider in use, by model, where some were learnt."""
        managed = self._pool.first
        if managed is None:
            return {}
        found = {model: managed.limits(model) for model in (*managed.known, self.current)}
        return {model: known for model, known in found.items() if known}

    async def check_model(self, model: str) -> None:
        """Raises UnknownModelError, with near names, where the provider in use does not list ``model``."""
        managed = self._pool.first
        if managed is None and self._fake is None:
            raise UnknownModelError("There is no model to choose from.", do=_NO_MODEL_DO)
        if managed is not None and await managed.has(model):
            return
        listed = await self._available()  # asked anew: it may have come since
        if model not in listed:
            raise UnknownModelError(f'{self.name} has no model "{model}".', do=nearest(model, listed))

    async def set_model(self, model: str) -> ModelSet:
        """Chooses ``model`` until further notice: ``{model}``, or ``{model, auto: true}`` for "auto".

        Raises UnknownModelError.
        """
        if model == "auto":
            await self._choose("")
            return {"model": self.current, "auto": True}
        available = await self._available()
        if not available:
            do = self.describe().do or "rappd models connect"
            raise UnknownModelError(f"{self.name} lists no models now. Available: []", do=do)
        if model not in available:
            raise UnknownModelError(
                f"Unknown model. Available: {available}",
                do=nearest(model, available, "choose one of these, or auto"),
            )
        await self._choose(model)
        return {"model": model}

    def describe(self) -> ProviderDescription:
        """Provider, model, address, and whether it answers."""
        managed = self._pool.first
        if managed is not None:
            refused = managed.refusal_of(self.current)
            if refused is None:
                return ProviderDescription(
                    self.name, self.current, managed.where, "ready", helped=self._is_helped(managed)
                )
            problem, at = refused.problem, refused.at
            state = "doesn't answer" if problem.meaning in _SILENCE else "refused"
            return ProviderDescription(
                self.name, self.current, managed.where, state, problem.do, str(problem), at,
                self._is_helped(managed),
            )  # fmt: skip
        if self._fake is not None:
            return ProviderDescription(self.name, self.current, "this machine", "ready")
        if not self._pool.looked.is_set():
            return ProviderDescription(self.name, "", "this machine", "looking")
        do = _OFFERED_DO if self.offered else self._pool.refusal or _NO_MODEL_DO
        return ProviderDescription(self.name, "", "this machine", "no model", do)

    def start(self) -> None:
        """Begins to look for a model in the background: at once, then every 30 s while there is none."""
        self._pool.start()

    async def first_look(self, within: float) -> None:
        """Waits until servers of this machine were looked for once, ``within`` seconds at most."""
        if self._pool.settings.local_servers:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._pool.looked.wait()

    async def look(self) -> None:
        """Looks once, now, for local servers and a GitHub token."""
        await self._pool.look()

    async def configure(self, settings: ProviderSettings) -> None:
        """Takes other settings at once; answers under way end with the provider they began with."""
        await self._pool.configure(settings)
        self._take(settings)

    async def close(self) -> None:
        await self._pool.close()
        await self._offline.close()

    def _is_helped(self, managed: ManagedProvider) -> bool:
        return self._helped.help_for(self.current, managed.traits(self.current)) is not Help.NONE

    def _take(self, settings: ProviderSettings) -> None:
        self._chosen = settings.chosen_model
        self._helped.mode = settings.help
        self._prices = Prices.of(settings.price_in, settings.price_out)
        self._fake = FakeModel() if settings.fake and not settings.configured else None

    async def _choose(self, model: str) -> None:
        self._chosen = model
        if self._remember is not None:
            await self._remember(model)

    async def _with(self, managed: ManagedProvider, request: ModelRequest) -> Completion:
        try:
            async with managed.in_use():
                asked = (
                    request if managed.configured or request.everyday is None else request.everyday(request)
                )
                completion = await self._by_model(managed, asked)
                completion.unconfigured = not managed.configured
                completion.provider = managed.provider.name
                return completion
        except ModelUnavailableError as raised:
            problem = raised
        if not problem.upstream_status:  # nobody answered, or something else than a model server did
            self._pool.report_silent(managed)
        return await self._without(request, problem)

    async def _by_model(self, managed: ManagedProvider, request: ModelRequest) -> Completion:
        """Answers by the model that the request names, the one chosen for it, or the usual one."""
        named = await self._offered(managed, request.model)
        usual = await self._offered(managed, self._chosen)
        if named or not request.chosen:
            return await self._ask(managed, replace(request, model=named or usual))
        try:
            return await self._ask(managed, replace(request, model=request.chosen))
        except ModelUnavailableError as problem:
            if problem.meaning != Meaning.NO_MODEL or request.chosen == (usual or managed.provider.model):
                raise
            completion = await self._ask(managed, replace(request, model=usual))
            do = problem.do.replace(REMEDIES[Meaning.NO_MODEL], request.chosen_do) or request.chosen_do
            gone = f"{str(problem).rstrip('.')}; {completion.model or self.current} answered — {do}."
            completion.notice = f"{completion.notice} {gone}".strip()
            return completion

    async def _ask(self, managed: ManagedProvider, request: ModelRequest) -> Completion:
        """Asks the model that the request names, with the help that it gets."""
        model = request.model or managed.provider.model
        await managed.look(model)
        return await self._helped.complete(
            lambda asked: complete(managed, asked), request, model, managed.traits(model)
        )

    async def _available(self) -> list[str]:
        return [entry["id"] for entry in await self.models() if entry.get("available", True)]

    async def _offered(self, managed: ManagedProvider, *wanted: str) -> str:
        """The first model that is wanted and offered; ``""`` is the provider's default."""
        for model in wanted:
            if model and await managed.has(model):
                return model
        return ""

    async def _without(self, request: ModelRequest, problem: ModelUnavailableError | None) -> Completion:
        if request.pictures:  # an answer by words alone would be to another question
            raise problem or ModelUnavailableError("The model doesn't answer", do="ask again")
        self.meter.degraded += 1
        request.extra["problem"] = problem
        request.extra["connect"] = ""  # the notice says what helps with the one that is set up
        completion = await self._offline.complete(replace(request, model=""))
        completion.notice = f"{replied_without(problem)} {completion.notice}".strip()
        completion.provider = self._offline.name
        completion.tool_calls = tuple(
            replace(call, id=f"{OFFLINE_CALL}{call.id.removeprefix(OFFLINE_CALL)}")
            for call in completion.tool_calls
        )
        return completion
