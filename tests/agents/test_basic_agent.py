from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.basic_agent import BasicAgent


def test_a_bare_agent() -> None:
    agent = BasicAgent()
    assert (agent.name, agent.metadata) == ("BasicAgent", {})
    assert agent.perform(anything=1) == "Not implemented."
    assert agent.execute(anything=1) == "Not implemented."
    assert agent.system_context() is None
    assert agent.to_tool() == {
        "type": "function",
        "function": {
            "name": "BasicAgent",
            "description": "",
            "parameters": {"type": "object", "properties": {}},
        },
    }


def test_the_published_ways_of_construction() -> None:
    parameters = {"type": "object", "properties": {"a": {}}}
    metadata = metadata_on_the_class = {"name": "other", "description": "d", "parameters": parameters}

    class Before(BasicAgent):
        def __init__(self) -> None:
            self.name = "Mine"
            self.metadata = metadata
            super().__init__()

    class Positional(BasicAgent):
        def __init__(self) -> None:
            super().__init__("Mine", metadata)

    class OnTheClass(BasicAgent):
        name = "Mine"
        metadata = metadata_on_the_class

    class NoSuper(BasicAgent):
        def __init__(self) -> None:
            self.name, self.metadata = "Mine", metadata

    for made in (Before(), Positional(), OnTheClass(), NoSuper()):
        function = made.to_tool()["function"]
        assert (function["name"], function["description"]) == ("Mine", "d")
        assert function["parameters"] == metadata["parameters"]
        assert made.execute(query="x") == "Not implemented."
    assert BasicAgent(name="Mine").metadata is not BasicAgent(name="Other").metadata


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("C:\\windows\\evil.txt", "evil.txt"),
        ("..", "artifact"),
        ("a/..", "artifact"),
        ("", "artifact"),
        ("a\0b", "ab"),
    ],
)
def test_artifacts_stay_in_their_folder(
    given: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = Path(BasicAgent.artifact_path(given))
    assert path == tmp_path / ".brainstem" / "artifacts" / name
    path.write_text("ready to be written")


def test_execute_takes_out_what_is_sloshings_own() -> None:
    class Spy(BasicAgent):
        def perform(self, **kwargs: Any) -> Any:
            return sorted(kwargs)

    assert Spy().execute(
        query="x", _slosh_filter={}, _slosh_preferences={}, upstream_slush={"a": 1}, _context={"forged": 1}
    ) == ["query"]


def test_context_is_passed_only_to_a_perform_that_names_it() -> None:
    class Parameter(BasicAgent):
        def perform(self, query: str, _context: Any = None) -> Any:
            return _context is self.context

    class Literal(BasicAgent):
        def perform(self, **kwargs: Any) -> Any:
            return kwargs.get("_context") is self.context

    class Closed(BasicAgent):
        def perform(self, query: str) -> Any:
            return True

    class Strict(BasicAgent):
        def perform(self, **kwargs: Any) -> Any:
            return set(kwargs) == {"query"}

    for agent in (Parameter(), Literal(), Closed(), Strict()):
        assert agent.execute(query="x") is True


def test_execute_waits_for_an_async_perform() -> None:
    class Slow(BasicAgent):
        async def perform(self, **kwargs: Any) -> Any:  # type: ignore[override]
            return self.context.slush.n + 1

    assert Slow().execute(upstream_slush={"n": 1}) == 2


async def test_execute_works_where_an_event_loop_runs_already() -> None:
    class Slow(BasicAgent):
        async def perform(self, **kwargs: Any) -> Any:  # type: ignore[override]
            return self.context.slush.n + 1

    assert Slow().execute(upstream_slush={"n": 1}) == 2


def test_get_signal_walks_the_context() -> None:
    class Reader(BasicAgent):
        def perform(self, **kwargs: Any) -> Any:
            return [
                self.get_signal("query.specificity"),
                self.get_signal("upstream_slush.places.1.name"),
                self.get_signal("slush.places.9.name", "none"),
                self.get_signal("slush.places.name", "none"),
                self.get_signal("timestamp.x", "none"),
                self.get_signal("weather"),
            ]

    slush = {"places": [{"name": "Oslo"}, {"name": "Bergen"}]}
    assert Reader().execute(query="", upstream_slush=slush) == ["low", "Bergen", "none", "none", "none", None]


def test_what_an_agent_keeps_in_self_context_stays_its_own() -> None:
    class Counter(BasicAgent):
        def __init__(self) -> None:
            self.context = {}
            super().__init__("Counter", {})

        def perform(self, **kwargs: Any) -> Any:
            self.context["n"] = self.context.get("n", 0) + 1
            return self.context["n"], kwargs.get("_context").temporal.quarter[0]  # type: ignore[union-attr]

    agent = Counter()
    assert [agent.execute(), agent.execute()] == [(1, "Q"), (2, "Q")]
    del agent.context
    assert agent.context["temporal"]


def test_importing_it_is_light() -> None:
    heavy = [
        "asyncio",
        "concurrent.futures",
        "aiohttp",
        "msgspec",
        "hashlib",
        "agents.chains.chain",
        "agents.storage.safe_fs",
    ]
    code = f"import sys, agents.basic_agent; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
