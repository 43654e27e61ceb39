"""llama.cpp's own server while it streams, is stopped, is asked by two, is full, is killed, is gone and comes back."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from fixtures.running_daemon import RunningDaemon

from tests.models.real_server import RealServer

LONG = "Tell me a long story about a ship."


def events(daemon: RunningDaemon, sentence: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """The events of a turn, as they come."""
    body = json.dumps({"user_input": sentence, **fields})
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=110)
    with closing(connection):
        connection.request("POST", "/chat/stream", body, {"Content-Type": "application/json"})
        for line in connection.getresponse():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def begun(daemon: RunningDaemon, turn: str, *, pieces: int = 3) -> Iterator[dict[str, Any]]:
    """A long answer of which some was shown already."""
    found = events(daemon, LONG, turn_id=turn)
    for event in found:
        pieces -= event["type"] == "delta"
        if not pieces:
            return found
    raise AssertionError("the answer was short")


def answers(daemon: RunningDaemon) -> dict[str, Any]:
    """The answer to a short question, and that the model gave it."""
    answer = daemon.chat("Say hello in five words.")
    assert "(no model)" not in answer["response"], answer
    return answer


def test_words_come_while_the_model_thinks_and_stop_ends_it(desk: RunningDaemon) -> None:
    turn = "0c8f61e2-4b31-4d39-9d07-000000000001"
    rest = begun(desk, turn)
    stopped = time.monotonic()
    desk.post("/chat/cancel", {"turn_id": turn})
    last = list(rest)[-1]
    assert last["type"] == "error"
    assert time.monotonic() - stopped < 5
    answers(desk)


def test_two_at_once_are_both_answered(desk: RunningDaemon) -> None:
    found: list[dict[str, Any]] = []
    both = [threading.Thread(target=lambda: found.append(answers(desk))) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(110)
    assert len(found) == 2


def test_a_conversation_beyond_the_context_is_answered_and_so_is_the_next(desk: RunningDaemon) -> None:
    history = [
        {
            "role": "user" if at % 2 == 0 else "assistant",
            "content": f"Part {at}. " + "the sea is wide and blue " * 40,
        }
        for at in range(20)
    ]
    *_, answer = events(desk, "Say hello in five words.", conversation_history=history)
    assert "left out: the context of" in answer["notice"]
    assert "(no model)" not in answer["response"]
    answers(desk)


def test_one_sentence_beyond_the_context_says_so_and_the_next_is_answered(desk: RunningDaemon) -> None:
    answer = desk.chat("Sum this up: " + "the sea is wide and blue " * 1500)
    assert "context" in answer["notice"], answer["notice"]
    assert "-c 8192" in answer["notice"]
    answers(desk)


def test_killed_in_mid_answer_gone_and_back(desk: RunningDaemon, server: RealServer) -> None:
    rest = begun(desk, "0c8f61e2-4b31-4d39-9d07-000000000002")
    server.kill()
    last = list(rest)[-1]
    assert last["type"] == "done"
    assert "the answer is not whole" in last["notice"]
    began = time.monotonic()
    gone = desk.chat("what is the weather in Berlin?")
    assert "rain in the afternoon" in gone["response"]  # nothing that works without a model is lost
    assert "start llama.cpp" in gone["notice"]
    assert time.monotonic() - began < 10
    server.start()
    answers(desk)
    assert desk.get("/health").json()["provider"]["state"] == "ready"
