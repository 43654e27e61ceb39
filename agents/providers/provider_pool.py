"""The providers there are: configured ones, a local server, Copilot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets

from msgspec.structs import replace

from agents.providers import local_servers, urls
from agents.providers.answer_request import RequestLimits
from agents.providers.copilot import Copilot
from agents.providers.copilot_session import CopilotSessions
from agents.providers.github_login import GitHubLogin
from agents.providers.github_token import GitHubToken
from agents.providers.local_servers import WorkerServes, is_served_by_worker
from agents.providers.managed_provider import ManagedProvider
from agents.providers.openai_server import Azure, OpenAIServer, ServerAddress, ServerWording
from agents.providers.settings import ProviderSettings

log = logging.getLogger(__name__)

_FALLBACK_MODEL = "gpt-4o"
_LISTING_SECONDS = 5.0


class ProviderPool:
    """Keeps the providers as settings, the network and signing in change them.

    Nothing is looked for before ``start`` or ``look``; a configured server and a given token need
    no looking. ``looked`` is clear while the first look after ``start`` is under way. ``offered`` is a local
    server that answers and waits for the operator's yes; ``refused`` are labels of servers that are worker
    processes: they are never used. ``via`` is this pool in the ``Via`` of what it asks.
    """

    def __init__(
        self,
        settings: ProviderSettings,
        worker_serves: WorkerServes | None = None,
    ) -> None:
        self.looked = asyncio.Event()
        self.looked.set()
        self.offered: local_servers.LocalServer | None = None
        self.refused: tuple[str, ...] = ()
        self.worker_serves = worker_serves
        self.via = f"1.1 rappd-{secrets.token_hex(8)}"  # says nothing about this machine, and is another after each start
        self._wake = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._local_found: local_servers.LocalServer | None = None
        self._configured: ManagedProvider | None = None
        self._local: ManagedProvider | None = None
        self._copilot: ManagedProvider | None = None
        self._left: list[ManagedProvider] = []
        self.settings = settings
        self._apply_github_settings(settings)
        self._apply_settings(settings)

    @property
    def first(self) -> ManagedProvider | None:
        """The managed whose turn it is to think; None leaves it to keyword matching."""
        if self._configured is not None:
            return self._configured
        if self.settings.fake:
            return None
        if self._local is not None:
            return self._local
        if self._copilot is not None and not self.sessions.refused:
            return self._copilot
        return None

    @property
    def kind(self) -> str:
        """The sort of the first: "server", "azure", "local" or "copilot"; "" where there is none."""
        first = self.first
        if first is None:
            return ""
        if first is self._configured:
            return "server" if self.settings.provider_url else "azure"
        return "local" if first is self._local else "copilot"

    @property
    def refusal(self) -> str:
        """Advice when GitHub refused Copilot to this account, else ``""``."""
        last = self._copilot.last_refusal if self._copilot is not None else None
        return last.problem.do if last is not None and self.sessions.refused else ""

    def start(self) -> None:
        """Looks in the background: at once, then every ``probe_every`` seconds while nothing is found."""
        if self._watching is None and self._has_to_look():
            self.looked.clear()
            self._watching = asyncio.create_task(self._watch())

    async def look(self) -> None:
        """Looks once, now, for local servers and a token, or for what a configured server offers."""
        settings = self.settings
        if self._configured is not None:
            await self._look_at_configured(self._configured, settings)
        elif not settings.fake:
            (found, refused), token = await asyncio.gather(self._find_local(settings), self.github.find())
            if settings is self.settings:
                self.refused = refused
                self._set_local(self._accepted(found))
                self._set_copilot(bool(token))

    async def _find_local(
        self, settings: ProviderSettings
    ) -> tuple[list[local_servers.LocalServer], tuple[str, ...]]:
        """Servers that answer on this machine, and the labels of those that worker processes serve."""
        answering = await local_servers.find(settings.local_servers, settings.probe_timeout)
        of_workers = [await is_served_by_worker(one.url, self.worker_serves) for one in answering]
        found = [one for one, of_worker in zip(answering, of_workers, strict=True) if not of_worker]
        return found, tuple(one.label for one in answering if one not in found)

    def _accepted(self, found: list[local_servers.LocalServer]) -> local_servers.LocalServer | None:
        """The first server that may be used; without one, the first that answers waits for a yes."""
        settings = self.settings
        for one in found:
            if settings.use_local or one.label == settings.accepted_local:
                self.offered = None
                return one
        before, self.offered = self.offered, found[0] if found else None
        if self.offered is not None and self.offered != before:
            # The start screen tells of one that the first look found.
            level = logging.WARNING if self.looked.is_set() else logging.INFO
            where = self.offered.url.removeprefix("http://")
            log.log(level, "A model server answers at %s. Use it: rappd models use local", where)
        return None

    def report_silent(self, managed: ManagedProvider) -> None:
        """Says that nobody answered at ``managed``; a local server is looked for again at once."""
        if managed is self._local:
            self._wake.set()

    async def configure(self, settings: ProviderSettings) -> None:
        """Takes other settings at once; answers under way end with the provider they began with."""
        watched = self._watching is not None
        await self._release_all()
        before, self.settings = self.settings, settings
        if _github(before) != _github(settings):
            self._apply_github_settings(settings)
        self._apply_settings(settings)
        if watched:
            self.start()

    async def close(self) -> None:
        await self._release_all()
        for managed in self._left:
            await managed.wait_closed()

    def _apply_github_settings(self, settings: ProviderSettings) -> None:
        token_file, login_file, session_file = (
            settings.state_dir / name if settings.state_dir else None
            for name in ("github_token.json", "github_login.json", "copilot_session.json")
        )
        web = settings.github_web
        self.github = GitHubToken(settings.github_token, token_file, gh=settings.github_gh, web=web)
        self.sessions = CopilotSessions(self.github, session_file, api=settings.github_api)
        self.login = GitHubLogin(self.github, login_file, web=web, on_token=self._signed_in)

    def _apply_settings(self, settings: ProviderSettings) -> None:
        self._configured = self._local = self._local_found = self._copilot = None
        self.offered, self.refused = None, ()
        if settings.configured:
            self._configured = self._configured_provider(settings)
        self._set_copilot(self.github.known)

    def _configured_provider(self, settings: ProviderSettings) -> ManagedProvider:
        if settings.provider_url:
            url = urls.base_url(settings.provider_url)
            here = urls.on_this_machine(url)
            name = local_servers.name_of(url) if here else urls.shown(url)
            do = f"start {name}" if here else "check provider.url"
            return self._provider_at(url, name, do, settings.model or _FALLBACK_MODEL, settings.api_key)
        azure = Azure(
            settings.azure_endpoint, settings.azure_deployment, settings.azure_key, settings.azure_version
        )
        wording = ServerWording("Azure OpenAI", do="check azure.endpoint")
        server = OpenAIServer(azure, wording, _limits(settings), self.worker_serves)
        return self._managed(server, urls.shown(azure.endpoint))

    def _provider_at(self, url: str, name: str, do: str, model: str, api_key: str = "") -> ManagedProvider:
        address, limits = ServerAddress(url, model, api_key), replace(_limits(self.settings), via=self.via)
        server = OpenAIServer(address, ServerWording(name, do=do), limits, self.worker_serves)
        return self._managed(server, urls.shown(url))

    def _managed(self, provider: OpenAIServer | Copilot, where: str) -> ManagedProvider:
        return ManagedProvider(
            provider,
            where,
            provider.models,
            provider.takes_pictures,
            provider.limits,
            provider.look,
            provider.traits,
        )

    def _set_local(self, found: local_servers.LocalServer | None) -> None:
        if found == self._local_found:
            return
        self._release(self._local)
        self._local, self._local_found = None, found
        if found is not None:
            url = urls.base_url(found.url)
            self._local = self._provider_at(url, found.name, f"start {found.name}", found.models[0])
            self._local.known = found.models
            self._local.configured = False

    def _set_copilot(self, has_token: bool) -> None:
        has_token = has_token and self.settings.use_copilot
        if has_token and self._copilot is None:
            copilot = Copilot(
                self.sessions,
                model=self.settings.github_model,
                max_retries=min(1, self.settings.max_retries),
                timeout=self.settings.timeout,
                worker_serves=self.worker_serves,
            )
            self._copilot = self._managed(copilot, "github.com")
        elif not has_token:
            self._release(self._copilot)
            self._copilot = None

    async def _signed_in(self) -> None:
        await self.sessions.end()
        self._release(self._copilot)
        self._copilot = None
        self._set_copilot(True)

    def _release(self, managed: ManagedProvider | None) -> None:
        self._left = [other for other in self._left if not other.closed]
        if managed is not None:
            managed.release()
            self._left.append(managed)

    async def _release_all(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        self.looked.set()
        for managed in (self._configured, self._local, self._copilot):
            self._release(managed)

    def _has_to_look(self) -> bool:
        settings = self.settings
        if settings.provider_url:
            return not settings.model
        return not settings.configured and not settings.fake

    async def _look_at_configured(self, managed: ManagedProvider, settings: ProviderSettings) -> None:
        if not settings.provider_url or settings.model or managed.known:
            return
        url = urls.base_url(settings.provider_url)
        if await is_served_by_worker(url, self.worker_serves):
            return
        models = await local_servers.list_models(url, api_key=settings.api_key, within=_LISTING_SECONDS)
        if models and isinstance(managed.provider, OpenAIServer):
            managed.known = models
            managed.provider.model = _FALLBACK_MODEL if _FALLBACK_MODEL in models else models[0]

    async def _watch(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.look()
            finally:
                self.looked.set()
            managed = self.first
            settled = managed is not None and managed is not self._copilot and bool(managed.known)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if settled else self.settings.probe_every):
                    await self._wake.wait()


def _github(settings: ProviderSettings) -> tuple[object, ...]:
    """The settings that signing in depends on; while they stay, so does a sign-in under way."""
    return (
        settings.github_token,
        settings.github_gh,
        settings.github_web,
        settings.github_api,
        settings.state_dir,
    )


def _limits(settings: ProviderSettings) -> RequestLimits:
    return RequestLimits(settings.max_retries, settings.timeout)
