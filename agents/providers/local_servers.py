"""Model servers on this machine: where they usually listen, and whether one answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from agents.providers.json_http import ask

USUAL = (
    "http://127.0.0.1:11434",
    "http://127.0.0.1:8080",
    "http://127.0.0.1:8000",
    "http://127.0.0.1:1234",
)
_NAMES = {11434: "Ollama", 8080: "llama.cpp", 8000: "vLLM", 1234: "LM Studio"}
_NOT_FOR_CHAT = r"(?i)embed|rerank|whisper|\btts\b|^bge|^clip|moderation|dall-e"


class LocalServer(msgspec.Struct, frozen=True):
    """A server that answered: its address, what to call it, its models for conversation."""

    url: str
    name: str
    models: tuple[str, ...]

    @property
    def label(self) -> str:
        """Kind and address on one line: the text by which an accepted server is remembered."""
        return f"{self.name} {self.url}"


async def find(urls: Sequence[str], within: float = 0.3) -> list[LocalServer]:
    """Those of ``urls`` that list at least one model, in order. All are asked at once, ``within`` s each."""
    listed = await asyncio.gather(*(list_models(f"{url.rstrip('/')}/v1", within=within) for url in urls))
    return [
        LocalServer(url, name_of(url), models) for url, models in zip(urls, listed, strict=True) if models
    ]


async def list_models(base_url: str, *, api_key: str = "", within: float) -> tuple[str, ...]:
    """Ids of the models for conversation at ``<base_url>/models``, in the server's order; () without any."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    reply = await ask("GET", f"{base_url}/models", headers=headers, within=within)
    data = reply.data.get("data")
    if reply.status != 200 or not isinstance(data, list):
        return ()
    ids = [entry["id"] for entry in data if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    return tuple(model for model in ids if not re.search(_NOT_FOR_CHAT, model))


def name_of(url: str) -> str:
    """The program that usually listens there."""
    return _NAMES.get(urlsplit(url).port or 0, "local model")
