"""Models that Ollama is downloading because the owner said so: begun, followed by any number of screens, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict

from agents.providers import local_servers
from agents.providers.local_servers import is_served_by_worker
from agents.providers.ollama_download import DownloadError, DownloadState, download, is_ollama, root_of
from agents.providers.selection import ProviderSelector
from agents.providers.server_kinds import OLLAMA
from agents.providers.urls import base_url, on_this_machine, without_login
from envelopes.events import Emit, Progress
from rappd.daemon.local_models import local_urls
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import ConflictError, NotFoundError, UsageProblemError
from rappd.settings.load import Settings

_OWNER = Caller("control", operator=True)
_MOST_AT_ONCE = 4


class DownloadRow(TypedDict):
    """A download of a model, in bytes."""

    model: str
    server: str
    status: str
    completed: int
    total: int


class ModelDownloads:
    """Downloads under way, by server and model. One goes on when the screen that began it is closed.

    The server is one that the settings name, or that was found where they say to look: never one of a request.
    """

    def __init__(
        self, settings: Callable[[], Settings], providers: ProviderSelector, dispatcher: Dispatcher
    ) -> None:
        self._settings = settings
        self._providers, self._dispatcher = providers, dispatcher
        self._under_way: dict[tuple[str, str], ModelDownload] = {}

    def listing(self) -> list[DownloadRow]:
        """Downloads under way: ``model``, ``server``, ``status``, ``completed``, ``total``."""
        return [one.shown() for one in self._under_way.values()]

    async def begin(self, model: str, server: str) -> ModelDownload:
        """Begins a download, or joins it: its turn ends with it, or fails with ``DownloadError``.

        Raises what ``_server`` does.
        """
        model = model.strip()
        if not model:
            raise UsageProblemError("Which model?", do="rappd models download NAME")
        root, headers = await self._server(server)
        key = root, model
        found = self._under_way.get(key)
        if found is None:
            if len(self._under_way) >= _MOST_AT_ONCE:
                raise ConflictError(
                    f"{_MOST_AT_ONCE} models are being downloaded.", do="wait until one has arrived"
                )
            found = self._under_way[key] = ModelDownload(root, model)
            found.turn = self._dispatcher.operate(partial(self._run, found, headers), _OWNER)
        return found

    def cancel(self, model: str) -> None:
        """Stops the downloads of ``model``. Raises ``NotFoundError`` without one."""
        found = [one for one in self._under_way.values() if one.model == model.strip()]
        if not found:
            raise NotFoundError(f'"{model[:80]}" is not being downloaded.', do="rappd models list")
        for one in found:
            if one.turn is not None:
                one.cancelled = True
                one.turn.cancel()

    async def _run(self, one: ModelDownload, headers: Mapping[str, str], emit: Emit) -> dict[str, Any]:
        def moved(state: DownloadState) -> None:
            one.state = state
            emit(Progress(state.status, state.completed, state.total))

        moved(one.state)
        try:
            await download(one.root, one.model, moved, headers)
            await self._providers.look()
        except asyncio.CancelledError as problem:
            if one.cancelled:
                raise ConflictError(
                    f"The download of {one.model} was cancelled.",
                    do="what has arrived is kept for the next time",
                    code="cancelled",
                ) from problem
            raise DownloadError(
                "rappd stopped before it was whole.", do=f"rappd models download {one.model}"
            ) from problem
        finally:
            self._under_way.pop((one.root, one.model), None)
        return {"status": "ok", "model": one.model}

    async def _server(self, server: str) -> tuple[str, Mapping[str, str]]:
        """The Ollama that is meant (labelled ``server``, else configured, else found here), and headers for it.

        Raises ``NotFoundError`` where none answers, ``ConflictError`` where an agent listens in its place.
        """
        settings = self._settings()
        headers: Mapping[str, str] = {}
        configured = (
            settings.text("provider.url") if settings.choice("provider.use") in ("auto", "server") else ""
        )
        if server:
            found = await local_servers.answering(local_urls(settings), local_servers.LOOK_SECONDS)
            roots = [root_of(one.url) for one in found if one.label == server and one.name == OLLAMA]
        elif configured:
            roots = [root_of(configured)]
            _, headers = without_login(base_url(configured))
            if key := settings.text("provider.key"):
                headers = {**headers, "Authorization": f"Bearer {key}"}
        else:
            found = await local_servers.answering(local_urls(settings), local_servers.LOOK_SECONDS)
            found = sorted(found, key=lambda one: one.label != settings.text("provider.local_server"))
            roots = [root_of(one.url) for one in found if one.name == OLLAMA]
        for root in roots:
            if await is_served_by_worker(root, self._providers.worker_serves):
                raise ConflictError("An agent listens in place of the model server.", do="rappd doctor")
            if await is_ollama(root, headers):
                return root, headers
        if configured and not server and not on_this_machine(root_of(configured)):
            raise NotFoundError(
                "The model server in use cannot download models: it is not Ollama.", do="rappd models list"
            )
        raise NotFoundError(
            "No Ollama answers, which could download it.",
            do="start Ollama, or install it from ollama.com/download",
        )


class ModelDownload:
    """A download under way."""

    def __init__(self, root: str, model: str) -> None:
        self.root = root
        self.model = model
        self.turn: Turn | None = None
        self.cancelled = False
        self.state = DownloadState("begins")

    def shown(self, state: DownloadState | None = None) -> DownloadRow:
        """A state of it, the present one by default, as screens show it."""
        state = state or self.state
        return {
            "model": self.model,
            "server": self.root.partition("://")[2],
            "status": state.status,
            "completed": state.completed,
            "total": state.total,
        }
