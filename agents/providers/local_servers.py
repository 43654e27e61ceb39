"""Model servers on this machine: where they usually listen, and whether one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from agents.providers.json_http import JsonReply, ask
from agents.providers.model_names import chat_models
from agents.providers.server_kinds import UNKNOWN, facts, kind_of_listing
from agents.providers.urls import on_this_machine

USUAL = (
    "http://127.0.0.1:11434",
    "http://127.0.0.1:8080",
    "http://127.0.0.1:8000",
    "http://127.0.0.1:1234",
)
_NAMES = {11434: "Ollama", 8080: "llama.cpp", 8000: "vLLM", 1234: "LM Studio"}


LOOK_SECONDS = 2.0
"""Time that a server of this machine has to answer; where nothing listens, the system says so at once."""


class LocalServer(msgspec.Struct, frozen=True):
    """A server that answered: its address, what to call it, its models for conversation."""

    url: str
    name: str
    models: tuple[str, ...]

    @property
    def label(self) -> str:
        """Kind and address on one line: the text by which an accepted server is remembered."""
        return f"{self.name} {self.url}"


async def find(urls: Sequence[str], within: float) -> list[LocalServer]:
    """The servers at ``urls`` that list at least one model, in order. All are asked at once, ``within`` s each."""
    return [one for one in await answering(urls, within) if one.models]


async def list_models(base_url: str, *, api_key: str = "", within: float) -> tuple[str, ...]:
    """Ids of the models for conversation at ``<base_url>/models``, in the server's order; () without any."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    reply = await ask("GET", f"{base_url}/models", headers=headers, within=within)
    entries = model_entries(reply) if reply.status == 200 else None
    return chat_models(tuple(entry["id"] for entry in entries or ()))


async def answering(urls: Sequence[str], within: float) -> list[LocalServer]:
    """The model servers that answer at ``urls``, in order; also one that has no model yet."""

    async def one(url: str) -> LocalServer | None:
        reply = await ask("GET", f"{url.rstrip('/')}/v1/models", within=within)
        entries = model_entries(reply) if reply.status == 200 else None
        if entries is None:
            return None
        models = chat_models(tuple(entry["id"] for entry in entries))
        return LocalServer(url, await _told_name(url, reply, models), models)

    return [found for found in await asyncio.gather(*map(one, urls)) if found is not None]


async def ollama_sees(base_url: str, model: str, worker_serves: WorkerServes | None) -> bool | None:
    """Asks Ollama if a model takes pictures: True or False, None where it does not tell."""
    if await is_served_by_worker(base_url, worker_serves):
        return None
    reply = await ask("POST", f"{base_url.removesuffix('/v1')}/api/show", json={"model": model}, within=2.0)
    capabilities = reply.data.get("capabilities")
    if reply.status != 200 or not isinstance(capabilities, list) or not capabilities:
        return None
    return "vision" in capabilities


async def _told_name(url: str, listed: JsonReply, models: tuple[str, ...]) -> str:
    """The program's name as it tells it: by its list of models, else by what it answers elsewhere."""
    if kind := kind_of_listing(listed):
        return kind
    found = await facts(ask, f"{url.rstrip('/')}/v1", models[0] if models else "")
    return found.kind or UNKNOWN


def model_entries(reply: JsonReply) -> list[dict[str, Any]] | None:
    """The entries with an id of a list of models; None when the reply is no such list."""
    data = reply.data.get("data")
    if data is None and "data" in reply.data and reply.data.get("object") == "list":
        return []  # as Ollama answers that has no model
    if not isinstance(data, list):
        return None
    return [entry for entry in data if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def name_of(url: str) -> str:
    """The program that usually listens there: a guess for where nothing answers that could tell."""
    return _NAMES.get(urlsplit(url).port or 0, UNKNOWN)


Address = tuple[str, int]
WorkerServes = Callable[[Address, Address | None], bool]
"""(server, this side of the open connection) -> True when a worker process serves it. Blocks on ``/proc``."""


class WorkerServesError(ConnectionError):
    """A worker, or a program that it started, listens where a model server is expected."""


async def is_served_by_worker(url: str, worker_serves: WorkerServes | None) -> bool:
    """The same check for the address of a server on this machine; False for every other address."""
    if worker_serves is None or not on_this_machine(url):
        return False
    parts = urlsplit(url)
    server = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    return await asyncio.to_thread(worker_serves, server, None)
