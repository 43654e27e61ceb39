"""``rappd models connect`` and ``models use``: tried before it is saved, asked for on a terminal, never a key in sight."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from fixtures.free_ports import free_port
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from fixtures.scripted_ollama import ScriptedOllama
from fixtures.terminal import Terminal

KEY = "sk-quite-secret-0123456789"


@pytest.fixture
def ollama() -> Iterator[ScriptedOllama]:
    server = ScriptedOllama()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    return make_daemon().start()


def _url(daemon: RunningDaemon) -> str:
    return str(daemon.get("/models/servers", control=True).json()["server"]["url"])


def test_without_a_terminal_it_asks_nothing(daemon: RunningDaemon, fake_model: FakeModel) -> None:
    bare = daemon.cli("models", "connect")
    assert bare.returncode == 2
    assert "--url URL" in bare.stderr
    assert "--key-stdin" in bare.stderr
    dead = daemon.cli("models", "connect", "--url", f"http://127.0.0.1:{free_port()}", "--json")
    assert dead.returncode == 1
    assert json.loads(dead.stderr)["error"].startswith("Nothing listens at")
    assert daemon.cli("models", "connect", "--url", "notaurl").returncode == 2
    assert daemon.cli("models", "connect", "--key", KEY).returncode == 2
    login = daemon.cli("models", "connect", "--url", f"http://me:pw@127.0.0.1:{fake_model.port}")
    assert (login.returncode, "pw" in login.stderr) == (2, False)
    assert _url(daemon) == "", "nothing was saved"
    wrong = daemon.cli("models", "connect", "--url", f"{fake_model.url}/api")
    assert f"rappd models connect --url {fake_model.url}/v1" in wrong.stderr
    done = daemon.cli("models", "connect", "--url", fake_model.url, "--key-stdin", "--json", stdin=f"{KEY}\n")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["model"], told["models"]) == ("small", ["small", "big"])
    assert KEY not in done.stdout
    fake_model.will(says("I am small"))
    assert daemon.chat("hello")["response"] == "I am small"
    assert fake_model.keys[-1] == f"Bearer {KEY}"


def test_server_is_quoted_where_it_refuses(daemon: RunningDaemon, fake_model: FakeModel) -> None:
    fake_model.status = 500
    done = daemon.cli("models", "connect", "--url", fake_model.url)
    assert done.returncode == 1
    assert "It said: “broken”" in done.stderr
    assert _url(daemon) == ""


def test_on_a_terminal_it_asks_tries_and_lets_one_pick(daemon: RunningDaemon, ollama: ScriptedOllama) -> None:
    terminal = Terminal(daemon, "models", "connect")
    terminal.read_until(lambda seen: "Address" in seen.text)
    terminal.type("nonsense\n")
    terminal.read_until(
        lambda seen: "That is not a web address" in seen.text and seen.text.count("Address") > 1
    )
    terminal.type(f"{ollama.url}/api\n")
    terminal.read_until(lambda seen: f"Use {ollama.url}/v1?" in seen.text)
    terminal.type("\n")
    seen = terminal.read_until(lambda seen: "number or name" in seen.text)
    assert "Ollama works: small answered" in seen.text
    terminal.type("bigg\n")
    terminal.read_until(lambda seen: "did you mean" in seen.text and seen.text.count("number or name") > 1)
    terminal.type("2\n")
    seen = terminal.to_end()
    assert seen.code == 0, seen.text
    assert "big of Ollama answers from now on." in seen.text
    assert daemon.get("/health").json()["provider"]["model"] == "big"


def test_model_that_is_not_there_is_answered_with_near_names(
    daemon: RunningDaemon, ollama: ScriptedOllama
) -> None:
    ollama.listed = [
        {"id": name, "owned_by": "library"} for name in ("llama3.2:3b", "llama3.1:8b", "qwen2.5:7b")
    ]
    daemon.cli("models", "connect", "--url", f"{ollama.url}/v1")
    plain = daemon.cli("models", "use", "llama3.2")
    assert plain.returncode == 4
    assert 'No model is called "llama3.2"' in plain.stderr
    assert "did you mean llama3.2:3b" in plain.stderr
    assert "{" not in plain.stderr
    shaped = json.loads(daemon.cli("models", "use", "nosuch", "--json").stderr)
    assert shaped.keys() == {"error", "do", "code"}
    assert shaped["code"] == "not_found"
    ollama.stop_serving()
    assert json.loads(daemon.cli("models", "list", "--json").stdout)["models"] == [], (
        "a dead server lists none"
    )
