"""The settings in force: those that model providers get, and changes while the daemon runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agents.providers.selection import ProviderSelector, ProviderSettings
from rappd.daemon.home import Home
from rappd.daemon.local_models import local_urls, offered_server
from rappd.settings.load import Settings, check
from rappd.settings.validation import refuse_unfit
from rappd.settings.write import find
from rappd.settings.write import write as write_setting
from rappd.tenants.tenant import TenantServices
from rappd.tenants.tenants import Tenants


class LiveSettings:
    """Writes settings down and lets them take effect, where they can, in providers and tenants."""

    def __init__(
        self, home: Home, services: TenantServices, providers: ProviderSelector, tenants: Tenants
    ) -> None:
        self._home = home
        self._services = services
        self._providers = providers
        self._tenants = tenants
        self.origins: frozenset[str] = frozenset(self.current.items("http.origins"))
        """Origins of other pages that may ask the loopback listener."""

    @property
    def current(self) -> Settings:
        """The settings as they were read last."""
        return self._services.settings

    async def set(self, name: str, text: str) -> None:
        """Writes a setting down and, where it can, lets it take effect at once."""
        await self.set_all([(name, text)])

    async def set_all(self, changes: Sequence[tuple[str, str]]) -> None:
        """The same for several settings, in this order, which take effect together. All are checked first."""
        for name, text in changes:
            check(find(name), text)

        def write_all() -> None:
            for name, text in changes:
                write_setting(self._home, name, text)

        await asyncio.to_thread(write_all)
        await self.reload()

    async def reload(self) -> None:
        """Reads the settings anew; only live ones take effect. Raises ``UsageProblemError``, and keeps those before."""
        before = provider_settings(self.current, self._home)
        settings = await asyncio.to_thread(Settings.load, self._home, self.current.environment)
        refuse_unfit(settings)
        self._services.apply(settings)
        self.origins = frozenset(settings.items("http.origins"))
        after = provider_settings(settings, self._home)
        if after != before:
            await self._providers.configure(after)
        for tenant in self._tenants.all():
            tenant.apply(settings)

    async def use_local_server(self, server: str = "") -> str:
        """Takes the model server that was found on this machine, as its owner said; returns its label.

        ``server`` is the label that the owner saw, "" for whichever is offered. Raises ``ConflictError``.
        """
        label = await offered_server(self._providers, server)
        await self.set("provider.local_server", label)
        await self._providers.look()
        return label


def provider_settings(settings: Settings, home: Home) -> ProviderSettings:
    """Returns the settings that concern the model; what ``provider.use`` leaves out is empty in them."""
    use = settings.choice("provider.use")

    def of(kind: str, text: str) -> str:
        return text if use in ("auto", kind) else ""

    return ProviderSettings(
        provider_url=of("server", settings.text("provider.url")),
        api_key=settings.text("provider.key"),
        model=settings.text("provider.model"),
        azure_endpoint=of("azure", settings.text("azure.endpoint")),
        azure_deployment=settings.text("azure.deployment"),
        azure_key=settings.text("azure.key"),
        azure_version=settings.text("azure.version"),
        github_token=settings.text("github.token"),
        github_model=settings.text("github.model"),
        github_web=settings.text("github.url"),
        github_api=settings.text("github.api"),
        chosen_model=settings.text("model"),
        help=settings.choice("models.help"),
        timeout=float(settings.number("provider.timeout")),
        price_in=settings.text("provider.price_in_per_million"),
        price_out=settings.text("provider.price_out_per_million"),
        fake=settings.on("llm_fake"),
        local_servers=local_urls(settings) if use in ("auto", "local") else (),
        use_copilot=use in ("auto", "copilot"),
        use_local=settings.choice("provider.local") == "on",
        accepted_local=settings.text("provider.local_server"),
        state_dir=home.keys,
    )
