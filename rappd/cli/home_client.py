"""Asking a home: its daemon where one runs, else this process, which opens the home for as long as the command takes."""

from __future__ import annotations

import logging
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rappd.control_client import ControlClient
from rappd.daemon.home import Home, HomeTakenError
from rappd.errors import NotRunningError

if TYPE_CHECKING:
    import asyncio

    from rappd.daemon.app import Mode

_PAUSE_SECONDS = 0.05
_OPENING = threading.Lock()


class HomeClient(ControlClient):
    """A ``ControlClient`` that never raises ``NotRunningError`` for want of a daemon.

    What only ``reads`` neither claims the home nor writes to it, and makes none. Commands that work at the same time
    share the home that the first of them opened. Raises ``HomeTakenError`` when a daemon has the home and does not
    answer for ``timeout`` seconds.
    """

    def __init__(self, home: Home, *, reads: bool = False, timeout: float = 60.0) -> None:
        super().__init__(home, timeout=timeout)
        self._reads = reads
        self._command = click.get_current_context().find_root()

    def open(self) -> None:
        """Opens the home now, where no daemon runs, and not with the first question."""
        self._dial(self._home.socket).close()

    def _dial(self, path: Path) -> socket.socket:
        until = time.monotonic() + self._timeout
        while True:
            for where in (path, self._home.work_socket):
                try:
                    return super()._dial(where)
                except NotRunningError:
                    continue
            try:
                return super()._dial(self._opened("read" if self._reads else "work"))
            except HomeTakenError:  # a daemon that starts or ends, or a command that ends
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _opened(self, mode: Mode) -> Path:
        """The control socket of the home that this command opened; it is closed at the command's end."""
        with _OPENING:
            found: dict[str, _HomeThread] = self._command.meta.setdefault(__name__, {})
            if mode not in found:
                opened = _HomeThread(self._home, mode)
                opened.open()
                self._command.call_on_close(opened.close)
                found[mode] = opened
            return found[mode].control


class _HomeThread:
    """A home opened in a thread of this process, with an event loop of its own."""

    def __init__(self, home: Home, mode: Mode) -> None:
        self._home, self._mode = home, mode
        self._folder = tempfile.TemporaryDirectory(prefix="rappd-") if mode == "read" else None
        self.control = Path(self._folder.name) / "read.sock" if self._folder else home.work_socket
        self._thread = threading.Thread(target=self._run, name="home", daemon=True)
        self._opened = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None

    def open(self) -> None:
        """Returns once the home is open. Raises what kept it from that."""
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            self._ended()
            raise self._failure

    def close(self) -> None:
        """Closes the home; waits for other commands that use it."""
        assert self._loop is not None and self._end is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._ended()

    def _ended(self) -> None:
        self._thread.join()
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self) -> None:
        import asyncio

        from agents.workers.privileges import protect_daemon
        from rappd.daemon.event_loop import new_event_loop

        try:
            protect_daemon()
            with self._logging(), asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._failure = error
            self._opened.set()

    @contextmanager
    def _logging(self) -> Iterator[None]:
        """Details go where those of a daemon go; of a home that stays as it is, errors go to the terminal."""
        if self._mode == "read":
            logging.basicConfig(level=logging.ERROR, format="%(message)s", stream=sys.stderr)
            yield
            return
        from rappd.daemon import log

        self._home.create()
        stop = log.start(self._home.log)
        try:
            yield
        finally:
            stop()

    async def _serve(self) -> None:
        import asyncio

        from rappd.daemon.open_home import open_home
        from rappd.settings.load import Settings

        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        settings = Settings.load(self._home)
        async with open_home(self._home, settings, mode=self._mode, control=self.control):
            self._opened.set()
            await self._end.wait()
