"""Ollama's API below ``/ollama``: shapes of Home Assistant's requests, and the packages of PyPI and npm, unmodified."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fixtures.client_programs import block, run_node, run_python

from tests.rappd.federation.conftest import Node
from tests.rappd.programs.conftest import lines

CHAT = "/ollama/api/chat"


def chat(node: Node, text: str, **more: Any) -> list[dict[str, Any]]:
    body = {"model": "brainstem:latest", "messages": [{"role": "user", "content": text}], **more}
    answer = node.daemon.post(CHAT, body)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/x-ndjson"
    return lines(answer.body)


def said(pieces: list[dict[str, Any]]) -> str:
    return "".join(one["message"]["content"] for one in pieces)


def test_an_answer_comes_in_lines_unless_the_client_wants_it_whole(node: Node) -> None:
    pieces = chat(node, "use Clock")
    body = {"model": "brainstem", "messages": [{"role": "user", "content": "use Clock"}], "stream": False}
    whole = node.daemon.post(CHAT, body).json()
    assert [one["done"] for one in pieces] == [False] * (len(pieces) - 1) + [True]
    assert said(pieces) == whole["message"]["content"]
    assert "it is now" in said(pieces)
    assert (whole["done"], whole["done_reason"], whole["model"]) == (True, "stop", "brainstem")


def test_one_sentence_is_answered_without_messages(node: Node) -> None:
    body = {"model": "brainstem", "prompt": "use Clock", "stream": False}
    found = node.daemon.post("/ollama/api/generate", body).json()
    assert "it is now" in found["response"]
    assert lines(node.daemon.post("/ollama/api/generate", {**body, "stream": True}).body)[-1]["done"] is True


def test_loading_a_model_is_answered_and_is_no_turn(node: Node) -> None:
    answer = node.daemon.post("/ollama/api/generate", {"model": "brainstem", "keep_alive": -1})
    assert (answer.json()["done"], answer.json()["done_reason"]) == (True, "load")


def test_a_model_is_shown_and_an_unknown_one_is_not(node: Node) -> None:
    found = node.daemon.post("/ollama/api/show", {"model": "twin/gardener:latest"}).json()
    assert {"completion", "tools"} <= set(found["capabilities"])
    assert found["details"]["family"] == "rapp"
    assert node.daemon.post("/ollama/api/show", {"model": "nobody"}).status == 404
    assert node.daemon.get("/ollama/api/version").json()["version"].count(".") == 2
    assert node.daemon.get("/ollama").body == b"Ollama is running"


def test_home_assistants_request_is_answered(node: Node) -> None:
    """Assist sends its instructions, tools and options with every sentence, and reads a stream."""
    tool = {
        "type": "function",
        "function": {
            "name": "HassTurnOn",
            "description": "Turns on a device",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }
    messages = [
        {"role": "system", "content": "You are a voice assistant for Home Assistant."},
        {"role": "user", "content": "use Clock"},
    ]
    more = {"tools": [tool], "keep_alive": "-1s", "options": {"num_ctx": 8192}, "think": False}
    pieces = chat(node, "", messages=messages, stream=True, **more)
    assert "it is now" in said(pieces)
    assert pieces[-1]["done"] is True


@pytest.mark.parametrize(
    ("body", "names"),
    [(b"[]", "JSON object"), (b"{", "JSON object"), (b'{"model": "brainstem", "messages": 7}', "messages")],
)
def test_a_bad_body_is_refused_in_ollamas_shape(node: Node, body: bytes, names: str) -> None:
    answer = node.daemon.post(CHAT, body)
    assert answer.status == 400
    assert names in answer.json()["error"]
    assert set(answer.json()) == {"error", "code"}


@pytest.mark.parametrize("mark", ["ollama-python", "ollama-js", "ollama-curl"])
def test_what_the_page_says_to_paste_works(node: Node, mark: str) -> None:
    lines = block(mark, node.daemon.port)
    if mark == "ollama-python":
        done = run_python("ollama", lines)
    elif mark == "ollama-js":
        done = run_node("ollama-js", lines)
    else:
        import subprocess

        done = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, check=False)
        assert json.loads(done.stdout)["done"] is True
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


_ALL = """
import json, ollama
client = ollama.Client()
told = {"models": [one.model for one in client.list().models]}
asked = [{"role": "user", "content": "use Clock"}]
told["whole"] = client.chat("brainstem", asked).message.content
told["streamed"] = "".join(part.message.content for part in client.chat("brainstem", asked, stream=True))
told["generated"] = client.generate("brainstem", "use Clock").response
told["shown"] = client.show("brainstem").capabilities
try:
    client.chat("llama3", asked)
except ollama.ResponseError as refused:
    told["refused"] = [refused.status_code, refused.error]
print(json.dumps(told))
"""


def told(stdout: str) -> None:
    found = json.loads(stdout)
    assert found["models"][0] == "brainstem:latest"
    assert "it is now" in found["whole"]
    assert found["whole"] == found["streamed"] == found["generated"]
    assert "tools" in found["shown"]
    assert found["refused"][0] == 404
    assert "Known to you: brainstem" in found["refused"][1]


def test_the_package_of_pypi_works_here(node: Node) -> None:
    done = run_python("ollama", _ALL, OLLAMA_HOST=f"http://127.0.0.1:{node.daemon.port}/ollama")
    assert done.returncode == 0, done.stderr
    told(done.stdout)


def test_the_package_of_pypi_works_from_elsewhere_with_what_token_issue_prints(node: Node) -> None:
    issued = node.daemon.cli("token", "issue", "attic", "--client", "ollama")
    assert issued.returncode == 0, issued.stderr
    pasted = dict(line.split("=", 1) for line in issued.stdout.splitlines())
    certificate = node.daemon.home / "keys" / pasted["SSL_CERT_FILE"]
    assert str(certificate) in issued.stderr
    host = pasted["OLLAMA_HOST"].replace(pasted["OLLAMA_HOST"].split("/")[2].split(":")[0], "localhost")
    done = run_python(
        "ollama",
        _ALL,
        OLLAMA_HOST=host,
        OLLAMA_API_KEY=pasted["OLLAMA_API_KEY"],
        SSL_CERT_FILE=str(certificate),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["models"] == ["brainstem:latest"]
    assert found["whole"]


_ALL_JS = """
import { Ollama } from "ollama";
const headers = process.env.OLLAMA_API_KEY ? { Authorization: `Bearer ${process.env.OLLAMA_API_KEY}` } : {};
const client = new Ollama({ host: process.env.OLLAMA_HOST, headers });
const messages = [{ role: "user", content: "use Clock" }];
const told = { models: (await client.list()).models.map((one) => one.model) };
told.whole = (await client.chat({ model: "brainstem", messages })).message.content;
told.streamed = "";
for await (const part of await client.chat({ model: "brainstem", messages, stream: true })) told.streamed += part.message.content;
told.generated = (await client.generate({ model: "brainstem", prompt: "use Clock" })).response;
told.shown = (await client.show({ model: "brainstem" })).capabilities;
await client.chat({ model: "llama3", messages }).catch((refused) => (told.refused = [refused.status_code, refused.message]));
console.log(JSON.stringify(told));
"""


def test_the_package_of_npm_works_here(node: Node) -> None:
    done = run_node("ollama-js", _ALL_JS, OLLAMA_HOST=f"http://127.0.0.1:{node.daemon.port}/ollama")
    assert done.returncode == 0, done.stderr
    told(done.stdout)


def test_the_package_of_npm_trusts_this_machines_certificate(node: Node) -> None:
    status, found = node.owner(
        "POST", "/tokens", {"name": "attic", "caps": ["HELP.brainstem.*", "HELP.*"], "client": "ollama"}
    )
    assert status == 200, found
    port = found["token"]["url"].rpartition(":")[2]
    done = run_node(
        "ollama-js",
        _ALL_JS,
        OLLAMA_HOST=f"https://localhost:{port}",
        OLLAMA_API_KEY=found["token"]["text"],
        NODE_EXTRA_CA_CERTS=found["token"]["certificate"],
    )
    assert done.returncode == 0, done.stderr
    told(done.stdout)
