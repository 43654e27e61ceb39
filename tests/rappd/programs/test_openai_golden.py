"""The shapes of OpenAI's two APIs, pinned: an answer, a stream, a call and a refusal of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon

from tests.rappd.programs.test_openai_chat import tool, user

KEPT = Path(__file__).parent / "golden" / "openai.json"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon whose model is scripted."""
    home = tmp_path_factory.mktemp("openai-golden") / "home"
    found = RunningDaemon(home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never")
    yield found.start()
    found.stop()


def golden(found: Any) -> Any:
    """JSON without what differs from run to run."""
    text = json.dumps(found)
    for pattern, put in [
        (r"(call_|resp_|msg_|fc_|chatcmpl-)[0-9a-f]{32}", r"\1ID"),
        (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "ID"),
        (r'"(created|created_at|completed_at)": \d+', r'"\1": 0'),
        (r"Asks [^ ]+ in words", "Asks HOST in words"),
    ]:
        text = re.sub(pattern, put, text)
    return json.loads(text)


def streamed(body: bytes) -> list[Any]:
    lines = [one for one in body.decode().splitlines() if one.startswith("data: ")]
    return [json.loads(one[6:]) if one != "data: [DONE]" else "[DONE]" for one in lines]


def test_the_wire_keeps_its_golden_shape(daemon: RunningDaemon, model: FakeModel) -> None:
    weather = tool("weather", "place")
    flat = {"type": "function", **weather["function"]}
    chat = {"model": "brainstem", "messages": [user("hi")]}
    items = {"model": "brainstem", "input": "hi", "metadata": {"a": "b"}, "instructions": "Be brief."}
    found: dict[str, Any] = {"models": daemon.get("/v1/models").json()}
    for name, path, body, tools in [
        ("chat completion", "/v1/chat/completions", chat, [weather]),
        ("response", "/v1/responses", items, [flat]),
    ]:
        model.will(says("Hello."), says("Hello you."), calls(("weather", {"place": "Rome"})))
        found[name] = daemon.post(path, body).json()
        model.pieces = ["Hello ", "you."]
        streams = {**body, "stream": True, "stream_options": {"include_usage": True}}
        found[f"{name}, streamed"] = streamed(daemon.post(path, streams).body)
        model.pieces = []
        found[f"{name}, a call streamed"] = streamed(daemon.post(path, {**streams, "tools": tools}).body)
        found[f"{name}, refused"] = daemon.post(path, {**body, "n": 2}).json()
    assert golden(found) == json.loads(KEPT.read_text())
