"""Details of the published wire that clients of published brainstems rely on."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

FAILING = {
    "Fails": ('raise ValueError("too warm")', "too warm", "ValueError: too warm"),
    "Lacks": ('return {}["city"]', "'city'", "KeyError: 'city'"),
    "Mute": ("raise RuntimeError", "", "RuntimeError"),
}


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    server = FakeModel()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    home = tmp_path_factory.mktemp("wire") / "home"
    daemon = RunningDaemon(
        home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_API_KEY="sk-key", OPENAI_MODEL="small"
    )
    for name, (body, _, _) in FAILING.items():
        daemon.drop(f"{name.lower()}_agent.py", agent_source(name, body))
    daemon.start()
    yield daemon
    daemon.stop()


def test_chat_mints_a_version_4_session_id(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("one"), says("two"), says("three"))
    minted = uuid.UUID(daemon.chat("hello")["session_id"])
    assert (minted.version, minted.variant) == (4, uuid.RFC_4122)
    again = daemon.chat("and again", session_id=str(minted))
    assert again["session_id"] == str(minted)
    streamed = daemon.post("/chat/stream", {"user_input": "in pieces"}).body.decode()
    done = json.loads(streamed.rstrip().rpartition("data: ")[2])
    assert uuid.UUID(done["session_id"]).version == 4


@pytest.mark.parametrize("name", FAILING)
def test_agent_logs_hold_the_message_alone(daemon: RunningDaemon, model: FakeModel, name: str) -> None:
    _, message, detail = FAILING[name]
    model.will(calls((name, {})), says("done"))
    assert daemon.chat("go")["agent_logs"] == f"[{name}] ERROR: {message}"
    assert model.results() == {name: f"Error: {message}"}
    daemon.wait_for_log(f"agent {name} raised {detail} (line ")
    daemon.wait_for_log("Traceback")


def test_stream_says_where_an_agent_failed(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("Fails", {})), says("done"))
    streamed = daemon.post("/chat/stream", {"user_input": "go"}).body.decode()
    events = [json.loads(row[6:]) for row in streamed.splitlines() if row.startswith("data: ")]
    (ended,) = [event for event in events if event["type"] == "result"]
    assert ended["result"].startswith("ValueError: too warm (line ")


def test_hint_at_a_missing_package_names_that_package(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_INSTALL_PACKAGES="off")
    daemon.drop("aaa_agent.py", "import leftpad_of_nobody\nimport bs4\n" + agent_source("Aaa"))
    daemon.drop("bbb_agent.py", "from PIL import Image\nimport bs4\n" + agent_source("Bbb"))
    daemon.start()
    daemon.wait_for(lambda: len(_faults(daemon)) == 2)
    assert [reason.split()[-1] for _, reason in _faults(daemon)] == ["leftpad_of_nobody", "Pillow"]


def _faults(daemon: RunningDaemon) -> list[tuple[str, str]]:
    """Files that did not load, and why."""
    found = daemon.get("/health").json()["quarantined"]
    return sorted((fault["file"], fault["reason"]) for fault in found)
