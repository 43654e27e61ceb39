"""A workspace with a real worker, the shipped agents in it, and somebody who answers its callbacks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import warm_zygote

import agents.library
from agents.contract.file_discovery import stamp_of
from agents.errors import AgentError
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.supervisor import WorkerSupervisor

LIBRARY = Path(agents.library.__path__[0])


class Keeper:
    """Answers ``utils.host`` as a daemon does, over the files of one folder; ``refusal`` makes it refuse."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, list[str]] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.refusal = ""

    def answer(self, operation: str, given: dict[str, Any]) -> Any:
        self.asked.append((operation, given))
        if self.refusal:
            raise AgentError(self.refusal)
        if operation.startswith("buddy."):
            return {"message": f"{operation}: {given['text']}"}
        file = self.folder / given.get("filename", "none")
        match operation:
            case "agents.list":
                return {"agents": [{"name": _name(path), "file": path.name} for path in self._files()]}
            case "agents.source":
                return {"file": file.name, "source": file.read_text()}
            case "agents.write":
                if file.exists():
                    if not given.get("molt") and not given.get("replace"):
                        raise AgentError(f"{file.name} exists already.")
                    self.kept.setdefault(file.name, []).append(file.read_text())
                file.write_text(given["source"])
                return {"status": "ok", "file": file.name, "agents": [_name(file)], "try": "", "message": ""}
            case "agents.generations":
                numbers = range(1, len(self.kept.get(file.name, ())) + 1)
                return {"generations": [{"generation": number} for number in numbers]}
            case "agents.restore":
                file.write_text(self.kept[file.name][given["generation"] - 1])
                return {"status": "ok", "file": file.name, "try": "", "message": ""}
            case "agents.remove":
                file.unlink()
                return {"status": "ok", "message": f"{file.name} is out of service.", "undo": "1"}
        raise AgentError(f"no operation {operation}")

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*_agent.py"))


def _name(path: Path) -> str:
    return next(
        (
            line.split("=")[1].strip().strip("\"'")
            for line in path.read_text().splitlines()
            if "self.name =" in line
        ),
        path.stem,
    )


class Desk:
    """A workspace; ``model`` holds what the model will say, in order."""

    def __init__(self, root: Path, supervisor: WorkerSupervisor, env: dict[str, str]) -> None:
        self.root = root
        self.agents = root / "agents"
        self.data = root / ".brainstem_data"
        for folder in (self.agents, self.data):
            folder.mkdir(parents=True)
        for path in LIBRARY.glob("*_agent.py"):
            shutil.copy(path, self.agents)
        self.keeper = Keeper(self.agents)
        self.model: list[str] = []
        self.prompts: list[list[dict[str, str]]] = []
        settings = {"workspace": str(root), "agents_dir": str(self.agents), "data_dir": str(self.data)}
        env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "LANG": "C.UTF-8", **env}
        self.pool = supervisor.pool(str(root), PoolConfig(root, settings, env, max_workers=1))

    async def ask(self, op: str, body: dict[str, Any]) -> Any:
        return await self.pool.request(op, body, timeout=100, on_callback=self._callback)

    async def text(self, rel: str, agent: str, /, user_guid: str = "", **arguments: Any) -> str:
        """The answer of the agent."""
        body = {"file": self.file(rel), "name": agent, "arguments": arguments, "user_guid": user_guid}
        answer: str = (await self.ask("perform", body))["result"]
        return answer

    async def json(self, rel: str, agent: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer of the agent, as JSON."""
        answer: dict[str, Any] = json.loads(await self.text(rel, agent, **arguments))
        return answer

    async def describe(self, rel: str) -> dict[str, Any]:
        answer = await self.ask("describe", {"files": [self.file(rel)]})
        found: dict[str, Any] = answer["files"][0]
        assert not found["failure"], found
        assert not found["quarantined"], found
        return found

    async def test(self, rel: str) -> dict[str, str]:
        """The contract tests that fail, with why."""
        answer = await self.ask("test", {"file": self.file(rel)})
        return {one["test"]: one["message"] for one in answer["tests"] if not one["passed"]}

    def file(self, rel: str) -> dict[str, Any]:
        path = self.agents / rel
        return {"rel": rel, "path": str(path), "stamp": list(stamp_of(path.stat()))}

    def write(self, rel: str, text: str) -> None:
        path = self.agents / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    async def _callback(self, operation: str, arguments: dict[str, Any]) -> Any:
        if operation == "host":
            return self.keeper.answer(arguments.pop("operation"), arguments)
        self.prompts.append(arguments["messages"])
        if not self.model:
            raise AgentError("There is no model; keyword matching does not write text.")
        return {"text": self.model.pop(0), "model": "scripted"}


@pytest.fixture
async def supervisor() -> AsyncIterator[WorkerSupervisor]:
    made = WorkerSupervisor(on_output=lambda key, pid, line: print(line), launch=warm_zygote.launch)
    yield made
    await made.close()


@pytest.fixture
def environment() -> dict[str, str]:
    """Variables that a test adds to the worker's environment."""
    return {}


@pytest.fixture
def desk(tmp_path: Path, supervisor: WorkerSupervisor, environment: dict[str, str]) -> Desk:
    return Desk(tmp_path / "workspace", supervisor, environment)


class Elsewhere:
    """A brainstem that knows nothing of this project: a bare Python and a folder of agents."""

    def __init__(self, folder: Path) -> None:
        self.agents = folder / "agents"
        self.agents.mkdir(parents=True)
        for path in LIBRARY.glob("*_agent.py"):
            shutil.copy(path, self.agents)

    def perform(self, rel: str, cls: str, /, **arguments: Any) -> str:
        code = (
            "import importlib.util, json, sys\n"
            f"spec = importlib.util.spec_from_file_location('a', {str(self.agents / rel)!r})\n"
            "module = importlib.util.module_from_spec(spec)\n"
            "sys.modules['a'] = module\n"
            "spec.loader.exec_module(module)\n"
            f"print(module.{cls}().perform(**json.loads(sys.argv[1])))\n"
        )
        return self.python("-c", code, json.dumps(arguments))

    def json(self, rel: str, cls: str, /, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.perform(rel, cls, **arguments))
        return answer

    def python(self, *arguments: str) -> str:
        """Output of a Python that sees only its standard library."""
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", *arguments],
            cwd=self.agents,
            env={"LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path / "elsewhere")
