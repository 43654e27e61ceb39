"""``rappd models``, and what start, status and doctor say of a model server on this machine."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
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
    seen = terminal.read_until(lambda seen: "rappd models use local" in seen.text)
    line = f"A model server answers at 127.0.0.1:{model.port} (local model, small). Use it:"
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
