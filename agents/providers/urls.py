"""Addresses of model servers, as people type them and as screens show them."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit, urlunsplit

from envelopes.ip_addresses import is_this_machine

_PATH = "/chat/completions"
_OLLAMA_PORT = 11434


def base_url(typed: str) -> str:
    """The part before ``/chat/completions``: scheme added, ``/v1`` where no path was given."""
    url = typed.strip().rstrip("/").removesuffix(_PATH)
    if "://" not in url:
        host = urlsplit(f"//{url}").hostname
        url = f"{'http' if is_this_machine(host or '') else 'https'}://{url}"
    return url if urlsplit(url).path else f"{url}/v1"


def shown(url: str) -> str:
    """Host and port, without anything secret."""
    return urlsplit(url).netloc.rpartition("@")[2]


def without_login(url: str) -> tuple[str, dict[str, str]]:
    """The URL as it may be logged, and its ``user:password@`` as a header."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, {}
    login, _, host = parts.netloc.rpartition("@")
    encoded = base64.b64encode(login.encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {encoded}"}


def on_this_machine(url: str) -> bool:
    return is_this_machine(urlsplit(url).hostname or "")


def may_be_ollama(url: str) -> bool:
    """True for a server on this machine, or at Ollama's usual port of another."""
    return on_this_machine(url) or urlsplit(url).port == _OLLAMA_PORT
