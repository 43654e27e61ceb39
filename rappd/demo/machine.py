"""One machine of the demonstration: a real daemon with a home and ports of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rappd.cli.daemon import Daemon
from rappd.errors import RappdError
from rappd.home import Home

START_SECONDS = 60.0
_ALLOWED = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "PYTHONPATH", "VIRTUAL_ENV")


class DemoMachine:
    """Started, killed and started again; speaks through its own control socket, as the command line does."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.home = Home(folder / name)
        self.daemon = Daemon(self.home)
        self._ports = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def door(self) -> str:
        """Where other machines reach it."""
        return f"127.0.0.1:{self._ports[1]}"

    def write_agent(self, filename: str, source: str) -> None:
        """Drops an agent file."""
        agents = self.home.brainstem / "agents"
        agents.mkdir(parents=True, exist_ok=True)
        (agents / filename).write_text(source)

    def start(self) -> None:
        """Starts it and returns when it answers."""
        environment = {key: os.environ[key] for key in _ALLOWED if key in os.environ}
        environment |= {
            "HOME": str(self.home.root.parent),
            "RAPP_HOME": str(self.home.root),
            "RAPPD_NAME": self.name,
            "PORT": str(self._ports[0]),
            "RAPPD_PEERS_PORT": str(self._ports[1]),
            "RAPPD_PEERS_ADDRESS": "127.0.0.1",
            "RAPPD_PEERS_LOOPBACK": "on",
            "RAPPD_LOCAL_MODELS": "off",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rappd", "start", "--quiet"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.wait_for(self._answers, START_SECONDS, "to start")

    def kill(self) -> None:
        """As if its plug were pulled."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Ends it properly, if it runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait_for(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """What the condition comes to. Raises ``RappdError`` when it stays nothing."""
        until = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > until:
                raise RappdError(f"{self.name} takes too long {what}.", do=f"see {self.home.log}")
            time.sleep(0.05)
        return found

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RappdError(f"{self.name} ended at once.", do=f"see {self.home.log}")
        return self.daemon.running() and bool(self.daemon.get("/peers")["door"]["open"])


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
