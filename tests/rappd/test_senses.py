"""Senses on a running daemon: asked for, split off, streamed past, answered under their keys, and recorded."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon

from twins.trust.quarantine import QuarantineList

MOOD = """name = "mood"
delimiter = "|||MOOD|||"
response_key = "mood_response"
system_prompt = "Then write |||MOOD||| and one word."
wrapper_tag = "mood"
"""


class Desk(NamedTuple):
    daemon: RunningDaemon
    model: FakeModel


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    model = FakeModel()
    model.start()
    home = tmp_path_factory.mktemp("senses") / "home"
    daemon = RunningDaemon(home, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small").start()
    try:
        yield Desk(daemon, model)
    finally:
        daemon.stop()
        model.stop()


@pytest.fixture
def desk(shared: Desk) -> Iterator[Desk]:
    shared.model.will()
    shared.model.pieces = []
    yield shared
    folder = senses_of(shared.daemon)
    for path in folder.glob("*") if folder.is_dir() else ():
        path.unlink()


def senses_of(daemon: RunningDaemon, key: str = "") -> Path:
    return daemon.home / ("twins/" + key if key else "brainstem") / "senses"


def put(folder: Path, name: str, text: str) -> None:
    """Saves a file, and lets the moment pass in which turns that follow each other do not look again."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    time.sleep(0.06)


def says_all(desk: Desk, text: str, path: str = "/chat", **more: Any) -> dict[str, Any]:
    desk.model.will(says(text))
    answer = desk.daemon.post(path, {"user_input": "hello", **more}, control=True)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def faults(daemon: RunningDaemon) -> list[dict[str, Any]]:
    """The senses that health reports."""
    rows = daemon.get("/health").json()["quarantined"]
    return [row for row in rows if row["file"].startswith("senses/")]


def test_a_sense_is_asked_for_and_answered_under_its_key(desk: Desk) -> None:
    assert "mood_response" not in says_all(desk, "Fine.")
    put(senses_of(desk.daemon), "mood_sense.py", MOOD)
    answer = says_all(desk, "Fine.|||MOOD|||<mood>glad</mood>|||VOICE|||Fine!")
    assert (answer["response"], answer["assistant_response"]) == ("Fine.", "Fine.")
    assert answer["mood_response"] == "glad"
    assert "voice_response" not in answer
    assert desk.model.system().endswith("\n\nThen write |||MOOD||| and one word.")
    assert says_all(desk, "Fine.")["mood_response"] == ""
    put(senses_of(desk.daemon), "mood_sense.py", MOOD.replace("mood_response", "feeling"))
    answer = says_all(desk, "Fine.|||MOOD|||glad")
    assert ("mood_response" in answer, answer["feeling"]) == (False, "glad")


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_a_stream_never_shows_what_a_sense_is_given(desk: Desk, size: int) -> None:
    put(senses_of(desk.daemon), "mood_sense.py", MOOD)
    text = "a ||| b |||MOO |||MOOD|||glad|||TWIN|||aside"
    desk.model.pieces = [text[at : at + size] for at in range(0, len(text), size)]
    desk.model.will(says(text))
    body = desk.daemon.post("/chat/stream", {"user_input": "hello"}).body
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    shown = "".join(event["text"] for event in events if event["type"] == "delta")
    assert shown == "a ||| b |||MOO "
    assert (events[-1]["type"], events[-1]["response"], events[-1]["mood_response"]) == (
        "done", shown.strip(), "glad",
    )  # fmt: skip


def test_the_record_keeps_what_a_sense_was_given(desk: Desk) -> None:
    put(senses_of(desk.daemon), "mood_sense.py", MOOD)
    turn = str(uuid.uuid4())
    first = says_all(desk, "Fine.|||MOOD|||glad", turn_id=turn, session_id="kept")
    (senses_of(desk.daemon) / "mood_sense.py").unlink()
    again = says_all(desk, "Other.", turn_id=turn, session_id="kept")
    assert (again["response"], again["mood_response"]) == ("Fine.", "glad"), "answered from the record"
    events = desk.daemon.get(f"/threads/{first['thread']}", control=True).json()["events"]
    assert [event["data"].get("senses") for event in events] == [None, {"mood_response": "glad"}]


def test_bad_senses_are_told_by_health_and_override_nothing(desk: Desk) -> None:
    put(senses_of(desk.daemon), "sly_sense.py", MOOD.replace("mood_response", "response"))
    put(senses_of(desk.daemon), "torn_sense.py", MOOD + "def (")
    answer = says_all(desk, "Fine.|||MOOD|||glad")
    assert answer["response"] == "Fine.|||MOOD|||glad", "no sense has this delimiter now"
    rows = faults(desk.daemon)
    assert [(row["file"], row["line"], row["last_good"]) for row in rows] == [
        ("senses/sly_sense.py", 3, False),
        ("senses/torn_sense.py", 6, False),
    ]
    assert rows[0]["reason"] == "response is a key of every answer, and not for a sense to fill"


def test_twin_senses_work_and_quarantined_waits(desk: Desk) -> None:
    daemon = desk.daemon
    key = daemon.post("/twins", {"name": "moody"}, control=True).json()["key"]
    path = senses_of(daemon, key) / "mood_sense.py"
    digest = hashlib.sha256(MOOD.encode()).hexdigest()
    QuarantineList(daemon.home / "held.json", daemon.home).hold(
        path, digest, "It came in an egg.", "rose.egg"
    )
    put(path.parent, path.name, MOOD)
    chat = f"/twins/{key}/chat"
    assert "mood_response" not in says_all(desk, "Fine.", chat)
    assert "MOOD" not in desk.model.system()
    port = daemon.post(f"/twins/{key}/boot", control=True).json()["port"]
    twin = RunningDaemon(daemon.home)
    twin.port = port
    [row] = faults(twin)
    assert (row["file"], row["reason"]) == ("senses/mood_sense.py", "It came in an egg.")
    approved = daemon.post(f"/twins/{key}/agents/approve", {"filename": "senses/mood_sense.py"}, control=True)
    assert approved.json()["message"] == "senses/mood_sense.py is approved, and runs."
    assert says_all(desk, "Fine.|||MOOD|||glad", chat)["mood_response"] == "glad"
    assert faults(twin) == []
    assert "mood_response" not in says_all(desk, "Fine."), "the brainstem has none"
