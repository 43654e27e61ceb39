"""A daemon with twins, as their tests use it."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon_under_test import Answer, RunningDaemon, agent_source, on
from loopback_server import FakeModel, calls, says

from agents.workers.process_tree import descendants

AGENT = agent_source("Kettle", 'return "It boils."')


class Farm:
    """A daemon and the model that thinks for everybody on it."""

    def __init__(self, daemon: RunningDaemon, model: FakeModel) -> None:
        self.daemon = daemon
        self.model = model

    def new(self, name: str, **fields: str) -> str:
        """A twin; returns its key."""
        key: str = self.post("/twins", {"name": name, **fields}).json()["key"]
        return key

    def boot(self, key: str) -> int:
        port: int = self.post(f"/twins/{key}/boot").json()["port"]
        return port

    def post(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """As the operator."""
        answer = self.daemon.post(path, body, control=True)
        assert answer.status == 200, answer.body
        return answer

    def processes(self) -> set[int]:
        """Everything that the daemon runs."""
        assert self.daemon.process is not None
        return set(descendants(self.daemon.process.pid))

    def rows(self) -> dict[str, dict[str, Any]]:
        """The list, by key."""
        return {row["key"]: row for row in self.daemon.get("/twins", control=True).json()["twins"]}

    def folder(self, key: str) -> Path:
        return self.daemon.home / "twins" / key

    def says_to(self, key: str, text: str, **more: Any) -> dict[str, Any]:
        """A sentence for a twin; key "" is the brainstem."""
        path = f"/twins/{key}/chat" if key else "/chat"
        answer = self.daemon.post(path, {"user_input": text, **more}, control=True)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def talkers(self, key: str, answers: list[Answer]) -> Iterator[None]:
        """Six who talk to a twin without pause; what they get is added to ``answers``."""
        stop = threading.Event()

        def talk() -> None:
            while not stop.is_set():
                body = {"user_input": "go", "turn_id": str(uuid.uuid4())}
                answers.append(self.daemon.post(f"/twins/{key}/chat", body, control=True))

        threads = [threading.Thread(target=talk) for _ in range(6)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)

    def runs(self, key: str, agent: str, **arguments: Any) -> str:
        """What an agent answers in a turn of a twin that the model lets it run in."""
        self.model.will(calls((agent, arguments)), says("done"))
        self.says_to(key, "go")
        return self.model.results()[agent]

    def remember(self, key: str, content: str) -> None:
        assert "Successfully" in self.runs(key, "ManageMemory", memory_type="fact", content=content)

    def recall(self, key: str) -> str:
        """All that a turn is given of what was remembered: by the system text, and by the agent."""
        said = self.runs(key, "ContextMemory")
        return f"{self.model.system()}\n{said}"

    def system(self, key: str) -> str:
        """What the model is told about whom it speaks for."""
        self.model.will(says("done"))
        self.says_to(key, "hello")
        return self.model.system()


def closed(farm: Farm, port: int) -> bool:
    """Whether no twin of the farm answers there. Anybody may have taken the port meanwhile, twins of others too."""
    try:
        return str(farm.daemon.home) not in on(port, "GET", "/health").json()["brainstem_dir"]
    except (OSError, ValueError, KeyError):
        return True


def taken(port: int) -> bool:
    """Whether anybody listens there."""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0
