"""The start and the stop of a daemon: recovery after a crash, the bond of an upgrade (RAPP v1 §7), and the twins that ran before."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from agents.storage.safe_fs import in_file_pool
from envelopes.errors import ReportableError
from rappd.daemon.app import Daemon
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.tenants.tenants import Tenants
from rappd.version import __version__
from twins.lifecycle.lifecycle import Lifecycle
from twins.lifecycle.trash_migration import told
from twins.workspace.bonds import record_bond
from twins.workspace.identity_file import FILE
from twins.workspace.twin import adopt
from twins.workspace.workspace import Workspace

log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS = 2.0  # as a server has for its answer; a port without one refuses at once
"""The start waits so long, and no longer, to tell of a model server on this machine."""


async def start(daemon: Daemon) -> None:
    """Starts workers, agents, the model and the file watcher, once the listener is open.

    Of one that does not serve: reads what is kept, and unless it only looks, finishes what a crash interrupted.
    """
    if not daemon.serves:
        await _start_for_command(daemon)
        return
    daemon.spawn(in_file_pool(partial(report_links, daemon.home.root, daemon.host.workspace)))
    await asyncio.to_thread(
        recover, daemon.home.root, daemon.host.workspace, daemon.eggs.home_eggs, machine=daemon.name
    )
    await daemon.notices.load()
    daemon.news.organism_read(daemon.organism.faults)
    await daemon.programs.load()
    await daemon.federation.load_peers()
    daemon.gateways.look()
    await daemon.supervisor.start()
    daemon.providers.start()
    daemon.news.agents_changed(await daemon.host.start(), quiet=True)
    await daemon.providers.first_look(_FIRST_LOOK_SECONDS)
    daemon.spawn(_go_on(daemon))
    daemon.spawn(daemon.readiness.examine())
    daemon.spawn(daemon.notify_command.follow())
    daemon.spawn(daemon.webhooks.watch())
    daemon.spawn(daemon.organism.watch())
    daemon.spawn(daemon.states.sweep())
    daemon.spawn(daemon.system.beat())
    await daemon.timers.start()
    daemon.spawn(daemon.organism_timers.sync())
    from rappd.tenants.file_watcher import watch_agent_files

    workspace = daemon.host.workspace
    folders = (workspace.agents, workspace.sources)
    daemon.spawn(watch_agent_files(workspace.files, folders, daemon.refresh_agents))


async def stop(daemon: Daemon) -> None:
    """Ends turns, workers and the store, in that order; what was answered is durable."""
    # What waits for turns goes first: to a workflow, a timer or a phone, one that is stopped here has not failed.
    await daemon.coordinator.close()
    await daemon.webhooks.close()
    await daemon.system.shut_down()
    await daemon.timers.close()
    await daemon.tether.close()
    await daemon.dispatcher.stop()
    await daemon.states.close()
    for tenant in daemon.tenants.all():
        await tenant.uses.close()
    if daemon.mode != "read":  # for the machines that get it, where turns ended since their goodbye
        await daemon.anchoring.advance(settled=True)
    await daemon.federation.close()
    await daemon.snapshots.close()
    await daemon.eggs.close()
    await daemon.background.close()
    await daemon.supervisor.close()
    await daemon.providers.close()
    if daemon.mode != "read":
        await daemon.anchoring.close()
    await daemon.notices.close()
    await daemon.programs.close()
    await daemon.dispatcher.close()
    await daemon.store.close()
    daemon.security_events.end()


def record_upgrade(home: Path, host: Workspace, *, machine: str, lay_egg: Callable[[Path], Path]) -> None:
    """At start, before any code of the workspace runs. Blocks on the disk.

    The first start mints the brainstem's rappid. A start with another version than the last one packs the
    workspace with ``lay_egg``, counts an incarnation and writes the bond down. A crash in between does it
    again, with another egg.
    """
    if not host.files.exists(FILE):
        adopt(host, machine, owner=machine, host=machine, platform=platform.system().lower())
    seen = home / "version"
    before = seen.read_text(errors="replace").strip() if seen.exists() else ""
    if before == __version__:
        return
    if before:
        egg = lay_egg(host.root)
        count = record_bond(host, from_version=before, to_version=__version__, note=egg.name)
        log.info("this is rappd %s, incarnation %d; what was before is in %s", __version__, count, egg)
    write_atomically(seen, f"{__version__}\n".encode())


def recover(home: Path, host: Workspace, eggs: HomeEggs, *, machine: str) -> None:
    """Finishes interrupted installs, records an upgrade and delivers waiting conversations. Blocks on the disk."""
    recover_eggs(eggs)
    try:
        record_upgrade(home, host, machine=machine, lay_egg=eggs.packing.lay_before_bond)
    except ReportableError as problem:  # a damaged rappid.json must not keep the owner out
        log.error("%s %s", problem, problem.do)
    try:  # before the first turn: else it would stand beside what was said elsewhere
        eggs.importer.deliver_waiting(failed=log.error)
    except ReportableError as problem:
        log.error("%s %s", problem, problem.do)


def recover_eggs(eggs: HomeEggs) -> None:
    """Finishes interrupted installs; holds files that earlier eggs brought as data and that would run now."""
    eggs.importer.recover()
    try:
        for path in eggs.importer.hold_former_data():
            log.warning(
                "%s came in an egg as data and would run from now on: it waits for your approval", path
            )
    except ReportableError as problem:  # a damaged list: nothing that came with an egg runs until it is whole
        log.error("%s %s", problem, problem.do)


async def start_twins(lifecycle: Lifecycle, tenants: Tenants) -> None:
    """Finishes what a crash interrupted, then starts the twins that ran before."""
    await recover_twins(lifecycle)
    await tenants.wake_remembered()


async def recover_twins(lifecycle: Lifecycle) -> None:
    """Finishes what a crash interrupted."""
    for sentence in await lifecycle.recover():
        log.info("%s", sentence)
    for sentence in told(await lifecycle.migrate()):
        log.info("%s", sentence)


def report_links(home: Path, host: Workspace) -> None:
    """Logs links that earlier versions followed and this one refuses. Blocks on the disk."""
    from twins.fs.refused_links import refused_links_of_home

    for link in refused_links_of_home(home, host):
        log.warning("%s. %s", link.text, link.do)


async def _start_for_command(daemon: Daemon) -> None:
    daemon.machines.availability.rest()
    await daemon.notices.load()
    if daemon.mode == "read":
        await daemon.machines.peer_store.load()
    else:
        await asyncio.to_thread(recover_eggs, daemon.eggs.home_eggs)
        await daemon.federation.load_peers()
        await recover_twins(daemon.twins.lifecycle)
    await daemon.tenants.recall()
    await daemon.timers.load()


async def _go_on(daemon: Daemon) -> None:
    """Twins that ran before run again, and then workflows that were under way."""
    await start_twins(daemon.twins.lifecycle, daemon.tenants)
    await daemon.coordinator.recover()
