"""Ollama's API below ``/ollama``."""

from __future__ import annotations

from tests.rappd.federation.conftest import Node
from tests.rappd.programs.conftest import lines


def test_an_answer_comes_in_lines_unless_the_client_wants_it_whole(node: Node) -> None:
    asked = {"model": "brainstem:latest", "messages": [{"role": "user", "content": "hi"}]}
    streamed = node.daemon.post("/ollama/api/chat", asked)
    assert streamed.headers["content-type"] == "application/x-ndjson"
    pieces = lines(streamed.body)
    whole = node.daemon.post("/ollama/api/chat", {**asked, "stream": False}).json()
    assert [one["done"] for one in pieces] == [False] * (len(pieces) - 1) + [True]
    assert "".join(one["message"]["content"] for one in pieces) == whole["message"]["content"] != ""
    assert (whole["done"], whole["done_reason"], whole["model"]) == (True, "stop", "brainstem")


def test_its_version_is_told(node: Node) -> None:
    assert node.daemon.get("/ollama/api/version").json()["version"].count(".") == 2
