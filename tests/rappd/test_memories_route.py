"""Memories as their owner sees them: listed, searched, corrected, deleted, and whose are whose."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fixtures.running_daemon import RunningDaemon

ADA = "11111111-2222-4333-8444-555555555555"
BOB = "AAAAAAAA-bbbb-4ccc-8ddd-EEEEEEEEEEEE"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("memories") / "home").start()
    yield daemon
    daemon.stop()


def remember(daemon: RunningDaemon, content: str, user: str = "", **more: Any) -> None:
    """Has ManageMemory keep ``content``: in a turn where it is a user's own."""
    if user:
        logs = daemon.chat(f"remember that {content}", user_guid=user)["agent_logs"]
        assert f"for user {user}" in logs, logs
        return
    args = {"memory_type": "fact", "content": content, **more}
    found = daemon.post("/agents/run", {"agent": "ManageMemory", "args": args}, control=True).json()
    assert found["ok"] and "Successfully" in found["result"], found


def memories(daemon: RunningDaemon, user: str = "", query: str = "", *, twin: str = "") -> Any:
    """As the operator sees them."""
    return daemon.get(f"{twin}/memories?user_guid={user}&query={quote(query)}", control=True).json()


def texts(page: Any) -> list[str]:
    return [one["message"] for one in page["memories"]]


def stored(daemon: RunningDaemon, *parts: str) -> Any:
    return json.loads(daemon.data.joinpath(*parts).read_text())


def test_listed_newest_first_and_searched(daemon: RunningDaemon) -> None:
    for text in ("The door is green.", "The boiler is serviced in May.", "The door of the shed sticks."):
        remember(daemon, text, tags=["house"])
    page = memories(daemon)
    assert texts(page)[:3] == [
        "The door of the shed sticks.", "The boiler is serviced in May.", "The door is green.",
    ]  # fmt: skip
    assert page["memories"][0]["theme"] == "fact" and page["memories"][0]["tags"] == ["house"]
    found = memories(daemon, query="DOOR shed")
    assert texts(found) == ["The door of the shed sticks."]
    assert (found["found"], found["total"]) == (1, page["total"])


def test_corrected_memory_is_what_the_agent_recalls(daemon: RunningDaemon) -> None:
    remember(daemon, "The cat is called Mia.", importance=4)
    one = memories(daemon, query="cat Mia")["memories"][0]
    body = {"version": one["version"], "message": "The cat is called Mimi."}
    changed = daemon.request("PUT", f"/memories/{one['key']}", body, control=True)
    assert changed.json()["memory"]["message"] == "The cat is called Mimi."
    kept = stored(daemon, "shared_memories", "memory.json")[one["key"]]
    assert kept["importance"] == 4 and kept["conversation_id"] == "current", "the rest stays as it was"
    args = {"keywords": ["cat"]}
    recalled = daemon.post("/agents/run", {"agent": "ContextMemory", "args": args}, control=True).json()
    assert "Mimi" in recalled["result"] and "Mia." not in recalled["result"]
    again = daemon.request("PUT", f"/memories/{one['key']}", body, control=True)
    assert again.status == 409 and again.json()["memory"]["message"] == "The cat is called Mimi."
    empty = daemon.request("PUT", f"/memories/{one['key']}", body | {"message": " "}, control=True)
    assert empty.status == 422


def test_owner_adds_a_memory_that_the_agent_recalls(daemon: RunningDaemon) -> None:
    body = {"message": " The kettle whistles. ", "tags": ["kitchen", " "], "theme": "insight"}
    made = daemon.post("/memories", body, control=True).json()["memory"]
    assert (made["message"], made["theme"], made["tags"]) == ("The kettle whistles.", "insight", ["kitchen"])
    assert texts(memories(daemon, query="kettle")) == ["The kettle whistles."]
    found = daemon.post(
        "/agents/run", {"agent": "ContextMemory", "args": {"keywords": ["kettle"]}}, control=True
    )
    assert "The kettle whistles." in found.json()["result"]
    cleo = "33333333-2222-4333-8444-555555555555"
    assert daemon.post("/memories", {"message": "Cleo's own.", "user_guid": cleo}, control=True).status == 200
    assert texts(memories(daemon, cleo)) == ["Cleo's own."]
    assert daemon.post("/memories", {"message": " "}, control=True).status == 422
    assert daemon.post("/memories", {"tags": []}, control=True).status == 422
    assert daemon.post("/memories", {"message": "x"}).status == 403


def test_deleted_memory_comes_back_by_undo(daemon: RunningDaemon) -> None:
    remember(daemon, "The safe opens to the left.")
    one = memories(daemon, query="safe opens")["memories"][0]
    path = f"/memories/{one['key']}?version={one['version']}"
    undo = daemon.request("DELETE", path, control=True).json()["undo"]
    assert texts(memories(daemon, query="safe opens")) == []
    assert daemon.request("DELETE", path, control=True).status == 404
    back = daemon.post("/memories/undo", {"key": one["key"], "undo": undo}, control=True)
    assert back.json()["memory"] == one
    assert daemon.post("/memories/undo", {"key": one["key"], "undo": undo}, control=True).status == 409


def test_edits_race_with_an_agent_and_lose_nothing(daemon: RunningDaemon) -> None:
    remember(daemon, "Counted 0.", BOB)
    one = memories(daemon, BOB)["memories"][0]

    def agent_writes() -> None:
        for number in range(15):
            remember(daemon, f"Written {number}", BOB)

    writer = threading.Thread(target=agent_writes)
    writer.start()
    for number in range(1, 31):
        body = {"version": one["version"], "message": f"Counted {number}.", "user_guid": BOB}
        one = daemon.request("PUT", f"/memories/{one['key']}", body, control=True).json()["memory"]
    writer.join()
    assert sorted(texts(memories(daemon, BOB))) == sorted(
        ["Counted 30.", *(f"Written {number}" for number in range(15))]
    )


def test_everyone_has_their_own_and_the_shared_ones_are_the_operators(daemon: RunningDaemon) -> None:
    remember(daemon, "Ada likes tea.", ADA)
    own = f"/users/{ADA}/memories"
    one = daemon.get(own).json()["memories"][0]
    assert one["message"] == "Ada likes tea"
    for guid in ("c0p110t0-aaaa-bbbb-cccc-123456789abc", "..%2Fshared_memories", "shared"):
        assert daemon.get(f"/users/{guid}/memories").json()["code"] == "unfit"
    assert daemon.get(f"{own}?user_guid=").json()["total"] == 1, "the path says whose"
    people = daemon.get("/memories/people", control=True).json()["people"]
    assert people[0]["user_guid"] == "" and {"user_guid": ADA, "count": 1, "devices": []} in people
    version = one["version"]
    for method, path, body in (
        ("GET", "/memories/people", None),
        ("GET", f"/memories?user_guid={ADA}", None),
        ("DELETE", f"/memories/{one['key']}?version={version}", None),
        ("PUT", f"/memories/{one['key']}", {"version": version, "message": "x"}),
        ("POST", "/memories/undo", {"key": one["key"], "undo": "{}"}),
    ):
        assert daemon.request(method, path, body).json()["code"] == "not_operator"
    nobody = f"{ADA[:-1]}6"
    gone = f"/users/{nobody}/memories/{one['key']}?version={version}"
    assert daemon.request("DELETE", gone).status == 404
    assert not (daemon.data / "memory" / nobody).exists(), "asking makes no folder"
    path = f"{own}/{one['key']}?version={version}"
    assert daemon.request("DELETE", path, headers={"Origin": "http://evil.example"}).status == 403
    assert daemon.request("DELETE", path).status == 200


def test_twins_remember_by_themselves(daemon: RunningDaemon) -> None:
    assert daemon.cli("twins", "new", "gardener").returncode == 0
    key = daemon.get("/twins", control=True).json()["twins"][0]["key"]
    args = {"memory_type": "fact", "content": "The roses want water."}
    body = {"agent": "ManageMemory", "args": args}
    assert daemon.post(f"/twins/{key}/agents/run", body, control=True).json()["ok"]
    assert texts(memories(daemon, twin=f"/twins/{key}")) == ["The roses want water."]
    assert texts(memories(daemon, query="roses")) == []


def test_file_that_is_damaged_or_a_link_is_said_and_left(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    daemon = make_daemon().start()
    file = daemon.data / "shared_memories" / "memory.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"a": {"message": "half')
    answer = daemon.get("/memories", control=True)
    assert answer.json()["code"] == "memories_unreadable" and "damaged" in answer.json()["error"]
    assert file.read_text() == '{"a": {"message": "half'
    secret = tmp_path / "secret.json"
    secret.write_text('{"k": {"message": "secret"}}')
    file.unlink()
    file.symlink_to(secret)
    assert b"secret" not in daemon.get("/memories", control=True).body
