"""Addresses of model servers, as people type them and as screens show them."""

from __future__ import annotations

import base64
import re
from urllib.parse import urlsplit, urlunsplit

from envelopes.ip_addresses import is_this_machine

_PATH = "/chat/completions"
_OLLAMA_PORT = 11434
_LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?|_?\w[\w-]{0,61}\w")
_ALL_DIGITS = re.compile(r"\d+")


def base_url(typed: str) -> str:
    """The part before ``/chat/completions``: scheme added, ``/v1`` where no path was given."""
    url = typed.strip().rstrip("/").removesuffix(_PATH)
    if "://" not in url:
        host = urlsplit(f"//{url}").hostname
        url = f"{'http' if is_this_machine(host or '') else 'https'}://{url}"
    return url if urlsplit(url).path else f"{url}/v1"


def is_web_address(typed: str) -> bool:
    """True for what ``base_url`` makes an http or https address of, with a host and a port that can be.

    ``localhost:11434`` and ``models.example.org/v1`` are; a bare word is more likely a mistake than a host.
    """
    text = typed.strip()
    if not text or any(sign.isspace() or not sign.isprintable() for sign in text) or "://" in text[8:]:
        return False
    try:
        parts = urlsplit(text if "://" in text else base_url(text))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or port == 0 or not _is_host(host):
        return False
    return "://" in text or bool(port) or "." in host or host == "localhost"


def is_at_port(typed: str, port: int) -> bool:
    """True for an address of this machine's loopback at that port."""
    try:
        parts = urlsplit(base_url(typed))
        return parts.port == port and is_this_machine(parts.hostname or "")
    except ValueError:
        return False


def has_login(typed: str) -> bool:
    """True for an address with ``user:password@`` in it."""
    return "@" in urlsplit(typed if "://" in typed else f"//{typed}").netloc


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


def _is_host(host: str) -> bool:
    if ":" in host:  # an address of IPv6, which the parser has checked
        return True
    labels = host.removesuffix(".").split(".")
    return len(host) < 254 and not _ALL_DIGITS.fullmatch(host) and all(map(_LABEL.fullmatch, labels))


def on_this_machine(url: str) -> bool:
    return is_this_machine(urlsplit(url).hostname or "")


def may_be_ollama(url: str) -> bool:
    """True for a server on this machine, or at Ollama's usual port of another."""
    return on_this_machine(url) or urlsplit(url).port == _OLLAMA_PORT
