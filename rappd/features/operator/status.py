"""The state of the daemon as the start screen, ``rappd status`` and the page show it."""

from __future__ import annotations

import os
from typing import Any, NotRequired, TypedDict

from agents.storage.safe_fs import in_file_pool
from rappd.daemon.app import Daemon
from rappd.daemon.local_models import LocalServers, describe_local
from rappd.daemon.readiness import Problem
from rappd.features.snapshots.schedule_view import ScheduleView
from rappd.store.anchor_signing import AnchorView
from rappd.tether.devices import PhonesSummary
from twins.errors import BadFileError
from twins.trust.quarantined_files import held_everywhere


class MachinesSummary(TypedDict):
    """The listener for other machines (port 0 when it is closed), whether it is announced, and how many are trusted."""

    port: int
    hosts: list[str]
    announced: bool
    peers: int


class DaemonStatus(TypedDict):
    """The state of the daemon. ``sandbox`` is the report on what shuts workers in; ``url`` makes an operator of a browser."""

    name: str
    node: str
    port: int
    url: NotRequired[str]
    provider: str
    model: str
    has_model: bool
    helped: bool
    local_models: LocalServers
    agents: int
    unavailable: int
    waiting: int
    agents_path: str
    home: str
    machines: MachinesSummary
    phones: PhonesSummary
    notices: list[str]
    schedule: ScheduleView | None
    sandbox: dict[str, Any]
    anchor: AnchorView
    problems: list[Problem]


async def describe(daemon: Daemon, *, with_link: bool) -> DaemonStatus:
    """Returns the state that the start screen and ``rappd status`` show.

    ``with_link`` adds ``url``, which makes an operator of the browser that follows it.
    """
    await daemon.readiness.examined()
    thinking = daemon.providers.describe()
    status: DaemonStatus = {
        "name": daemon.name,
        "node": daemon.node,
        "port": daemon.port,
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
    if with_link:
        status["url"] = f"http://127.0.0.1:{daemon.port}/#k={daemon.operators.mint_key()}"
    return status


def _waiting(daemon: Daemon) -> int:
    """The number of files that wait for the owner's approval, in the brainstem and every twin."""
    try:
        found = held_everywhere(daemon.trust.quarantine, daemon.host.workspace, daemon.tenants.layout)
        return sum(len(files) for _, files in found)
    except BadFileError:
        return 0  # the faults of the agents say that held.json is damaged


def _machines(daemon: Daemon) -> MachinesSummary:
    """The listener for other machines (port 0 when it is closed) and its hosts, whether it is announced, how many are trusted."""
    machines = daemon.federation
    announced = daemon.settings.on("peers.nearby")
    return {
        "port": machines.port,
        "hosts": list(machines.hosts),
        "announced": announced,
        "peers": len(daemon.machines.peer_store.by_key),
    }
