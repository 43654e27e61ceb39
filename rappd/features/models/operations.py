"""Operations on models: list and choose, try and use a server, have one for a twin, follow downloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from agents.providers.ollama_download import DownloadState
from agents.providers.selection import ModelSet, ProviderSelector
from agents.providers.urls import is_at_port
from envelopes.codecs.chat import model_name
from envelopes.default_user import DEFAULT_USER_GUID
from rappd.daemon.live_settings import LiveSettings
from rappd.daemon.local_models import LocalServers, describe_local
from rappd.daemon.model_downloads import DownloadRow, ModelDownloads
from rappd.daemon.model_servers import ITSELF, ModelServers, changes_for, describe_servers, try_server
from rappd.dispatch.envelope_rows import thread_of
from rappd.errors import UsageProblemError
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import ANYBODY, OWNER, ShownTurn, Status, Text, operation
from rappd.tenants.model_choices import ChosenModel, ModelChoices
from rappd.tenants.tenant import Tenant
from twins.lifecycle.lookup import find_active
from twins.workspace.workspace import TwinLayout


class Models(TypedDict):
    """Models that can be chosen, as their server lists them with ``id`` and ``name``, and the current one."""

    models: list[dict[str, Any]]
    current: str


class TakesPictures(TypedDict):
    """A model, and whether it takes pictures; None where only trying tells."""

    model: str
    pictures: bool | None


class LocalUsed(TypedDict):
    """The server of this machine that answers from now on."""

    status: Literal["ok"]
    server: str


class ServerTested(TypedDict):
    """A server that was asked one question."""

    works: bool
    reason: str
    text: str
    do: str
    model: str
    models: list[str]
    seconds: float
    address: str
    server: str
    said: str


class ServerUsed(TypedDict):
    """The kind of server that answers from now on."""

    status: Literal["ok"]
    used: str


class TwinModel(TypedDict):
    """A twin, and the model of its own; "" for none."""

    key: str
    name: str
    model: str


class ModelDownloaded(Status):
    """A model that has arrived."""

    model: str


class ModelOperations:
    """``kind``: the kind of a model server, as ``models.servers`` lists them."""

    def __init__(
        self,
        providers: ProviderSelector,
        live: LiveSettings,
        choices: ModelChoices,
        downloads: ModelDownloads,
        layout: TwinLayout,
        port: Callable[[], int],
    ) -> None:
        """``port`` is where this daemon itself answers in OpenAI's words."""
        self._port = port
        self._providers, self._live, self._choices = providers, live, choices
        self._downloads, self._layout = downloads, layout

    @operation("models.list", "GET", "/models", right=ANYBODY)
    async def listing(self) -> Models:
        """Models that can be chosen, with the `limits` that are known of each, and the current one (RAPP v1 §8)."""
        return {"models": await self._providers.models(), "current": self._providers.current}

    @operation("models.pictures", "GET", "/models/pictures", right=ANYBODY)
    async def pictures(self, model: str = "") -> TakesPictures:
        """Tells if the model `?model=`, or the current one, takes `pictures`: true or false, or null where only trying tells."""
        named = model_name(model) or self._providers.current
        return {"model": named, "pictures": await self._providers.takes_pictures(named)}

    @operation("models.set", "POST", "/models/set", right=ANYBODY)
    async def set(self, model: Text) -> ModelSet:
        """Chooses a model by id, or `auto`; the choice is kept."""
        return await self._providers.set_model(model)

    @operation("models.local", "GET", "/models/local", right=OWNER)
    async def local(self) -> LocalServers:
        """The model server found on this machine that waits for a yes, and those that are agents' processes."""
        return describe_local(self._providers)

    @operation("models.use_local", "POST", "/models/local", right=OWNER)
    async def use_local(self, server: str = "") -> LocalUsed:
        """Says yes to the model server found on this machine; `server` names the one that was shown."""
        return {"status": "ok", "server": await self._live.use_local_server(server)}

    @operation("models.servers", "GET", "/models/servers", right=OWNER)
    async def servers(self) -> ModelServers:
        """The model servers to choose between: those found here, those set up, and the one in use; no keys."""
        return await describe_servers(self._live.current, self._providers)

    @operation("models.test", "POST", "/models/test", right=OWNER)
    async def test(
        self,
        kind: Text,
        url: str | None = None,
        key: str | None = None,
        model: str | None = None,
        version: str | None = None,
        server: str | None = None,
    ) -> ServerTested:
        """Asks a model server one question before it is used: `works`, or the reason why not and what to do."""
        fields = _given(url=url, key=key, model=model, version=version, server=server)
        found = await try_server(self._live.current, self._providers, kind, fields, own_port=self._port())
        return msgspec.convert({"works": found.works, **msgspec.to_builtins(found)}, ServerTested)

    @operation("models.use", "POST", "/models/use", right=OWNER)
    async def use(
        self,
        kind: Text,
        url: str | None = None,
        key: str | None = None,
        model: str | None = None,
        version: str | None = None,
        server: str | None = None,
    ) -> ServerUsed:
        """Takes answers from a server of this `kind` from now on, with its `url`, `key`, `model`, `version`, `server`."""
        fields = _given(url=url, key=key, model=model, version=version, server=server)
        if is_at_port(fields.get("url", ""), self._port()):
            raise UsageProblemError(ITSELF, do="Type the address of a model server.")
        await self._live.set_all(changes_for(self._live.current, kind, fields))
        await self._providers.look()
        return {"status": "ok", "used": self._providers.kind}

    @operation("models.for_twin", "POST", "/twins/{twin}/model", right=OWNER)
    async def for_twin(self, twin: str, model: Text) -> TwinModel:
        """Has `model` answer for a twin wherever nobody chose another, or `auto` for none of its own."""
        named = model_name(model)
        found = await asyncio.to_thread(find_active, self._layout, twin)
        await self._choices.choose_for_twin(found.key, named)
        return {"key": found.key, "name": found.name, "model": named}

    @operation("models.for_conversation", "POST", "/chat/model", right=ANYBODY, of_tenant=True)
    async def for_conversation(
        self, tenant: Tenant, session_id: Any = None, model: Any = None, user_guid: str = ""
    ) -> ChosenModel:
        """Tells which model answers the conversation `session_id`; with `model`, chooses it, or `auto` for none of its own."""
        if not session_id:
            raise MissingArgumentError("session_id is required", do='Send {"session_id": "…"}.')
        thread, _ = thread_of(tenant.name, user_guid or DEFAULT_USER_GUID, session_id)
        if model is not None:
            await self._choices.choose_for_conversation(thread, model_name(model))
        return await self._choices.describe(thread, tenant.name)

    @operation("models.download", "POST", "/models/download", right=OWNER)
    async def download(self, model: Text, server: str = "") -> Annotated[ShownTurn, ModelDownloaded]:
        """Lets Ollama download a `model`; for callers that accept events, with its progress. `server` names one found here."""
        begun = await self._downloads.begin(model, server)
        assert begun.turn is not None

        def shown(event: bytes) -> dict[str, Any]:
            progress = msgspec.json.decode(event)
            state = DownloadState(progress["phase"], progress["done"], progress["whole"])
            return {"type": "progress", **begun.shown(state)}

        return ShownTurn(begun.turn, shown)

    @operation("models.downloads", "GET", "/models/downloads", right=OWNER, answers="downloads")
    async def downloads(self) -> list[DownloadRow]:
        """Downloads of models under way: `model`, `server`, `status`, `completed` and `total` bytes."""
        return self._downloads.listing()

    @operation("models.cancel_download", "POST", "/models/download/cancel", right=OWNER)
    async def cancel_download(self, model: Text) -> Status:
        """Stops the download of a `model`; what has arrived is kept by Ollama."""
        self._downloads.cancel(model)
        return {"status": "ok"}


def _given(**fields: str | None) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text is not None}
