"""The programs that the daemon and the command line start, and the environment that they get.

A program is used only at a path that no worker can write. It gets an environment made from nothing, and
ends with everything that it started. No other module starts programs.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

SYSTEM_FOLDERS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/snap/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
)
DESKTOP = (
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CONFIG_HOME",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "DBUS_SESSION_BUS_ADDRESS",
)
"""Variables by which a program finds the owner's session: its screen, its bus, its key ring."""

OWN_ERRORS = 2
"""For ``errors``: where this process writes its own."""

_LINKS = 40
_TICK_SECONDS = 0.05
_KEPT_BYTES = 1 << 20
_found: dict[str, str] = {}


class ProgramNotFoundError(FileNotFoundError):
    """No program of that name lies where workers cannot replace it."""


@dataclass(slots=True, frozen=True)
class Finished:
    """The exit code of a program, and the last of its output and of its errors."""

    code: int
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """The output as text."""
        return self.output.decode("utf-8", "replace")


class RunningProgram:
    """A program that goes on running beside this one."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def exit_code(self) -> int | None:
        """The program's exit code, None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float | None = None) -> int | None:
        """The program's exit code, None when it still runs after ``seconds``."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it, and it alone."""
        self._process.kill()

    def end(self) -> None:
        """End it and everything that it started, and collect it."""
        _end_group(self._process)


def find(name: str) -> str | None:
    """The absolute path of a program that no worker can write, None where there is none.

    The first answer is remembered. Programs beside the running interpreter are taken as they are: workers
    cannot write there.
    """
    if name not in _found:
        folders = (str(Path(sys.executable).parent), *SYSTEM_FOLDERS)
        places = (os.path.join(folder, name) for folder in folders)
        path = next((place for place in places if _is_usable(place)), None)
        if path is None:
            return None
        _found[name] = path
    return _found[name]


def why_not_used(name: str) -> str:
    """One line about a program that is only found where workers could replace it; "" otherwise."""
    elsewhere = None if find(name) else shutil.which(name)
    if elsewhere is None:
        return ""
    folder = os.path.dirname(os.path.abspath(elsewhere))
    home = str(Path.home())
    shown = f"~{folder.removeprefix(home)}" if folder.startswith(f"{home}/") else folder
    return f"{os.path.basename(name)} in {shown} is not used: agents could replace it"


def known_to_shell(name: str) -> str | None:
    """The path that the owner's shell would take, to be shown and never to be run."""
    return shutil.which(name)


def search_path() -> str:
    """``PATH`` for programs: the system's folders that no worker can write."""
    writable = writable_folders()
    return os.pathsep.join(folder for folder in SYSTEM_FOLDERS if _is_safe(folder, writable)) or os.defpath


def from_owner(*names: str) -> dict[str, str]:
    """The named variables of this process, as far as they are set, for ``environment`` below."""
    return {name: os.environ[name] for name in names if name in os.environ}


def python(*arguments: str) -> list[str]:
    """The command that runs this interpreter without variables, user packages, or the current folder."""
    return [sys.executable, "-I", *arguments]


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    home: bool = False,
    directory: str | Path = "/",
    given: bytes = b"",
    seconds: float = 10.0,
    keep: int = _KEPT_BYTES,
    pass_fds: Sequence[int] = (),
    cancelled: threading.Event | None = None,
) -> Finished:
    """Run a program to its end and end what it leaves behind.

    ``environment`` is added to ``PATH`` and ``LANG``; ``home`` adds the account's ``HOME`` and name.
    ``given`` is its input. Of each output the last ``keep`` bytes are kept. Raises ProgramNotFoundError,
    another OSError when it cannot be started, TimeoutError after ``seconds``.
    """
    with _input(given) as stdin:
        process = _start(
            command, environment, home, directory, stdin, subprocess.PIPE, subprocess.PIPE, pass_fds
        )
    output, errors = bytearray(), bytearray()
    try:
        is_over = _collect(
            process, {process.stdout: output, process.stderr: errors}, seconds, keep, cancelled
        )
    finally:
        _end_group(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if not is_over:
        raise TimeoutError(f"{os.path.basename(command[0])} took longer than {seconds:g} s")
    return Finished(process.returncode, bytes(output), bytes(errors))


async def run_async(command: Sequence[str], **options: Any) -> Finished:
    """``run`` for coroutines. A cancelled caller ends the program."""
    from asyncio import to_thread  # workers do without it

    cancelled = threading.Event()
    try:
        return await to_thread(run, command, cancelled=cancelled, **options)
    finally:
        cancelled.set()


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    home: bool = False,
    directory: str | Path = "/",
    given: int | IO[bytes] | None = None,
    output: int | IO[bytes] | None = None,
    errors: int | IO[bytes] | None = None,
    pass_fds: Sequence[int] = (),
) -> RunningProgram:
    """Start a program in a session of its own, which goes on running.

    ``given`` is what it reads from, nothing if left out. Without ``output`` and ``errors`` nobody reads those.
    Raises as ``run`` does.
    """
    nobody = subprocess.DEVNULL
    return RunningProgram(
        _start(
            command, environment, home, directory, nobody if given is None else given,
            nobody if output is None else output, nobody if errors is None else errors, pass_fds,
        )
    )  # fmt: skip


def become(path: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process, its environment kept. Raises ProgramNotFoundError or another OSError."""
    checked = _checked(path)
    os.execv(checked, [checked, *arguments])  # noqa: S606 - a list of arguments, no shell


def _start(
    command: Sequence[str],
    environment: Mapping[str, str] | None,
    home: bool,
    directory: str | Path,
    stdin: int | IO[bytes],
    output: int | IO[bytes],
    errors: int | IO[bytes],
    pass_fds: Sequence[int],
) -> subprocess.Popen[bytes]:
    program = _checked(command[0])
    surroundings = {"PATH": search_path(), "LANG": "C.UTF-8"}
    if program == sys.executable:
        surroundings["PYTHONNOUSERSITE"] = "1"
    if home:
        surroundings |= from_owner("HOME", "USER", "LOGNAME")
    return subprocess.Popen(
        [program, *command[1:]],
        stdin=stdin,
        stdout=output,
        stderr=errors,
        cwd=directory,
        env={**surroundings, **(environment or {})},
        pass_fds=pass_fds,
        start_new_session=True,
    )


def _checked(name: str) -> str:
    if name == sys.executable:
        return name
    if not os.path.isabs(name):
        path = find(name)
    else:
        path = name if _is_usable(name) else None
    if path is None:
        raise ProgramNotFoundError(2, "not found at a place that agents cannot write", name)
    return path


@contextlib.contextmanager
def _input(given: bytes) -> Any:
    if not given:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


def _collect(
    process: subprocess.Popen[bytes],
    buffers: Mapping[IO[bytes] | None, bytearray],
    seconds: float,
    keep: int,
    cancelled: threading.Event | None,
) -> bool:
    """Read until the program has ended; False when it had not in time, or its caller gave up."""
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting:
        for stream, buffer in buffers.items():
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            waiting.register(stream, selectors.EVENT_READ, buffer)
        while waiting.get_map():
            if time.monotonic() > until or (cancelled is not None and cancelled.is_set()):
                return False
            is_last = _has_ended(process)  # asked first: what it wrote before its end is there to be read
            for key, _ in waiting.select(0 if is_last else _TICK_SECONDS):
                part = os.read(key.fd, 1 << 16)
                key.data.extend(part)
                del key.data[:-keep]
                if not part:
                    waiting.unregister(key.fileobj)
                is_last = False
            if is_last:
                return True
    while not _has_ended(process):  # it closed its output and goes on
        if time.monotonic() > until or (cancelled is not None and cancelled.is_set()):
            return False
        time.sleep(_TICK_SECONDS / 5)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """True when it has ended; it is not collected yet, so that its group's number stays its own."""
    if hasattr(os, "waitid"):
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, options) is not None
    return process.poll() is not None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _is_usable(path: str) -> bool:
    """True when it is a program beside the interpreter, or one that no worker can write."""
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        return False
    return os.path.dirname(path) == os.path.dirname(sys.executable) or _is_safe(path, writable_folders())


def _is_safe(path: str, writable: list[str]) -> bool:
    """True when a file or folder, each folder above it and each link on the way are safe from workers.

    ``writable``: the folders in which workers may write.
    """
    ahead = [part for part in os.path.normpath(path).split(os.sep) if part][::-1]
    here, links = os.sep, 0
    if not _is_protected(here):
        return False
    while ahead:
        name = ahead.pop()
        if name == os.pardir:
            here = os.path.dirname(here)
            continue
        here = os.path.join(here, name)
        try:
            found = os.lstat(here)
        except OSError:
            return False
        if stat.S_ISLNK(found.st_mode):  # its folder is protected, so nobody exchanges it
            links += 1
            to = os.readlink(here)
            ahead += [part for part in to.split(os.sep) if part not in ("", os.curdir)][::-1]
            here = os.sep if os.path.isabs(to) else os.path.dirname(here)
            if links > _LINKS:
                return False
        elif not _is_protected(here):
            return False
    return not any(here == one or here.startswith(f"{one}/") for one in writable)


def _is_protected(path: str) -> bool:
    """True when this account's workers cannot change it, nor anybody who is not root."""
    found = os.stat(path)
    if os.geteuid() == 0:
        return found.st_uid == 0 and not found.st_mode & 0o022
    return found.st_uid != os.geteuid() and not os.access(path, os.W_OK)


def writable_folders() -> list[str]:
    """The folders in which workers may write: homes and temporary ones."""
    named = [os.environ.get("HOME", ""), os.environ.get("RAPP_HOME", ""), tempfile.gettempdir()]
    with contextlib.suppress(KeyError):  # an account without an entry
        named.append(pwd.getpwuid(os.geteuid()).pw_dir)
    named += ["/tmp", "/var/tmp", "/dev/shm"]  # noqa: S108 - looked at, not used
    real = {os.path.realpath(name) for name in named if os.path.isabs(name)}
    systems = [os.path.realpath(folder) for folder in SYSTEM_FOLDERS]
    return sorted(
        name for name in real if not any(f"{one}/".startswith(f"{name.rstrip('/')}/") for one in systems)
    )
