"""``rappd models``: what is said of a model server on this machine, and connecting to one, never a key in sight."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import pytest
from fixtures.free_ports import free_port
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from fixtures.scripted_ollama import ScriptedOllama
from fixtures.terminal import Terminal


@pytest.fixture
def model() -> Iterator[FakeModel]:
    model = FakeModel()
    model.start()
    yield model
    model.stop()


@pytest.fixture
def fresh(make_daemon: Callable[..., RunningDaemon], model: FakeModel) -> RunningDaemon:
    """A home that never heard of the server, not started."""
    return make_daemon(
        "fresh", RAPPD_NAME="desk", RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=str(model.port)
    )


def test_start_tells_of_the_server_and_asks_nothing(fresh: RunningDaemon, model: FakeModel) -> None:
    terminal = Terminal(fresh, "start")
    seen = terminal.read_until(lambda seen: "rappd models use local" in seen.words)
    line = f"A model server answers at 127.0.0.1:{model.port} (local model, small)"
    assert line in " ".join(seen.text.split())
    assert "none (keyword matching)" in seen.text
    terminal.send(signal.SIGINT)
    terminal.to_end()


def test_detached_start_tells_of_the_server(fresh: RunningDaemon) -> None:
    done = fresh.cli("start", "--detach")
    try:
        assert "rappd models use local" in done.stdout
    finally:
        fresh.cli("stop")


def test_use_local_is_a_yes_and_status_and_doctor_say_so(fresh: RunningDaemon, model: FakeModel) -> None:
    before = fresh.cli("doctor").stdout
    assert "waits for your yes" in before
    fresh.start()
    assert "rappd models use local" in fresh.cli("status").stdout
    assert "waits for your yes" in fresh.cli("doctor").stdout
    assert fresh.chat("write me a poem")["response"].endswith("connect a model: rappd models use local")
    listed = json.loads(fresh.cli("models", "list", "--json").stdout)
    assert listed["local"]["offered"]["where"] == f"127.0.0.1:{model.port}"
    said = fresh.cli("models", "list").stdout
    assert "rappd models use local" in said
    assert "✓" not in said, "no model is no choice of a model"

    used = fresh.cli("models", "use", "local")
    assert (used.returncode, used.stdout) == (0, f"✓ local model {model.url} answers from now on.\n")
    model.will(says("found"))
    assert fresh.chat("hello")["response"] == "found"
    assert "Use it" not in fresh.cli("status").stdout
    assert "waits for your yes" not in fresh.cli("doctor").stdout
    assert "provider.local_server" in fresh.cli("config", "show", "provider.local_server").stdout

    again = fresh.cli("models", "use", "local")
    assert again.returncode != 0
    assert "No model server waits for a yes" in again.stderr


def test_use_chooses_a_model_of_the_server(fresh: RunningDaemon, model: FakeModel) -> None:
    fresh.start()
    fresh.cli("models", "use", "local")
    done = fresh.cli("models", "use", "big", "--json")
    assert json.loads(done.stdout) == {"model": "big"}
    assert "✓ big" in fresh.cli("models", "list").stdout
    assert fresh.cli("models", "use", "none of these").returncode != 0
    assert json.loads(fresh.cli("models", "use", "auto", "--json").stdout) == {"model": "small"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [("on", "on"), ("off", "off"), ("ask", "ask"), ("true", "on"), ("0", "off"), ("YES", "on"), ("", "off")],
)
def test_local_setting_takes_the_words_of_a_switch(idle: RunningDaemon, text: str, kept: str) -> None:
    done = idle.cli("config", "set", "provider.local", text)
    assert done.returncode == 0, done.stderr
    assert f"provider.local = {kept}" in done.stdout


def test_local_setting_of_another_word_is_refused(idle: RunningDaemon) -> None:
    done = idle.cli("config", "set", "provider.local", "maybe")
    assert done.returncode == 2
    assert "ask, on, off" in done.stderr


def test_model_is_used_for_a_twin_and_for_a_conversation_alone(
    fresh: RunningDaemon, model: FakeModel
) -> None:
    fresh.start()
    fresh.cli("models", "use", "local")
    fresh.cli("twins", "new", "gardener")
    done = fresh.cli("models", "use", "big", "--twin", "gardener")
    assert (done.returncode, done.stdout) == (0, "✓ gardener answers with big from now on.\n")
    assert "Twin  gardener answers with big\n" in fresh.cli("models", "list").stdout
    (own,) = json.loads(fresh.cli("models", "list", "--json").stdout)["twins"]
    assert (own["twin"], own["model"]) == ("gardener", "big")
    assert "Model     big" in fresh.cli("twins", "show", "gardener").stdout
    told = fresh.cli("twins", "chat", "gardener", "hello")
    assert (told.stdout, told.stderr.split(",")[:2]) == ("done\n", ["big", " local model"])
    assert told.stderr.endswith(" 7 tokens in, 3 out\nno agent was used\n")

    wrong = fresh.cli("models", "use", "bog", "--twin", "gardener")
    assert wrong.returncode != 0
    assert "did you mean big?" in wrong.stderr
    model.will()
    assert "did you mean big?" in fresh.cli("chat", "--model", "bog", "hello").stderr
    assert model.asked == []
    fresh.cli("chat", "--model", "big", "--session", "s", "hello")
    fresh.cli("chat", "--session", "s", "again")  # the conversation keeps it
    fresh.cli("chat", "hello")
    assert [one["model"] for one in model.asked] == ["big", "big", "small"]

    back = fresh.cli("models", "use", "auto", "--twin", "gardener")
    assert back.stdout == "✓ gardener answers with the usual model.\n"
    assert "gardener" not in fresh.cli("models", "list").stdout
    assert fresh.cli("models", "use", "local", "--twin", "gardener").returncode == 2


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
        lambda seen: "That is not a web address" in seen.words and seen.text.count("Address") > 1
    )
    terminal.type(f"{ollama.url}/api\n")
    terminal.read_until(lambda seen: f"Use {ollama.url}/v1?" in seen.words)
    terminal.type("\n")
    seen = terminal.read_until(lambda seen: "number or name" in seen.words)
    assert "Ollama works: small answered" in seen.text
    terminal.type("bigg\n")
    terminal.read_until(lambda seen: "did you mean" in seen.words and seen.text.count("number or name") > 1)
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
