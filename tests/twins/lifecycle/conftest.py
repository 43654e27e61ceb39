"""A home with twins, somebody who runs them, and crashes at every step."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from twins.lifecycle.lifecycle import Lifecycle
from twins.workspace import workspace
from twins.workspace.listing import Presence
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout

NOW = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)

_CHANGES = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.utime", "os.link"})


class Processes:
    """Runs twins as real processes, so that a stopped one is dead."""

    def __init__(self) -> None:
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.talked: dict[str, float] = {}
        self.immortal: set[str] = set()

    def boot(self, key: str) -> subprocess.Popen[bytes]:
        self.running[key] = subprocess.Popen(["sleep", "600"])
        return self.running[key]

    def presence(self, key: str) -> Presence:
        process = self.running.get(key)
        running = process is not None and process.poll() is None
        return Presence(running, 7081 if process else None, self.talked.get(key))

    async def stop(self, key: str) -> None:
        process = self.running.get(key)
        if process is not None and key not in self.immortal:
            process.kill()
            await asyncio.to_thread(process.wait)

    @asynccontextmanager
    async def apart(self, key: str) -> AsyncIterator[None]:
        yield

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


class Home:
    """A home on disk with the verbs at hand, as plain calls."""

    now = NOW

    def __init__(self, root: Path, runner: Processes) -> None:
        self.places = TwinLayout(root)
        self.runner = runner
        self._minted = 0

    def mint(self, name: str, *, kind: str = "project") -> Twin:
        self._minted += 1
        entropy = hashlib.sha256(b"%d" % self._minted).digest()
        twin = mint(self.places, name, owner="ada", kind=kind, now=NOW, entropy=entropy)
        (twin.workspace.agents / "dice_agent.py").write_text("x = 1\n")
        (twin.workspace.data / "memory.json").write_text('{"a": 1}')
        return twin

    def do(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """A verb of a fresh ``Lifecycle``, as a process that has just started has it."""

        async def one() -> Any:
            return await getattr(Lifecycle(self.places, self.runner), verb)(*args, **kwargs)

        return asyncio.run(one())

    def leftovers(self) -> list[str]:
        """Files that verbs lay down for themselves and should have removed."""
        return [
            str(path) for folder in (self.places.archive, self.places.purged) for path in folder.glob(".*")
        ]

    @staticmethod
    def content(folder: Path) -> dict[str, bytes]:
        """Every file below a folder, ``archived.json`` aside."""
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "archived.json"
        }


@pytest.fixture
def runner() -> Iterator[Processes]:
    runner = Processes()
    yield runner
    runner.close()


@pytest.fixture
def home(tmp_path: Path, runner: Processes) -> Home:
    return Home(tmp_path / "home", runner)


@pytest.fixture
def homes(tmp_path: Path, runner: Processes) -> Iterator[Callable[[], Home]]:
    """As many fresh homes as one asks for."""
    numbers = iter(range(10**6))
    return lambda: Home(tmp_path / f"home-{next(numbers)}", runner)


@pytest.fixture(scope="session")
def killed_at() -> Callable[[int, Callable[[], object]], bool]:
    return _killed_at


def _killed_at(step: int, work: Callable[[], object]) -> bool:
    """Does ``work`` in a child process that is killed before its ``step``-th step; False: it got through.

    A step is a call that changes the disk, or a line of the code that writes a file.
    """
    child = os.fork()
    if child == 0:
        left = step

        def count() -> None:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

        def audit(event: str, args: tuple[Any, ...]) -> None:
            if event in _CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT):
                count()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != workspace.__file__:
                return None
            if event == "line":
                count()
            return trace

        try:
            sys.dont_write_bytecode = True  # what is compiled on the way is no step
            sys.addaudithook(audit)
            threading.settrace(trace)
            sys.settrace(trace)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the verb failed; see its traceback"
    return os.WIFSIGNALED(status)
