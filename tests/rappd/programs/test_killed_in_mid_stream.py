"""``kill -9`` after the first word of an answer, over MCP and ACP: one honest error, nothing twice, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.willing_model import HELLO, WillingModel

from envelopes.codecs import mcp
from tests.rappd.programs.test_acp import editor, new
from tests.rappd.programs.test_mcp import headers, message, older
from tests.rappd.programs.test_mcp_restarts import _bridge, _heard, _say

pytestmark = pytest.mark.own_process
SAY = "take your time"


@pytest.fixture
def model(tmp_path: Path) -> Iterator[WillingModel]:
    server = WillingModel(tmp_path / "model")
    server.start()
    server.signs.anew(held=True)
    yield server
    server.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon], model: WillingModel) -> RunningDaemon:
    made = make_daemon(OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never")
    return made.start()


def _kill(daemon: RunningDaemon, model: WillingModel) -> None:
    assert model.signs.wait_for("waiting")
    daemon.kill()
    model.signs.let_go()
    daemon.start()


def test_mcp_on_stdio_gets_one_error_and_the_next_call_an_answer(
    daemon: RunningDaemon, model: WillingModel
) -> None:
    with _bridge(daemon) as bridge:
        asked = message("tools/call", name="ask", arguments={"message": SAY}, meta={"progressToken": 1})
        _say(bridge, asked)
        _kill(daemon, model)
        heard = [_heard(bridge)]
        while "id" not in heard[-1]:
            heard.append(_heard(bridge))
        found = heard[-1]["result"]
        assert (found["isError"], "cut off" in found["content"][0]["text"]) == (True, True), heard
        assert model.signs.begun == 1
        _say(bridge, message("tools/call", id=2, name="ask", arguments={"message": "hi"}))
        after = _heard(bridge)
        assert (after["id"], after["result"]["content"][0]["text"]) == (2, HELLO), (
            "and nothing more of the first"
        )


def _streamed(daemon: RunningDaemon, asked: dict[str, Any], sent: dict[str, str]) -> HTTPResponse:
    connection = HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    connection.request("POST", "/mcp", json.dumps(asked), {**sent, **accepted})
    return connection.getresponse()


@pytest.mark.parametrize("era", [mcp.MODERN, "2025-11-25"])
def test_mcp_over_http_a_repeat_of_a_cut_stream_gets_the_recorded_end(
    daemon: RunningDaemon, model: WillingModel, era: str
) -> None:
    asked = message("tools/call", name="ask", arguments={"message": SAY}, meta={"progressToken": 1})
    sent = {**headers(asked), mcp.KEY_HEADER: "one-key"}
    if era != mcp.MODERN:
        hello = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}}
        session = older(daemon, "initialize", **hello).headers[mcp.SESSION_HEADER.lower()]
        asked["params"]["_meta"] = {"progressToken": 1}
        sent = {mcp.VERSION_HEADER: era, mcp.SESSION_HEADER: session}
    stream = _streamed(daemon, asked, sent)
    assert stream.getheader("Content-Type", "").startswith("text/event-stream")
    _kill(daemon, model)
    with suppress(HTTPException, OSError):
        assert b'"result"' not in stream.read(), "a cut stream is not taken for a whole one"
    ends = []
    for _ in range(2):
        events = _streamed(daemon, asked, sent).read().decode()
        data = events.partition("data: ")[2] or events
        ends.append(json.loads(data.strip().splitlines()[-1].removeprefix("data: "))["result"])
    assert ends[0]["content"] == ends[1]["content"]
    assert "cut off" in ends[0]["content"][0]["text"]
    assert model.signs.begun == 1


def test_ctrl_c_in_the_editors_terminal_ends_the_prompt(daemon: RunningDaemon, model: WillingModel) -> None:
    with editor(daemon) as one:
        prompt = [{"type": "text", "text": SAY}]
        id = one.send("session/prompt", sessionId=new(one), prompt=prompt)
        assert model.signs.wait_for("waiting")
        one.interrupt()
        assert one.answer_to(id)["result"]["stopReason"] == "cancelled"
        assert model.signs.wait_for("hung_up")


def test_acp_gets_one_error_and_the_session_has_what_was_said(
    daemon: RunningDaemon, model: WillingModel
) -> None:
    with editor(daemon) as one:
        session = new(one)
        prompt = [{"type": "text", "text": SAY}]
        id = one.send("session/prompt", sessionId=session, prompt=prompt)
        _kill(daemon, model)
        error = one.answer_to(id)["error"]
        assert "cut off" in error["message"]
        assert one.said() in ("", "The beginning, "), "what was said before the kill comes once"
        assert model.signs.begun == 1
        assert one.prompt(session, "hi") == "end_turn"
        assert one.said() == HELLO
    with editor(daemon) as again:
        again.ask("session/load", sessionId=session, cwd="/tmp/project", mcpServers=[])
        told = [update["content"]["text"] for update in again.updates if "content" in update]
        assert [one for one in told if one in (SAY, "hi", HELLO)] == [SAY, "hi", HELLO], told
