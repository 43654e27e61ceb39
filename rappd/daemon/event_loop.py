"""The daemon's event loop: uvloop's, where there is one for this kind of machine, with one owner for each descriptor."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any, Protocol

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
"""Makes an event loop; its runner closes it."""


class _Pipe(Protocol):
    """The file of a pipe, as callers hand it over."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class _Number:
    """A descriptor that libuv closes: to close it here, too, would close what has got its number since."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def close(self) -> None:
        pass


try:
    from uvloop import Loop
except ImportError:  # no wheel for it
    new_event_loop = asyncio.new_event_loop
else:

    class UvLoop(Loop):
        """Closes the descriptors of sockets and pipes that it was given exactly once (uvloop#645, #738, #763)."""

        def call_exception_handler(self, context: dict[str, Any]) -> None:
            """Leaves out a name that was not found once nobody waited for it any more.

            uvloop does not cancel the look-up of a ``create_connection`` that is cancelled; its caller has an error already.
            """
            if isinstance(context.get("future"), asyncio.Task) or not isinstance(
                context.get("exception"), socket.gaierror
            ):
                super().call_exception_handler(context)

        async def create_connection(
            self, *args: Any, sock: socket.socket | None = None, **options: Any
        ) -> tuple[Any, Any]:
            return await _owned(sock, super().create_connection(*args, sock=sock, **options))

        async def create_unix_connection(
            self, *args: Any, sock: socket.socket | None = None, **options: Any
        ) -> tuple[Any, Any]:
            return await _owned(sock, super().create_unix_connection(*args, sock=sock, **options))

        async def connect_read_pipe(
            self, protocol_factory: Callable[[], Any], pipe: _Pipe
        ) -> tuple[Any, Any]:
            with closing(pipe):
                return await super().connect_read_pipe(protocol_factory, _Number(os.dup(pipe.fileno())))

        async def connect_write_pipe(
            self, protocol_factory: Callable[[], Any], pipe: _Pipe
        ) -> tuple[Any, Any]:
            with closing(pipe):
                return await super().connect_write_pipe(protocol_factory, _Number(os.dup(pipe.fileno())))

    async def _owned(sock: socket.socket | None, connecting: Any) -> tuple[Any, Any]:
        """The connection. A transport that was reset meanwhile does not take the socket along by itself."""
        transport = None
        try:
            transport, protocol = await connecting
            return transport, protocol
        finally:
            if sock is not None and (transport is None or transport.is_closing()):
                sock.detach()

    new_event_loop = UvLoop
