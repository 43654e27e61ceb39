"""The state of the daemon as the start screen, ``rappd status`` and the page show it."""

from __future__ import annotations

import os
from typing import Any

from agents.storage.safe_fs import in_file_pool
from rappd.daemon.app import Daemon
from rappd.daemon.local_models import describe_local
from twins.errors import BadFileError
from twins.trust.quarantined_files import held_everywhere


async def describe(daemon: Daemon, *, with_link: bool) -> dict[str, Any]:
    """Returns the state that the start screen and ``rappd status`` show.

    ``with_link`` adds ``url``, which makes an operator of whoever follows it.
    """
    await daemon.readiness.examined()
    thinking = daemon.providers.describe()
    return {
        "name": daemon.name,
        "node": daemon.node,
        "port": daemon.port,
        **({"url": f"http://127.0.0.1:{daemon.port}/#k={daemon.operators.mint_key()}"} if with_link else {}),
        "provider": thinking.name,
        "model": thinking.model,
        "has_model": daemon.providers.has_model,
        "helped": thinking.helped,
        "local_models": describe_local(daemon.providers),
        "agents": len(daemon.host.registry.serving()),
        "unavailable": len(daemon.host.registry.unavailable()),
        "waiting": await in_file_pool(_waiting, daemon),
        "agents_path": str(daemon.host.workspace.agents),
        "home": str(daemon.home.root),
        "machines": _machines(daemon),
        "phones": daemon.tether.summary(),
        "notices": [one.line for one in daemon.notices.waiting() if one.kind != "approval"],
        "schedule": daemon.snapshot_schedule.show()["schedule"],
        "sandbox": {
            **daemon.supervisor.sandbox_report(),
            "root": os.geteuid() == 0,
            "ssh_keys": await in_file_pool(daemon.agents_can_use_ssh_keys),
        },
        "anchor": {**daemon.anchoring.report.as_json(), "problems": daemon.anchoring.problems},
        "problems": await daemon.readiness.problems(),
    }


def _waiting(daemon: Daemon) -> int:
    """The number of files that wait for the owner's approval, in the brainstem and every twin."""
    try:
        found = held_everywhere(daemon.trust.quarantine, daemon.host.workspace, daemon.tenants.layout)
        return sum(len(files) for _, files in found)
    except BadFileError:
        return 0  # the faults of the agents say that held.json is damaged


def _machines(daemon: Daemon) -> dict[str, Any]:
    """The listener for other machines (port 0 when it is closed) and its hosts, whether it is announced, how many are trusted."""
    machines = daemon.federation
    announced = daemon.settings.on("peers.nearby")
    return {
        "port": machines.port,
        "hosts": machines.hosts,
        "announced": announced,
        "peers": len(machines.peer_store.by_key),
    }
