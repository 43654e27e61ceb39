"""Downloads of models on a real daemon: only where the settings point, with progress, cancelled, and in the terminal."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import pytest
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import RunningDaemon
from fixtures.scripted_ollama import WAIT, WHOLE, ScriptedOllama, part
from fixtures.terminal import Terminal


@pytest.fixture
def ollama() -> Iterator[ScriptedOllama]:
    server = ScriptedOllama()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon], ollama: ScriptedOllama) -> RunningDaemon:
    return make_daemon(OPENAI_BASE_URL=f"{ollama.url}/v1", OPENAI_MODEL="llama3.2").start()


def test_download_in_the_terminal_makes_the_missing_model_answer(
    daemon: RunningDaemon, ollama: ScriptedOllama
) -> None:
    before = daemon.chat("hello")
    assert "not found, try pulling it first" in str(before)
    assert "rappd models connect" not in str(before), "a model is set up; the notice says what it lacks"
    done = daemon.cli("models", "download", "llama3.2")
    assert (done.returncode, done.stdout) == (0, "✓ llama3.2 is here. Use it: rappd models use llama3.2\n")
    assert daemon.chat("hello")["response"] == "done"
    assert json.loads(daemon.cli("models", "download", "big", "--json").stdout) == {"model": "big"}
    ollama.pulls = [{"error": "pull model manifest: file does not exist"}]
    failed = daemon.cli("models", "download", "llama9", "--json")
    assert failed.returncode == 1
    assert json.loads(failed.stderr)["code"] == "download"
    assert "Ollama said: “pull model manifest" in json.loads(failed.stderr)["error"]


def test_bar_is_drawn_and_ctrl_c_stops_it(daemon: RunningDaemon, ollama: ScriptedOllama) -> None:
    ollama.pulls = [part(400, 1000), WAIT, *WHOLE]
    terminal = Terminal(daemon, "models", "download", "llama3.2")
    seen = terminal.read_until(lambda seen: "40 %" in seen.text)
    assert "llama3.2" in seen.text
    terminal.send(signal.SIGINT)
    seen = terminal.to_end()
    assert "What has arrived is kept" in seen.text
    assert seen.code == 130
    assert ollama.left.wait(100)
    assert daemon.get("/models/downloads", control=True).json() == {"downloads": []}


def test_download_goes_only_where_the_settings_point(
    make_daemon: Callable[..., RunningDaemon], ollama: ScriptedOllama, fake_model: FakeModel
) -> None:
    plain = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small").start()
    for order in ({"model": "x"}, {"model": "x", "server": ollama.url}, {"model": "x", "url": ollama.url}):
        assert plain.post("/models/download", order, control=True).status == 404
    assert plain.post("/models/download", {"model": "x"}).status == 403
    assert plain.post("/models/download/cancel", {"model": "x"}).status == 403
    assert plain.get("/models/downloads").status == 403
    assert ollama.pulled == []


def test_found_ollama_downloads_for_a_home_without_a_model(
    make_daemon: Callable[..., RunningDaemon], ollama: ScriptedOllama
) -> None:
    ollama.listed = []
    daemon = make_daemon(RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=str(ollama.port)).start()
    [found] = daemon.get("/models/servers", control=True).json()["local"]["servers"]
    assert (found["name"], found["models"]) == ("Ollama", [])
    answer = daemon.post("/models/download", {"model": "tiny", "server": found["server"]}, control=True)
    assert answer.json() == {"status": "ok", "model": "tiny"}
    [found] = daemon.get("/models/servers", control=True).json()["local"]["servers"]
    assert found["models"] == ["tiny"]
