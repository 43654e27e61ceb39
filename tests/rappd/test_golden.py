"""The published wire: the five frozen endpoints keep their shape (RAPP v1 §8), and details that clients rely on stay."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.golden_shapes import GOLDEN, differences, shape, type_of
from fixtures.loopback_server import FakeGitHub, FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

SPECIFIED = {
    "chat": {"response", "assistant_response", "session_id", "user_guid", "agent_logs", "voice_mode", "twin_mode"},
    "chat_with_modes": {"voice_response", "twin_response"},
    "health": {"status", "model", "agents", "token", "bootstrap"},
    "login": {"user_code", "verification_uri"},
    "models": {"models", "models[].id", "current"},
    "repos": {"repos", "repos[].url", "repos[].agents", "repos[].enabled_count"},
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The answers of one daemon at each endpoint, with as many of the keys filled as there can be."""
    github = FakeGitHub()
    github.start()
    folder = tmp_path_factory.mktemp("golden")
    daemon = RunningDaemon(folder / "home", GITHUB_TOKEN="ghu_given", **github.environment)
    daemon.drop("broken_agent.py", "class A(:\n")
    (folder / "clone" / "agents").mkdir(parents=True)
    (folder / "clone" / "agents" / "aaa_agent.py").write_text(agent_source("Aaa"))
    try:
        daemon.start()
        found = {"chat": daemon.chat("hello", session_id="s")}
        daemon.post("/voice/toggle", {"enabled": True})
        daemon.post("/twin/toggle", {"enabled": True})
        github.will(says("long answer |||VOICE||| short |||TWIN||| aside"))
        found["chat_with_modes"] = daemon.chat("hello", session_id="s")
        found["health"] = daemon.get("/health").json()
        found["login"] = daemon.post("/login").json()
        found["models"] = daemon.get("/models").json()
        daemon.post("/repos/connect", {"url": str(folder / "clone")}, control=True)
        found["repos"] = daemon.get("/repos").json()
        yield found
    finally:
        daemon.stop()
        github.stop()


@pytest.mark.parametrize("name", SPECIFIED)
def test_an_endpoint_answers_in_its_golden_shape(answers: dict[str, Any], name: str) -> None:
    assert differences(shape(name)["keys"], answers[name]) == []


@pytest.mark.parametrize("name", SPECIFIED)
def test_every_list_had_something_in_it(answers: dict[str, Any], name: str) -> None:
    """Else the shape of its items would not have been looked at."""
    for path in shape(name)["keys"]:
        if path.endswith("[]"):
            assert _at(answers[name], path.removesuffix("[]")), path


@pytest.mark.parametrize("name", SPECIFIED)
def test_losing_renaming_or_retyping_any_required_key_would_show(answers: dict[str, Any], name: str) -> None:
    keys = shape(name)["keys"]
    for path, wanted in keys.items():
        if not wanted["required"] or path.endswith("[]"):
            continue
        for spoil in (_lose, _rename, _retype):
            assert differences(keys, spoil(answers[name], path)), (spoil.__name__, path)


@pytest.mark.parametrize("name", SPECIFIED)
def test_the_shape_files_hold_what_the_specification_names(name: str) -> None:
    keys = shape(name)["keys"]
    assert SPECIFIED[name] <= {path for path, wanted in keys.items() if wanted["required"]}
    for path in keys:
        parent = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
        assert not parent or parent in keys or parent.removesuffix("[]") in keys, path
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SPECIFIED)


def test_an_added_key_passes() -> None:
    assert differences(KEYS, {**WHOLE, "new": 1, "list": [{"id": "a", "more": None}]}) == []


def test_an_optional_key_may_be_away_but_not_of_another_type() -> None:
    assert differences(KEYS, WHOLE) == []
    assert differences(KEYS, {**WHOLE, "maybe": 3}) == []
    assert differences(KEYS, {**WHOLE, "maybe": "3"}) == ["maybe is string, not number"]


def test_empty_lists_and_objects_are_looked_into_no_further() -> None:
    assert differences(KEYS, {**WHOLE, "list": []}) == []
    assert differences(KEYS, {**WHOLE, "inner": {}}) == ["inner.on is missing"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"list": [], "inner": {"on": True}}, ["text is missing"]),
        ({"text": 1, "list": [], "inner": {"on": True}}, ["text is number, not string"]),
        ({"text": "x", "list": None, "inner": {"on": True}}, ["list is null, not array"]),
        ({"text": "x", "list": [{"id": "a"}, {}], "inner": {"on": True}}, ["list[1].id is missing"]),
        ({"text": "x", "list": ["a"], "inner": {"on": True}}, ["list[0] is string, not object"]),
        ({"text": "x", "list": [], "inner": {"on": 1}}, ["inner.on is number, not boolean"]),
        ({"text": "x", "list": [], "inner": []}, ["inner is array, not object"]),
        ([], ["the answer is array, not object"]),
        (None, ["the answer is null, not object"]),
    ],
)
def test_what_is_lost_or_of_another_type_is_told(answer: Any, told: list[str]) -> None:
    assert differences(KEYS, answer) == told


def test_booleans_are_no_numbers() -> None:
    every: list[Any] = [True, 0, 0.5, "", None, [], {}]
    kinds = [type_of(value) for value in every]
    assert kinds == ["boolean", "number", "number", "string", "null", "array", "object"]


KEYS: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "required": True},
    "list": {"type": "array", "required": True},
    "list[]": {"type": "object", "required": True},
    "list[].id": {"type": "string", "required": True},
    "inner": {"type": "object", "required": True},
    "inner.on": {"type": "boolean", "required": True},
    "maybe": {"type": "number", "required": False},
}
WHOLE: dict[str, Any] = {"text": "x", "list": [{"id": "a"}], "inner": {"on": False}}


def _at(answer: Any, path: str) -> Any:
    for step in path.replace("[]", ".[]").split("."):
        answer = answer[0] if step == "[]" else answer[step]
    return answer


def _spoilt(answer: Any, path: str, change: Callable[[dict[str, Any], str], None]) -> Any:
    spoilt = copy.deepcopy(answer)
    parent, _, key = path.rpartition(".")
    change(_at(spoilt, parent) if parent else spoilt, key)
    return spoilt


def _lose(answer: Any, path: str) -> Any:
    return _spoilt(answer, path, lambda parent, key: parent.pop(key))


def _rename(answer: Any, path: str) -> Any:
    return _spoilt(answer, path, lambda parent, key: parent.update({f"{key}_2": parent.pop(key)}))


def _retype(answer: Any, path: str) -> Any:
    other = {"string": 1, "number": "1", "boolean": "true", "array": {}, "object": []}
    return _spoilt(answer, path, lambda parent, key: parent.update({key: other[type_of(parent[key])]}))


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
