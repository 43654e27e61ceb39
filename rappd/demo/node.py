"""One machine of the demonstration: a real daemon with a home and ports of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.programs import programs
from rappd.control_client import ConnectionLostError, ControlClient
from rappd.daemon.home import Home
from rappd.daemon.ports import aside
from rappd.demo.interrupts import Interrupts
from rappd.errors import NotRunningError, RappdError

START_SECONDS = 60.0
STOP_SECONDS = 15.0
_ALLOWED = ("PATH", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV")


class DemoNode:
    """Started, killed and started again; speaks through its own control socket, as the command line does."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.home = Home(folder / name)
        self.daemon = ControlClient(self.home)
        self._port = aside(1)[0]
        self._output_file = folder / f"{name}.txt"
        self._process: programs.RunningProgram | None = None

    @property
    def peer_address(self) -> str:
        """The address at which other machines reach it."""
        return f"127.0.0.1:{self._port}"

    def write_agent(self, filename: str, source: str) -> None:
        """Drops an agent file."""
        agents = self.home.brainstem / "agents"
        agents.mkdir(parents=True, exist_ok=True)
        (agents / filename).write_text(source)

    def start(self) -> None:
        """Starts it; ``wait_awake`` returns when it answers."""
        environment = programs.from_owner(*_ALLOWED)
        environment |= {
            "HOME": str(self.home.root.parent),
            "RAPP_HOME": str(self.home.root),
            "RAPPD_NAME": self.name,
            "PORT": "0",
            "RAPPD_PEERS_PORT": str(self._port),
            "RAPPD_PEERS_ADDRESS": "127.0.0.1",
            "RAPPD_PEERS_LOOPBACK": "on",
            "RAPPD_LOCAL_MODELS": "off",
        }
        with self._output_file.open("wb") as output:
            self._process = programs.start(
                programs.python("-m", "rappd", "start", "--quiet"), environment=environment, errors=output
            )

    def wait_running(self) -> None:
        """Returns when it answers. Raises ``RappdError`` when it does not."""
        self.wait_for(self._answers, START_SECONDS, "to start")

    def kill(self) -> None:
        """As if its plug were pulled; nothing happens to one that does not run."""
        if self._process is not None and self._process.exit_code() is None:
            self._process.kill()
            self._process.wait()

    def ask_to_stop(self) -> None:
        """Asks it to end properly, if it runs."""
        if self._process is not None and self._process.exit_code() is None:
            self._process.terminate()

    def ended(self, seconds: float) -> bool:
        """True when the process ended, or does so within the seconds."""
        return self._process is None or self._process.wait(max(0.0, seconds)) is not None

    def wait_for(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """Waits for the condition and returns its value. Raises ``RappdError`` when it stays false."""
        until = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > until:
                raise RappdError(f"{self.name} takes too long {what}.", do="rappd doctor")
            time.sleep(0.05)
        return found

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.exit_code() is not None:
            # The folder of the demonstration is gone when this is read: no file may be pointed to.
            words = self._output_file.read_text(errors="replace").split("\n\n")[-1].split()
            raise RappdError(f"{self.name} ended at once: {' '.join(words)[:300] or 'it said nothing'}")
        try:
            listener = self.daemon.do("peers.list")["listener"]
        except (NotRunningError, ConnectionLostError):
            return False
        if listener["open"]:
            self._port = listener["port"]  # another one, if that was taken meanwhile
        return bool(listener["open"])


@contextmanager
def running(machines: Sequence[DemoNode], interrupts: Interrupts) -> Iterator[None]:
    """Runs ``machines`` as long as the block lasts, and none afterwards, whatever ended it.

    Each is asked to end, and killed after ``STOP_SECONDS``, or as soon as somebody grows impatient.
    """
    try:
        try:
            for machine in machines:
                with interrupts.held():  # one that was begun must be known, or nobody ends it
                    machine.start()  # side by side: each takes seconds of one core
            for machine in machines:
                machine.wait_running()
            yield
        finally:
            _ask_to_stop(machines, interrupts)
    finally:  # whatever interrupted that, and wherever
        for machine in machines:
            machine.kill()


def _ask_to_stop(machines: Sequence[DemoNode], interrupts: Interrupts) -> None:
    for machine in machines:
        machine.ask_to_stop()
    until = time.monotonic() + STOP_SECONDS
    while time.monotonic() < until and not interrupts.hurried():
        if all(machine.ended(0.05) for machine in machines):
            break
