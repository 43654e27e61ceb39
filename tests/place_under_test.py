"""A home with its running daemon and a model, as tests of eggs use it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon_under_test import Answer, RunningDaemon, agent_source
from loopback_server import FakeModel, calls, says

from rappd.store.reader import Reader
from rappd.store.verify import verify

KETTLE = agent_source("Kettle", 'return "It boils."')


class Place:
    """A home with its daemon, and the model that thinks for everybody."""

    def __init__(self, daemon: RunningDaemon, model: FakeModel) -> None:
        self.daemon = daemon
        self.home = daemon.home
        self.model = model

    def ask(self, method: str, path: str, body: dict[str, Any] | bytes | None = None, **more: Any) -> Answer:
        """As the operator."""
        return self.daemon.request(method, path, body, control=True, **more)

    def get(self, path: str) -> Any:
        return self._good(self.ask("GET", path))

    def post(self, path: str, body: dict[str, Any] | bytes | None = None) -> Any:
        return self._good(self.ask("POST", path, body))

    def refused(self, path: str, body: dict[str, Any] | bytes) -> tuple[int, str]:
        answer = self.ask("POST", path, body)
        return answer.status, answer.json()["code"]

    def new(self, name: str) -> str:
        key: str = self.post("/twins", {"name": name})["key"]
        return key

    def twin(self, key: str) -> Path:
        return self.home / "twins" / key

    def give(self, key: str, path: str, content: str) -> None:
        file = self.twin(key) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def soul(self, key: str, text: str) -> None:
        self._good(self.ask("PUT", f"/twins/{key}/soul", {"soul": text}))

    def says_to(self, key: str, text: str, answer: str = "yes", session: str = "garden") -> dict[str, Any]:
        """A turn of a twin, or of the brainstem (""); the answer is what the model will say."""
        self.model.will(says(answer))
        path = f"/twins/{key}/chat" if key else "/chat"
        found: dict[str, Any] = self.post(path, {"user_input": text, "session_id": session})
        return found

    def runs(self, key: str, agent: str, *, as_operator: bool = True, **arguments: Any) -> str:
        """What an agent answers in a turn; "" when it was not run."""
        self.model.will(calls((agent, arguments)), says("done"))
        path = f"/twins/{key}/chat" if key else "/chat"
        answer = self.daemon.post(path, {"user_input": "go"}, control=as_operator)
        assert answer.status == 200, answer.body
        return self.model.results().get(agent, "")

    def pack(self, key: str, into: Path, **more: Any) -> Path:
        self.post("/eggs/pack", {"twin": key, "into": str(into), **more})
        return into

    def lay_down(self, content: bytes, name: str = "an.egg") -> Any:
        return self.post(f"/eggs?name={name}", content)

    def hatch(self, egg: Path, **more: Any) -> Any:
        return self.post("/eggs/hatch", {"path": str(egg), **more})["hatched"]

    def threads(self, key: str) -> dict[str, list[bytes]]:
        """The hash chain of each thread of a workspace, by thread."""
        with Reader(self.home / "rappd.db") as record:
            return {
                thread.id: [event.hash for event in record.events_of(thread.id)]
                for thread in record.threads_of(key)
            }

    def said(self, key: str) -> list[str]:
        """What the threads of a workspace are called."""
        with Reader(self.home / "rappd.db") as record:
            return [thread.title for thread in record.threads_of(key)]

    def waiting(self) -> list[str]:
        folder = self.home / "eggs" / ".waiting"
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def verified(self) -> bool:
        return verify(self.home / "rappd.db").whole

    @staticmethod
    def _good(answer: Answer) -> Any:
        assert answer.status == 200, answer.body
        return answer.json()


class News:
    """What an open page is told."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self._response = daemon.stream("/activity/stream")

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for line in self._response:
            if line.startswith(b"data: ") and wanted(found := json.loads(line[6:])):
                self._response.close()
                return dict(found)
        raise AssertionError("it was not told")


def thinks_with(model: FakeModel) -> dict[str, str]:
    return {"OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "small"}


def lies(home: Path) -> dict[str, bytes]:
    """Every file of a home but for those that a running daemon writes by itself."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not re.match(r"rappd\.(db|log|pid)|anchors\.db", path.name)
    }


def without_waiting(home: Path) -> dict[str, bytes]:
    return {name: content for name, content in lies(home).items() if "/.waiting/" not in name}
