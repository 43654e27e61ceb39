"""``POST /chat`` as clients of every published server know it (RAPP v1 §8)."""

from __future__ import annotations

import contextlib
import http.client
import json
import sqlite3
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

from rappd.store import connections

GUID = "11111111-2222-4333-8444-555555555555"


def test_a_turn_answers_with_the_union_of_published_keys(fake_daemon: RunningDaemon) -> None:
    answer = fake_daemon.chat("hello", session_id="s1")
    assert set(answer) == {
        "response",
        "assistant_response",
        "session_id",
        "user_guid",
        "agent_logs",
        "voice_mode",
        "twin_mode",
        "model",
        "requested_model",
        "provider",
        "seconds",
        "agents_used",
    }
    assert answer["response"] == answer["assistant_response"] == "fake-llm: hello"
    assert answer["session_id"] == "s1"
    assert answer["user_guid"] == "c0p110t0-aaaa-bbbb-cccc-123456789abc"
    assert answer["agent_logs"].startswith("[ContextMemory] ")
    assert (answer["voice_mode"], answer["twin_mode"]) == (False, False)


@pytest.mark.parametrize("session", ["text", 7, 1.5, True, ["a"], {"k": "v"}])
def test_any_truthy_session_id_is_echoed_unchanged(fake_daemon: RunningDaemon, session: Any) -> None:
    echoed = fake_daemon.chat("hi", session_id=session)["session_id"]
    assert echoed == session
    assert type(echoed) is type(session)


def test_without_a_session_id_one_is_minted(fake_daemon: RunningDaemon) -> None:
    first, second = fake_daemon.chat("hi")["session_id"], fake_daemon.chat("hi", session_id="")["session_id"]
    assert uuid.UUID(first) != uuid.UUID(second)


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "application/x-www-form-urlencoded", ""]
)
def test_any_content_type_is_parsed(fake_daemon: RunningDaemon, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    answer = fake_daemon.post("/chat", b'{"user_input":"hi"}', headers=headers)
    assert answer.status == 200


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "Request body must be a JSON object"),
        (b"{", "Request body must be a JSON object"),
        (b"[]", "Request body must be a JSON object"),
        (b"{}", "user_input is required"),
        (b'{"user_input":"  "}', "user_input is required"),
        (b'{"user_input":5}', "user_input must be a string"),
        (b'{"user_input":"x","turn_id":"y"}', "turn_id must be a UUID"),
        (b'{"user_input":"x","conversation_history":[1]}', "conversation_history[0] must be an object"),
    ],
)
def test_malformed_bodies_get_the_published_text(fake_daemon: RunningDaemon, body: bytes, text: str) -> None:
    answer = fake_daemon.post("/chat", body)
    assert answer.status == 400
    assert answer.json()["error"] == text
    assert set(answer.json()) == {"error", "do", "code"}


def test_a_user_guid_is_echoed_and_need_not_be_one(fake_daemon: RunningDaemon) -> None:
    assert fake_daemon.chat("hi", user_guid=GUID)["user_guid"] == GUID
    assert fake_daemon.chat("hi", user_guid="../../etc")["user_guid"] == "../../etc"


@pytest.mark.own_process
def test_a_repeated_turn_id_is_answered_from_the_record(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    body = (
        "import os, pathlib\n"
        "        with open(os.path.join(os.environ['COUNT'], 'runs'), 'a') as file:\n"
        "            file.write('x')\n"
        "        return 'ran'"
    )
    daemon.environment["COUNT"] = str(daemon.data)
    daemon.drop("aaa_agent.py", agent_source("Aaa", body))
    daemon.start()
    turn = str(uuid.uuid4())
    first = daemon.chat("go", turn_id=turn, session_id="s")
    again = daemon.chat("go", turn_id=turn, session_id="s")
    assert first["response"] == again["response"]
    daemon.kill()
    daemon.start()
    after = daemon.chat("go", turn_id=turn, session_id="s")
    assert after["response"] == first["response"]
    assert after["agent_logs"] == first["agent_logs"] == "[Aaa] ran"
    assert (daemon.data / "runs").read_text() == "x"


def test_repeat_gets_the_answer_that_could_not_be_recorded(
    make_daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 50)
    daemon = make_daemon(LLM_FAKE="1").start()
    asked = {"user_input": "go", "turn_id": str(uuid.uuid4()), "session_id": "s"}
    with contextlib.closing(sqlite3.connect(daemon.home / "rappd.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = daemon.post("/chat", asked)
    assert (refused.status, refused.json()["code"]) == (503, "unrecorded"), refused.body
    answer = daemon.post("/chat", asked)
    assert (answer.status, answer.json().get("response")) == (200, "fake-llm: go")
    (thread,) = daemon.get("/threads", control=True).json()["threads"]
    events = daemon.get(f"/threads/{thread['id']}", control=True).json()["events"]
    assert [one["verb"] for one in events if one["id"] == asked["turn_id"]] == ["HELP", "DONE"], "done once"


def test_simultaneous_repeats_run_once(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.environment["COUNT"] = str(daemon.data)
    body = (
        "import os, time\n"
        "        with open(os.path.join(os.environ['COUNT'], 'runs'), 'a') as file:\n"
        "            file.write('x')\n"
        "        time.sleep(0.3)\n"
        "        return 'ran'"
    )
    daemon.drop("aaa_agent.py", agent_source("Aaa", body))
    daemon.start()
    turn = str(uuid.uuid4())
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(daemon.chat("go", turn_id=turn, session_id="s")))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(answer, sort_keys=True) for answer in answers}) == 1
    assert (daemon.data / "runs").read_text() == "x"


def _stream(
    daemon: RunningDaemon, body: dict[str, Any], last: int = 0, stop_after: int = 0
) -> list[tuple[int, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    connection.request("POST", "/chat/stream", json.dumps(body), {"Last-Event-ID": str(last)})
    response = connection.getresponse()
    assert response.status == 200
    assert response.getheader("Content-Type", "").startswith("text/event-stream")
    events: list[tuple[int, Any]] = []
    number = 0
    for line in response:
        if line.startswith(b"id: "):
            number = int(line[4:])
        elif line.startswith(b"data: "):
            events.append((number, json.loads(line[6:])))
            if stop_after and len(events) == stop_after:
                break
    connection.close()
    return events


def test_a_stream_shows_the_call_the_result_and_the_whole_answer(fake_daemon: RunningDaemon) -> None:
    events = _stream(fake_daemon, {"user_input": "hello", "session_id": "s"})
    kinds = [event["type"] for _, event in events]
    assert kinds[:2] == ["call", "result"]
    assert kinds[-1] == "done"
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    done = events[-1][1]
    assert done["response"] == done["assistant_response"] == "fake-llm: hello"
    assert "".join(event["text"] for _, event in events if event["type"] == "delta") == "fake-llm: hello"


def test_a_stream_continues_where_it_was_left(fake_daemon: RunningDaemon) -> None:
    body = {"user_input": "hello", "session_id": "s", "turn_id": str(uuid.uuid4())}
    begun = _stream(fake_daemon, body, stop_after=1)
    rest = _stream(fake_daemon, body, last=begun[-1][0])
    assert rest[0][0] == begun[-1][0] + 1
    assert rest[-1][1]["type"] == "done"
    assert begun + rest == _stream(fake_daemon, body)


def test_a_stream_of_an_old_turn_still_ends_with_its_answer(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    body = {"user_input": "hello", "session_id": "s", "turn_id": str(uuid.uuid4())}
    answer = _stream(daemon, body)[-1][1]
    daemon.stop()
    daemon.start()
    again = _stream(daemon, body)
    assert [event["type"] for _, event in again] == ["done"]
    assert again[0][1]["response"] == answer["response"]


def test_stopping_a_turn_stops_its_agent(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.environment["COUNT"] = str(daemon.data)
    body = (
        "import os, time\n"
        "        marker = os.path.join(os.environ['COUNT'], 'started')\n"
        "        open(marker, 'w').close()\n"
        "        time.sleep(15)\n"
        "        open(os.path.join(os.environ['COUNT'], 'finished'), 'w').close()"
    )
    daemon.drop("aaa_agent.py", agent_source("Aaa", body))
    daemon.start()
    turn = str(uuid.uuid4())
    answers: list[Answer] = []
    thread = threading.Thread(
        target=lambda: answers.append(daemon.post("/chat", {"user_input": "go", "turn_id": turn}))
    )
    thread.start()
    daemon.wait_for((daemon.data / "started").exists, what="the agent to start")
    assert daemon.post("/chat/cancel", {"turn_id": turn}).status == 200
    thread.join()
    assert answers[0].status == 499
    assert answers[0].json()["code"] == "stopped"
    assert not (daemon.data / "finished").exists()
    assert daemon.post("/chat/cancel", {"turn_id": turn}).status == 404
