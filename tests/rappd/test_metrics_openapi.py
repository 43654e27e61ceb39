"""The daemon's description of itself: its routes, and its counters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from prometheus_client.parser import text_string_to_metric_families

from rappd.features.features import FEATURES
from rappd.features.operation import OperationTable
from rappd.listeners.loopback import app as loopback


def _routes(http_tools: bool) -> set[tuple[str, str]]:
    """(method, path) of every route that the listener serves."""
    switches = {"http.tools": http_tools}
    settings = SimpleNamespace(number=lambda name: 1, on=lambda name: switches[name])
    table = OperationTable(*(feature.__new__(feature) for feature in FEATURES))
    looked_at = SimpleNamespace(settings=settings, host=None, hosts=frozenset())
    app = loopback.build(looked_at, lambda: table)  # type: ignore[arg-type]
    found = set()
    for route in app.router.routes():
        assert route.resource is not None
        path = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", route.resource.canonical)
        methods = ("GET", "POST", "PUT", "DELETE") if route.method == "*" else (route.method,)
        found |= {(method, path) for method in methods if method != "HEAD"}
    return found


def _described(paths: dict[str, Any]) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, operations in paths.items() for method in operations}


def test_every_route_is_described(fake_daemon: RunningDaemon) -> None:
    found = fake_daemon.get("/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    assert _described(found["paths"]) == _routes(False)
    assert {
        ("POST", "/chat"),
        ("GET", "/health"),
        ("POST", "/login"),
        ("GET", "/models"),
        ("GET", "/repos"),
    } <= _routes(False)
    identifiers = []
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            assert len(operation["summary"]) > 5, (method, path)
            assert operation["responses"], (method, path)
            named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "path"]
            assert re.findall(r"\{(\w+)\}", path) == named
            identifiers.append(operation["operationId"])
    assert len(set(identifiers)) == len(identifiers)


def test_agents_of_the_program_answer_without_a_worker_having_loaded_them(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    assert {"Twin", "ManageMemory"} <= set(daemon.agent_names())
    assert _metrics(daemon)["rappd_workers"] == 0


def test_routes_that_are_switched_on_are_described_too(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_HTTP_TOOLS="1").start()
    assert _described(daemon.get("/openapi.json").json()["paths"]) == _routes(True)
    assert _routes(True) - _routes(False) == {
        ("GET", "/tether/healthz"),
        ("GET", "/tether/tools"),
        ("POST", "/tether/agent"),
    }


def test_operator_routes_are_closed_and_others_open(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    paths = daemon.get("/openapi.json").json()["paths"]
    asked = [(path, one["get"]) for path, one in paths.items() if "get" in one and "{" not in path]
    for number, (path, operation) in enumerate(asked):
        if number and number % 25 == 0:  # after thirty refusals in a minute nobody is told more
            daemon = make_daemon(f"home{number}", LLM_FAKE="1").start()
        closed = daemon.get(path).status == 403
        assert closed == ("security" in operation), path


def test_what_chat_takes_and_gives_is_described_as_it_is(fake_daemon: RunningDaemon) -> None:
    found = fake_daemon.get("/openapi.json").json()
    chat = found["paths"]["/chat"]["post"]
    asks = _resolve(found, chat["requestBody"]["content"]["application/json"]["schema"])
    answers = _resolve(found, chat["responses"]["200"]["content"]["application/json"]["schema"])
    error = _resolve(found, chat["responses"]["default"]["content"]["application/json"]["schema"])
    assert asks["required"] == ["user_input"]
    answer = fake_daemon.chat("hello")
    assert set(answers["required"]) <= set(answer) <= set(answers["properties"])
    refused = fake_daemon.post("/chat", {}).json()
    assert set(refused) == set(error["required"]) == set(error["properties"])


def test_every_reference_leads_to_a_type(fake_daemon: RunningDaemon) -> None:
    text = fake_daemon.get("/openapi.json").body.decode()
    known = json.loads(text)["components"]["schemas"]
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert {"Peers", "PeerRow", "TimerView"} <= named <= set(known)
    assert [name for name in known if "." in name] == []  # two types of one name


def _resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return found


def _metrics(daemon: RunningDaemon) -> dict[str, float]:
    answer = daemon.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(answer.body.decode()))
    assert families
    for family in families:
        assert family.name.startswith("rappd_")
        assert family.documentation
        assert family.type in ("counter", "gauge")
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_counters_move_with_what_happens(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("aaa_agent.py", agent_source("Aaa"))
    daemon.drop("bad_agent.py", agent_source("Bad", 'raise ValueError("no")'))
    daemon.drop("odd_agent.py", "class A(:\n")
    daemon.start()
    before = _metrics(daemon)
    assert before["rappd_agents"] == len(daemon.agent_names())
    assert before["rappd_agents_unavailable"] == 1
    daemon.chat("one")
    daemon.chat("two")
    daemon.post("/agents/run", {"agent": "Bad"}, control=True)
    after = _metrics(daemon)
    moved = {
        "rappd_turns_total": 2,
        "rappd_turns_refused_total": 0,
        "rappd_agent_calls_total": 3,
        "rappd_agent_calls_failed_total": 1,
        "rappd_model_rounds_total": 4,
        "rappd_model_tokens_total": 0,
    }
    assert {name: after[name] - before[name] for name in moved} == moved
    assert after["rappd_workers"] >= 1
    assert after["rappd_turns_running"] == 0
    assert after["rappd_uptime_seconds"] > before["rappd_uptime_seconds"]


def test_readiness_version_and_the_bare_sign_of_life(fake_daemon: RunningDaemon) -> None:
    assert fake_daemon.get("/healthz").json() == {"status": "ok"}
    assert fake_daemon.get("/readyz").json() == {"status": "ready"}
    version = fake_daemon.get("/version").json()["version"]
    assert version == fake_daemon.get("/health").json()["version"]
    assert version == fake_daemon.get("/openapi.json").json()["info"]["version"]


@pytest.mark.parametrize("path", ["/metrics", "/openapi.json", "/health"])
def test_nothing_of_it_tells_what_was_said(fake_daemon: RunningDaemon, path: str) -> None:
    fake_daemon.chat("a very secret sentence", user_guid="11111111-2222-4333-8444-999999999999")
    told = fake_daemon.get(path).body.decode()
    assert "very secret" not in told
    assert "999999999999" not in told
    json.dumps(told)
