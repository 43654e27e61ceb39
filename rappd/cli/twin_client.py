"""Asking for something to be done with twins: of the daemon where one runs, else on disk, in this process."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rappd.cli.console import print_err, status_mark, strip_control
from rappd.control_client import ControlClient
from rappd.daemon.home import Home

if TYPE_CHECKING:
    from rappd.operations.twins import TwinOperations

_SECONDS = 600.0  # a twin may be large, and be copied whole

Answer = dict[str, Any]
WithDaemon = Callable[[ControlClient], Answer]
OnDisk = Callable[["TwinOperations"], Awaitable[Answer]]


def ask(with_daemon: WithDaemon, on_disk: OnDisk, *, reads: bool = False) -> Answer:
    """The answer of the one or the other. What only ``reads`` makes no home."""
    home = Home.here()
    daemon = ControlClient(home, timeout=_SECONDS)
    if daemon.running():
        return with_daemon(daemon)
    import asyncio

    if not reads:
        home.create()
    return asyncio.run(_on_disk(home, on_disk))


def path_of(name: str, verb: str = "") -> str:
    """Returns the path of an operation on the twin that ``name`` means."""
    # The route drops the blank; it keeps one called "lineage" apart from the route.
    return f"/twins/%20{quote(name, safe='', errors='replace')}{f'/{verb}' if verb else ''}"


async def _on_disk(home: Home, on_disk: OnDisk) -> Answer:
    from rappd.daemon.home import machine_name
    from rappd.operations.twin_supervisor import OfflineTwinSupervisor
    from rappd.operations.twins import TwinOperations
    from rappd.settings.load import Settings
    from rappd.store.reader import Reader
    from rappd.tenants.autostart import AutostartRegistry
    from twins.installer.quarantine import QuarantineList
    from twins.workspace.workspace import TwinLayout

    def last_talks() -> dict[str, float]:
        with Reader(home.database) as record:
            return record.last_talks()

    places = TwinLayout(home.root)
    verbs = TwinOperations(
        places,
        OfflineTwinSupervisor(AutostartRegistry(home)),
        held=QuarantineList(home.held, home.root),
        owner=machine_name(home, Settings.load(home).text("name")),
        last_talks=last_talks,
    )
    if (places.twins / ".trash").is_dir():
        await _empty_trash(verbs)
    return await on_disk(verbs)


async def _empty_trash(verbs: TwinOperations) -> None:
    """Empties the trash as a start of the daemon would, so that a twin is shown as it is."""
    from twins.lifecycle.trash_migration import told

    await verbs.lifecycle.recover()
    done = await verbs.lifecycle.migrate()
    for sentence in told({**done, "left": []}):  # what stays would be told with every command
        print_err(f"{status_mark('note', sys.stderr)} {strip_control(sentence)}")
