"""A daemon for measuring: its own home and port, pinned to chosen cores."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.side_by_side import family

AGENT = """
from agents.basic_agent import BasicAgent


class {name}Agent(BasicAgent):
    def __init__(self):
        self.name = "{name}"
        self.metadata = {{
            "name": "{name}",
            "description": "Answers with what it was asked, number {name}.",
            "parameters": {{"type": "object", "properties": {{"query": {{"type": "string", "description": "What to answer"}}}}, "required": []}},
        }}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        return "answered " + kwargs.get("query", "nothing")
"""


_START_SECONDS = 300


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class BenchDaemon:
    """Starts on ``start``, ends with the block."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.port = free_port()
        self.environment = {
            **os.environ,
            "RAPP_HOME": str(home),
            "PORT": str(self.port),
            "RAPPD_LOCAL_MODELS": "off",
            "RAPPD_PEERS_LISTEN": "off",
            "RAPPD_NEARBY": "off",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> BenchDaemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """A request as the owner, through the control socket."""
        connection = http.client.HTTPConnection("rappd", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.connect(str(self.home / "rappd.sock"))
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            if answer.status != 200:
                raise RuntimeError(str(found))
            return found
        finally:
            connection.close()

    def drop(self, name: str, source: str) -> None:
        """Puts an agent file into the workspace."""
        folder = self.home / "brainstem" / "agents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)

    def start(self, cores: str = "0,1") -> tuple[float, float]:
        """Seconds until it listens, and until its agents are described."""
        began = time.perf_counter()
        command = ["taskset", "-c", cores, sys.executable, "-m", "rappd", "start", "--quiet"]
        self.process = subprocess.Popen(command, env=self.environment)
        listening = 0.0
        while True:
            if time.perf_counter() - began > _START_SECONDS:
                raise RuntimeError(f"the daemon was not ready after {_START_SECONDS} s")
            try:
                status = self.get("/readyz")[0]
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("the daemon ended") from None
                time.sleep(0.002)
                continue
            listening = listening or time.perf_counter() - began
            if status == 200:
                return listening, time.perf_counter() - began
            time.sleep(0.005)

    def get(self, path: str) -> tuple[int, Any]:
        """(status, JSON)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        found = response.status, json.loads(response.read())
        connection.close()
        return found

    def chat(self, text: str) -> Any:
        """One turn."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/chat", json.dumps({"user_input": text}))
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def family(self) -> list[int]:
        """The daemon, the template and the workers."""
        assert self.process is not None
        return family(self.process.pid)

    def pin(self, cores: str) -> None:
        """Keeps every process of it on the given cores."""
        for pid in self.family():
            pin(pid, cores)


def pin(pid: int, cores: str) -> None:
    """Keeps every thread of a process on the given cores."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            os.sched_setaffinity(int(thread.name), set(map(int, cores.split(","))))
        except ProcessLookupError:
            continue
