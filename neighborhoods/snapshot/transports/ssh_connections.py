"""Connections through the system's ``ssh``: one to each machine, shared by all that is asked of it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

from agents.programs import programs
from agents.programs.streamed_program import StreamedProgram
from neighborhoods.errors import MemberError
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.snapshot.transports.ssh_failures import ssh_failure

HANDSHAKES = 8
"""Connections that are made at once: a server refuses some from its tenth on (MaxStartups)."""
CHANNELS = 4
"""Commands at once over one connection: a server takes ten (MaxSessions), and ended ones count for a moment."""
CONNECT_SECONDS = 10
SSH_AGENT = "SSH_AUTH_SOCK"
_KEPT_SECONDS = 60
_PATH_LIMIT = 80  # sun_path holds 104 bytes on some systems, and ssh adds 17 to a name while it binds
_PREFIX = "rappd-ssh-"
_SWEPT_SECONDS = 3600.0
_NO_PROGRAM = "ssh is not installed here."


class SshConnections:
    """Makes and keeps the connections of one process. A connection that nobody uses for a minute ends by itself."""

    def __init__(
        self, folder: Path, *, config: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """``folder`` gets the control sockets and must be out of reach of agents; ``config`` replaces the owner's.

        ``environment`` says where the SSH agent is; without it, this process's.
        """
        self._folder, self._config = folder, config
        given = environment if environment is not None else os.environ
        self._environment = {SSH_AGENT: given[SSH_AGENT]} if SSH_AGENT in given else {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handshakes = asyncio.Semaphore(HANDSHAKES)
        self._locks: dict[SshDestination, asyncio.Lock] = {}
        self._channels: dict[SshDestination, asyncio.Semaphore] = {}

    @contextlib.asynccontextmanager
    async def channel(
        self,
        member: str,
        destination: SshDestination,
        command: str,
        on_errors: Callable[[bytes], Awaitable[None]],
    ) -> AsyncIterator[StreamedProgram]:
        """Runs a command there. Raises ``MemberError`` when no connection comes about."""
        self._belong_to_this_loop()
        async with self._channels.setdefault(destination, asyncio.Semaphore(CHANNELS)):
            await self._connect(member, destination)
            options = [*self._options(destination), "-o", "ControlMaster=no"]
            program = await StreamedProgram.start(
                [*options, "-T", "--", destination.host, command],
                on_errors=on_errors,
                environment=self._environment,
                home=True,
            )
            try:
                yield program
            finally:
                await program.aclose()

    def _belong_to_this_loop(self) -> None:
        """Begins anew in another event loop: a command runs several, one after the other."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._handshakes = asyncio.Semaphore(HANDSHAKES)
            self._locks, self._channels = {}, {}

    async def _connect(self, member: str, destination: SshDestination) -> None:
        async with self._locks.setdefault(destination, asyncio.Lock()), self._handshakes:
            try:
                await asyncio.to_thread(sweep_sockets)
                _make_private(self._socket(destination).parent)
                if self._socket(destination).exists():
                    checked = await self._run(destination, "-O", "check", "--", destination.host, seconds=5)
                    if checked.code == 0:
                        return
                    self._socket(destination).unlink(missing_ok=True)
                code, errors = await asyncio.to_thread(self._begin, destination)
            except programs.ProgramNotFoundError as error:
                raise MemberError(_NO_PROGRAM, do="Install OpenSSH's client, rerun.") from error
            except TimeoutError:
                raise ssh_failure(member, destination, "timed out") from None
        if code != 0:
            raise ssh_failure(member, destination, errors)

    def _begin(self, destination: SshDestination) -> tuple[int, str]:
        """Makes a connection that stays: the exit code of ``ssh`` and its errors. Raises ``TimeoutError``.

        It leaves a process behind, which must not end with it; so ``programs.run`` is nothing for it.
        """
        persists = ["-o", "ControlMaster=yes", "-o", f"ControlPersist={_KEPT_SECONDS}", "-f", "-N"]
        with tempfile.TemporaryFile() as errors:
            program = programs.start(
                [*self._options(destination), *persists, "--", destination.host],
                environment=self._environment,
                home=True,
                errors=errors,
            )
            code = program.wait(3 * CONNECT_SECONDS)
            if code is None:
                program.end()
                raise TimeoutError
            errors.seek(0)
            return code, errors.read(1 << 16).decode("utf-8", "replace")

    async def _run(self, destination: SshDestination, *arguments: str, seconds: float) -> programs.Finished:
        return await programs.run_async(
            [*self._options(destination), *arguments],
            environment=self._environment,
            home=True,
            seconds=seconds,
        )

    def _options(self, destination: SshDestination) -> list[str]:
        config = ["-F", str(self._config)] if self._config else []
        chosen = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": "5",
            "ServerAliveCountMax": "3",
            "ControlPath": '"' + str(self._socket(destination)).replace("%", "%%") + '"',
            "LogLevel": "ERROR",
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RequestTTY": "no",
            "RemoteCommand": "none",
        }
        options = [part for name, value in chosen.items() for part in ("-o", f"{name}={value}")]
        return ["ssh", *config, *options, *destination.arguments]

    def _socket(self, destination: SshDestination) -> Path:
        """The control socket; a home with a very long name has it in the run-time folder."""
        key = f"{destination.user}\0{destination.host}\0{destination.port}\0{self._config or ''}"
        name = hashlib.sha256(key.encode()).hexdigest()[:12]
        path = self._folder / name
        if len(os.fsencode(path)) <= _PATH_LIMIT:
            return path
        tag = hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:12]
        return _run_folder() / f"{_PREFIX}{tag}" / name


def sweep_sockets() -> None:
    """Removes folders of sockets in the run-time folder that have been empty for an hour: homes that are gone."""
    long_ago = time.time() - _SWEPT_SECONDS
    for folder in _run_folder().glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it has sockets, or is another account's
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mtime < long_ago:
                folder.rmdir()


def _run_folder() -> Path:
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 - 0700, and checked before use


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise MemberError(
            f"{folder} is not private to this account, so no connection is kept there.",
            do=f"Look at it, then remove it: rm -r {folder}",
        )
