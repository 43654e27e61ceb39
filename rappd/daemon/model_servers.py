"""The model servers that an owner can choose between: listed, tried, and one of them put to use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypedDict
from urllib.parse import urlsplit

from msgspec import to_builtins

from agents.providers import local_servers
from agents.providers.local_servers import is_served_by_worker
from agents.providers.openai_server import Azure
from agents.providers.selection import ProviderSelector
from agents.providers.server_check import CheckResult, check_azure, check_server
from agents.providers.urls import base_url, is_at_port
from rappd.daemon.local_models import local_urls
from rappd.errors import ConflictError, UsageProblemError
from rappd.settings.load import Settings
from rappd.settings.registry import MODEL_USES

_FIELDS = {
    "server": {"url": "provider.url", "key": "provider.key", "model": "provider.model"},
    "azure": {
        "url": "azure.endpoint",
        "key": "azure.key",
        "model": "azure.deployment",
        "version": "azure.version",
    },
    "local": {"server": "provider.local_server"},
    "copilot": {"model": "github.model"},
}
"""Names of fields in a request, by kind of server, and the settings that they become."""


class FoundServer(TypedDict):
    """A model server that answers on this machine; ``agent``: an agent's process is it."""

    server: str
    name: str
    where: str
    models: list[str]
    agent: bool


class FoundServers(TypedDict):
    """The model servers on this machine, whether any were looked for, and which was said yes to."""

    looked: bool
    accepted: str
    servers: list[FoundServer]


class ModelLimits(TypedDict):
    """The limits that are known of a model."""

    model: str
    limits: list[dict[str, Any]]


class ModelServers(TypedDict):
    """The kind of server that is wanted, the one in use, and the fields of each; keys only as set or not."""

    use: str
    used: str
    server: dict[str, str | bool]
    azure: dict[str, str | bool]
    local: FoundServers
    copilot: dict[str, str | bool]
    limits: list[ModelLimits]


async def describe_servers(settings: Settings, providers: ProviderSelector) -> ModelServers:
    """For screens: the kind in use, and what is known of each. Keys are told only as set or not.

    ``limits`` are those of models of the server in use, where some were learnt.
    """
    found = await local_servers.answering(local_urls(settings), local_servers.LOOK_SECONDS)
    of_agents = await asyncio.gather(
        *(is_served_by_worker(one.url, providers.worker_serves) for one in found)
    )
    return {
        "use": settings.choice("provider.use"),
        "used": providers.kind,
        "server": _fields_of(settings, "server"),
        "azure": _fields_of(settings, "azure"),
        "local": {
            "looked": bool(local_urls(settings)),
            "accepted": settings.text("provider.local_server"),
            "servers": [
                {
                    "server": one.label,
                    "name": one.name,
                    "where": urlsplit(one.url).netloc,
                    "models": list(one.models),
                    "agent": of_agent,
                }
                for one, of_agent in zip(found, of_agents, strict=True)
            ],
        },
        "copilot": {**_fields_of(settings, "copilot"), "state": providers.copilot_state},
        "limits": [
            {"model": model, "limits": to_builtins(known)}
            for model, known in providers.known_limits().items()
        ],
    }


async def try_server(
    settings: Settings, providers: ProviderSelector, kind: str, fields: Mapping[str, str], *, own_port: int
) -> CheckResult:
    """Tries a server before it is used. A key that is kept goes only where it belongs. Raises ``UsageProblemError``."""
    _check_kind(kind, ("server", "azure"))
    if is_at_port(fields.get("url", ""), own_port):
        return CheckResult("itself", ITSELF, "Type the address of a model server.")
    key = fields.get("key") or _kept_key(settings, kind, fields.get("url", ""))
    if kind == "azure":
        version = fields.get("version") or settings.text("azure.version")
        azure = Azure(fields.get("url", ""), fields.get("model", ""), key, version)
        return await check_azure(azure, providers.worker_serves)
    return await check_server(fields.get("url", ""), key, fields.get("model", ""), providers.worker_serves)


ITSELF = "That is rappd itself: it would ask itself without end."


def changes_for(settings: Settings, kind: str, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """The settings that put ``kind`` to use, in the order in which they are written.

    A key is dropped when the server is another and no new key came. Raises ``UsageProblemError``, and
    ``ConflictError`` for a value that the environment sets.
    """
    _check_kind(kind, MODEL_USES)
    names = _FIELDS.get(kind, {})
    given = {names[field]: text.strip() for field, text in fields.items() if field in names}
    changes = [(name, text) for name, text in given.items() if not name.endswith(".key")]
    key = names.get("key", "")
    if key and (typed := given.get(key)):
        changes = [(key, ""), *changes, (key, typed)]
    elif key and "url" in fields and not _kept_key(settings, kind, fields["url"]):
        changes = [(key, ""), *changes]
    changes = [(name, text) for name, text in changes if text or settings.text(name)]
    chosen = fields.get("model", "").strip() if kind == "local" else ""
    if kind != "none" and settings.text("model") != chosen:
        changes.append(("model", chosen))
    if kind == "local" and settings.choice("provider.local") == "off":
        changes.append(("provider.local", "ask"))
    changes.append(("provider.use", kind))
    _refuse_environment(settings, changes)
    return changes


def _fields_of(settings: Settings, kind: str) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for field, name in _FIELDS[kind].items():
        value = settings.value(name)
        text = value.text.strip()
        found[field] = bool(text) if value.setting.secret else text
    return found


def _kept_key(settings: Settings, kind: str, address: str) -> str:
    """The key on this machine when ``address`` is at the server that it belongs to, else ""."""
    names = _FIELDS[kind]
    kept = settings.text(names["url"])
    return settings.text(names["key"]) if kept and _origin(kept) == _origin(address) else ""


def _origin(address: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(base_url(address))
        return parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        return "", "", None


def _check_kind(kind: str, kinds: tuple[str, ...]) -> None:
    if kind not in kinds:
        raise UsageProblemError(f"kind is one of: {', '.join(kinds)}.", do='Send {"kind": "server", …}.')


def _refuse_environment(settings: Settings, changes: list[tuple[str, str]]) -> None:
    for name, text in changes:
        value = settings.value(name)
        if value.source == "environment" and value.text.strip() != text:
            variable = value.setting.variable
            raise ConflictError(
                f"{variable} is set in the environment and would win.",
                do=f"unset {variable}, then restart rappd",
            )
