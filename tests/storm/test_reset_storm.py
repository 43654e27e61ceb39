"""TLS connections that are reset, and programs that die, while others use the daemon: those notice nothing."""

from __future__ import annotations

import gc
import http.client
import io
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest
from fixtures.machines import Machine
from fixtures.running_daemon import RunningDaemon

from agents.programs.streamed_program import StreamedProgram
from rappd.daemon import daemon_process
from rappd.daemon.home import Home
from rappd.settings.load import Settings
from tests.storm.storm import SECONDS, rounds

RESETS = 600
VISITORS = 3
_HELLO = bytes.fromhex("160301009e0100009a0303") + bytes(32)
"""Beginning of a TLS ClientHello."""
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER that makes close() send RST


class Resetting:
    """Resets each connection before its handshake: every other one at once, the rest after its first bytes."""

    def __init__(self) -> None:
        self.count = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._reset_all, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(100)

    def _reset_all(self) -> None:
        while True:
            try:
                came, _ = self._listener.accept()
            except OSError:
                return
            came.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            if self.count % 2:
                came.settimeout(100)
                came.recv(1)
            came.close()
            self.count += 1


class Visitors:
    """Others who use the daemon meanwhile, each request on a connection of its own."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self._daemon = daemon
        self._stop = threading.Event()
        self.answered = 0
        self.broken: list[str] = []

    @contextmanager
    def present(self) -> Iterator[None]:
        with ThreadPoolExecutor(VISITORS) as threads:
            visits = [threads.submit(self._visit, number) for number in range(VISITORS)]
            try:
                yield
            finally:
                self._stop.set()
        for visit in visits:
            visit.result()

    def _visit(self, number: int) -> None:
        while not self._stop.is_set():
            ask: Callable[[], int] = (self._health, self._chat, self._operate)[number % 3]
            try:
                status = ask()
            except (OSError, http.client.HTTPException) as error:
                self.broken.append(repr(error))
                continue
            if status == 200:
                self.answered += 1
            else:
                self.broken.append(str(status))

    def _health(self) -> int:
        return self._daemon.get("/health").status

    def _chat(self) -> int:
        return self._daemon.post("/chat", {"user_input": "hello"}).status

    def _operate(self) -> int:
        return self._daemon.get("/peers", control=True).status


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "home", "desk", LLM_FAKE="1").start()
    yield made
    made.stop()


@pytest.mark.timeout(600 + int(SECONDS))
def test_reset_tls_connections_close_nobody_elses_descriptor(daemon: Machine) -> None:
    """Connections that the daemon makes, and ones that come to the listener for other machines."""
    hostile, visitors = Resetting(), Visitors(daemon)
    order = {"kind": "server", "url": f"https://127.0.0.1:{hostile.port}/v1", "model": "small"}
    host, _, port = daemon.address.rpartition(":")

    def reset(number: int) -> None:
        answer = daemon.post("/models/test", order, control=True)
        assert answer.status == 200, answer.body
        assert answer.json()["reason"] == "refused"
        came_from = (f"127.0.{number % 250}.2", 0)  # of one address few may come in a second
        with socket.create_connection((host, int(port)), 30, came_from) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            line.sendall(_HELLO[: number % len(_HELLO)])

    with ThreadPoolExecutor(8) as threads, visitors.present():
        for _ in rounds(0.1):
            list(threads.map(reset, range(RESETS)))
    hostile.close()
    assert hostile.count >= RESETS
    assert visitors.broken == []
    assert visitors.answered > 0
    assert "Bad file descriptor" not in daemon.log
    assert daemon.cli("threads", "verify").returncode == 0


class Watched(io.FileIO):
    """The near end of a program's pipe, which notes when somebody else has closed its number before it does."""

    def __init__(self, end: int, mode: str, numbers: list[bool]) -> None:
        super().__init__(end, mode)
        self._numbers = numbers
        self._inode = os.fstat(end).st_ino

    def close(self) -> None:
        if not self.closed:
            self._numbers.append(self._has_own_number())
        super().close()

    def _has_own_number(self) -> bool:
        try:
            return os.fstat(self.fileno()).st_ino == self._inode
        except OSError:
            return False


def test_pipes_of_programs_that_die_are_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an SSH program dies: by its own end, by a signal while it is written to, or ended by the daemon."""
    make = os.fdopen
    is_own: list[bool] = []

    def watched(end: int, mode: str, buffering: int = -1, **more: Any) -> IO[Any]:
        return Watched(end, mode, is_own) if buffering == 0 else make(end, mode, buffering, **more)

    async def in_place_of_the_daemon(*_: object) -> None:
        for script in ("exit 255", "kill -9 $$", "sleep 60"):
            for _ in range(5):
                program = await StreamedProgram.start(["/bin/sh", "-c", script], on_errors=lambda piece: None)
                with suppress(ConnectionError):
                    await program.write(bytes(1 << 10))
                if script != "sleep 60":
                    assert await program.read() == b""
                    assert await program.wait() != 0
                await program.aclose()
                del program
                gc.collect()

    monkeypatch.setattr(os, "fdopen", watched)
    monkeypatch.setattr(daemon_process, "_serve", in_place_of_the_daemon)
    daemon_process.run(Home(tmp_path), Settings.without_files({}), on_ready=in_place_of_the_daemon)
    assert is_own == [True] * 3 * 5 * 3
