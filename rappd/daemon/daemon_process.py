"""The daemon's process: its signals, its memory, the word for systemd; the home is opened by ``open_home``."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from agents.runtimes.python.sandbox.privileges import protect_daemon
from rappd.daemon.app import Daemon
from rappd.daemon.event_loop import new_event_loop
from rappd.daemon.home import Home
from rappd.daemon.open_home import open_home
from rappd.settings.load import Settings

OnReady = Callable[[Daemon], Awaitable[None]]

_COLLECT_AFTER = (20_000, 20, 20)
"""Collect cycles rarely: turns free their objects by reference counts, and the default cost them 6 %."""


def run(home: Home, settings: Settings, *, on_ready: OnReady) -> None:
    """Serves until SIGTERM or Ctrl-C. Raises ``ConflictError`` when the home or the port is taken."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(home, settings, on_ready))


async def _serve(home: Home, settings: Settings, on_ready: OnReady) -> None:
    protect_daemon()
    stopped = _stop_signal()
    async with open_home(home, settings) as daemon:
        _notify("READY=1")
        await on_ready(daemon)
        settle()
        daemon.spawn(_set_after(daemon.end_asked, stopped))
        await stopped.wait()
        _notify("STOPPING=1")


async def _set_after(asked: asyncio.Event, stopped: asyncio.Event) -> None:
    await asked.wait()
    stopped.set()


def settle() -> None:
    """Excludes the objects made by the start from garbage collection: they live as long as the daemon."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _stop_signal() -> asyncio.Event:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    return stopped


def _notify(state: str) -> None:
    """Tells systemd (``Type=notify``), if it listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify_socket, suppress(OSError):
        notify_socket.connect("\0" + address[1:] if address.startswith("@") else address)
        notify_socket.sendall(state.encode())
