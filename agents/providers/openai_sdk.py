"""Any server that speaks OpenAI chat-completions, through the ``openai`` library.

The library takes more than a second to import, so it is loaded in a thread at the first call.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agents.errors import ModelUnavailableError
from agents.providers import chat_wire, error_messages, urls
from agents.providers.local_servers import WorkerServes, WorkerServesError, ollama_sees, request_hook
from agents.providers.pictures import has_pictures
from agents.providers.provider import Completion, ModelRequest
from envelopes.codecs.bounded_json import bounded_json

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_KEY = "none"  # the library insists on one, and would else take OPENAI_API_KEY from the environment
_MOST_ANSWER = 8 << 20
_MOST_LISTED = 4 << 20
_LONGEST_WAIT = 10.0  # seconds a server may ask to wait before a retry; beyond it the turn goes on without


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


@dataclass(slots=True, frozen=True)
class RequestLimits:
    """429, 5xx and broken connections are tried again up to ``max_retries`` times.

    ``timeout`` (seconds) bounds a whole answer with its retries, or, when streaming, the wait for each next piece.
    """

    max_retries: int = 2
    timeout: float = 60.0


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
        self._sdk: AsyncOpenAI | None = None
        self._loading = asyncio.Lock()
        self._usage_in_stream = True
        self._sees: dict[str, bool] = {}

    async def complete(self, request: ModelRequest, *, model: str = "") -> Completion:
        """One answer by ``model``, else ``request.model``, else the default. Raises ModelUnavailableError."""
        model = model or request.model or self.model
        system = await request.prompt()
        while True:
            body = chat_wire.request_body(request, system, model, usage_in_stream=self._usage_in_stream)
            completion, problem = await self._attempt(body, request)
            if completion is not None:
                return completion
            assert problem is not None
            if "stream_options" not in body or not _rejects_usage(problem):
                raise problem
            self._usage_in_stream = False

    async def takes_pictures(self, model: str) -> bool | None:
        """True or False where the server tells it of a model beforehand, as Ollama does; else None."""
        if model not in self._sees and urls.may_be_ollama(self._url):
            sees = await ollama_sees(self._url, model, self._worker_serves)
            if sees is not None:
                self._sees[model] = sees
        return self._sees.get(model)

    async def models(self) -> list[dict[str, Any]]:
        """``[{"id", "name"}]`` as the server lists them. Raises ModelUnavailableError."""
        if self._azure:
            return [{"id": self.model, "name": self.model}]
        listed, problem = await self.listing()
        if problem is not None:
            raise problem
        ids = [entry["id"] for entry in listed if isinstance(entry.get("id"), str)]
        return [{"id": model_id, "name": model_id} for model_id in ids]

    async def listing(self) -> tuple[list[dict[str, Any]], ModelUnavailableError | None]:
        """The server's own entries of ``/models``, or why there are none."""
        try:
            sdk = await self._client()
            async with asyncio.timeout(self._limits.timeout):
                raw = await sdk.models.with_raw_response.list()
            data = bounded_json(raw.content, most_bytes=_MOST_LISTED)
            entries = data.get("data") if isinstance(data, dict) else None
        except Exception as error:  # noqa: BLE001  # sorted by _problem, which re-raises what is not a model's fault
            return [], self._problem(error, self.model)
        return [entry for entry in entries or [] if isinstance(entry, dict)], None

    def point(self, url: str, api_key: str) -> None:
        """Sends what comes next to another address with another key; answers under way go on."""
        if (url, api_key) == (self._url, self._key):
            return
        self._url, self._key = url, api_key
        if self._sdk is not None:
            self._sdk.base_url = url
            self._sdk.api_key = api_key

    async def close(self) -> None:
        if self._sdk is not None:
            sdk, self._sdk = self._sdk, None
            await sdk.close()

    async def _attempt(
        self, body: dict[str, Any], request: ModelRequest
    ) -> tuple[Completion | None, ModelUnavailableError | None]:
        # The problem is returned, not raised: a chained library error would carry the key along.
        model = body["model"]
        try:
            return await self._ask(body, request), None
        except Exception as error:  # noqa: BLE001  # sorted by _problem, which re-raises what is not a model's fault
            return None, self._problem(error, model)

    async def _ask(self, body: dict[str, Any], request: ModelRequest) -> Completion:
        sdk = await self._client()
        wanted: dict[str, Any] = dict(body)
        if self._picture_headers and any(map(has_pictures, body["messages"])):
            wanted["extra_headers"] = self._picture_headers
        async with asyncio.timeout(self._limits.timeout):
            raw = await sdk.chat.completions.with_raw_response.create(**wanted)
            streamed = "stream" in body and "json" not in raw.headers.get("content-type", "")
            if not streamed:
                content = await raw.http_response.aread()
        if streamed:
            return await self._read_stream(raw, request, body["model"])
        completion = chat_wire.whole(bounded_json(content, most_bytes=_MOST_ANSWER), body["model"])
        if request.on_text is not None and completion.text:
            request.on_text(completion.text)
        return completion

    async def _read_stream(self, raw: Any, request: ModelRequest, model: str) -> Completion:
        from openai import AsyncStream

        on_text = request.on_text
        assert on_text is not None
        gathered = chat_wire.StreamedCompletion(model)
        stream = raw.parse(to=AsyncStream[object])
        try:
            async for chunk in stream:
                if text := gathered.chunk(chunk):
                    on_text(text)
        finally:
            await stream.close()
        return gathered.completion()

    def _problem(self, error: Exception, model: str) -> ModelUnavailableError:
        import openai

        secrets = (self._key, self._headers.get("Authorization", ""))
        if isinstance(error, openai.APIStatusError):
            return error_messages.refused(self._label, model, error.status_code, error.response.text, secrets)
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return error_messages.slow(self._label, model, self._limits.timeout)
        for found in (error, error.__cause__):
            if isinstance(found, WorkerServesError):
                return error_messages.taken_over(model, str(found))
        if isinstance(error, openai.APIConnectionError):
            return error_messages.silent(self._label, model, self._wording.do, type(error.__cause__).__name__)
        if isinstance(error, openai.APIError):
            return error_messages.refused(
                self._label, model, 0, f"{error.message} {error.body or ''}", secrets
            )
        if isinstance(error, chat_wire.NoChoicesError):
            return error_messages.empty(model)
        if isinstance(error, ValueError):
            return error_messages.unreadable(model, getattr(error, "doc", str(error)), secrets)
        if type(error).__module__.startswith("httpx"):  # a body that ends early, outside the library's reach
            return error_messages.silent(self._label, model, self._wording.do, type(error).__name__)
        raise error

    async def _client(self) -> AsyncOpenAI:
        if self._sdk is None:
            async with self._loading:
                if self._sdk is None:
                    self._sdk = await asyncio.to_thread(self._build)
        return self._sdk

    def _build(self) -> AsyncOpenAI:
        import anyio
        import openai

        anyio.run(asyncio.sleep, 0)  # loads the library's event-loop backend here, not at the first call
        requests = [request_hook(self._worker_serves)] if self._worker_serves is not None else []
        http = openai.DefaultAsyncHttpxClient(
            timeout=openai.Timeout(self._limits.timeout, connect=5.0),
            trust_env=not urls.on_this_machine(self._url),
            event_hooks={"request": requests, "response": [_refuse_long_waits]},
        )
        common: dict[str, Any] = {
            "api_key": self._key or _NO_KEY,
            "max_retries": self._limits.max_retries,
            "http_client": http,
            "default_headers": self._headers or None,
        }
        if self._azure:
            sdk: AsyncOpenAI = openai.AsyncAzureOpenAI(
                azure_endpoint=self._url,
                azure_deployment=self._azure.deployment,
                api_version=self._azure.version,
                **common,
            )
        else:
            sdk = openai.AsyncOpenAI(base_url=self._url, **common)
        if not (urlsplit(self._url).hostname or "").endswith("openai.com"):
            sdk.organization = sdk.project = None  # OPENAI_ORG_ID and OPENAI_PROJECT_ID are not for others
        sdk.admin_api_key = None
        # Touched here because the library imports these parts when they are first reached.
        _ = sdk.chat.completions.with_raw_response, sdk.models.with_raw_response
        return sdk


async def _refuse_long_waits(response: Any) -> None:
    headers = response.headers
    try:
        wait = float(headers.get("retry-after-ms", 0)) / 1000 or float(headers.get("retry-after", 0))
    except ValueError:
        return
    if wait > _LONGEST_WAIT:
        headers["x-should-retry"] = "false"


def _rejects_usage(problem: ModelUnavailableError) -> bool:
    words = ("stream_options", "include_usage")
    return problem.upstream_status in (400, 422) and any(word in problem.detail for word in words)
