"""``/tether/*``, agents as plain HTTP tools: closed unless switched on, and never a structural one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

ROUTES = [("GET", "/tether/healthz"), ("GET", "/tether/tools"), ("POST", "/tether/agent")]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("tools") / "home", LLM_FAKE="1", RAPPD_HTTP_TOOLS="1")
    daemon.drop("aaa_agent.py", agent_source("Aaa", "return repr(sorted(kwargs.items()))"))
    daemon.drop("bad_agent.py", agent_source("Bad", 'raise ValueError("too warm")'))
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_it_is_not_there_unless_switched_on(fake_daemon: RunningDaemon, method: str, path: str) -> None:
    answer = fake_daemon.request(method, path, b'{"name": "ContextMemory"}')
    assert answer.status == 404
    assert set(answer.json()) == {"error", "do", "code"}
    assert "tether" not in "".join(fake_daemon.get("/openapi.json").json()["paths"])


def test_it_says_which_agents_there_are(daemon: RunningDaemon) -> None:
    found = daemon.get("/tether/healthz").json()
    assert found["agents"] == sorted(found["agents"])
    assert {"Aaa", "Bad", "ContextMemory"} <= set(found["agents"])
    assert found == {
        "status": "ok",
        "schema": "rapp-tether/1.0",
        "version": "1.0.0",
        "host": f"127.0.0.1:{daemon.port}",
        "agents": found["agents"],
        "count": len(found["agents"]),
    }


def test_it_gives_their_definitions(daemon: RunningDaemon) -> None:
    found = daemon.get("/tether/tools").json()
    assert found["schema"] == "rapp-tether/1.0"
    assert found["count"] == len(found["tools"])
    definitions = {tool["function"]["name"]: tool for tool in found["tools"]}
    assert definitions["Aaa"] == {
        "type": "function",
        "function": {
            "name": "Aaa",
            "description": "A test.",
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
    }


def test_it_runs_one(daemon: RunningDaemon) -> None:
    answer = daemon.post("/tether/agent", {"name": "Aaa", "args": {"b": 2, "a": 1}})
    assert (answer.status, answer.json()) == (200, {"status": "ok", "output": "[('a', 1), ('b', 2)]"})
    assert daemon.post("/tether/agent", {"name": "Aaa"}).json()["output"] == "[]"
    assert daemon.post("/tether/agent", {"name": "Aaa", "args": None}).json()["output"] == "[]"


def test_an_agent_that_raises_is_an_error_in_that_shape(daemon: RunningDaemon) -> None:
    answer = daemon.post("/tether/agent", {"name": "Bad"})
    assert answer.status == 500
    assert answer.json()["status"] == "error"
    assert "too warm" in answer.json()["message"]


@pytest.mark.parametrize("name", ["LearnNew", "SwarmFactory", "learnnew", "Nobody", "aaa_agent"])
def test_structural_and_unknown_agents_are_the_same_to_it(daemon: RunningDaemon, name: str) -> None:
    listed = daemon.get("/tether/healthz").json()["agents"]
    assert name not in listed
    assert name not in str(daemon.get("/tether/tools").json()["tools"])
    for control in (False, True):
        answer = daemon.post("/tether/agent", {"name": name}, control=control)
        assert answer.status == 404
        assert answer.json()["message"] == f"unknown agent: {name}"
        assert sorted(answer.json()["available"]) == listed


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": 5}, {"name": "Aaa", "args": [1]}, {"name": "Aaa", "args": "x"}]
)
def test_what_is_no_call_is_refused(daemon: RunningDaemon, body: dict[str, Any]) -> None:
    answer = daemon.post("/tether/agent", body)
    assert answer.status in (400, 422)
    assert answer.headers["content-type"].startswith("application/json")


def test_pages_of_other_sites_cannot_use_it(daemon: RunningDaemon) -> None:
    for origin in ("https://evil.example", "https://kody-w.github.io", "null"):
        answer = daemon.post("/tether/agent", {"name": "Aaa"}, headers={"Origin": origin})
        assert answer.status == 403
        assert (
            "access-control-allow-origin"
            not in daemon.get("/tether/tools", headers={"Origin": origin}).headers
        )


def test_its_calls_are_written_down(daemon: RunningDaemon) -> None:
    daemon.post("/tether/agent", {"name": "Aaa", "args": {"seen": "in the record"}})

    def recorded() -> bool:
        return "in the record" in daemon.get("/activity", control=True).body.decode()

    daemon.wait_for(recorded)
