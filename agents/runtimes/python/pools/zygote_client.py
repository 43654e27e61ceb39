"""The daemon's side of the zygote: starting it, ordering workers, hearing how they ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import orjson

from agents.errors import WorkerStartError
from agents.programs import programs
from agents.runtimes.python.pools.started_processes import children
from agents.runtimes.python.sandbox import cgroup_limit
from agents.runtimes.python.sandbox.protected_paths import home_folders, program_paths, secret_sockets
from agents.runtimes.python.worker.protocol import packet_pair

_PROGRAM = "import sys; from agents.runtimes.python.worker.zygote import main; main(int(sys.argv[1]))"
_READY_SECONDS = 30.0
_END_SECONDS = 5.0
_PACKET_BYTES = 64 * 1024


class ZygoteSettings(msgspec.Struct, frozen=True):
    """``environ``: all the zygote's environment, nothing secret.

    ``preload``: modules to load besides the usual ones. ``sandbox``: "auto" or one kind. ``ceiling``:
    processes of all workers together. ``may_read``: private paths that workers may read.
    """

    environ: Mapping[str, str]
    preload: Sequence[str]
    sandbox: str
    ceiling: int
    may_read: Sequence[str] = ()


class ZygoteProcess(Protocol):
    """A zygote, seen from the daemon."""

    @property
    def pid(self) -> int: ...

    def wait(self, seconds: float | None = None) -> int | None: ...

    def kill(self) -> None: ...


LaunchZygote = Callable[[ZygoteSettings, int], tuple[ZygoteProcess, int]]
"""Starts a zygote that serves the socket of this number; says which process is its parent. Raises OSError."""


def launch_zygote(settings: ZygoteSettings, control: int) -> tuple[ZygoteProcess, int]:
    """Starts a zygote as a program, a child of this process."""
    process = programs.start(
        programs.python("-X", "utf8", "-c", _PROGRAM, str(control)),
        environment=settings.environ,
        errors=programs.OWN_ERRORS,
        pass_fds=(control,),
    )
    return process, os.getpid()


class SpawnListener(Protocol):
    """Callbacks for the requester of a worker.

    ``on_exit`` comes last, with None for a status nobody saw; ``why`` is why the zygote ended it, as what
    follows "the worker ".
    """

    def on_started(self, pid: int) -> None: ...

    def on_failed(self, why: str) -> None: ...

    def on_exit(self, status: int | None, cpu: float, why: str = "") -> None: ...


class ZygoteClient:
    """One zygote process. When it ends, so do its workers; ``on_end`` is called once."""

    def __init__(
        self, settings: ZygoteSettings, on_end: Callable[[], None], launch: LaunchZygote | None = None
    ) -> None:
        self.report: dict[str, Any] = {}
        self.adopts = False  # whether processes of workers can become its own children
        self.helper = 0  # a child of the zygote's that is no worker; 0 for none
        self.pid = 0
        self.ended = False
        self._settings = settings
        self._launch = launch or launch_zygote
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._orders: dict[int, SpawnListener] = {}
        self._living: dict[int, SpawnListener] = {}
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self._last_order = 0

    def start(self) -> None:
        """Start the process, from the main thread where possible: the kernel ends the zygote together with the *thread* that started it.

        ``ready`` tells when it can fork. Raises WorkerStartError.
        """
        ours, theirs = packet_pair()
        with theirs:
            try:
                self._process, parent = self._launch(self._settings, theirs.fileno())
            except OSError as problem:
                ours.close()
                words = problem.strerror or str(problem)
                raise WorkerStartError(f"Workers cannot be started: {words}", do="try again") from problem
        self.pid = self._process.pid
        self._socket = ours
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self._on_readable)
        first = {
            "parent": parent,
            "follow": parent == os.getpid() and threading.current_thread() is threading.main_thread(),
            "preload": list(self._settings.preload),
            "sandbox": self._settings.sandbox,
            "ceiling": self._settings.ceiling,
            "homes": home_folders(os.environ),
            "programs": _program_paths(),
            "may_read": list(self._settings.may_read),
            "sockets": secret_sockets(os.environ),
        }
        self._unsent.append((orjson.dumps(first), []))
        self._send()

    async def ready(self) -> None:
        """Wait until it can fork. Raises WorkerStartError when it ends first, or takes too long."""
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self.end()
            raise WorkerStartError(
                f"The process that starts workers was not ready after {_READY_SECONDS:.0f} s", do="try again"
            ) from None

    def spawn(self, fds: Sequence[int], ordered: SpawnListener) -> None:
        """Order one worker; ``fds`` are those of ``birth.PackRequest``, and may be closed afterwards.

        Raises OSError when there is no descriptor left.
        """
        if self.ended:
            ordered.on_exit(None, 0.0)
            return
        with contextlib.ExitStack() as undo:
            copies = []
            for fd in fds:
                copies.append(os.dup(fd))
                undo.callback(os.close, copies[-1])
            undo.pop_all()
        self._last_order += 1
        self._orders[self._last_order] = ordered
        message = orjson.dumps({"spawn": self._last_order})
        self._unsent.append((message, copies))
        self._send()

    def kill(self, pid: int) -> None:
        """End worker ``pid`` and everything it started; its end is told as any other."""
        if pid in self._living:
            self._unsent.append((orjson.dumps({"kill": pid}), []))
            self._send()

    def sweep(self) -> None:
        """Ends processes that no worker is a parent of any more.

        Where workers have no process numbers of their own, agent code can have a process adopted by the
        zygote.
        """
        if not self.ended and not set(children(self.pid)) <= {*self._living, self.helper}:
            self._unsent.append((orjson.dumps({"sweep": True}), []))
            self._send()

    def end(self) -> None:
        """Hang up: the zygote ends its workers and then itself."""
        if self.ended:
            return
        self.ended = True
        if not self._ready.done():
            self._ready.set_exception(
                WorkerStartError(
                    "The process that starts workers ended at once", do="see the log, then try again"
                )
            )
            self._ready.exception()  # asked for here, so that nobody is warned when nobody waits
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        while self._unsent:
            for fd in self._unsent.popleft()[1]:
                os.close(fd)
        waiting = [*self._orders.values(), *self._living.values()]
        self._orders.clear()
        self._living.clear()
        for ordered in waiting:
            ordered.on_exit(None, 0.0)
        self._on_end()

    async def wait(self) -> None:
        """Until the process is gone; it is killed when it lingers."""

        def collect() -> None:
            if self._process.wait(_END_SECONDS) is None:
                self._process.kill()
                self._process.wait()
            if self.report.get("groups"):
                cgroup_limit.clear()

        await self._loop.run_in_executor(None, collect)

    def _send(self) -> None:
        while self._unsent:
            message, fds = self._unsent[0]
            try:
                if fds:
                    socket.send_fds(self._socket, [message], fds)
                else:
                    self._socket.send(message)
            except BlockingIOError:
                self._loop.add_writer(self._socket.fileno(), self._send)
                return
            except OSError:
                self.end()
                return
            self._unsent.popleft()
            for fd in fds:
                os.close(fd)
        self._loop.remove_writer(self._socket.fileno())

    def _on_readable(self) -> None:
        while not self.ended:
            try:
                packet = self._socket.recv(_PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if packet:
                self._handle_message(orjson.loads(packet))
            else:
                self.end()

    def _handle_message(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self.adopts = message["adopts"]
            self.helper = message["helper"]
            self.report = {**message["ready"], "missing": message["missing"]}
            if not self._ready.done():
                self._ready.set_result(None)
        elif "spawned" in message:
            ordered = self._living[message["pid"]] = self._orders.pop(message["spawned"])
            ordered.on_started(message["pid"])
        elif "refused" in message:
            self._orders.pop(message["refused"]).on_failed(message["why"])
        elif "gone" in message:
            self._living.pop(message["gone"]).on_exit(message["status"], message["cpu"], message["why"])


def _program_paths() -> list[str]:
    """The paths from which this process, and programs that it starts, are loaded."""
    modules = [path or os.getcwd() for path in sys.path]
    return program_paths(os.environ.get("PATH", os.defpath).split(os.pathsep), modules)
