"""Opening a home: claim it, open the daemon on it, listen, and close all of it again in the right order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NoReturn

from agents.runtimes.python.pools.zygote_client import LaunchZygote
from rappd.daemon.app import Daemon, Mode, UpperParts
from rappd.daemon.home import Home, HomeTakenError, LockedHome, ReadOnlyHome
from rappd.daemon.startup import start, stop
from rappd.daemon.waiting_answers import OwnersList
from rappd.errors import NotRunningError
from rappd.features.later_features import operations_for_agents, table_of, table_of_phones
from rappd.settings.load import Settings
from rappd.tenants.tenant import Tenant

_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 3600.0
"""A command ends after those that use what it opened; none takes longer than a large twin's packing."""


def open_home(
    home: Home,
    settings: Settings,
    launch: LaunchZygote | None = None,
    *,
    mode: Mode = "serve",
) -> AbstractAsyncContextManager[Daemon]:
    """The daemon of ``home``, started and listening, until the block ends.

    ``mode`` "serve": the whole daemon. "work": a command has the home to itself; it has a control socket and no
    other listener, finishes what a crash interrupted, and ends after other commands that are connected. "read":
    nothing is claimed or written, also where there is no home, and nobody listens.

    What belongs to the whole process (signals, garbage collection, what others may read of its memory, the word
    for systemd) is the caller's: one process may have several homes open, with settings of their own. ``launch``
    starts the process that workers are forked from, in place of ``launch_zygote``. Raises ``HomeTakenError`` when
    another process has the home ("serve" waits for a command), and ``PortTakenError``.
    """
    if mode == "serve":
        return _serving(home, settings, launch)
    if mode == "work":
        return _working(home, settings, launch)
    return _reading(home, settings, launch)


@asynccontextmanager
async def _serving(home: Home, settings: Settings, launch: LaunchZygote | None) -> AsyncIterator[Daemon]:
    claim = await _claim(home)
    try:
        from rappd.listeners.federation_listener import FederationListener
        from rappd.listeners.open_listeners import open_listeners, sockets_at, upper_parts

        sockets = sockets_at(settings.number("port"))
        port = sockets[0].getsockname()[1]
        daemon = await Daemon.open(home, settings, upper_parts(settings), launch)
        daemon.listen_on(port)
        federation_listener = FederationListener(daemon)
        runner = await open_listeners(daemon, home.socket, sockets)
        claim.announce(port)
        try:
            await start(daemon)
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
            await stop(daemon)
            home.socket.unlink(missing_ok=True)
    finally:
        claim.release()


@asynccontextmanager
async def _working(home: Home, settings: Settings, launch: LaunchZygote | None) -> AsyncIterator[Daemon]:
    from rappd.listeners.open_listeners import open_listeners, upper_parts

    home.create()
    claim = home.hold()
    try:
        claim.announce(0)
        upper = upper_parts(settings)._replace(twins=NoTwinListeners)
        daemon = await Daemon.open(home, settings, upper, launch, "work")
        try:
            await start(daemon)
            runner = await open_listeners(daemon, home.work_socket, [], patience=_PATIENCE_SECONDS)
            try:
                yield daemon
            finally:
                await asyncio.to_thread(home.work_socket.unlink, missing_ok=True)
                await runner.cleanup()
        finally:
            await stop(daemon)
    finally:
        claim.release()


@asynccontextmanager
async def _reading(home: Home, settings: Settings, launch: LaunchZygote | None) -> AsyncIterator[Daemon]:
    upper = UpperParts(
        NoTwinListeners,
        NoLegacyListener,
        _no_phones,
        OwnersList,
        operations_for_agents,
        table_of,
        table_of_phones,
    )
    daemon = await Daemon.open(ReadOnlyHome(home.root), settings, upper, launch, "read")
    try:
        await start(daemon)
        yield daemon
    finally:
        await stop(daemon)


async def _claim(home: Home) -> LockedHome:
    while True:
        try:
            return home.hold()
        except HomeTakenError as taken:
            if not taken.is_worked_on:
                raise
        await asyncio.sleep(_LOOK_SECONDS)


class NoTwinListeners:
    """For a command without a daemon, in place of ``TwinListeners``: no twin gets a port."""

    def __init__(self, daemon: Daemon) -> None:
        pass

    async def open(self, tenant: Tenant, wanted: int | None) -> int:
        """Raises ``NotRunningError``."""
        raise NotRunningError("rappd isn't running here.", do="rappd start")

    async def close(self, key: str) -> None:
        """Does nothing: no port is open."""

    def hold(self, key: str) -> None:
        """Does nothing: no port is kept."""

    let_go = hold

    async def close_all(self) -> None:
        """Does nothing: no port is open."""


class NoLegacyListener:
    """For a home that is only read, in place of ``LegacyListener``."""

    def __init__(self, daemon: Daemon) -> None:
        self.listening: list[str] = []

    def check(self, allowed: Iterable[str]) -> None:
        """Does nothing: nothing is opened."""

    async def open(self, allowed: Iterable[str], caps: Iterable[str], *, own: Iterable[str]) -> None:
        """Raises ``NotRunningError``."""
        raise NotRunningError("rappd isn't running here.", do="rappd start")

    async def close(self) -> None:
        """Does nothing."""


def _no_phones(*_: object) -> NoReturn:
    raise NotRunningError("rappd isn't running here.", do="rappd start")
