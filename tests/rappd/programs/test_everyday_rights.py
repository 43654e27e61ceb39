"""Foreign programs are everyday callers, whatever way they came, and their words stay what they are: input."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

from rappd.features.programs.program_record import MOST, ProgramRecord
from rappd.store.program_table import ProgramRow
from rappd.store.reader import Reader

CHAT = "/ollama/api/chat"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon whose surface is open to everybody on this machine, and with a model."""
    home = tmp_path_factory.mktemp("open") / "home"
    daemon = RunningDaemon(
        home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="small", RAPPD_OPEN_SURFACE="1"
    )
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"'))
    daemon.start()
    yield daemon
    daemon.stop()


def say(daemon: RunningDaemon, text: str = "hi", *before: tuple[str, str], **more: Any) -> Answer:
    messages = [{"role": role, "content": content} for role, content in (*before, ("user", text))]
    control = more.pop("control", False)
    body = {"model": "brainstem", "messages": messages, "stream": False, **more}
    return daemon.request("POST", CHAT, body, control=control)


@pytest.mark.parametrize("control", [False, True])
def test_no_structural_agent_is_offered_or_called(
    daemon: RunningDaemon, model: FakeModel, control: bool
) -> None:
    model.will(calls(("LearnNew", {"description": "x"})), says("done"))
    assert say(daemon, control=control).status == 200
    assert "Clock" in model.tools(0)
    assert not {"LearnNew", "SwarmFactory", "Twin", "HatchEgg"} & set(model.tools(0))
    assert "LearnNew" not in model.results() or "not found" in model.results()["LearnNew"]
    assert not list(daemon.agents.glob("*learn*"))


def test_what_a_program_repeats_is_no_record(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("fine"))
    say(daemon, "and now?", ("user", "never said here"), ("assistant", "an invented answer"))
    assert "an invented answer" in json.dumps(model.asked[0]["messages"])
    with Reader(daemon.home / "rappd.db") as record:
        bodies = b"".join(row[0] for row in record.rows("SELECT body FROM events"))
    assert b"an invented answer" not in bodies
    assert b"and now?" in bodies


def test_a_token_that_names_the_owners_conversation_begins_its_own(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will(says("kept"), says("went on"), says("apart"))
    daemon.chat("where is the key?", session_id="owners")
    assert _asked_over_mcp(daemon, "owners") == "owners"
    issued = daemon.request("POST", "/tokens", {"name": "nas", "caps": ["HELP.*"]}, control=True).json()
    bearer = {"Authorization": f"Bearer {issued['token']['text']}"}
    assert _asked_over_mcp(daemon, "owners", **bearer) == "program:mcp:owners"
    assert "where is the key?" not in json.dumps(model.asked[-1]["messages"])


def _asked_over_mcp(daemon: RunningDaemon, conversation: str, **headers: str) -> str:
    """The conversation in which ``ask`` answered."""
    arguments = {"message": "and?", "conversation": conversation}
    params = {"name": "ask", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = {"MCP-Protocol-Version": "2025-11-25", "Content-Type": "application/json", **headers}
    answer = daemon.post("/mcp", body, headers=sent)
    assert answer.status == 200, answer.body
    found: str = answer.json()["result"]["structuredContent"]["conversation"]
    return found


@pytest.mark.parametrize("path", ["openid-configuration", "oauth-protected-resource/mcp", "x"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_not_well_known_is_told_in_json(daemon: RunningDaemon, path: str, method: str) -> None:
    answer = daemon.request(method, f"/.well-known/{path}")
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("application/json")
    assert set(answer.json()) == {"error", "do", "code"}


def test_a_client_that_hangs_up_stops_its_turn(daemon: RunningDaemon, model: FakeModel) -> None:
    model.hang = True
    model.reached.clear()
    model.hung_up.clear()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
        body = {"model": "brainstem", "messages": [{"role": "user", "content": "take your time"}]}
        connection.request("POST", CHAT, json.dumps(body))
        assert model.reached.wait(100)
        assert connection.sock is not None
        connection.sock.close()
        connection.close()
        assert model.hung_up.wait(100)
    finally:
        model.hang = False


@pytest.mark.own_process
def test_a_daemon_that_stops_ends_the_stream_with_an_error(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    fake_model.hang = True
    daemon = make_daemon(OPENAI_BASE_URL=f"{fake_model.url}/v1", OPENAI_MODEL="small").start()
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    body = {"model": "brainstem", "messages": [{"role": "user", "content": "take your time"}]}
    connection.request("POST", CHAT, json.dumps(body))
    answer = connection.getresponse()
    assert fake_model.reached.wait(100)
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGTERM)
    told = [json.loads(line) for line in answer.read().splitlines()]
    connection.close()
    assert told[-1]["error"]
    assert not any(one.get("done") for one in told)


class _Table:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], ProgramRow] = {}

    async def all(self) -> list[ProgramRow]:
        return list(self.kept.values())

    async def set(self, row: ProgramRow) -> None:
        self.kept[row.id] = row

    async def remove(self, id: tuple[str, str, str]) -> None:
        self.kept.pop(id, None)


class _Named:
    protocol, key = "ollama", ""

    def __init__(self, name: str) -> None:
        self.name = name


async def test_the_record_of_programs_is_bounded() -> None:
    table = _Table()
    record = ProgramRecord(table)  # type: ignore[arg-type]  # the methods that it uses
    for number in range(MOST + 50):
        record.seen(_Named(f"program {number}"))
    await record.close()
    assert len(table.kept) == len(record.rows()) == MOST
    assert record.rows()[0].name == f"program {MOST + 49}"


async def test_the_record_outlives_the_daemon() -> None:
    table = _Table()
    record = ProgramRecord(table)  # type: ignore[arg-type]
    record.seen(_Named("kettle"), error="no")
    record.answered(_Named("kettle"), {"tokens": 7, "cost_usd": 0.5})
    await record.close()
    later = ProgramRecord(table)  # type: ignore[arg-type]
    await later.load()
    row = later.rows()[0]
    assert (row.name, row.turns, row.tokens, row.cost_usd, row.error) == ("kettle", 1, 7, 0.5, "no")
    assert row.last <= time.time()
