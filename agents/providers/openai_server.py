"""Any server that speaks OpenAI chat completions: what its models take is learnt, what it refuses is told."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from agents.errors import ModelUnavailableError
from agents.providers import chat_request, error_messages, server_kinds, urls
from agents.providers.abilities import Abilities, Limit, limits
from agents.providers.adapted_request import AdaptedRequest
from agents.providers.answer_request import Listener, ModelConnection, Outcome, RequestLimits
from agents.providers.answers.reader import Ending, ModelAnswer, Piece, Text
from agents.providers.local_servers import WorkerServes, is_served_by_worker, model_entries, ollama_sees
from agents.providers.model_help import ModelTraits, most_tokens, size_in_name
from agents.providers.pictures import has_pictures, says_blind
from agents.providers.provider import Completion, ModelRequest
from agents.providers.refusals import Meaning, Refusal
from agents.providers.refusals import read as read_refusal
from envelopes.codecs.bounded_json import bounded_json

log = logging.getLogger(__name__)

_MOST_ATTEMPTS = 12
_FIRST_PAUSE = 0.2
"""Seconds before the second try, doubled for each further one."""
_LONGEST_PAUSE = 1.0
"""Seconds that a person is held for a retry, whatever the server asks for."""
_LISTING_SECONDS = 10.0
_MOST_HANDED_ON = 32 << 20
"""Bytes of an answer that is only passed on: spoken text, many vectors."""


@dataclass(slots=True, frozen=True)
class Azure:
    """The address of an Azure OpenAI deployment (RAPP v1 §9)."""

    endpoint: str
    deployment: str
    key: str = field(repr=False)
    version: str = "2024-10-21"


@dataclass(slots=True, frozen=True)
class ServerAddress:
    """A base URL (the part before ``/chat/completions``), the usual model there, and the key.

    ``picture_headers`` go with requests that have pictures.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    picture_headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class ServerWording:
    """The texts of errors: ``label`` (else the name) begins them, ``do`` says what helps when nobody answers."""

    name: str = "model"
    label: str = ""
    do: str = "check provider.url"


class OpenAIServer:
    """A provider for one base URL or one Azure deployment.

    With ``worker_serves``, nothing is sent to a server that turns out to be a worker process.
    """

    def __init__(
        self,
        at: ServerAddress | Azure,
        wording: ServerWording | None = None,
        limits: RequestLimits | None = None,
        worker_serves: WorkerServes | None = None,
    ) -> None:
        azure = at if isinstance(at, Azure) else None
        address = at if isinstance(at, ServerAddress) else ServerAddress(at.endpoint, at.deployment, at.key)
        self._wording = wording or ServerWording()
        self._limits = limits or RequestLimits()
        self.name = self._wording.name
        self.model = address.model
        self._label = self._wording.label or self.name
        self._url, login = urls.without_login(address.url)
        self._key = address.key
        self._headers = {**login, **address.headers}
        self._picture_headers = address.picture_headers
        self._azure = azure
        self._worker_serves = worker_serves
        self._connection = ModelConnection(self._limits.timeout, worker_serves)
        self._sees: dict[str, bool] = {}
        self._abilities: dict[str, Abilities] = {}
        self._contexts: dict[str, int] = {}
        self._looked: set[str] = set()
        self._facts: dict[str, server_kinds.ServerFacts] = {}
        self._kind = ""

    async def complete(self, request: ModelRequest, *, model: str = "") -> Completion:
        """One answer by ``model``, else ``request.model``, else the default. Raises ModelUnavailableError.

        What was streamed to a person before an answer broke off is kept: it comes back as a completion that is
        marked (``cut``) and says why.
        """
        model = model or request.model or self.model
        await self.look(model)
        conversation = AdaptedRequest(
            request,
            await request.prompt(),
            model,
            self._abilities.get(model, Abilities()),
            self._contexts.get(model, 0),
            most_tokens(self.traits(model)) if self._kind else 0,
        )
        await conversation.fit_context()
        retries = 0
        refusal: Refusal | None = None
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            body = conversation.body()
            outcome = await self._ask(body, request, model)
            refusal = outcome.refusal
            if outcome.of_worker:
                raise error_messages.taken_over(model, outcome.of_worker)
            if refusal is None:
                assert outcome.answer is not None
                if attempt < _MOST_ATTEMPTS and _is_empty(outcome.answer) and conversation.ask_plainly():
                    continue
                return _as_sent(self._answered(outcome.answer, conversation), body)
            log.warning("%s refused %s (%s, status %d): %s", self._label, model, refusal.meaning, refusal.status,
                        refusal.sent[:500])  # fmt: skip
            if outcome.shown:
                assert outcome.answer is not None
                return _as_sent(self._broken(outcome.answer, refusal), body)
            if conversation.mend(refusal, body) or await conversation.offer_less(refusal):
                continue
            if any(map(has_pictures, body["messages"])) and says_blind(refusal.server_sentence):
                self._sees[model] = False
            if not refusal.may_pass or retries >= self._limits.max_retries or refusal.wait > _LONGEST_PAUSE:
                break
            await asyncio.sleep(max(refusal.wait, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**retries)))
            retries += 1
        assert refusal is not None
        raise self._problem(refusal, model)

    async def look(self, model: str = "") -> None:
        """Asks a server of this machine once for each model what it is and how long the context is."""
        model = model or self.model
        if model in self._looked or self._azure or not urls.on_this_machine(self._url):
            return
        self._looked.add(model)
        if await is_served_by_worker(self._url, self._worker_serves):
            return
        found = await server_kinds.facts(self._connection.ask_json, self._url, model, self._sent_headers())
        if found.kind and not self._wording.label:
            self.name = self._label = self._kind = found.kind
        if found.context:
            self._contexts[model] = found.context
        self._facts[model] = found
        if not found.whole:  # it was still starting: the next question asks again
            self._looked.discard(model)

    async def takes_pictures(self, model: str) -> bool | None:
        """True or False where the server tells it of a model beforehand, as Ollama does; else None."""
        if model not in self._sees and urls.may_be_ollama(self._url):
            sees = await ollama_sees(self._url, model, self._worker_serves)
            if sees is not None:
                self._sees[model] = sees
        return self._sees.get(model)

    def limits(self, model: str) -> list[Limit]:
        """Limits of this model that were learnt here."""
        return limits(self._abilities.get(model, Abilities()), self._sees.get(model))

    def traits(self, model: str) -> ModelTraits:
        """The traits of a model that its server published."""
        known = self._facts.get(model, server_kinds.NOTHING_KNOWN)
        return ModelTraits(
            self._abilities.get(model, Abilities()).tools and known.tools is not False,
            known.billions or size_in_name(model),
            not self._azure and urls.on_this_machine(self._url),
            self._contexts.get(model, 0),
        )

    async def models(self) -> list[dict[str, Any]]:
        """``[{"id", "name"}]`` as the server lists them. Raises ModelUnavailableError."""
        if self._azure:
            return [{"id": self.model, "name": self.model}]
        listed, problem = await self.listing()
        if problem is not None:
            raise problem
        return [{"id": entry["id"], "name": entry["id"]} for entry in listed]

    async def listing(self) -> tuple[list[dict[str, Any]], ModelUnavailableError | None]:
        """The server's own entries of ``/models``, or why there are none."""
        if await is_served_by_worker(self._url, self._worker_serves):
            return [], error_messages.taken_over(self.model, f"An agent listens at {urls.shown(self._url)}")
        within = min(_LISTING_SECONDS, self._limits.timeout)
        reply = await self._connection.ask_json(
            "GET", f"{self._url}/models", headers=self._sent_headers(), within=within
        )
        if not reply.status:
            meaning = Meaning.SLOW if reply.failure == "timeout" else Meaning.SILENT
            return [], self._problem(Refusal(meaning, sent=reply.failure), self.model)
        if reply.status != 200:
            refusal = read_refusal(reply.data or reply.text, reply.status, secrets=self._secrets)
            return [], self._problem(refusal, self.model)
        return model_entries(reply) or [], None

    async def hand_on(self, path: str, body: bytes, content_type: str, via: str = "") -> tuple[str, bytes]:
        """Media type and bytes of the server's answer to what is none of a turn's. Raises ModelUnavailableError."""
        headers = {**self._sent_headers(), **self._via(via), "Content-Type": content_type, "Accept": "*/*"}
        found = await self._connection.hand_on(f"{self._url}{path}", body, headers, _MOST_HANDED_ON)
        if found is None:
            raise self._problem(Refusal(Meaning.SILENT), self.model)
        status, kind, answer = found
        if status == 200:
            return kind, answer
        try:
            refusal = bounded_json(answer, most_bytes=_MOST_HANDED_ON)
        except ValueError:
            refusal = answer.decode("utf-8", "replace")
        problem = self._problem(read_refusal(refusal, status, secrets=self._secrets), self.model)
        problem.upstream_status = status
        raise problem

    def point(self, url: str, api_key: str) -> None:
        """Sends what comes next to another address with another key; answers under way go on."""
        self._url, self._key = url, api_key

    async def close(self) -> None:
        await self._connection.close()

    async def _ask(self, body: dict[str, Any], request: ModelRequest, model: str) -> Outcome:
        headers = {**self._sent_headers(), **self._via(request.via)}
        if self._picture_headers and any(map(has_pictures, body["messages"])):
            headers |= self._picture_headers
        return await self._connection.ask(
            self._chat_url,
            chat_request.encoded(body),
            headers,
            model=model,
            listener=Listener(_pieces_to(request), request.on_wait),
            secrets=self._secrets,
        )

    @property
    def _chat_url(self) -> str:
        if self._azure is None:
            return f"{self._url}/chat/completions"
        deployment = quote(self._azure.deployment, safe="")
        query = f"api-version={quote(self._azure.version, safe='')}"
        return f"{self._url.rstrip('/')}/openai/deployments/{deployment}/chat/completions?{query}"

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self._key, self._headers.get("Authorization", "")

    def _sent_headers(self) -> dict[str, str]:
        key = {}
        if self._key:
            key = {"api-key": self._key} if self._azure else {"Authorization": f"Bearer {self._key}"}
        return {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            **key,
            **self._headers,
        }

    def _via(self, before: str) -> dict[str, str]:
        """The machines that a request came through, this one behind them (RFC 9110, 7.6.3)."""
        via = ", ".join(filter(None, (before, self._limits.via)))
        return {"Via": via} if via else {}

    def _answered(self, answer: ModelAnswer, conversation: AdaptedRequest) -> Completion:
        """The completion of a whole answer; what was learnt on the way is kept for the next one."""
        model = conversation.model
        if conversation.abilities != self._abilities.get(model, Abilities()):
            self._abilities[model] = conversation.abilities
        if conversation.context:
            self._contexts[model] = conversation.context
        notices = [*conversation.notices(), *_notices(answer, self._label)]
        return _completion(answer, " ".join(notices))

    def _broken(self, answer: ModelAnswer, refusal: Refusal) -> Completion:
        """The completion of an answer that broke off after a person had seen some of it."""
        problem = self._problem(refusal, answer.model)
        why = str(problem) if refusal.server_sentence else f"{self._label} broke off"
        completion = _completion(answer, f"{why.rstrip('.')}; the answer is not whole — {problem.do}.")
        completion.cut, completion.tool_calls = True, ()
        return completion

    def _problem(self, refusal: Refusal, model: str) -> ModelUnavailableError:
        silent_do = f"start {self._kind}" if self._kind else self._wording.do
        problem = error_messages.unavailable(
            refusal, self._label, model, silent_do=silent_do, seconds=self._limits.timeout
        )
        problem.do = server_kinds.remedy(self._kind, refusal.meaning, model, problem.do)
        return problem


def _is_empty(answer: ModelAnswer) -> bool:
    has_answer = answer.text.strip() or answer.thoughts or answer.calls
    return answer.ending is Ending.FINISHED and not has_answer


def _pieces_to(request: ModelRequest) -> Callable[[Piece], None] | None:
    on_text, on_thought = request.on_text, request.on_thought
    if on_text is None:
        return None

    def tell(piece: Piece) -> None:
        if isinstance(piece, Text):
            on_text(piece.text)
        elif on_thought is not None:
            on_thought(piece.text)

    return tell


def _completion(answer: ModelAnswer, notice: str) -> Completion:
    return Completion(
        answer.text,
        answer.calls,
        answer.model,
        answer.input_tokens,
        answer.output_tokens,
        notice=notice,
        thoughts=answer.thoughts,
        cut=answer.ending is Ending.LENGTH and bool(answer.calls),
        ending=str(answer.ending),
        by_model=True,
    )


def _as_sent(completion: Completion, body: dict[str, Any]) -> Completion:
    """The completion with the number of messages that it answers, and their hash."""
    messages = body["messages"]
    completion.messages = len(messages)
    completion.prompt_sha256 = hashlib.sha256(chat_request.encoded(messages)).hexdigest()
    return completion


def _notices(answer: ModelAnswer, label: str) -> list[str]:
    """Sentences about how an answer ended."""
    found = []
    if answer.ending is Ending.LENGTH and not answer.calls:
        found.append("The answer stops at the model's limit of tokens — say “go on” for the rest.")
    if answer.ending is Ending.FILTER:
        found.append(
            f"{label} withheld {'the rest of the answer' if answer.text else 'its answer'} (content filter)."
        )
    if answer.damaged:
        found.append("A piece of the answer could not be read.")
    if answer.calls_left_out:
        found.append(f"{answer.calls_left_out} further calls of agents were left out.")
    return found
