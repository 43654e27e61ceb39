"""Watches agent folders: a saved file is live within a moment, without anybody asking."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rappd.house import House

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0


async def watch(house: House) -> None:
    """Refreshes the roster whenever a file below the host's folders changes. Ends by cancellation."""
    from watchfiles import PythonFilter, awatch  # its import costs what the start must not

    tenant = house.host
    for folder in (tenant.workspace.agents, tenant.workspace.sources):
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    folders = (tenant.workspace.agents, tenant.workspace.sources)
    while True:
        try:
            house.tell(await tenant.refresh())  # what changed while nobody was watching
            async for _ in awatch(*folders, watch_filter=PythonFilter(), debounce=60, step=15):
                house.tell(await tenant.refresh())
        except (OSError, RuntimeError) as error:  # no inotify left, or the folder itself went away
            log.warning("watching agent files by looking every %g s: %s", POLL_SECONDS, error)
            await _poll(house, folders)


async def _poll(house: House, folders: tuple[Path, ...]) -> None:
    for _ in range(30):
        await asyncio.sleep(POLL_SECONDS)
        for folder in folders:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        house.tell(await house.host.refresh())
