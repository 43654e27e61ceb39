"""A token that is revoked while its program is answered: the answer ends at once, in the program's own shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon

from tests.rappd.programs.test_mcp import headers, message

SAY = [{"role": "user", "content": "hi"}]
TOOL = message("tools/call", name="ask", arguments={"message": "hi"}, meta={"progressToken": 1})
WAYS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat": ("/v1/chat/completions", {"messages": SAY, "stream": True}, "chat.completion.chunk"),
    "whole": ("/v1/chat/completions", {"messages": SAY}, ""),
    "responses": ("/v1/responses", {"input": "hi", "stream": True}, "output_text.delta"),
    "ollama": ("/ollama/api/chat", {"model": "brainstem", "messages": SAY}, "brainstem"),
    "mcp": ("/mcp", TOOL, ""),  # its stream has no words
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    folder: Path = tmp_path_factory.mktemp("revoked")
    found = RunningDaemon(
        folder / "home", OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never"
    )
    yield found.start()
    found.stop()


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_ends_with_its_token(daemon: RunningDaemon, model: FakeModel, way: str) -> None:
    path, body, first = WAYS[way]
    model.will(says("never whole"))
    model.pieces, model.pause = ["word "] * 400, 0.05
    model.reached.clear()
    asked = {"name": way, "caps": ["HELP.brainstem"]}
    token = daemon.post("/tokens", asked, control=True).json()["token"]
    connection = HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    sent = {
        "Authorization": f"Bearer {token['text']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **(headers(body) if way == "mcp" else {}),
    }
    try:
        connection.request("POST", path, json.dumps(body), sent)
        assert model.reached.wait(100)
        answer = connection.getresponse() if first else None
        while answer is not None and first not in answer.readline().decode():
            pass
        assert daemon.request("DELETE", f"/tokens/{token['jti']}", control=True).status == 200
        rest = (answer or connection.getresponse()).read().decode()
    finally:
        model.pieces, model.pause = [], 0.0
        connection.close()
    assert "taken back" in rest, rest[-500:]
    assert rest.count("word") < 200
