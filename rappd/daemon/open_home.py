"""The daemon's life: claim the home, listen, open the daemon, serve, close."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from agents.workers.privileges import protect_daemon
from rappd.daemon.app import Daemon
from rappd.daemon.home import Home
from rappd.daemon.ports import another, holder
from rappd.daemon.waiting import OwnersList
from rappd.errors import ConflictError
from rappd.http.federation_listener import FederationListener
from rappd.http.legacy_listener import LegacyListener
from rappd.http.loopback import app as loopback
from rappd.http.request_timeout import TimedRunner
from rappd.http.twin_listeners import TwinListeners
from rappd.settings.load import Settings

if TYPE_CHECKING:
    import ssl

    from rappd.http.tether_listener import TetherListener
    from rappd.tether.phones import Phones

OnReady = Callable[[Daemon], Awaitable[None]]

_COLLECT_AFTER = (20_000, 20, 20)
"""Collect cycles rarely: turns free their objects by reference counts, and the default cost them 6 %."""


class PortTakenError(ConflictError):
    """Another program listens on the port."""

    code = "port_taken"

    def __init__(self, port: int) -> None:
        super().__init__(
            f"Port {port} is taken by {holder(port).name}.",
            do=f"stop it, or `PORT={another(port)} rappd start`",
        )


def run(home: Home, settings: Settings, *, on_ready: OnReady) -> None:
    """Serves until SIGTERM or Ctrl-C. Raises ``ConflictError`` when the home or the port is taken."""
    asyncio.run(_serve(home, settings, on_ready))


def _tether_listener(
    address: str, phones: Phones, addresses: Callable[[], list[str]], tls: ssl.SSLContext | None
) -> TetherListener:
    from rappd.http.tether_listener import TetherListener

    return TetherListener(address, phones, addresses, tls)


async def _serve(home: Home, settings: Settings, on_ready: OnReady) -> None:
    protect_daemon()
    held = home.hold()
    try:
        port = settings.number("port")
        sockets = _listen(port)
        port = sockets[0].getsockname()[1]
        daemon = await Daemon.open(home, settings)
        daemon.listen_on(port)
        federation_listener = FederationListener(daemon)
        runner = await _open_listeners(daemon, sockets)
        daemon.tenants.listeners = twin_listeners = TwinListeners(daemon)
        daemon.legacy.listener = legacy_listener = LegacyListener(daemon)
        daemon.tether.make_listener = partial(_tether_listener, settings.text("tether.address"))
        daemon.tether.owners_list = OwnersList(daemon)
        held.announce(port)
        stopped = _stop_signal()
        try:
            await daemon.start()
            federation_listener.open()
            daemon.spawn(daemon.legacy.reopen())
            daemon.spawn(daemon.tether.start())
            _notify("READY=1")
            await on_ready(daemon)
            settle()
            await stopped.wait()
        finally:
            _notify("STOPPING=1")
            daemon.activity.close()
            daemon.tether.close_screens()
            await federation_listener.close()
            await legacy_listener.close()
            await twin_listeners.close_all()
            await runner.cleanup()
            await daemon.close()
            home.socket.unlink(missing_ok=True)
    finally:
        held.release()


def settle() -> None:
    """Excludes the objects made by the start from garbage collection: they live as long as the daemon."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _listen(port: int) -> list[socket.socket]:
    """Sockets for 127.0.0.1 and, where there is one, ::1, so that no other program can answer for ``localhost``."""
    sockets: list[socket.socket] = []
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            listener = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind((host, port))
            listener.listen(512)
        except OSError as error:
            listener.close()
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and family == socket.AF_INET6:
                continue
            for other in sockets:
                other.close()
            if error.errno == errno.EADDRINUSE:
                raise PortTakenError(port) from error
            raise ConflictError(
                f"Port {port} cannot be used: {error.strerror}.", do="PORT=7171 rappd start"
            ) from error
        listener.setblocking(False)
        sockets.append(listener)
        port = sockets[0].getsockname()[1]
    return sockets


async def _open_listeners(daemon: Daemon, sockets: list[socket.socket]) -> TimedRunner:
    runner = TimedRunner(loopback.build(daemon), access_log=None, handle_signals=False, shutdown_timeout=3.0)
    await runner.setup()
    for listener in sockets:
        await web.SockSite(runner, listener, backlog=512).start()
    daemon.home.socket.unlink(missing_ok=True)
    before = os.umask(0o177)
    try:
        await web.UnixSite(runner, str(daemon.home.socket)).start()
    finally:
        os.umask(before)
    return runner


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
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line, suppress(OSError):
        line.connect("\0" + address[1:] if address.startswith("@") else address)
        line.sendall(state.encode())
