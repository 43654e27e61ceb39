"""Checks of the model: which one answers, at which address, and if something listens there."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from agents.providers.urls import base_url, without_login
from rappd.daemon.local_models import local_urls
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.settings.load import Settings


def check_thinking(visit: CheckContext) -> Iterator[Finding]:
    settings, home = visit.settings, visit.home
    for server in visit.status.get("local_models", {}).get("refused", ()):
        what = f"{server} is an agent's process that poses as a model server; it is not used"
        yield Finding("Model", "bad", what, "remove the agent that you do not know, then restart rappd")
    yield from _without_effect(settings)
    use = settings.choice("provider.use")
    provider = visit.health.get("provider", {})
    if refusal := provider.get("refusal"):
        at = time.strftime("%H:%M", time.localtime(provider["refused_at"]))
        yield Finding("Model", "note", f"{str(refusal).rstrip('.')} (at {at})", str(provider["do"]))
    elif provider.get("state") == "ready":
        yield Finding("Model", "good", ", ".join(filter(None, (provider["name"], provider["model"]))))
    elif settings.on("llm_fake"):
        yield Finding("Model", "note", "a scripted model answers (LLM_FAKE)", "unset LLM_FAKE")
    elif settings.text("provider.url") and use in ("auto", "server"):
        yield from _model_server(settings.text("provider.url"))
    elif settings.text("azure.endpoint") and use in ("auto", "azure"):
        yield Finding("Model", "good", f"Azure OpenAI, {settings.text('azure.deployment')}")
    elif offered := visit.status.get("local_models", {}).get("offered"):
        what = f"{offered['name']} ({offered['model']}) answers at {offered['where']} and waits for your yes"
        yield Finding("Model", "note", what, "rappd models use local")
    elif not visit.status and use in ("auto", "local") and (found := _local_model(settings)):
        yield found
    elif use in ("auto", "copilot") and (
        settings.text("github.token") or (home.keys / "github_token.json").exists()
    ):
        yield Finding("Model", "good", "GitHub Copilot, by the token that is there")
    else:
        do = "start Ollama, or rappd models connect"
        if use == "none":
            do = "rappd config set provider.use auto"
        yield Finding("Model", "note", "no model answers; your words are matched to agents", do)


def _without_effect(settings: Settings) -> Iterator[Finding]:
    """Addresses of model servers that are set while ``provider.use`` names another."""
    use = settings.choice("provider.use")
    for name, kind in (("provider.url", "server"), ("azure.endpoint", "azure")):
        if settings.text(name) and use not in ("auto", kind):
            what = f"{name} is set and has no effect: it counts with provider.use auto or {kind}, not {use}"
            yield Finding("Model", "note", what, f"rappd config set provider.use {kind}")


def _model_server(url: str) -> Iterator[Finding]:
    try:
        url = without_login(base_url(url))[0]
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.hostname and _listens(parts.hostname, port):
        yield Finding("Model", "good", f"{parts.hostname} answers on port {port}")
    else:
        do = "start it, or rappd models connect"
        yield Finding("Model", "bad", f"nothing answers at {url}", do)


def _local_model(settings: Settings) -> Finding | None:
    """The model server of this machine that would be used, or waits for a yes, once rappd runs."""
    import asyncio

    from agents.providers import local_servers

    found = asyncio.run(local_servers.find(local_urls(settings), within=local_servers.LOOK_SECONDS))
    accepted = settings.text("provider.local_server")
    for one in found:
        if one.label == accepted or settings.choice("provider.local") == "on":
            return Finding("Model", "good", f"{one.name}, {one.models[0]}, answers on this machine")
    if not found:
        return None
    what = f"{found[0].name} ({found[0].models[0]}) answers on this machine and waits for your yes"
    return Finding("Model", "note", what, "rappd start, then rappd models use local")


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except (OSError, UnicodeError):
        return False
