"""MCP as programs use it: on this machine, with a token from elsewhere, in both eras."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

from envelopes.codecs import mcp
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.programs.conftest import ask, setting, token

PATH = "/mcp"
TASKS = {"extensions": {mcp.TASKS: {}}}
_SLOW = """import time
        open(".brainstem_data/begun", "w").close()
        time.sleep(float(kwargs.get("seconds", 20)))
        return "done\""""


def message(
    method: str, id: Any = 1, capabilities: Any = None, meta: Any = None, **params: Any
) -> dict[str, Any]:
    """A request of the newer era."""
    stated = {
        "io.modelcontextprotocol/protocolVersion": mcp.MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "desk editor", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        **(meta or {}),
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": stated}}


def headers(asked: dict[str, Any], **more: str) -> dict[str, str]:
    params = asked["params"]
    name = params.get("name") or params.get("taskId")
    found = {
        mcp.VERSION_HEADER: mcp.MODERN,
        mcp.METHOD_HEADER: asked["method"],
        "Content-Type": "application/json",
    }
    return {**found, **({mcp.NAME_HEADER: name} if name else {}), **more}


def post(daemon: RunningDaemon, method: str, *, control: bool = False, **how: Any) -> Answer:
    asked = message(method, **how)
    return daemon.post(PATH, asked, headers=headers(asked), control=control)


def result(daemon: RunningDaemon, method: str, **how: Any) -> dict[str, Any]:
    answer = post(daemon, method, **how)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()["result"]
    return found


def call(daemon: RunningDaemon, tool: str, arguments: Any = None, **how: Any) -> dict[str, Any]:
    return result(daemon, "tools/call", name=tool, arguments=arguments or {}, **how)


def names(listed: dict[str, Any]) -> list[str]:
    return [one["name"] for one in listed["tools"]]


def older(daemon: RunningDaemon, method: str, session: str = "", id: Any = 1, **params: Any) -> Answer:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    sent = {mcp.VERSION_HEADER: "2025-11-25", "Content-Type": "application/json"}
    if session:
        sent[mcp.SESSION_HEADER] = session
    return daemon.post(PATH, body if id is None else {**body, "id": id}, headers=sent)


def test_a_cursor_that_nobody_gave_out_is_refused(node: Node) -> None:
    assert names(result(node.daemon, "tools/list", cursor="")) == ["ask"]
    assert post(node.daemon, "tools/list", cursor="zzz").json()["error"]["code"] == -32602
    refused = post(node.daemon, "resources/templates/list", control=True, cursor="zzz")
    assert refused.json()["error"]["code"] == -32602


def test_a_program_here_is_offered_turns_alone(node: Node) -> None:
    listed = result(node.daemon, "tools/list")
    assert names(listed) == ["ask"]
    assert listed["tools"][0]["inputSchema"]["properties"]["twin"]["enum"] == ["brainstem", "twin/gardener"]
    refused = post(node.daemon, "tools/call", name="Clock", arguments={}).json()["error"]
    assert (refused["code"], refused["message"]) == (-32602, 'There is no tool "Clock". Ask for tools/list.')


def test_an_answer_names_its_conversation_and_goes_on_there(node: Node) -> None:
    first = call(node.daemon, "ask", {"message": "use Clock"})
    assert "it is now" in first["content"][0]["text"]
    conversation = first["structuredContent"]["conversation"]
    second = call(node.daemon, "ask", {"message": "use Clock again", "conversation": conversation})
    assert second["structuredContent"]["conversation"] == conversation
    _, found = node.owner("GET", "/programs/conversations")
    mine = next(one for one in found["conversations"] if one["session"] == conversation)
    _, shown = node.owner("GET", f"/conversations/{mine['id']}")
    assert [turn["user"] for turn in shown["turns"]] == ["use Clock", "use Clock again"]
    twin = call(node.daemon, "ask", {"message": "hello", "twin": "twin/gardener"})
    assert twin["isError"] is False


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "message is required"),
        ({"message": "  "}, "message is required"),
        ({"message": 7}, "message must be a text"),
        ({"message": "hi", "twin": 7}, "texts"),
        ({"message": "hi", "twin": "twin/nobody"}, "twin/gardener"),
    ],
)
def test_what_ask_lacks_is_told_to_the_model_that_asked(node: Node, arguments: Any, told: str) -> None:
    found = call(node.daemon, "ask", arguments)
    assert found["isError"] is True
    assert told in found["content"][0]["text"]


def test_agents_are_tools_of_programs_at_the_control_socket_but_no_structural_one(node: Node) -> None:
    listed = result(node.daemon, "tools/list", control=True)
    assert {"ask", "Clock", "Secret"} <= set(names(listed))
    assert not {"LearnNew", "Twin", "HatchEgg", "Fleet", "AskPeer"} & set(names(listed))
    assert call(node.daemon, "Clock", {"zone": "UTC"}, control=True)["content"][0]["text"] == "it is UTC"
    for hidden in ("LearnNew", "learnnew", "HatchEgg", "nobody"):
        answer = post(node.daemon, "tools/call", name=hidden, arguments={}, control=True)
        assert answer.json()["error"]["message"] == f'There is no tool "{hidden}". Ask for tools/list.'
    assert call(node.daemon, "ask", {"message": "use LearnNew"}, control=True)["isError"] is False


def test_a_token_brings_its_agents_here_and_from_elsewhere(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem.Clock")["text"]
    asked = message("tools/list")
    here = node.daemon.post(PATH, asked, headers=headers(asked, Authorization=f"Bearer {issued}"))
    there = ask(elsewhere, PATH, asked, issued, headers=headers(asked))
    assert names(here.json()["result"]) == names(there.json["result"]) == ["Clock"]
    asked = message("tools/call", name="Clock", arguments={})
    found = ask(elsewhere, PATH, asked, issued, headers=headers(asked))
    assert found.json["result"]["content"][0]["text"] == "it is now"
    for hidden in ("Secret", "ask", "LearnNew", "nobody"):
        asked = message("tools/call", name=hidden, arguments={"message": "hi"})
        found = ask(elsewhere, PATH, asked, issued, headers=headers(asked))
        assert "error" in found.json or found.json["result"]["isError"], hidden
        assert "secret" not in found.body.decode()


def test_a_stranger_is_refused_in_the_protocols_shape(node: Node, elsewhere: PlainMachine) -> None:
    asked = message("tools/list")
    for key in ("", "sk-nothing"):
        answer = ask(elsewhere, PATH, asked, key, headers=headers(asked))
        assert answer.status == 401
        assert answer.json["error"]["code"] == -32000
        assert answer.json["error"]["data"].keys() == {"error", "do", "code"}
    assert ask(elsewhere, PATH, token="").status == 401


def test_a_foreign_page_and_a_foreign_host_are_refused(node: Node) -> None:
    asked = message("tools/list")
    for name, value in (("Host", "evil.example:80"), ("Origin", "https://evil.example")):
        assert node.daemon.post(PATH, asked, headers=headers(asked, **{name: value})).status == 403
        listening = {name: value, "Accept": "text/event-stream"}
        assert node.daemon.get(PATH, headers=listening).status == 403
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert node.daemon.request("OPTIONS", PATH, None, preflight).status == 403


def test_a_page_that_the_owner_listed_may_speak_it(node: Node) -> None:
    page = "https://notes.example"
    setting(node, "http.origins", page)
    try:
        asked = message("tools/list")
        found = node.daemon.post(PATH, asked, headers=headers(asked, Origin=page))
        assert (found.status, found.headers["access-control-allow-origin"]) == (200, page)
        preflight = {"Origin": page, "Access-Control-Request-Method": "POST"}
        allowed = node.daemon.request("OPTIONS", PATH, None, preflight).headers[
            "access-control-allow-headers"
        ]
        assert set(headers(asked)) <= set(allowed.split(", "))
    finally:
        setting(node, "http.origins", "")


def test_switched_off_it_is_not_there(node: Node) -> None:
    setting(node, "programs.mcp", "off")
    try:
        answer = post(node.daemon, "tools/list")
        assert answer.status == 404
        assert answer.json()["error"]["data"]["code"] == "protocol_off"
    finally:
        setting(node, "programs.mcp", "on")


@pytest.mark.parametrize(
    ("body", "status", "number"),
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing/here"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}', 200, -32601),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ask"}}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', 200, -32602),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":[]}}',
            200,
            -32602,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}', 400, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', 400, -32602),
    ],
)
def test_bad_input_gets_the_protocols_number(node: Node, body: bytes, status: int, number: int) -> None:
    answer = node.daemon.post(PATH, body, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json()["error"]["code"]) == (status, number)
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "prompts/list", "tasks/list", "x"]
)
def test_what_the_newer_revision_has_not_is_a_404(node: Node, method: str) -> None:
    answer = post(node.daemon, method)
    assert (answer.status, answer.json()["error"]["code"]) == (404, -32601)


def test_the_older_era_begins_with_a_handshake_and_keeps_no_session(node: Node) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "désk", "version": "1"},
    }
    answer = older(node.daemon, "initialize", **hello)
    welcome, session = answer.json()["result"], answer.headers["mcp-session-id"]
    assert welcome["protocolVersion"] == "2025-11-25"
    assert welcome["capabilities"] == {"tools": {"listChanged": True}}
    assert older(node.daemon, "notifications/initialized", session, id=None).status == 202
    assert older(node.daemon, "ping", session).json()["result"] == {}
    listed = older(node.daemon, "tools/list", session).json()["result"]
    assert set(listed) == {"tools"}
    said = older(node.daemon, "tools/call", session, name="ask", arguments={"message": "use Clock"})
    assert "it is now" in said.json()["result"]["content"][0]["text"]
    again = older(node.daemon, "tools/call", session, name="ask", arguments={"message": "use Clock"})
    assert again.json() == said.json(), "a repeat of the id in its session gets the same answer"
    other = older(node.daemon, "tools/call", session, id=2, name="ask", arguments={"message": "use Clock"})
    assert other.json()["result"] != said.json()["result"], "another id is another turn"
    assert node.daemon.request("DELETE", PATH, None, {mcp.SESSION_HEADER: session}).status == 405


@pytest.fixture(scope="module")
def slow(node: Node) -> Iterator[Node]:
    """The machine with agents that take their time."""
    node.daemon.drop("slow_agent.py", agent_source("Slow", _SLOW))
    pieces = "import time\n        def steps():\n            for n in range(3):\n                yield f'{n} '\n        return steps()"
    node.daemon.drop("steps_agent.py", agent_source("Steps", pieces))
    failing = 'raise RuntimeError("the job failed")'
    node.daemon.drop("failing_agent.py", agent_source("Failing", failing))
    node.daemon.drop("fact_agent.py", agent_source("Fact", "return '{\"degrees\": 18}'"))
    for name in ("Slow", "Steps", "Failing", "Fact"):
        node.daemon.wait_for(lambda name=name: name in node.daemon.agent_names(), what=name)
    yield node


def test_results_are_text_structure_or_an_error(slow: Node) -> None:
    fact = call(slow.daemon, "Fact", control=True)
    assert (fact["structuredContent"], fact["isError"]) == ({"degrees": 18}, False)
    failed = call(slow.daemon, "Failing", control=True)
    assert failed["isError"] is True
    assert "the job failed" in failed["content"][0]["text"]


def _events(daemon: RunningDaemon, asked: dict[str, Any]) -> list[dict[str, Any]]:
    sent = headers(asked, Accept="application/json, text/event-stream")
    answer = daemon.post(PATH, asked, headers=sent, control=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(one[6:]) for one in answer.body.split(b"\n") if one.startswith(b"data: ")]


def test_progress_comes_before_the_result_where_it_was_asked_for(slow: Node) -> None:
    asked = message("tools/call", name="Steps", arguments={}, meta={"progressToken": "p1"})
    *told, last = _events(slow.daemon, asked)
    assert [one["params"]["message"] for one in told] == ["0 ", "1 ", "2 "]
    numbers = [one["params"]["progress"] for one in told]
    assert numbers == sorted(set(numbers))
    assert {one["params"]["progressToken"] for one in told} == {"p1"}
    assert last["result"]["content"][0]["text"] == "0 1 2 "


def _task(daemon: RunningDaemon, tool: str, arguments: Any) -> str:
    created = call(daemon, tool, arguments, capabilities=TASKS, control=True)
    assert created["resultType"] == "task", created
    assert created["status"] == "working"
    id: str = created["taskId"]
    return id


def _state(daemon: RunningDaemon, id: str, method: str = "tasks/get", **more: Any) -> Answer:
    return post(daemon, method, taskId=id, capabilities=TASKS, control=True, **more)


def _ended(daemon: RunningDaemon, id: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = _state(daemon, id).json()["result"]
        return found if found["status"] != "working" else None

    found: dict[str, Any] = daemon.wait_for(look, what="the task to end")
    return found


def test_a_long_call_is_a_task_whose_result_waits(slow: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    id = _task(slow.daemon, "Slow", {"seconds": 3})
    found = _ended(slow.daemon, id)
    assert found["status"] == "completed"
    assert found["result"]["content"][0]["text"] == "done"
    assert _ended(slow.daemon, id) == found, "it can be fetched again"
    monkeypatch.setattr("rappd.listeners.mcp.TASK_SECONDS", 100.0)  # what is quick, on a busy machine, too
    assert call(slow.daemon, "Clock", capabilities=TASKS, control=True)["resultType"] == "complete"


def test_a_task_is_cancelled_and_stays_so(slow: Node) -> None:
    id = _task(slow.daemon, "Slow", {})
    assert _state(slow.daemon, id, "tasks/cancel").json()["result"]["resultType"] == "complete"
    assert _ended(slow.daemon, id)["status"] == "cancelled"
    assert _state(slow.daemon, id, "tasks/cancel").status == 200


def test_a_task_is_nobodys_but_the_programs_that_began_it(slow: Node) -> None:
    id = _task(slow.daemon, "Slow", {"seconds": 3})
    issued = token(slow, "HELP.*", name="other")["text"]
    asked = message("tasks/get", taskId=id, capabilities=TASKS)
    answer = slow.daemon.post(PATH, asked, headers=headers(asked, Authorization=f"Bearer {issued}"))
    assert answer.json()["error"] == {"code": -32602, "message": "There is no such task of yours. Ask anew."}
    for unknown in ("nothing", "0190a5b4-0000-7000-8000-000000000000"):
        assert _state(slow.daemon, unknown).json()["error"]["code"] == -32602


def test_without_the_extension_there_are_no_tasks(slow: Node) -> None:
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        answer = post(slow.daemon, method, taskId="x", control=True)
        assert answer.json()["error"]["code"] == -32021
        assert answer.json()["error"]["data"] == {"requiredCapabilities": TASKS}
    found = call(slow.daemon, "Slow", {"seconds": 0.6}, control=True)
    assert found["content"][0]["text"] == "done"


@contextmanager
def _begun(slow: Node) -> Iterator[None]:
    """The agent Slow begins to work within the block."""
    mark = slow.daemon.data / "begun"
    mark.unlink(missing_ok=True)
    yield
    slow.daemon.wait_for(mark.exists, what="the call to be under way")


def test_hanging_up_cancels_a_call_of_the_newer_era(slow: Node) -> None:
    asked = message("tools/call", name="Slow", arguments={"seconds": 600})
    key = {mcp.KEY_HEADER: "hang-up"}
    connection = http.client.HTTPConnection("127.0.0.1", slow.daemon.port)
    issued = token(slow, "HELP.*", name="hanging")["text"]
    sent = headers(asked, Authorization=f"Bearer {issued}", **key)
    with _begun(slow):
        connection.request("POST", PATH, json.dumps(asked), sent)
    connection.close()
    again = slow.daemon.post(PATH, asked, headers=sent)  # gets the turn that was under way, and its end
    found = again.json()["result"]
    assert found["isError"] is True
    assert "Stopped" in found["content"][0]["text"]


CALLS = pytest.mark.parametrize(
    ("tool", "arguments"), [("ask", {"message": "use Slow"}), ("Slow", {"seconds": 600})]
)


@contextmanager
def _without_key(slow: Node, tool: str, arguments: Any) -> Iterator[tuple[socket.socket, str]]:
    """A call of Slow under way that the program gave no key: its connection, and the turn's id."""
    asked = message("tools/call", name=tool, arguments=arguments)
    sent = {**headers(asked), "Host": "rappd", "Content-Length": str(len(json.dumps(asked)))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())

    def calls() -> list[str]:
        events = slow.owner("GET", "/activity")[1]["events"]
        return [one["id"] for one in events if "program" in one["data"]]

    before = set(calls())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(slow.daemon.home / "rappd.sock"))
        with _begun(slow):
            connection.sendall(f"POST {PATH} HTTP/1.1\r\n{head}\r\n{json.dumps(asked)}".encode())
        new = slow.daemon.wait_for(lambda: [one for one in calls() if one not in before], what="its record")
        yield connection, new[-1]


@CALLS
def test_hanging_up_stops_a_call_that_no_key_names(slow: Node, tool: str, arguments: Any) -> None:
    with _without_key(slow, tool, arguments) as (connection, turn):
        connection.close()
        slow.daemon.wait_for(lambda: len(slow.records(turn)) > 1, what="the call to be stopped")
    assert [(one["verb"], one["data"].get("code")) for one in slow.records(turn)] == [
        ("HELP", None),
        ("ERROR", 499),
    ]


@CALLS
def test_the_owner_stops_a_call_that_no_key_names(slow: Node, tool: str, arguments: Any) -> None:
    with _without_key(slow, tool, arguments) as (connection, turn):
        assert slow.daemon.post("/chat/cancel", {"turn_id": turn}, control=True).status == 200
        connection.settimeout(60)
        answer = connection.recv(1 << 16)
    assert b" 200 OK" in answer and b"Stopped." in answer and b'"isError":true' in answer


def test_a_cancelled_request_of_the_older_era_is_stopped(slow: Node) -> None:
    issued = token(slow, "HELP.*", name="cancelling")["text"]
    session = "s-1"
    params = {"name": "Slow", "arguments": {"seconds": 600}}
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
    sent = {
        mcp.SESSION_HEADER: session,
        "Authorization": f"Bearer {issued}",
        "Content-Type": "application/json",
    }
    connection = http.client.HTTPConnection("127.0.0.1", slow.daemon.port, timeout=100)
    with _begun(slow):
        connection.request("POST", PATH, json.dumps(body), sent)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    for _ in range(20):
        slow.daemon.post(PATH, cancel, headers={**sent, mcp.SESSION_HEADER: "another"})  # of no effect
    assert slow.daemon.post(PATH, cancel, headers=sent).status == 202
    found = json.loads(connection.getresponse().read())["result"]
    connection.close()
    assert "Stopped" in found["content"][0]["text"]


def _first_events(
    daemon: RunningDaemon, method: str, body: Any, sent: dict[str, str], change: Any
) -> list[Any]:
    """The first two events of a stream; ``change`` is made once it is open."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    connection.request(method, PATH, None if body is None else json.dumps(body), sent)
    response = connection.getresponse()
    found = []
    if body is not None:
        found.append(json.loads(response.readline()[6:]))
        response.readline()
    change()
    found.append(json.loads(response.readline()[6:]))
    connection.close()
    return found


def test_word_of_changed_tools_comes_to_those_who_listen(slow: Node) -> None:
    issued = token(slow, "HELP.*", name="listening")["text"]
    asked = message(
        "subscriptions/listen", id="sub-1", notifications={"toolsListChanged": True, "other": True}
    )
    sent = headers(asked, Authorization=f"Bearer {issued}")

    def drop(name: str) -> None:
        slow.daemon.drop(f"{name.lower()}_agent.py", agent_source(name))

    begun, changed = _first_events(slow.daemon, "POST", asked, sent, lambda: drop("Fresh"))
    assert begun["method"] == "notifications/subscriptions/acknowledged"
    assert begun["params"]["notifications"] == {"toolsListChanged": True}
    assert changed["method"] == "notifications/tools/list_changed"
    marks = [one["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for one in (begun, changed)]
    assert marks == ["sub-1", "sub-1"]
    sent = {"Accept": "text/event-stream", "Authorization": f"Bearer {issued}"}
    (changed,) = _first_events(slow.daemon, "GET", None, sent, lambda: drop("Newer"))
    assert changed == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


ASKS = """import json
        answers = kwargs.get("input_responses") or {}
        if not {"name", "age"} <= answers.keys():
            asks = {key: {"method": "elicitation/create", "params": {"message": key}} for key in ("name", "age")}
            return json.dumps({"inputRequests": asks, "requestState": "kept"})
        return kwargs["request_state"] + " " + answers["name"]["content"]["text"] + " " + kwargs.get("greeting", "")"""
ELICITS = {"elicitation": {}, **TASKS}
ANSWERS = {key: {"action": "accept", "content": {"text": "Ann"}} for key in ("name", "age")}


@pytest.fixture(scope="module")
def asking(slow: Node) -> Node:
    """The machine with an agent that asks back, at once or after a while."""
    slow.daemon.drop("asks_agent.py", agent_source("Asks", ASKS))
    late = ASKS.replace("import json", "import json, time; time.sleep(3)")
    slow.daemon.drop("late_agent.py", agent_source("Late", late))
    for name in ("Asks", "Late"):
        slow.daemon.wait_for(lambda name=name: name in slow.daemon.agent_names(), what=name)
    return slow


def test_an_agent_may_ask_back_and_is_called_again_with_the_answers(asking: Node) -> None:
    how: dict[str, Any] = {"capabilities": {"elicitation": {}}, "control": True}
    first = call(asking.daemon, "Asks", {"greeting": "hi"}, **how)
    assert first["resultType"] == "input_required"
    assert set(first["inputRequests"]) == {"name", "age"}
    state = first["requestState"]
    assert "kept" not in state
    more = {"inputResponses": ANSWERS, "requestState": state}
    last = call(asking.daemon, "Asks", {"greeting": "hi"}, **how, **more)
    assert last["content"][0]["text"] == "kept Ann hi"
    for wrong in (state + "x", state[1:], "x", "", 7, "a.b"):
        more = {"inputResponses": ANSWERS, "requestState": wrong}
        answer = post(asking.daemon, "tools/call", name="Asks", arguments={}, **how, **more)
        assert answer.json()["error"]["code"] == -32602, wrong
    more = {"inputResponses": ANSWERS, "requestState": state}
    other = post(asking.daemon, "tools/call", name="Late", arguments={}, **how, **more)
    assert other.json()["error"]["code"] == -32602, "it is another tool's"
    for wrong in (None, [], {"name": 7}):
        answer = post(asking.daemon, "tools/call", name="Asks", arguments={}, inputResponses=wrong, **how)
        assert answer.json()["error"]["code"] == -32602


def test_only_what_a_program_can_answer_is_asked(asking: Node) -> None:
    answer = post(asking.daemon, "tools/call", name="Asks", arguments={}, control=True)
    assert answer.json()["error"]["code"] == -32021
    assert answer.json()["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Asks"}}
    found = asking.daemon.post(PATH, body, headers={"Content-Type": "application/json"}, control=True).json()
    assert found["result"]["isError"] is True
    assert "2026-07-28" in found["result"]["content"][0]["text"]


def test_a_task_waits_for_its_answers_one_by_one(asking: Node) -> None:
    created = call(asking.daemon, "Late", {"greeting": "hi"}, capabilities=ELICITS, control=True)
    id = created["taskId"]
    found = _ended(asking.daemon, id)
    assert (found["status"], set(found["inputRequests"])) == ("input_required", {"name", "age"})

    def update(**answers: Any) -> None:
        sent = {"taskId": id, "inputResponses": answers, "capabilities": ELICITS, "control": True}
        assert post(asking.daemon, "tasks/update", **sent).json()["result"]["resultType"] == "complete"

    update(unknown={"x": 1})
    update(name=ANSWERS["name"])
    assert set(_ended(asking.daemon, id)["inputRequests"]) == {"age"}
    update(age=ANSWERS["age"])
    found = _ended(asking.daemon, id)
    assert found["result"]["content"][0]["text"] == "kept Ann hi"
    update(age=ANSWERS["age"])
    assert _ended(asking.daemon, id) == found, "what comes late changes nothing"


def test_an_agent_that_takes_tasks_alone_is_refused_to_programs_without_them(
    asking: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rappd.listeners.mcp.TASK_SECONDS", 100.0)
    source = agent_source("Hours").replace(
        '"description": "A test.",', '"description": "A test.", "task_only": True,'
    )
    asking.daemon.drop("hours_agent.py", source)
    asking.daemon.wait_for(lambda: "Hours" in asking.daemon.agent_names(), what="Hours")
    answer = post(asking.daemon, "tools/call", name="Hours", arguments={}, control=True)
    assert answer.json()["error"]["data"] == {"requiredCapabilities": TASKS}
    assert call(asking.daemon, "Hours", capabilities=TASKS, control=True)["content"][0]["text"] == "done"


def test_conversations_and_memories_are_for_programs_that_were_given_them(
    node: Node, elsewhere: PlainMachine
) -> None:
    node.daemon.post("/chat", {"user_input": "use Clock for the record", "session_id": "owners"})
    node.daemon.post(
        "/chat", {"user_input": "use Clock of another", "user_guid": "0" * 8 + "-1111-4111-8111-" + "0" * 12}
    )
    node.daemon.post("/memories", {"message": "the car is red"}, control=True)

    def reads(uri: str, text: str) -> Any:
        asked = message("resources/read", uri=uri)
        found = ask(elsewhere, PATH, asked, text, headers={**headers(asked), mcp.NAME_HEADER: uri})
        return (
            found.json["error"]["data"]
            if "error" in found.json
            else found.json["result"]["contents"][0]["text"]
        )

    def lists(text: str) -> list[str]:
        asked = message("resources/list")
        found = ask(elsewhere, PATH, asked, text, headers=headers(asked)).json
        return (
            [one["name"] for one in found["result"]["resources"]]
            if "result" in found
            else [str(found["error"]["code"])]
        )

    talks = token(node, "READ.conversations", name="talks")["text"]
    facts = token(node, "READ.memories", name="facts")["text"]
    plain = token(node, "HELP.*", name="plain")["text"]
    assert "use Clock for the record" in lists(talks)
    assert not {"use Clock of another", "Memories"} & set(lists(talks))
    assert lists(facts) == ["Memories"]
    assert lists(plain) == ["-32601"]
    assert "the car is red" in reads("rappd://memories", facts)
    assert reads("rappd://memories", talks) == {"uri": "rappd://memories"}
    asked = message("resources/list")
    rows = ask(elsewhere, PATH, asked, talks, headers=headers(asked)).json["result"]["resources"]
    uri = next(one["uri"] for one in rows if one["name"] == "use Clock for the record")
    assert "**Person:** use Clock for the record" in reads(uri, talks)
    assert reads(uri, facts) == {"uri": uri}
    assert reads("rappd://conversations/../x", talks) == {"uri": "rappd://conversations/../x"}
    assert post(node.daemon, "resources/list").json()["error"]["code"] == -32601
    owners = result(node.daemon, "resources/list", control=True)["resources"]
    assert uri in {one["uri"] for one in owners}
    assert "Memories" not in {one["name"] for one in owners}
    assert "resources" in result(node.daemon, "server/discover", control=True)["capabilities"]
    assert "resources" not in result(node.daemon, "server/discover")["capabilities"]


def test_everything_is_not_what_the_owner_said(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "*", name="everything")["text"]
    asked = message("resources/list")
    refused = ask(elsewhere, PATH, asked, issued, headers=headers(asked)).json
    assert refused["error"]["code"] == -32601, "as for a program that was given nothing to read"
    asked = message("tools/list")
    assert "Clock" in names(ask(elsewhere, PATH, asked, issued, headers=headers(asked)).json["result"])


GOLDEN = Path(__file__).with_name("golden") / "mcp.json"
_VARIES = {"taskId", "createdAt", "lastUpdatedAt", "conversation", "version", "description", "instructions"}


def _golden(found: Any) -> Any:
    """The same without what differs from run to run, or is a sentence."""
    if isinstance(found, dict):
        return {key: "ANY" if key in _VARIES else _golden(value) for key, value in found.items()}
    return [_golden(one) for one in found] if isinstance(found, list) else found


def test_the_wire_keeps_its_golden_shape(slow: Node) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}}
    found = {
        "discover": result(slow.daemon, "server/discover"),
        "initialize": older(slow.daemon, "initialize", **hello).json(),
        "tools": result(slow.daemon, "tools/list"),
        "asked": call(slow.daemon, "ask", {"message": "use Clock"}),
        "called": call(slow.daemon, "Fact", control=True),
        "failed": call(slow.daemon, "Failing", control=True)["isError"],
        "task": call(slow.daemon, "Slow", {"seconds": 3}, capabilities=TASKS, control=True),
        "refused": post(slow.daemon, "tools/call", name="nobody").json(),
    }
    assert _golden(found) == json.loads(GOLDEN.read_text())
