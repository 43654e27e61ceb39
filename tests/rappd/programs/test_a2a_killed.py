"""A2A over a ``kill -9``: one answer or one honest error, never two performances, and tasks that are still there."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

COUNTING = """
import pathlib, time
with open(pathlib.Path(".brainstem_data") / "counted.txt", "a") as file:
    file.write("x")
yield "one "
time.sleep(float(kwargs.get("seconds", 0)))
yield "two"
"""

pytestmark = pytest.mark.own_process


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    daemon = make_daemon(RAPPD_HTTP_TOOLS="1")
    daemon.drop("counting_agent.py", agent_source("Counting", COUNTING.strip().replace("\n", "\n        ")))
    return daemon.start()


def counted(daemon: RunningDaemon) -> int:
    path = daemon.data / "counted.txt"
    return len(path.read_text()) if path.exists() else 0


def call(id: str, seconds: float, **settings: Any) -> dict[str, Any]:
    parts = [{"data": {"seconds": seconds}}]
    message = {"messageId": id, "role": "ROLE_USER", "parts": parts, "metadata": {"skillId": "Counting"}}
    return {"message": message, "configuration": settings}


def ask(daemon: RunningDaemon, method: str, params: dict[str, Any]) -> Any:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = daemon.post("/a2a", asked, headers={"A2A-Version": "1.0"})
    assert answer.status == 200, answer.body
    return answer.json()["result"]


def streamed(daemon: RunningDaemon, path: str, asked: dict[str, Any]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    connection.request("POST", path, json.dumps(asked), {"A2A-Version": "1.0"})
    return connection.getresponse()


def rest_of(stream: http.client.HTTPResponse) -> bytes:
    """The bytes that still come; the connection may break off after them."""
    try:
        return stream.read()
    except http.client.IncompleteRead as found:
        return found.partial


def restart(daemon: RunningDaemon) -> None:
    daemon.kill()
    daemon.start()


def test_killed_after_the_answer_the_task_and_a_repeat_have_it(daemon: RunningDaemon) -> None:
    first = ask(daemon, "SendMessage", call("m", 0))["task"]
    assert first["artifacts"][0]["parts"] == [{"text": "one two"}]
    restart(daemon)
    found = ask(daemon, "GetTask", {"id": first["id"]})
    again = ask(daemon, "SendMessage", call("m", 0))["task"]
    for one in (found, again):
        assert {**one, "status": one["status"]["state"]} == {**first, "status": "TASK_STATE_COMPLETED"}
    listed = ask(daemon, "ListTasks", {"contextId": first["contextId"]})
    assert [one["id"] for one in listed["tasks"]] == [first["id"]]
    assert counted(daemon) == 1


def test_killed_between_send_and_answer_it_is_an_honest_error_and_done_once(daemon: RunningDaemon) -> None:
    begun = ask(daemon, "SendMessage", call("m", 60, returnImmediately=True))["task"]
    assert begun["status"]["state"] == "TASK_STATE_WORKING"
    daemon.wait_for(lambda: counted(daemon) == 1)
    restart(daemon)
    found = ask(daemon, "GetTask", {"id": begun["id"]})
    assert found["status"]["state"] == "TASK_STATE_FAILED"
    assert "cut off" in found["status"]["message"]["parts"][0]["text"]
    assert (found["contextId"], found["history"]) == (begun["contextId"], begun["history"])
    for _ in range(2):
        again = ask(daemon, "SendMessage", call("m", 60))["task"]
        assert (again["id"], again["status"]["state"]) == (begun["id"], "TASK_STATE_FAILED")
        assert "cut off" in again["status"]["message"]["parts"][0]["text"]
    assert counted(daemon) == 1, "it was not done again"


def test_killed_in_a_stream_it_breaks_off_and_a_repeat_says_so(daemon: RunningDaemon) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": call("m", 60)}
    stream = streamed(daemon, "/a2a/", asked)
    told = [stream.readline() for _ in range(2)]
    task = json.loads(told[1][6:])["result"]["task"]
    daemon.wait_for(lambda: counted(daemon) == 1)
    daemon.kill()
    with pytest.raises(http.client.IncompleteRead):
        stream.read()
    daemon.start()
    answer = daemon.post("/a2a/", asked, headers={"A2A-Version": "1.0"})
    events = [
        json.loads(line[6:])["result"] for line in answer.body.splitlines() if line.startswith(b"data: ")
    ]
    assert events[0]["task"]["id"] == task["id"]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"
    assert counted(daemon) == 1


@pytest.mark.parametrize("seen", [1, 2, 30])
def test_who_goes_on_reading_after_a_restart_hears_the_end(daemon: RunningDaemon, seen: int) -> None:
    """The record has no more than the end, however much was read before."""
    begun = ask(daemon, "SendMessage", call("m", 60, returnImmediately=True))["task"]
    daemon.wait_for(lambda: counted(daemon) == 1)
    restart(daemon)
    told = {"A2A-Version": "1.0", "Last-Event-ID": str(seen)}
    for path, body in (
        ("/a2a/message:stream", call("m", 60)),
        (f"/a2a/tasks/{begun['id']}:subscribe", {}),
        ("/a2a/message:stream", call("m", 60)),
    ):
        lines = daemon.post(path, body, headers=told).body.decode().splitlines()
        last = json.loads([one for one in lines if one.startswith("data: ")][-1][6:])
        assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"
        assert [one for one in lines if one.startswith("id: ")][-1] == f"id: {seen + 1}"


def test_a_stop_ends_a_stream_with_an_error(daemon: RunningDaemon) -> None:
    by_rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": call("m", 60)}
    streams = [streamed(daemon, "/a2a/message:stream", call("n", 60)), streamed(daemon, "/a2a", by_rpc)]
    for stream in streams:
        stream.readline()
    stopping = threading.Thread(target=daemon.stop)
    stopping.start()
    said_by_http, said_by_rpc = (rest_of(one) for one in streams)
    stopping.join()
    assert b'event: error\ndata: {"error"' in said_by_http
    assert "stopping" in json.loads(said_by_rpc.strip().splitlines()[-1][6:])["error"]["message"]
