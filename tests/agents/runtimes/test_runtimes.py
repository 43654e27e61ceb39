"""Agents of every language are described, called and cancelled alike: one suite for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fixtures import warm_zygote

from agents.contract.file_discovery import stamp_of
from agents.errors import CallTimeoutError
from agents.runtimes.python.pools.answers import reader_of_descriptions
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor

_PYTHON = """
from agents.basic_agent import BasicAgent


class Greeter(BasicAgent):
    def __init__(self):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        super().__init__("Greeter", {"name": "Greeter", "description": "Greets by name.", "parameters": schema})

    def perform(self, name="", **_):
        while name == "forever":
            pass
        return f"Hello, {name}" if name else 1 / 0
"""
_LISTENER = """
from dataclasses import dataclass

from agents.listener import listener


@listener(name="Greeter")
@dataclass
class Greeting:
    '''Greets by name.'''

    name: str = ""


def greet(payload: Greeting) -> str:
    while payload.name == "forever":
        pass
    return f"Hello, {payload.name}" if payload.name else str(1 / 0)
"""
_LISPY = """
(define agent-name "Greeter")
(define agent-description "Greets by name.")
(define agent-parameters '((name "string")))
(define (spin n) (if (= n 0) 1 (map (lambda (x) (spin (- n 1))) (list 1 2 3))))
(define (greeter-run context kwargs)
  (let ((name (get kwargs "name" "")))
    (if (equal? name "forever") (spin 20)
        (if (equal? name "") (/ 1 0) (string-append "Hello, " name)))))
"""


class Runtime(NamedTuple):
    """A language: the same agent in it. ``has_steps``: an endless call ends by itself, after its steps."""

    file: str
    source: str
    has_steps: bool = False


RUNTIMES = {
    "python": Runtime("greeter_agent.py", _PYTHON),
    "listener": Runtime("greeter_listener.py", _LISTENER),
    "lispy": Runtime("greeter.lispy", _LISPY, has_steps=True),
}


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[WorkerPool]:
    folders = {f"{name}_dir": tmp_path / name for name in ("agents", "data", "deps")}
    for folder in folders.values():
        folder.mkdir()
    supervisor = WorkerSupervisor(launch=warm_zygote.launch)
    settings = {"workspace": str(tmp_path), **{name: str(folder) for name, folder in folders.items()}}
    yield supervisor.pool("w", PoolConfig(tmp_path, settings, max_workers=1))
    await supervisor.close()


async def check_runtime(runtime: Runtime, pool: WorkerPool, folder: Path) -> None:
    """Describes the agent, calls it, has it fail, cancels a call, and calls it again."""
    path = folder / runtime.file
    path.write_text(runtime.source)
    file = {"rel": path.name, "path": str(path), "stamp": list(stamp_of(path.stat()))}

    async def called(name: str, seconds: float = 100) -> Any:
        body = {"file": file, "name": "Greeter", "arguments": {"name": name}, "user_guid": "u"}
        answer = await pool.request("perform", {**body, "upstream_slush": None}, timeout=seconds)
        return answer["result"]

    (described,) = (
        await pool.request("describe", {"files": [file]}, timeout=100, read=reader_of_descriptions(1))
    )["files"]
    assert described["failure"] is None
    (agent,) = described["agents"]
    assert agent["name"] == "Greeter" and agent["description"].startswith("Greets by name.")
    assert agent["parameters"]["properties"]["name"]["type"] == "string"
    assert "Hello, Zoë" in await called("Zoë")
    with pytest.raises(AgentRaisedError, match="division"):
        await called("")
    call = asyncio.create_task(called("forever"))
    await asyncio.sleep(0.2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "Hello, Ada" in await called("Ada"), "a cancelled call holds up nobody"
    if not runtime.has_steps:
        with pytest.raises(CallTimeoutError):
            await called("forever", seconds=0.5)
        assert "Hello, Ada" in await called("Ada")


@pytest.mark.parametrize("name", RUNTIMES)
async def test_runtime(name: str, pool: WorkerPool, tmp_path: Path) -> None:
    await check_runtime(RUNTIMES[name], pool, tmp_path / "agents")
