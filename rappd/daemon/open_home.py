"""Opening a home: claim it, open the daemon on it, listen, and close all of it again in the right order."""

from __future__ import annotations

import asyncio
import errno
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from agents.workers.zygote_client import LaunchZygote
from rappd.daemon.app import Daemon, Mode, UpperParts
from rappd.daemon.home import Home, HomeTakenError, LockedHome, ReadOnlyHome
from rappd.daemon.ports import another, holder
from rappd.daemon.waiting import OwnersList
from rappd.errors import ConflictError
from rappd.features.features import operations_for_agents, table_of
from rappd.http.federation_listener import FederationListener
from rappd.http.legacy_listener import LegacyListener
from rappd.http.loopback import app as loopback
from rappd.http.request_timeout import TimedRunner
from rappd.http.twin_listeners import NoTwinListeners, TwinListeners
from rappd.settings.load import Settings

if TYPE_CHECKING:
    import ssl

    from rappd.http.tether_listener import TetherListener
    from rappd.tether.phones import Phones

_BACKLOG = 512
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 3600.0
"""A command ends after those that use what it opened; none takes longer than a large twin's packing."""


class PortTakenError(ConflictError):
    """Another program listens on the port."""

    code = "port_taken"

    def __init__(self, port: int) -> None:
        super().__init__(
            f"Port {port} is taken by {holder(port).name}.",
            do=f"stop it, or `PORT={another(port)} rappd start`",
        )


def open_home(
    home: Home,
    settings: Settings,
    launch: LaunchZygote | None = None,
    *,
    mode: Mode = "serve",
    control: Path | None = None,
) -> AbstractAsyncContextManager[Daemon]:
    """The daemon of ``home``, started and listening, until the block ends.

    ``mode`` "serve": the whole daemon. "work": a command has the home to itself; it has a control socket and no
    other listener, finishes what a crash interrupted, and ends after other commands that are connected. "read":
    nothing is claimed or written, also where there is no home; its control socket is at ``control``.

    What belongs to the whole process (signals, garbage collection, what others may read of its memory, the word
    for systemd) is the caller's: one process may have several homes open, with settings of their own. ``launch``
    starts the process that workers are forked from, in place of ``launch_zygote``. Raises ``HomeTakenError`` when
    another process has the home ("serve" waits for a command), and ``PortTakenError``.
    """
    if mode == "serve":
        return _serving(home, settings, launch)
    if mode == "work":
        return _working(home, settings, control or home.work_socket, launch)
    assert control is not None
    return _opened(ReadOnlyHome(home.root), settings, control, launch, mode)


@asynccontextmanager
async def _serving(home: Home, settings: Settings, launch: LaunchZygote | None) -> AsyncIterator[Daemon]:
    held = await _claim(home)
    try:
        sockets = _listen(settings.number("port"))
        port = sockets[0].getsockname()[1]
        daemon = await Daemon.open(home, settings, upper_parts(settings), launch)
        daemon.listen_on(port)
        federation_listener = FederationListener(daemon)
        runner = await _open_listeners(daemon, home.socket, sockets)
        held.announce(port)
        try:
            await daemon.start()
            federation_listener.open()
            daemon.spawn(daemon.legacy.reopen())
            daemon.spawn(daemon.tether.start())
            yield daemon
        finally:
            daemon.activity.close()
            daemon.tether.close_screens()
            await federation_listener.close()
            await daemon.legacy.listener.close()
            await daemon.tenants.listeners.close_all()
            await runner.cleanup()
            await daemon.close()
            home.socket.unlink(missing_ok=True)
    finally:
        held.release()


@asynccontextmanager
async def _working(
    home: Home, settings: Settings, control: Path, launch: LaunchZygote | None
) -> AsyncIterator[Daemon]:
    home.create()
    held = home.hold()
    try:
        held.announce(0)
        async with _opened(home, settings, control, launch, "work") as daemon:
            yield daemon
    finally:
        held.release()


@asynccontextmanager
async def _opened(
    home: Home, settings: Settings, control: Path, launch: LaunchZygote | None, mode: Mode
) -> AsyncIterator[Daemon]:
    upper = upper_parts(settings)._replace(twins=NoTwinListeners)
    daemon = await Daemon.open(home, settings, upper, launch, mode)
    try:
        await daemon.start()
        runner = await _open_listeners(daemon, control, [], patience=_PATIENCE_SECONDS)
        try:
            yield daemon
        finally:
            await asyncio.to_thread(control.unlink, missing_ok=True)
            await runner.cleanup()
    finally:
        await daemon.close()


async def _claim(home: Home) -> LockedHome:
    while True:
        try:
            return home.hold()
        except HomeTakenError as taken:
            if not taken.is_worked_on:
                raise
        await asyncio.sleep(_LOOK_SECONDS)


def upper_parts(settings: Settings) -> UpperParts:
    """Makers of the listeners that a daemon opens later, by itself, of the list that phones get, and of what agents may ask for."""
    phones = partial(_tether_listener, settings.text("tether.address"))
    return UpperParts(TwinListeners, LegacyListener, phones, OwnersList, operations_for_agents)


def _tether_listener(
    address: str, phones: Phones, addresses: Callable[[], list[str]], tls: ssl.SSLContext | None
) -> TetherListener:
    from rappd.http.tether_listener import TetherListener

    return TetherListener(address, phones, addresses, tls)


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
            listener.listen(_BACKLOG)
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


async def _open_listeners(
    daemon: Daemon, control: Path, sockets: list[socket.socket], *, patience: float = 3.0
) -> TimedRunner:
    """Listens. ``patience``: the seconds that requests under way have at the end."""
    runner = TimedRunner(
        loopback.build(daemon, table_of(daemon)),
        access_log=None,
        handle_signals=False,
        shutdown_timeout=patience,
    )
    await runner.setup()
    for listener in (*sockets, _control_socket(control)):
        await web.SockSite(runner, listener, backlog=_BACKLOG).start()
    return runner


def _control_socket(path: Path) -> socket.socket:
    """A socket at ``path`` for this account alone: nobody can connect before it listens, and it does not until its mode is set."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
