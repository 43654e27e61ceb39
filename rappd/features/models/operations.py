"""Operations on models: list and choose, try and use a server, have one for a twin, follow downloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from agents.providers.ollama_download import DownloadState
from agents.providers.selection import ProviderSelector
from agents.providers.urls import is_at_port
from envelopes.codecs.chat import model_name
from envelopes.default_user import DEFAULT_USER_GUID
from rappd.daemon.live_settings import LiveSettings
from rappd.daemon.local_models import describe_local
from rappd.daemon.model_downloads import ModelDownloads
from rappd.daemon.model_servers import ITSELF, changes_for, describe_servers, try_server
from rappd.dispatch.rows import thread_of
from rappd.errors import UsageProblemError
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import ANYBODY, OWNER, ShownTurn, Text, operation
from rappd.tenants.model_choices import ModelChoices
from rappd.tenants.tenant import Tenant
from twins.lifecycle.lookup import find_active
from twins.workspace.workspace import TwinLayout


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
    async def listing(self) -> dict[str, Any]:
        """Models that can be chosen, with the `limits` that are known of each, and the current one (RAPP v1 §8)."""
        return {"models": await self._providers.models(), "current": self._providers.current}

    @operation("models.pictures", "GET", "/models/pictures", right=ANYBODY)
    async def pictures(self, model: str = "") -> dict[str, Any]:
        """Tells if the model `?model=`, or the current one, takes `pictures`: true or false, or null where only trying tells."""
        named = model_name(model) or self._providers.current
        return {"model": named, "pictures": await self._providers.takes_pictures(named)}

    @operation("models.set", "POST", "/models/set", right=ANYBODY)
    async def set(self, model: Text) -> dict[str, Any]:
        """Chooses a model by id, or `auto`; the choice is kept."""
        return await self._providers.set_model(model)

    @operation("models.local", "GET", "/models/local", right=OWNER)
    async def local(self) -> dict[str, Any]:
        """The model server found on this machine that waits for a yes, and those that are agents' processes."""
        return describe_local(self._providers)

    @operation("models.use_local", "POST", "/models/local", right=OWNER)
    async def use_local(self, server: str = "") -> dict[str, Any]:
        """Says yes to the model server found on this machine; `server` names the one that was shown."""
        return {"status": "ok", "server": await self._live.use_local_server(server)}

    @operation("models.servers", "GET", "/models/servers", right=OWNER)
    async def servers(self) -> dict[str, Any]:
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
    ) -> dict[str, Any]:
        """Asks a model server one question before it is used: `works`, or the reason why not and what to do."""
        fields = _given(url=url, key=key, model=model, version=version, server=server)
        found = await try_server(self._live.current, self._providers, kind, fields, own_port=self._port())
        return {"works": found.works, **msgspec.structs.asdict(found)}

    @operation("models.use", "POST", "/models/use", right=OWNER)
    async def use(
        self,
        kind: Text,
        url: str | None = None,
        key: str | None = None,
        model: str | None = None,
        version: str | None = None,
        server: str | None = None,
    ) -> dict[str, Any]:
        """Takes answers from a server of this `kind` from now on, with its `url`, `key`, `model`, `version`, `server`."""
        fields = _given(url=url, key=key, model=model, version=version, server=server)
        if is_at_port(fields.get("url", ""), self._port()):
            raise UsageProblemError(ITSELF, do="Type the address of a model server.")
        await self._live.set_all(changes_for(self._live.current, kind, fields))
        await self._providers.look()
        return {"status": "ok", "used": self._providers.kind}

    @operation("models.for_twin", "POST", "/twins/{twin}/model", right=OWNER)
    async def for_twin(self, twin: str, model: Text) -> dict[str, Any]:
        """Has `model` answer for a twin wherever nobody chose another, or `auto` for none of its own."""
        named = model_name(model)
        found = await asyncio.to_thread(find_active, self._layout, twin)
        await self._choices.choose_for_twin(found.key, named)
        return {"key": found.key, "name": found.name, "model": named}

    @operation("models.for_conversation", "POST", "/chat/model", right=ANYBODY, of_tenant=True)
    async def for_conversation(
        self, tenant: Tenant, session_id: Any = None, model: Any = None, user_guid: str = ""
    ) -> dict[str, Any]:
        """Tells which model answers the conversation `session_id`; with `model`, chooses it, or `auto` for none of its own."""
        if not session_id:
            raise MissingArgumentError("session_id is required", do='Send {"session_id": "…"}.')
        thread, _ = thread_of(tenant.name, user_guid or DEFAULT_USER_GUID, session_id)
        if model is not None:
            await self._choices.choose_for_conversation(thread, model_name(model))
        return await self._choices.describe(thread, tenant.name)

    @operation("models.download", "POST", "/models/download", right=OWNER)
    async def download(self, model: Text, server: str = "") -> ShownTurn:
        """Lets Ollama download a `model`; for callers that accept events, with its progress. `server` names one found here."""
        begun = await self._downloads.begin(model, server)
        assert begun.turn is not None

        def shown(event: bytes) -> dict[str, Any]:
            told = msgspec.json.decode(event)
            state = DownloadState(told["phase"], told["done"], told["whole"])
            return {"type": "progress", **begun.shown(state)}

        return ShownTurn(begun.turn, shown)

    @operation("models.downloads", "GET", "/models/downloads", right=OWNER)
    async def downloads(self) -> dict[str, Any]:
        """Downloads of models under way: `model`, `server`, `status`, `completed` and `total` bytes."""
        return {"downloads": self._downloads.listing()}

    @operation("models.cancel_download", "POST", "/models/download/cancel", right=OWNER)
    async def cancel_download(self, model: Text) -> dict[str, Any]:
        """Stops the download of a `model`; what has arrived is kept by Ollama."""
        self._downloads.cancel(model)
        return {"status": "ok"}


def _given(**fields: str | None) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text is not None}
