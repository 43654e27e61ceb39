"""Asking a home: its daemon where one runs, else this process, which opens the home for as long as the command takes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rappd.control_client import ControlClient
from rappd.daemon.home import Home, HomeTakenError
from rappd.errors import NotRunningError

if TYPE_CHECKING:
    import asyncio

    from rappd.cli.home_reader import HomeReader

_PAUSE_SECONDS = 0.05
_OPENING = threading.Lock()
_READER = "reader"


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
            if self._reads:
                raise NotRunningError("rappd isn't running here.", do="rappd start")
            try:
                return super()._dial(self._opened())
            except HomeTakenError:  # a daemon that starts or ends, or a command that ends
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def do(self, name: str, /, **given: Any) -> dict[str, Any]:
        """As ``ControlClient.do``."""
        try:
            return super().do(name, **given)
        except NotRunningError:
            if not self._reads:
                raise
            return self._reader().perform(name, given)

    def follow(
        self, name: str, on_event: Callable[[dict[str, Any]], object], /, **given: Any
    ) -> dict[str, Any]:
        """As ``ControlClient.follow``."""
        try:
            return super().follow(name, on_event, **given)
        except NotRunningError:
            if not self._reads:
                raise
            return self._reader().perform(name, given, on_event)

    def _opened(self) -> Path:
        """The control socket of the home that this command opened; it is closed at the command's end."""
        with _OPENING:
            found: _HomeThread | None = self._command.meta.get(_HomeThread.__name__)
            if found is None:
                found = _HomeThread(self._home)
                found.open()
                self._command.call_on_close(found.close)
                self._command.meta[_HomeThread.__name__] = found
        return self._home.work_socket

    def _reader(self) -> HomeReader:
        with _OPENING:
            found: HomeReader | None = self._command.meta.get(_READER)
            if found is None:
                from rappd.cli.home_reader import HomeReader

                found = self._command.meta[_READER] = HomeReader(self._home)
                self._command.call_on_close(found.close)
        return found


class _HomeThread:
    """A home opened in a thread of this process, with an event loop of its own."""

    def __init__(self, home: Home) -> None:
        self._home = home
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
            self._thread.join()
            raise self._failure

    def close(self) -> None:
        """Closes the home; waits for other commands that use it."""
        assert self._loop is not None and self._end is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        import asyncio

        from agents.runtimes.python.sandbox.privileges import protect_daemon
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
        """Details go where those of a daemon go."""
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
        async with open_home(self._home, settings, mode="work"):
            self._opened.set()
            await self._end.wait()
