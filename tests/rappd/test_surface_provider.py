"""Turns with a model server: what it is offered, what is done with its answers, what happens without it."""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

from agents.providers.constant_text import with_first_text
from twins.workspace.workspace import DEFAULT_SOUL

FAULT = "ValueError: too warm (line 18)"
GUID = "11111111-2222-4333-8444-555555555555"

MEETS = """import pathlib, time
        here = pathlib.Path(__file__).parent.parent / ".brainstem_data"
        (here / "{mine}").touch()
        until = time.monotonic() + 20
        while not (here / "{other}").exists():
            if time.monotonic() > until:
                return "alone"
            time.sleep(0.01)
        return "met"
"""
ASKS = """from utils.llm import call_llm, provider_status
        said = []
        for number in range(int(kwargs.get("times") or 1)):
            try:
                said.append(call_llm([{"role": "system", "content": "be brief"}, {"role": "user", "content": "ping"}]))
            except Exception as error:
                said.append(f"refused: {error}")
        status = provider_status()
        import json
        return json.dumps([said, status["available"], status["model"]])
"""
HANDS_ON = """import json
        return json.dumps({"status": "success", "data_slush": {"city": "Lisbon", "n": 1}})
"""
RECEIVES = """import json
        return json.dumps({"slush": self.context.slush, "named": self.context.get("upstream_slush")})
"""
AGENTS = {
    "Zeta": 'return "z"',
    "alpha": 'return "a"',
    "Beta": "return repr(sorted(kwargs.items()))",
    "Left": MEETS.format(mine="left", other="right"),
    "Right": MEETS.format(mine="right", other="left"),
    "Asks": ASKS,
    "HandsOn": HANDS_ON,
    "HandsOver": HANDS_ON.replace("Lisbon", "Porto"),
    "Receives": RECEIVES,
    "Fails": 'raise ValueError("too warm")',
}


class Desk(NamedTuple):
    daemon: RunningDaemon
    model: FakeModel


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    model = FakeModel()
    model.start()
    folder = tmp_path_factory.mktemp("provider")
    daemon = RunningDaemon(
        folder / "home", OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_API_KEY="sk-key", OPENAI_MODEL="small"
    )
    for name, body in AGENTS.items():
        daemon.drop(f"{name.lower()}_agent.py", agent_source(name, body))
    try:
        daemon.start()
        yield Desk(daemon, model)
    finally:
        daemon.stop()
        model.stop()


@pytest.fixture
def desk(shared_desk: Desk) -> Desk:
    shared_desk.model.will()
    shared_desk.model.pieces = []
    return shared_desk


NO_OBJECT = "The arguments of Beta are not one JSON object; it was not performed. Call it again."


def test_the_configured_server_is_asked_with_its_key(desk: Desk) -> None:
    desk.model.will(says("hello there"))
    answer = desk.daemon.chat(
        "hello", conversation_history=[{"role": "user", "content": "before"}, {"role": "odd", "content": "x"}]
    )
    assert answer["response"] == answer["assistant_response"] == "hello there"
    assert (answer["model"], answer["requested_model"]) == ("small", "small")
    assert "notice" not in answer
    (asked,) = desk.model.asked
    assert asked["messages"][1:] == [
        {"role": "user", "content": "before"},
        {"role": "user", "content": "hello"},
    ]
    assert desk.model.keys[-1] == "Bearer sk-key"
    assert desk.daemon.get("/health").json()["provider"] == {
        "name": "local model",
        "model": "small",
        "where": f"127.0.0.1:{desk.model.port}",
        "state": "ready",
        "helped": True,
    }


def test_tools_are_sorted_and_structural_for_operator(desk: Desk) -> None:
    desk.daemon.chat("hello")
    everyday = desk.model.tools()
    assert everyday == sorted(everyday)
    assert {"Zeta", "alpha", "Beta", "ContextMemory", "ManageMemory", "HackerNews"} <= set(everyday)
    structural = {"Fleet", "HatchEgg", "LayEgg", "LearnNew", "SwarmFactory", "Twin"}
    structural |= {"NeighborhoodRun", "NeighborhoodSnapshot"}
    assert not structural & set(everyday)
    assert "LearnNew" not in desk.model.system()
    desk.daemon.post("/chat", {"user_input": "hello"}, control=True)
    operators = desk.model.tools()
    assert operators == sorted(operators)
    assert set(operators) - set(everyday) == structural
    assert "- LearnNew: " in desk.model.system()


def test_unoffered_structural_agent_is_not_run(desk: Desk) -> None:
    desk.model.will(calls(("LearnNew", {"action": "list"})), says("well"))
    logs = desk.daemon.chat("hello")["agent_logs"]
    assert logs == "[LearnNew] Agent 'LearnNew' not found."
    desk.model.will(calls(("LearnNew", {"action": "list"})), says("well"))
    answer = desk.daemon.post("/chat", {"user_input": "hello"}, control=True).json()
    assert answer["agent_logs"].startswith("[LearnNew] {")


def test_tool_calls_of_one_answer_run_at_the_same_time(desk: Desk) -> None:
    desk.model.will(calls(("Left", {}), ("Right", {})), says("both"))
    answer = desk.daemon.chat("go")
    assert answer["agent_logs"] == "[Left] met\n[Right] met"
    assert answer["response"] == "both"
    assert desk.model.results() == {"Left": "met", "Right": "met"}


def test_results_and_faults_return_in_call_order(desk: Desk) -> None:
    desk.model.will(
        calls(
            ("Fails", {}), ("Beta", '{"b": 1'), ("Beta", "[1]"), ("Nobody", {}), ("alpha", {}), text="wait"
        ),
        says("done with it"),
    )
    answer = desk.daemon.chat("go")
    assert answer["agent_logs"].split("\n") == [
        "[Fails] ERROR: too warm",
        f"[Beta] ERROR: {NO_OBJECT}",
        f"[Beta] ERROR: {NO_OBJECT}",
        "[Nobody] Agent 'Nobody' not found.",
        "[alpha] a",
    ]
    tools = desk.model.asked[1]["messages"][-5:]
    assert [(m["role"], m["tool_call_id"], m["content"]) for m in tools] == [
        ("tool", "call-0", "Error: too warm"),
        ("tool", "call-1", f"Error: {NO_OBJECT}"),
        ("tool", "call-2", f"Error: {NO_OBJECT}"),
        ("tool", "call-3", "Agent 'Nobody' not found."),
        ("tool", "call-4", "a"),
    ]
    assistant = desk.model.asked[1]["messages"][-6]
    assert (assistant["role"], assistant["content"], len(assistant["tool_calls"])) == ("assistant", "wait", 5)
    assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == [
        "{}"
    ] * 5  # servers parse them again


def test_call_with_arguments_nested_too_deep_to_be_written_down_is_not_performed(desk: Desk) -> None:
    for depth in (60, 300, 2000):
        desk.model.will(calls(("Beta", '{"b": ' + "[" * depth + "]" * depth + "}")), says("done"))
        answer = desk.daemon.chat("go")
        assert (answer["agent_logs"], answer["response"]) == (f"[Beta] ERROR: {NO_OBJECT}", "done")


def test_endless_tool_calls_end_after_three_rounds(desk: Desk) -> None:
    again = calls(("alpha", {}))
    desk.model.will(again, again, again, says("all right"), says("never reached"))
    answer = desk.daemon.chat("go")
    assert answer["response"] == "all right"
    assert answer["agent_logs"] == "\n".join(["[alpha] a"] * 3)
    assert [bool(body.get("tools")) for body in desk.model.asked] == [True, True, True, False]


def test_text_beside_the_third_call_is_the_answer(desk: Desk) -> None:
    again = calls(("alpha", {}))
    desk.model.will(again, again, calls(("alpha", {}), text="so far"), says("never reached"))
    answer = desk.daemon.chat("go")
    assert answer["response"] == "so far"
    assert len(desk.model.asked) == 3


def test_a_turn_that_ends_without_a_word_says_so(desk: Desk) -> None:
    again = calls(("alpha", {}))
    desk.model.will(again, again, again, says(""))
    assert "ran out of steps" in desk.daemon.chat("go")["response"]


def test_signals_of_one_round_reach_the_agents_of_the_next(desk: Desk) -> None:
    desk.model.will(calls(("HandsOn", {})), calls(("Receives", {})), says("done"))
    desk.daemon.chat("go")
    one = {"city": "Lisbon", "n": 1}
    assert json.loads(desk.model.results()["Receives"]) == {"slush": one, "named": one}
    desk.model.will(calls(("HandsOn", {}), ("HandsOver", {})), calls(("Receives", {})), says("done"))
    desk.daemon.chat("go")
    both = {"HandsOn": one, "HandsOver": {"city": "Porto", "n": 1}}
    assert json.loads(desk.model.results()["Receives"])["slush"] == both
    desk.model.will(calls(("Receives", {})), says("done"))
    desk.daemon.chat("go")
    assert not json.loads(desk.model.results()["Receives"])["slush"], "nothing comes over from another turn"


def test_the_system_text_holds_soul_memory_and_roster(desk: Desk) -> None:
    desk.model.will(
        calls(("ManageMemory", {"memory_type": "fact", "content": "The boiler is blue."})), says("kept")
    )
    desk.daemon.chat("remember", user_guid=GUID)
    soul = desk.daemon.home / "brainstem" / "soul.md"
    soul.write_text("You are a lighthouse keeper.")
    desk.daemon.chat("hello", user_guid=GUID)
    system = desk.model.system()
    assert system.startswith("You are a lighthouse keeper.")
    assert "<memory>\n- The boiler is blue. (Theme: fact" in system
    assert "- alpha: A test" in system
    assert f"Agents loaded now: {len(desk.model.tools())}" in system
    soul.write_text("You are a baker now.")
    desk.daemon.chat("hello", user_guid=GUID)
    assert desk.model.system().startswith("You are a baker now.")
    soul.unlink()
    desk.daemon.chat("hello", user_guid=GUID)
    # The next worker to start makes the default one, so that no agent makes another.
    assert desk.model.system().startswith(("You are a helpful AI assistant.", DEFAULT_SOUL.strip()))
    soul.write_text("Back again.")
    desk.daemon.chat("hello", user_guid=GUID)
    assert desk.model.system().startswith("Back again.")


def test_files_with_faults_are_named_to_the_model(desk: Desk) -> None:
    desk.daemon.drop("odd_agent.py", "class A(:\n")
    desk.daemon.wait_for(lambda: desk.daemon.get("/health").json()["quarantined"])
    desk.daemon.chat("hello")
    assert "Not running, because their files have faults: odd_agent.py." in desk.model.system()
    (desk.daemon.agents / "odd_agent.py").unlink()
    desk.daemon.wait_for(lambda: not desk.daemon.get("/health").json()["quarantined"])


@pytest.mark.parametrize(
    ("text", "main", "voice", "twin"),
    [
        ("Long.|||VOICE|||Short.|||TWIN|||Aside.", "Long.", "Short.", "Aside."),
        ("Long. |||TWIN||| Aside. |||VOICE||| Short.", "Long.", "Short.", "Aside."),
        ("Long.", "Long.", "", ""),
        ("<main>Long.</main>|||TWIN|||<twin>Aside <probe/></twin>", "Long.", "", "Aside <probe/>"),
    ],
)
def test_slots_are_split_and_told_only_where_switched_on(
    desk: Desk, text: str, main: str, voice: str, twin: str
) -> None:
    for on in (True, False):
        desk.daemon.post("/voice/toggle", {"enabled": on})
        desk.daemon.post("/twin/toggle", {"enabled": on})
        desk.model.will(says(text))
        answer = desk.daemon.chat("hello")
        assert (answer["response"], answer["voice_mode"], answer["twin_mode"]) == (main, on, on)
        assert ("|||VOICE|||" in desk.model.system(), "|||TWIN|||" in desk.model.system()) == (on, on)
        if on:
            assert (answer["voice_response"], answer["twin_response"]) == (voice, twin)
        else:
            assert not {"voice_response", "twin_response"} & set(answer)


def _stream(daemon: RunningDaemon, **body: Any) -> list[dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    connection.request("POST", "/chat/stream", json.dumps(body))
    response = connection.getresponse()
    events = [json.loads(line[6:]) for line in response if line.startswith(b"data: ")]
    connection.close()
    return events


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_stream_never_shows_a_delimiter(desk: Desk, size: int) -> None:
    text = "a | b || c ||| d |||VO e.|||VOICE|||Short.|||TWIN|||Aside.|||"
    desk.model.pieces = [text[at : at + size] for at in range(0, len(text), size)]
    desk.model.will(says(text))
    events = _stream(desk.daemon, user_input="hello")
    shown = "".join(event["text"] for event in events if event["type"] == "delta")
    assert shown == "a | b || c ||| d |||VO e."
    assert events[-1]["type"] == "done"
    assert events[-1]["response"] == shown
    if size == 1:
        assert sum(event["type"] == "delta" for event in events) > 5


def test_a_stream_tells_calls_with_their_arguments_and_results(desk: Desk) -> None:
    desk.model.will(calls(("Beta", {"b": 1}), ("Fails", {})), says("done"))
    events = _stream(desk.daemon, user_input="hello")
    begun = {event["call"]: event for event in events if event["type"] == "call"}
    ended = {event["call"]: event for event in events if event["type"] == "result"}
    assert {(e["name"], json.dumps(e["args"])) for e in begun.values()} == {
        ("Beta", '{"b": 1}'),
        ("Fails", "{}"),
    }
    assert {(e["name"], e["ok"], e["result"]) for e in ended.values()} == {
        ("Beta", True, "[('b', 1)]"),
        ("Fails", False, FAULT),
    }
    assert begun.keys() == ended.keys()


def test_stopping_a_turn_ends_the_model_call(desk: Desk) -> None:
    desk.model.hang = True
    desk.model.reached.clear()
    desk.model.hung_up.clear()
    turn = str(uuid.uuid4())
    answers: list[Answer] = []
    body = {"user_input": "think long", "turn_id": turn}
    thread = threading.Thread(target=lambda: answers.append(desk.daemon.post("/chat", body)))
    thread.start()
    try:
        assert desk.model.reached.wait(100)
        assert desk.daemon.post("/chat/cancel", {"turn_id": turn}).json() == {"status": "ok", "turn_id": turn}
        assert desk.model.hung_up.wait(100)
    finally:
        desk.model.hang = False
        thread.join(100)
    assert (answers[0].status, answers[0].json()["code"]) == (499, "stopped")
    desk.model.will(says("still here"))
    assert desk.daemon.chat("hello")["response"] == "still here"


def test_an_agent_may_use_the_model_within_its_share(desk: Desk) -> None:
    desk.model.will(calls(("Asks", {"times": 10})), *[says(f"pong {n}") for n in range(8)], says("done"))
    desk.daemon.chat("go")
    said, available, model = json.loads(desk.model.results()["Asks"])
    assert said[:8] == [f"pong {n}" for n in range(8)]
    assert all(text.startswith("refused: Asks used its 8 model calls.") for text in said[8:])
    assert (available, model) == (True, "small")
    inner = desk.model.asked[1]
    assert inner["messages"] == [
        {"role": "system", "content": with_first_text("be brief")},
        {"role": "user", "content": "ping"},
    ]
    assert "tools" not in inner
    set_to = {"name": "agents.model_calls", "value": "1"}
    assert desk.daemon.post("/settings", set_to, control=True).status == 200
    desk.model.will(calls(("Asks", {"times": 2})), says("pong"), says("done"))
    desk.daemon.chat("go")
    said = json.loads(desk.model.results()["Asks"])[0]
    assert [text.partition(":")[0] for text in said] == ["pong", "refused"]


def test_offline_agents_question_is_refused_with_reason(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon()
    daemon.drop("asks_agent.py", agent_source("Asks", ASKS))
    daemon.start()
    found = daemon.post("/agents/run", {"agent": "Asks"}, control=True).json()
    said, available, model = json.loads(found["result"])
    assert said == ["refused: No model answers"]
    assert (available, model) == (False, "")


def test_down_model_answers_offline_with_notice(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small")
    daemon.drop("weather_agent.py", agent_source("Weather", 'return "18 degrees"', "Tells the weather."))
    daemon.start()
    fake_model.will(says("up"))
    assert daemon.chat("hello")["response"] == "up"
    fake_model.status = 500
    answer = daemon.chat("what is the weather?")
    assert answer["response"].startswith("(no model)")
    assert "18 degrees" in answer["response"]
    assert answer["agent_logs"] == "[Weather] 18 degrees"
    assert answer["notice"].startswith("local model said: “broken”; replied without it")
    assert (answer["model"], answer["requested_model"]) == ("no model", "small")
    assert daemon.get("/health").json()["provider"]["state"] == "refused"
    events = _stream(daemon, user_input="what is the weather?")
    assert [event["text"] for event in events if event["type"] == "notice"] == [events[-1]["notice"]]


def test_model_failure_between_rounds_repeats_no_call(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small")
    daemon.drop("weather_agent.py", agent_source("Weather", 'return "18 degrees"', "Tells the weather."))
    daemon.start()

    def breaks(body: dict[str, Any]) -> dict[str, Any]:
        fake_model.status = 500
        return calls(("Weather", {}))

    fake_model.will(breaks)
    answer = daemon.chat("what is the weather?")
    assert answer["agent_logs"] == "[Weather] 18 degrees"
    assert "18 degrees" in answer["response"]
    assert answer["notice"]
