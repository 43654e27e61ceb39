"""The settings that model providers get."""

from __future__ import annotations

from agents.providers.selection import ProviderSettings
from rappd.daemon.home import Home
from rappd.daemon.local_models import local_urls
from rappd.settings.load import Settings


def provider_settings(settings: Settings, home: Home) -> ProviderSettings:
    """Returns the settings that concern the model."""
    return ProviderSettings(
        provider_url=settings.text("provider.url"),
        api_key=settings.text("provider.key"),
        model=settings.text("provider.model"),
        azure_endpoint=settings.text("azure.endpoint"),
        azure_deployment=settings.text("azure.deployment"),
        azure_key=settings.text("azure.key"),
        azure_version=settings.text("azure.version"),
        github_token=settings.text("github.token"),
        github_model=settings.text("github.model"),
        github_web=settings.text("github.url"),
        github_api=settings.text("github.api"),
        chosen_model=settings.text("model"),
        price_in=settings.text("provider.price_in_per_million"),
        price_out=settings.text("provider.price_out_per_million"),
        fake=settings.on("llm_fake"),
        local_servers=local_urls(settings),
        use_local=settings.choice("provider.local") == "on",
        accepted_local=settings.text("provider.local_server"),
        state_dir=home.keys,
    )
