"""Agents of other vendors are called: the SDK's own server, written down by its card's address, in every way a legacy peer."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from fixtures.client_programs import packages_of
from fixtures.free_ports import free_port
from fixtures.loopback_server import LoopbackServer
from fixtures.running_daemon import RunningDaemon

sys.path.extend(packages_of("a2a"))
pytest.importorskip("a2a", reason="needs a2a: sh tests/client-programs .venv/programs a2a")

import uvicorn
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette


class Echo(AgentExecutor):
    """Says what it hears: at once as a message, or, for "slowly" and "badly", as a task."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def execute(self, context: Any, event_queue: Any) -> None:
        text = context.get_user_input()
        self.heard.append(context.message)
        if text not in ("slowly", "badly"):
            await event_queue.enqueue_event(new_text_message(f"heard {text}"))
            return
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(
            Task(id=context.task_id, context_id=context.context_id, status=status)
        )
        updates = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updates.start_work()
        await asyncio.sleep(0.05)
        if text == "badly":
            await updates.failed(updates.new_agent_message([Part(text="out of tea")]))
            return
        await updates.add_artifact([Part(text="one "), Part(text="cup")], name="tea")
        await updates.complete()

    async def cancel(self, context: Any, event_queue: Any) -> None:
        raise NotImplementedError


class Foreign:
    """An A2A agent by the SDK, in a thread: JSON-RPC at ``/rpc``, or HTTP+JSON at ``/rest``."""

    def __init__(self, binding: str) -> None:
        self.port = free_port()
        self.echo = Echo()
        self.url = f"http://127.0.0.1:{self.port}/.well-known/agent-card.json"
        path = "rpc" if binding == "JSONRPC" else "rest"
        card = AgentCard(
            name=f"Tea {path}",
            description="Makes tea.",
            version="1",
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="tea", name="Tea", description="Makes tea.", tags=["tea"])],
            supported_interfaces=[
                AgentInterface(
                    url=f"http://127.0.0.1:{self.port}/{path}",
                    protocol_binding=binding,
                    protocol_version="1.0",
                )
            ],
        )
        handler = DefaultRequestHandler(self.echo, InMemoryTaskStore(), card)
        routes = [
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
        app = Starlette(routes=routes)
        self._server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", access_log=False)
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module", params=["JSONRPC", "HTTP+JSON"])
def foreign(request: pytest.FixtureRequest) -> Iterator[Foreign]:
    server = Foreign(request.param)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk") / "home", LLM_FAKE="1").start()
    yield daemon
    daemon.stop()


def owner(desk: RunningDaemon, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = desk.request(method, path, body, control=True)
    return answer.status, answer.json()


def added(desk: RunningDaemon, address: str) -> Any:
    status, found = owner(desk, "POST", "/peers", {"address": address})
    assert status == 200, found
    return found["added"]


def call(desk: RunningDaemon, peer: str, text: str, **more: Any) -> Any:
    return owner(desk, "POST", "/call", {"peer": peer, "text": text, **more})


def test_an_agent_is_added_by_its_card_and_called_by_its_name(desk: RunningDaemon, foreign: Foreign) -> None:
    found = added(desk, foreign.url)
    assert (found["legacy"], found["kind"]) == (True, "agent")
    assert found["name"].startswith("Tea ")
    rows = owner(desk, "GET", "/peers")[1]["peers"]
    [row] = [row for row in rows if row["address"] == foreign.url]
    assert (row["name"], row["legacy"], row["paired"], row["kind"]) == (found["name"], True, False, "agent")
    for selector in (found["name"], found["name"].upper(), foreign.url):
        status, said = call(desk, selector, "hello")
        assert (status, said["call"]["result"]) == (200, "heard hello"), said
        assert (said["call"]["state"], said["call"]["legacy"]) == ("done", True)
    sent = foreign.echo.heard[-1]
    assert (sent.message_id, sent.context_id) == (said["call"]["id"], said["call"]["thread"])
    assert owner(desk, "POST", "/peers/forget", {"address": foreign.url})[0] == 200
    assert call(desk, found["name"], "hello")[0] == 404


def test_a_task_is_waited_for_and_its_failure_told_in_its_words(
    desk: RunningDaemon, foreign: Foreign
) -> None:
    name = added(desk, foreign.url)["name"]
    assert call(desk, name, "slowly")[1]["call"]["result"] == "one \n\ncup"
    status, refused = call(desk, name, "badly")
    assert status == 502
    assert refused["error"] == f"{name}: out of tea"
    status, refused = call(desk, name, "", agent="tea", args={})
    assert (status, "an A2A agent" in refused["error"]) == (400, True)


def test_both_sides_of_a_call_are_in_the_record(desk: RunningDaemon, foreign: Foreign) -> None:
    name = added(desk, foreign.url)["name"]
    row = call(desk, name, "remember")[1]["call"]
    events = owner(desk, "GET", f"/threads/{row['thread']}")[1]["events"]
    assert [(one["verb"], one["id"]) for one in events] == [("HELP", row["id"]), ("DONE", row["id"])]


def test_the_terminal_adds_lists_and_asks_before_it_sends(desk: RunningDaemon, foreign: Foreign) -> None:
    told = desk.cli("peers", "add", foreign.url).stdout
    assert "an A2A agent, is written down" in told
    assert "A2A agents:" in desk.cli("peers", "list").stdout
    name = next(line for line in told.splitlines() if "rappd call" in line).split("'")[1]
    assert "plain http" in desk.cli("call", name, "hello").stderr
    assert desk.cli("call", name, "hello", "--yes").stdout == "heard hello\n"


class Odd(LoopbackServer):
    """Answers with what a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.card: Any = None
        self.answer: Any = None
        self.asked: list[str] = []
        self.heard: list[Any] = []

    def routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if body := await request.read():
            self.heard.append(json.loads(body))
        told = self.card if request.path.endswith(".json") else self.answer
        return told(request) if callable(told) else web.json_response(told)


@pytest.fixture
def odd() -> Iterator[Odd]:
    server = Odd()
    server.start()
    server.card = {
        "name": "Odd",
        "supportedInterfaces": [
            {"url": f"{server.url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "skills": [],
    }
    yield server
    server.stop()


def elsewhere(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("card", "told"),
    [
        ({"name": "x", "skills": [], "protocolVersion": "0.3.0", "url": "http://h/"}, "speaks A2A 0.3.0"),
        ([], "no card"),
        (lambda request: web.Response(text="<html>"), "cannot be used"),
        (lambda request: web.Response(status=404), "no agent card there (404)"),
        (elsewhere, "sends callers elsewhere (302)"),
        (lambda request: web.Response(body=b"[" * 2_000_000), "cannot be used"),
        (
            {
                "name": "Trap",
                "supportedInterfaces": [
                    {
                        "url": "http://127.0.0.2:7071/a2a",
                        "protocolBinding": "JSONRPC",
                        "protocolVersion": "1.0",
                    }
                ],
            },
            "leads to another machine",
        ),
    ],
)
def test_what_is_no_card_is_not_written_down(desk: RunningDaemon, odd: Odd, card: Any, told: str) -> None:
    odd.card = card
    address = f"{odd.url}/agent-card.json"
    status, refused = owner(desk, "POST", "/peers", {"address": address})
    assert status == 502, refused
    assert told in refused["error"]
    assert address not in [row["address"] for row in owner(desk, "GET", "/peers")[1]["peers"]]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no \x1b[2Jtea"}}, "Odd: no [2Jtea"),
        ({"jsonrpc": "2.0", "id": 1}, "does not answer as an A2A agent"),
        ([], "does not answer as an A2A agent"),
        (elsewhere, "sends callers elsewhere"),
        (lambda request: web.Response(body=b"x" * (5 << 20)), "more than 4 MB"),
        (lambda request: web.json_response({"error": "who?"}, status=401), "Odd: who?"),
        (
            {"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "../x", "status": {"state": 7}}}},
            "",
        ),
    ],
)
def test_a_foreign_answer_of_any_form_is_that_agents_failure(
    desk: RunningDaemon, odd: Odd, answer: Any, told: str
) -> None:
    added(desk, f"{odd.url}/agent-card.json")
    odd.answer = answer
    status, said = call(desk, f"{odd.url}/agent-card.json", "hello")
    if told:
        assert status == 502, said
        assert told in said["error"]
    else:
        assert said["call"]["result"] == ""
    assert {"/agent-card.json", "/rpc"} == set(odd.asked)


def test_an_agent_that_is_away_is_written_down_all_the_same(desk: RunningDaemon) -> None:
    address = f"http://127.0.0.1:{free_port()}/agent-card.json"
    assert added(desk, address)["name"] == ""
    status, refused = call(desk, address, "hello")
    assert (status, refused["code"]) == (504, "away"), refused


@pytest.mark.parametrize(
    "address",
    [
        "http://pi:7071/some/path",
        "https://pi/a?b=c",
        "ftp://pi/agent-card.json",
        "https://u:p@pi/agent-card.json",
    ],
)
def test_an_address_that_says_nothing_known_is_refused(desk: RunningDaemon, address: str) -> None:
    status, refused = owner(desk, "POST", "/peers", {"address": address})
    assert status == 400
    assert "agent card" in refused["do"]


def test_this_machines_own_card_is_no_peer(desk: RunningDaemon) -> None:
    own = f"http://127.0.0.1:{desk.port}/.well-known/agent-card.json"
    status, refused = owner(desk, "POST", "/peers", {"address": own})
    assert (status, "this machine itself" in refused["error"]) == (400, True)


def test_a_tier_2_path_is_a_published_brainstem(desk: RunningDaemon, odd: Odd) -> None:
    odd.answer = {"assistant_response": "from the cloud"}
    address = f"{odd.url}/api/businessinsightbot_function"
    assert added(desk, address)["kind"] == "tier2"
    status, said = call(desk, address, "hello")
    assert (status, said["call"]["result"]) == (200, "from the cloud"), said
    assert set(odd.heard[0]) == {"user_input", "conversation_history", "user_guid"}


def test_an_agent_is_a_guest_of_a_session(desk: RunningDaemon, foreign: Foreign) -> None:
    name = added(desk, foreign.url)["name"]
    owner(desk, "POST", "/sessions")
    status, told = owner(desk, "POST", "/sessions/current/participants", {"name": name})
    assert status == 200, told
    said = {"text": "hello", "to": name, "wait": True}
    status, told = owner(desk, "POST", "/sessions/current/say", said)
    assert status == 200, told
    events = owner(desk, "GET", "/sessions/current")[1]["events"]
    assert [one["text"] for one in events if one["kind"] == "twin_response"] == ["heard hello"]
