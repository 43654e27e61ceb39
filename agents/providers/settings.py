"""Provider settings of a configuration (RAPP v1 §9 and rappd's own keys)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agents.providers import local_servers
from agents.providers.local_servers import LOOK_SECONDS


@dataclass(slots=True, frozen=True, kw_only=True)
class ProviderSettings:
    """Everything has a default; with none given, what is on this machine is used.

    ``provider_url`` is any OpenAI-compatible address. ``chosen_model`` is the one picked on a screen
    earlier, ``""`` for automatic. ``help`` is "auto",
    "always" or "never". Prices are as ``usage.price_list`` reads them. ``local_servers`` are
    asked in this order; ``()`` asks none. One that answers is used when it is ``accepted_local`` (its
    label), or any with ``use_local``. Without ``use_copilot`` a token is kept and not used. ``state_dir`` holds the GitHub files; None keeps nothing.
    Times in seconds.
    """

    provider_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""
    azure_endpoint: str = ""
    azure_deployment: str = ""
    azure_key: str = field(default="", repr=False)
    azure_version: str = "2024-10-21"
    fake: bool = False
    local_servers: tuple[str, ...] = local_servers.USUAL
    use_local: bool = False
    accepted_local: str = ""
    github_token: str = field(default="", repr=False)
    github_model: str = ""
    github_gh: bool = True
    use_copilot: bool = True
    github_web: str = "https://github.com"
    github_api: str = "https://api.github.com"
    chosen_model: str = ""
    help: str = "auto"
    price_in: str = ""
    price_out: str = ""
    state_dir: Path | None = None
    timeout: float = 60.0
    max_retries: int = 2
    probe_timeout: float = LOOK_SECONDS
    probe_every: float = 30.0

    @property
    def configured(self) -> bool:
        """True when the operator named a model server."""
        return bool(self.provider_url or (self.azure_endpoint and self.azure_deployment))
