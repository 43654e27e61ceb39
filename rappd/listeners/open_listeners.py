"""Listening for requests to a home: the sockets of the loopback and of the control listener, and the other listeners.

A home that is only read does not import this, and so no aiohttp.
"""

from __future__ import annotations

import errno
import socket
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from rappd.daemon.app import Daemon, UpperParts
from rappd.daemon.ports import another, holder
from rappd.daemon.waiting_answers import OwnersList
from rappd.errors import ConflictError
from rappd.features.later_features import operations_for_agents, table_of, table_of_phones
from rappd.listeners.legacy_listener import LegacyListener
from rappd.listeners.loopback import app as loopback
from rappd.listeners.request_timeout import TimedRunner
from rappd.listeners.twin_listeners import TwinListeners
from rappd.settings.load import Settings

if TYPE_CHECKING:
    import ssl

    from rappd.listeners.tether_listener import TetherListener
    from rappd.tether.phones import Phones

_BACKLOG = 512


class PortTakenError(ConflictError):
    """Another program listens on the port."""

    code = "port_taken"

    def __init__(self, port: int) -> None:
        super().__init__(
            f"Port {port} is taken by {holder(port).name}.",
            do=f"stop it, or `PORT={another(port)} rappd start`",
        )


def upper_parts(settings: Settings) -> UpperParts:
    """Makers of the listeners that a daemon opens later, by itself, of the list that phones get, and of operations."""
    phones = partial(_tether_listener, settings.text("tether.address"))
    return UpperParts(
        TwinListeners, LegacyListener, phones, OwnersList, operations_for_agents, table_of, table_of_phones
    )


def _tether_listener(
    address: str, phones: Phones, addresses: Callable[[], list[str]], tls: ssl.SSLContext | None
) -> TetherListener:
    from rappd.listeners.tether_listener import TetherListener

    return TetherListener(address, phones, addresses, tls)


def sockets_at(port: int) -> list[socket.socket]:
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


async def open_listeners(
    daemon: Daemon, control: Path, sockets: list[socket.socket], *, patience: float = 3.0
) -> TimedRunner:
    """Listens. ``patience``: the seconds that requests under way have at the end."""
    runner = TimedRunner(
        loopback.build(daemon, lambda: daemon.table),
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
