"""Watches agent folders: a saved file is live within a moment, without anybody asking."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agents.storage.safe_fs import SafeTree, in_file_pool
from agents.storage.safe_open import UnsafeFileError

if TYPE_CHECKING:
    from asyncinotify import Event, Inotify

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
_POLLS = 60  # then the system is asked again
_LOOK_AGAIN_SECONDS = 0.5
_LOOK_ANYWAY_SECONDS = 10.0
_QUIET_SECONDS = 0.015
_STORM_SECONDS = 0.06  # longer saves are not waited for
_LITTER = (".tmp", ".pyc", "__pycache__")


OnChange = Callable[[], Awaitable[None]]


async def watch_agent_files(files: SafeTree, folders: tuple[Path, ...], on_change: OnChange) -> None:
    """Calls ``on_change`` whenever a file below ``folders`` changes. Ends by cancellation.

    After a change, and once after the watch begins, it looks again half a second later: a file may be
    saved while the watch over its folder is only being set up. Where the system tells of no changes
    (only Linux does), it looks every second.
    """
    while True:
        try:
            await _watch_inotify(files, folders, on_change)
        except ModuleNotFoundError:  # there is nothing like it on this system
            await _poll(files, folders, on_change)
        except OSError as error:  # no inotify left, or the folder itself went away
            log.warning("watching agent files by looking every %g s: %s", POLL_SECONDS, error)
            await _poll(files, folders, on_change)


async def _watch_inotify(files: SafeTree, folders: tuple[Path, ...], on_change: OnChange) -> None:
    with await asyncio.to_thread(_watch_over) as found:
        wait = _LOOK_AGAIN_SECONDS
        while True:
            await in_file_pool(_place, found, files, folders)
            changed = await _changed(found, wait)
            await on_change()
            wait = _LOOK_AGAIN_SECONDS if changed else _LOOK_ANYWAY_SECONDS


def _watch_over() -> Inotify:
    from asyncinotify import Inotify  # its import costs what the start must not

    found = Inotify()
    os.set_blocking(found.fd, False)  # its own flag for that was seen to do nothing
    return found


def _place(found: Inotify, files: SafeTree, folders: tuple[Path, ...]) -> None:
    """Every folder is watched by itself; one that is watched already stays so."""
    from asyncinotify import Mask

    what = Mask.CLOSE_WRITE | Mask.CREATE | Mask.DELETE | Mask.MOVE | Mask.ATTRIB
    for folder in folders:
        with suppress(UnsafeFileError):
            files.make_folder(folder)
        for inner in ("", *reversed(files.folders(folder, _is_watched))):
            try:
                found.add_watch(folder / inner, what | Mask.DELETE_SELF | Mask.ONLYDIR | Mask.DONT_FOLLOW)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it went away meanwhile, which its parent tells


def _is_watched(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_LITTER)


async def _changed(found: Inotify, within: float) -> bool:
    """True when a change that concerns agents came within the seconds, and was over."""
    try:
        async with asyncio.timeout(within):
            while not _concerns_agents(await found.get()):
                pass
    except TimeoutError:
        return False
    loop = asyncio.get_running_loop()
    ends = loop.time() + _STORM_SECONDS
    while (left := ends - loop.time()) > 0:
        try:
            async with asyncio.timeout(min(left, _QUIET_SECONDS)):
                await found.get()
        except TimeoutError:
            break
    return True


def _concerns_agents(event: Event) -> bool:
    return event.name is None or not event.name.name.endswith(_LITTER)


async def _poll(files: SafeTree, folders: tuple[Path, ...], on_change: OnChange) -> None:
    for _ in range(_POLLS):
        await asyncio.sleep(POLL_SECONDS)
        for folder in folders:
            with suppress(UnsafeFileError):
                await in_file_pool(files.make_folder, folder)
        await on_change()
