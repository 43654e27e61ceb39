"""Models that Ollama is downloading because the owner said so: begun, followed by any number of screens, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agents.providers import local_servers
from agents.providers.local_servers import is_served_by_worker
from agents.providers.ollama_download import DownloadError, DownloadState, download, is_ollama, root_of
from agents.providers.selection import ProviderSelector
from agents.providers.server_kinds import OLLAMA
from agents.providers.urls import base_url, on_this_machine, without_login
from rappd.daemon.local_models import local_urls
from rappd.errors import ConflictError, NotFoundError, UsageProblemError
from rappd.settings.load import Settings

Moved = Callable[[dict[str, Any]], None]
_MOST_AT_ONCE = 4


class CancelledDownloadError(ConflictError):
    """The owner cancelled the download."""

    code = "cancelled"


class ModelDownloads:
    """Downloads under way, by server and model. One goes on when the screen that began it is closed.

    The server is one that the settings name, or that was found where they say to look: never one of a request.
    """

    def __init__(self, settings: Callable[[], Settings], providers: ProviderSelector) -> None:
        self._settings = settings
        self._providers = providers
        self._under_way: dict[tuple[str, str], _Download] = {}

    def listing(self) -> list[dict[str, Any]]:
        """Those under way: ``model``, ``server``, ``status``, ``completed``, ``total``."""
        return [one.event() for one in self._under_way.values()]

    async def follow(self, model: str, server: str, moved: Moved) -> dict[str, Any]:
        """Begins a download, or joins it, and waits for its end. Raises ``DownloadError`` and what ``_server`` does."""
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
            found = self._under_way[key] = _Download(root, model)
            found.task = asyncio.ensure_future(self._run(found, headers))
            found.task.add_done_callback(_retrieved)
        return await found.followed(moved)

    def cancel(self, model: str) -> None:
        """Stops the downloads of ``model``. Raises ``NotFoundError`` without one."""
        found = [one for one in self._under_way.values() if one.model == model.strip()]
        if not found:
            raise NotFoundError(f'"{model[:80]}" is not being downloaded.', do="rappd models list")
        for one in found:
            one.stop()

    async def close(self) -> None:
        """Stops all."""
        tasks = [one.task for one in self._under_way.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, one: _Download, headers: Mapping[str, str]) -> None:
        try:
            await download(one.root, one.model, one.moved, headers)
            await self._providers.look()
        finally:
            self._under_way.pop((one.root, one.model), None)

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


def _retrieved(task: asyncio.Future[None]) -> None:
    """Takes the error of a download that nobody follows, which asyncio would report as never retrieved."""
    if not task.cancelled():
        task.exception()


class _Download:
    """A download, and those who follow it."""

    def __init__(self, root: str, model: str) -> None:
        self.root = root
        self.model = model
        self.task: asyncio.Future[None] | None = None
        self._cancelled = False
        self._state = DownloadState("begins")
        self._followers: list[Moved] = []

    def event(self) -> dict[str, Any]:
        """The present state, as screens show it."""
        state = self._state
        told = {"status": state.status, "completed": state.completed, "total": state.total}
        return {"model": self.model, "server": self.root.partition("://")[2], **told}

    def moved(self, state: DownloadState) -> None:
        self._state = state
        for tell in self._followers:
            tell({"type": "progress", **self.event()})

    def stop(self) -> None:
        self._cancelled = True
        if self.task is not None:
            self.task.cancel()

    async def followed(self, moved: Moved) -> dict[str, Any]:
        """Waits for the end; a follower that leaves does not stop it."""
        assert self.task is not None
        self._followers.append(moved)
        moved({"type": "progress", **self.event()})
        try:
            await asyncio.wait([self.task])
        finally:
            self._followers.remove(moved)
        if self.task.cancelled():
            if self._cancelled:
                raise CancelledDownloadError(
                    f"The download of {self.model} was cancelled.",
                    do="what has arrived is kept for the next time",
                )
            raise DownloadError(
                "rappd stopped before it was whole.", do=f"rappd models download {self.model}"
            )
        self.task.result()
        return {"status": "ok", "model": self.model}
