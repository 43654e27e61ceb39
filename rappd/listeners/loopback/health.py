"""``/health``, ``/version``, readiness, and metrics."""

from __future__ import annotations

import functools
import sys
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from agents.programs import programs
from agents.providers import constant_text
from agents.providers.lazy_imports import load
from agents.providers.selection import ProviderDescription
from agents.storage.safe_fs import in_file_pool
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import ok
from rappd.listeners.loopback.request_guard import tenant_of
from rappd.tenants.tenant import Tenant
from rappd.version import __version__

routes = web.RouteTableDef()


@routes.get("/health")
async def health(request: web.Request) -> web.Response:
    """Status, model, loaded agents, token state, quarantine and bootstrap (RAPP v1 §8)."""
    daemon, host = request.app[DAEMON], tenant_of(request)
    thinking = daemon.providers.describe()
    has_soul, command = await in_file_pool(
        lambda: (host.workspace.files.is_file(host.workspace.soul), _command())
    )
    return ok(
        {
            "status": "ok",
            "version": __version__,
            "model": daemon.providers.model,
            "first_text": constant_text.SHA256,
            "voice_mode": host.settings.voice,
            "twin_mode": host.settings.twin,
            "soul": str(host.workspace.soul) if has_soul else "missing",
            "agents": [agent.name for agent in host.registry.serving()],
            "quarantined": [*quarantined(host), *await _bad_senses(host), *await _bad_services(host)],
            "copilot": daemon.providers.copilot_state,
            "token": "present" if daemon.providers.copilot_state else "none",
            "provider": {
                "name": thinking.name,
                "model": thinking.model,
                "where": thinking.where,
                "state": thinking.state,
                **({"helped": True} if thinking.helped else {}),
                **_last_refusal(thinking),
            },
            "brainstem_dir": str(host.workspace.root),
            "bootstrap": {
                "ready": host.ready.is_set(),
                "agents": len(host.registry.serving()),
                "seconds_up": round(time.time() - daemon.started_at, 1),
            },
            "name": daemon.name if host is daemon.host else host.title,
            "node": daemon.node,
            "command": command,
        }
    )


def _last_refusal(thinking: ProviderDescription) -> dict[str, Any]:
    """The last error of the model server in its own words, with what helps; nothing once it answered again."""
    if not thinking.refusal:
        return {}
    return {"refusal": thinking.refusal, "refused_at": round(thinking.refused_at, 3), "do": thinking.do}


@routes.get("/version")
async def version(request: web.Request) -> web.Response:
    """The version of this daemon."""
    return ok({"version": __version__})


@routes.get("/healthz")
async def healthz(request: web.Request) -> web.Response:
    """Answers while the process runs."""
    return ok({"status": "ok"})


@routes.get("/readyz")
async def readyz(request: web.Request) -> web.Response:
    """Ready (200) when agents are described and a turn could be recorded now; else 503 with the problems."""
    if not tenant_of(request).ready.is_set():
        return ok({"status": "starting"}, 503)
    if problems := await request.app[DAEMON].readiness.problems():
        return ok({"status": "not ready", "problems": problems}, 503)
    return ok({"status": "ready"})


@routes.get("/metrics")
async def metrics(request: web.Request) -> web.Response:
    """Counters in the Prometheus text format."""
    exposition = await load("rappd.daemon.metrics")  # loaded when somebody first asks
    body, content_type = exposition.expose(request.app[DAEMON])
    return web.Response(body=body, headers={"Content-Type": content_type})


@functools.cache
def _command() -> str:
    """The command as the owner's shell most likely knows it, for the page's hints."""
    own = Path(sys.executable).parent / "rappd"
    found = programs.known_to_shell("rappd")
    return "rappd" if found and Path(found).resolve() == own.resolve() else str(own)


async def _bad_senses(tenant: Tenant) -> list[dict[str, Any]]:
    """The same of files of senses."""
    sensed = await in_file_pool(tenant.senses.look)
    return [
        {
            "file": f"senses/{fault.file}",
            "class": "",
            "reason": fault.reason,
            "line": fault.line,
            "last_good": fault.last_good,
            "waits": fault.quarantined,
        }
        for fault in sensed.faults
    ]


async def _bad_services(tenant: Tenant) -> list[dict[str, Any]]:
    """The same of files of services."""
    return [
        {
            "file": f"services/{fault.path.name}",
            "class": "",
            "reason": fault.reason,
            "line": fault.line,
            "last_good": False,
            "waits": False,
        }
        for fault in await tenant.services.faults()
    ]


def quarantined(tenant: Tenant) -> list[dict[str, Any]]:
    """Every fault of an agent file, as ``/health`` lists them."""
    return [
        {
            "file": state.file.rel,
            "class": failure.class_name,
            "reason": failure.reason,
            "line": failure.line,
            "last_good": bool(state.agents),
            "waits": state.waits,
        }
        for state in tenant.registry.states()
        for failure in state.failures
    ]
