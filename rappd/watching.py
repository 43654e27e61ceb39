"""Watches agent folders: a saved file is live within a moment, without anybody asking."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rappd.house import House

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
_LOOK_AGAIN_MS = 500
_LOOK_ANYWAY = 20  # of these, so every ten seconds


async def watch(house: House) -> None:
    """Refreshes the roster whenever a file below the host's folders changes. Ends by cancellation.

    After a change, and once after the watch begins, it looks again half a second later: a file may be
    saved while the watch over its folder is only being set up.
    """
    awatch = await asyncio.to_thread(_import_watch)  # its import costs what the start must not

    tenant = house.host
    for folder in (tenant.workspace.agents, tenant.workspace.sources):
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    folders = (tenant.workspace.agents, tenant.workspace.sources)
    while True:
        try:
            quiet = 0
            async for changes in awatch(
                *folders,
                watch_filter=_concerns_agents,
                debounce=60,
                step=15,
                rust_timeout=_LOOK_AGAIN_MS,
                yield_on_timeout=True,
            ):
                quiet = 0 if changes else quiet + 1
                if quiet <= 1 or quiet % _LOOK_ANYWAY == 0:
                    house.tell(await tenant.refresh())
        except (OSError, RuntimeError) as error:  # no inotify left, or the folder itself went away
            log.warning("watching agent files by looking every %g s: %s", POLL_SECONDS, error)
            await _poll(house, folders)


def _import_watch() -> Any:
    from watchfiles import awatch

    return awatch


def _concerns_agents(change: object, path: str) -> bool:
    return not path.endswith((".tmp", ".pyc", "__pycache__"))


async def _poll(house: House, folders: tuple[Path, ...]) -> None:
    for _ in range(30):
        await asyncio.sleep(POLL_SECONDS)
        for folder in folders:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        house.tell(await house.host.refresh())
