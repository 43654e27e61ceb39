"""``rappd`` as processes of their own, forked from one that has imported it: most of a start is imports.

The process that forks has one thread and a bare environment, and runs nothing of the product. What is forked
from it gets its arguments, environment, folder and descriptors, and goes on where ``python -m rappd`` begins.
Where that would not come to the same (another encoding, say), or where this is not Linux, Python is started
anew. That the product imports what it needs is seen where it is started so: by ``Terminal``, on the network of
``tests/lan``, by what the documents tell a reader to type, and wherever a test asks for it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

NO_AUTHORITY = Path(__file__).with_name("no_authority.pem")
"""No daemon of a test has to do with the Internet; to read who is trusted there takes a tenth of its start."""

_READ_BY_IMPORTS = {"LANG": "C.UTF-8", "SSL_CERT_FILE": str(NO_AUTHORITY)}
_FLOORS = ("envelopes", "agents", "twins", "neighborhoods", "rappd")
_IMPORTED_WHEN_NEEDED = (
    "openai",
    "rich.console",
    "rich.live",
    "rich.markdown",
    "rich.progress",
    "rich.table",
)
_PACKET_BYTES = 128 * 1024


class Process:
    """One process of ``rappd``, with as much of ``subprocess.Popen`` as tests use."""

    def __init__(
        self,
        pid: int,
        report: socket.socket,
        *,
        stdin: IO[bytes] | None,
        stdout: IO[bytes],
        stderr: IO[bytes] | None,
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self._report = report

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("rappd", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def talk(self, said: bytes, timeout: float) -> tuple[bytes, bytes]:
        """Tells it all this, and gives what it wrote until its end: stdout, stderr."""
        until = time.monotonic() + timeout
        heard: dict[Any, list[bytes]] = {self.stdout: [], self.stderr: []}
        with selectors.DefaultSelector() as streams:
            for stream in heard:
                streams.register(stream, selectors.EVENT_READ)
            if self.stdin is not None and said:
                os.set_blocking(self.stdin.fileno(), False)
                streams.register(self.stdin, selectors.EVENT_WRITE)
            elif self.stdin is not None:
                self.stdin.close()
            while streams.get_map():
                if time.monotonic() > until:
                    self.kill()
                    raise subprocess.TimeoutExpired("rappd", timeout, b"".join(heard[self.stdout]))
                for key, _ in streams.select(until - time.monotonic()):
                    stream: Any = key.fileobj
                    if stream is self.stdin:
                        with contextlib.suppress(BrokenPipeError):
                            said = said[os.write(key.fd, said[: select.PIPE_BUF]) :]
                            if said:
                                continue
                    elif piece := os.read(key.fd, 65536):
                        heard[stream].append(piece)
                        continue
                    streams.unregister(stream)
                    stream.close()
        self.wait(max(until - time.monotonic(), 1))
        return b"".join(heard[self.stdout]), b"".join(heard[self.stderr])

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            self.returncode = int(self._report.recv(64) or -signal.SIGKILL)
            self._report.close()
        return self.returncode


def start(arguments: list[str], environment: Mapping[str, str]) -> Process | subprocess.Popen[bytes]:
    """Starts ``rappd`` in ``/``; its stdout and stderr are one pipe."""
    if _is_other(environment):
        return subprocess.Popen(
            [sys.executable, "-m", "rappd", *arguments],
            env=environment,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    out, out_in = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        try:
            pid, report = _mother().fork(arguments, environment, "/", (nothing.fileno(), out_in, out_in))
        finally:
            os.close(out_in)
    return Process(pid, report, stdin=None, stdout=os.fdopen(out, "rb"), stderr=None)


def run(
    arguments: list[str], environment: Mapping[str, str], said: str, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Runs ``rappd`` to its end."""
    if _is_other(environment):
        return run_anew(arguments, environment, said, timeout)
    pipes = [os.pipe() for _ in range(3)]
    ours, theirs = (pipes[0][1], pipes[1][0], pipes[2][0]), (pipes[0][0], pipes[1][1], pipes[2][1])
    try:
        pid, report = _mother().fork(arguments, environment, str(Path.cwd()), theirs)
    finally:
        for fd in theirs:
            os.close(fd)
    process = Process(
        pid,
        report,
        stdin=os.fdopen(ours[0], "wb", buffering=0),
        stdout=os.fdopen(ours[1], "rb", buffering=0),
        stderr=os.fdopen(ours[2], "rb", buffering=0),
    )
    written = [stream.decode().replace("\r\n", "\n") for stream in process.talk(said.encode(), timeout)]
    return subprocess.CompletedProcess(["rappd", *arguments], process.wait(), *written)


def run_anew(
    arguments: list[str], environment: Mapping[str, str], said: str, timeout: float
) -> subprocess.CompletedProcess[str]:
    """The same in a Python started for it."""
    return subprocess.run(
        [sys.executable, "-m", "rappd", *arguments],
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def _is_other(environment: Mapping[str, str]) -> bool:
    """Whether the imports, or Python itself, would not be the same in this environment."""
    read = any(environment.get(name) != value for name, value in _READ_BY_IMPORTS.items())
    return (
        read
        or sys.platform != "linux"
        or any(name.startswith(("PYTHON", "LC_", "LD_")) for name in environment)
    )


class _Mother:
    """The process that forks, as seen from here."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env={"PATH": os.environ["PATH"], **_READ_BY_IMPORTS},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def fork(
        self, arguments: list[str], environment: Mapping[str, str], folder: str, streams: tuple[int, int, int]
    ) -> tuple[int, socket.socket]:
        """A new process: its number, and the socket that tells how it ended."""
        order = json.dumps({"arguments": arguments, "environment": dict(environment), "folder": folder})
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._control, [order.encode()], [*streams, theirs.fileno()])
        return int(report.recv(64)), report


_once = threading.Lock()


@functools.cache
def _new_mother() -> _Mother:
    return _Mother()


def _mother() -> _Mother:
    with _once:
        return _new_mother()


def _serve(control: socket.socket) -> list[str]:
    """Forks whenever it is told to. Returns in what was forked, with its arguments."""
    reports: dict[int, socket.socket] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        heard, _, _ = select.select([control, woken], [], [])
        if woken in heard:
            os.read(woken, 4096)
            _tell_of_ends(reports)
        if control not in heard:
            continue
        packet, fds, _, _ = socket.recv_fds(control, _PACKET_BYTES, 4)
        if not packet:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for other in (control, *reports.values()):
                other.close()
            for fd in (woken, wake, fds[3]):
                os.close(fd)
            return _become(json.loads(packet), fds[:3])
        reports[pid] = socket.socket(fileno=fds[3])
        reports[pid].send(str(pid).encode())
        for fd in fds[:3]:
            os.close(fd)


def _tell_of_ends(reports: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with reports.pop(pid) as report, contextlib.suppress(OSError):
                report.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(order: dict[str, Any], streams: list[int]) -> list[str]:
    """What Python does before it runs a program, as far as it has to do with this process alone."""
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    os.chdir(order["folder"])
    old = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = sys.__stdin__ = _stream(0, "r", old[0])
    sys.stdout = sys.__stdout__ = _stream(1, "w", old[1])
    sys.stderr = sys.__stderr__ = _stream(2, "w", old[2], buffering=1)
    arguments: list[str] = order["arguments"]
    return arguments


def _stream(fd: int, mode: str, old: Any, buffering: int = -1) -> Any:
    return os.fdopen(fd, mode, buffering, encoding=old.encoding, errors=old.errors, closefd=False)


def _end(code: int) -> None:
    """As Python ends, but for taking apart what was imported, which is most of a command's time."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        return  # Python says what it says then
    os._exit(code)


def _import_everything() -> None:
    for floor in _FLOORS:
        package = importlib.import_module(floor)
        for module in pkgutil.walk_packages(package.__path__, f"{floor}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in _IMPORTED_WHEN_NEEDED:
        importlib.import_module(name)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    _import_everything()
    from rappd.__main__ import main

    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise SystemExit("Something that was imported began a thread; a process with threads must not fork.")
    gc.collect()
    gc.freeze()
    sys.argv = [
        str(Path(sys.modules["rappd.__main__"].__file__ or "")),
        *_serve(socket.socket(fileno=int(sys.argv[1]))),
    ]
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise
