"""Conversations on a daemon: the list, versions of a turn, titles, search, and who may see which."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.loopback_server import calls
from fixtures.running_daemon import RunningDaemon, agent_source

SLOW = agent_source(
    "Slow", "import time\n        time.sleep(30)\n        return 'late'", "Waits for a long time."
)


@pytest.fixture(scope="module")
def daemon(fake_daemon: RunningDaemon) -> RunningDaemon:
    return fake_daemon


def say(daemon: RunningDaemon, text: str, session: str, **more: Any) -> str:
    """A turn; its id."""
    turn = str(uuid.uuid4())
    answer = daemon.post("/chat", {"user_input": text, "session_id": session, "turn_id": turn, **more})
    assert answer.status == 200, answer.body
    return turn


def read(daemon: RunningDaemon, path: str) -> dict[str, Any]:
    answer = daemon.get(path, control=True)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def row_of(daemon: RunningDaemon, session: str, where: str = "") -> dict[str, Any] | None:
    rows = read(daemon, f"/conversations{where}")["conversations"]
    return next((row for row in rows if row["session"] == session), None)


def shown(daemon: RunningDaemon, session: str, where: str = "") -> dict[str, Any]:
    row = row_of(daemon, session)
    assert row is not None
    return read(daemon, f"/conversations/{row['id']}{where}")


def said(found: dict[str, Any]) -> list[str]:
    return [turn["user"] for turn in found["turns"]]


def test_list_names_title_moment_and_partner_and_goes_on_page_by_page(daemon: RunningDaemon) -> None:
    for number in range(3):
        say(daemon, f"page {number}", f"pages-{number}")
    first = read(daemon, "/conversations?limit=2")
    assert [row["title"] for row in first["conversations"]] == ["page 2", "page 1"]
    assert first["conversations"][0]["with"] == "brainstem"
    assert first["conversations"][0]["updated"] > first["conversations"][1]["updated"]
    then = read(daemon, f"/conversations?limit=2&before={first['next']}")
    assert then["conversations"][0]["title"] == "page 0"


def test_other_callers_and_programs_without_the_session_see_nothing(daemon: RunningDaemon) -> None:
    say(daemon, "the zebra is mine", "separate", user_guid="somebody-else")
    assert row_of(daemon, "separate") is None
    theirs = row_of(daemon, "separate", "?user_guid=somebody-else")
    assert theirs is not None
    for method, path in (("GET", ""), ("POST", "/rename"), ("POST", "/remove")):
        body = {"title": "x"} if path == "/rename" else None
        answer = daemon.request(method, f"/conversations/{theirs['id']}{path}", body, control=True)
        assert answer.status == 404
    assert read(daemon, "/conversations/search?words=zebra")["found"] == []
    for path in ("/conversations", "/conversations/search?words=zebra", f"/conversations/{theirs['id']}"):
        assert daemon.get(path).status == 403


def test_edited_sentence_is_a_version_beside_the_older_one(daemon: RunningDaemon) -> None:
    first, second, third = (say(daemon, text, "edits") for text in ("one", "two", "three"))
    edited = say(daemon, "two, but better", "edits", follows=first)
    found = shown(daemon, "edits")
    assert said(found) == ["one", "two, but better"]
    assert found["turns"][1]["versions"] == [second, edited]
    older = shown(daemon, "edits", f"?at={second}")
    assert [turn["id"] for turn in older["turns"]] == [first, second, third]
    again = say(daemon, "a new beginning", "edits", follows="")
    assert [turn["versions"] for turn in shown(daemon, "edits")["turns"]] == [[first, again]]
    assert len(read(daemon, f"/threads/{row_of(daemon, 'edits')['id']}")["events"]) >= 10  # type: ignore[index]


def test_long_conversation_comes_in_pages(daemon: RunningDaemon) -> None:
    for number in range(7):
        say(daemon, f"number {number}", "long")
    last = shown(daemon, "long", "?limit=3")
    assert (said(last), last["earlier"]) == (["number 4", "number 5", "number 6"], 4)
    before = shown(daemon, "long", f"?limit=3&before={last['turns'][0]['id']}")
    assert (said(before), before["earlier"]) == (["number 1", "number 2", "number 3"], 1)
    for number in range(7, 14):
        say(daemon, f"number {number}", "long")
    at = shown(daemon, "long", f"?limit=3&at={before['turns'][-1]['id']}")
    assert (said(at)[-1], at["earlier"]) == ("number 13", 0)


def test_title_is_what_was_asked_without_the_attached_text(daemon: RunningDaemon) -> None:
    say(daemon, "what is\non my list?\n\nAttached file note.txt:\n\n~~~~\nmilk\n~~~~", "list")
    row = row_of(daemon, "list")
    assert row is not None
    assert row["title"] == "what is on my list?"


def test_title_stays_and_an_empty_one_gives_the_first_words_back(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    say(daemon, "plain words", "title")
    id = row_of(daemon, "title")["id"]  # type: ignore[index]
    assert daemon.post(f"/conversations/{id}/rename", {"title": "  The  Garden "}, control=True).status == 200
    daemon.stop()
    daemon.start()
    assert row_of(daemon, "title")["title"] == "The Garden"  # type: ignore[index]
    assert read(daemon, "/conversations/search?words=garden")["found"][0]["conversation"]["id"] == id
    for title in (7, None, "x" * 121):
        refused = daemon.post(f"/conversations/{id}/rename", {"title": title}, control=True)
        assert refused.status in (400, 422) and refused.json()["do"]
    daemon.post(f"/conversations/{id}/rename", {"title": ""}, control=True)
    assert row_of(daemon, "title")["title"] == "plain words"  # type: ignore[index]
    assert daemon.cli("threads", "verify").returncode == 0


def test_removed_conversation_leaves_list_and_search_but_not_the_log(daemon: RunningDaemon) -> None:
    say(daemon, "the okapi sleeps", "removed")
    id = row_of(daemon, "removed")["id"]  # type: ignore[index]
    assert daemon.post(f"/conversations/{id}/remove", control=True).status == 200
    assert row_of(daemon, "removed") is None
    assert read(daemon, "/conversations/search?words=okapi")["found"] == []
    assert row_of(daemon, "removed", "?removed=1") is not None
    assert read(daemon, f"/threads/{id}")["events"]
    daemon.post(f"/conversations/{id}/restore", control=True)
    assert row_of(daemon, "removed") is not None


@pytest.mark.parametrize("words", ["GIRAFFE tall", "Übergröße", 'say "tall"', "100%_sure", "back\\slash"])
def test_search_finds_words_in_any_case_and_characters_that_json_escapes(
    daemon: RunningDaemon, words: str
) -> None:
    say(daemon, 'The giraffe is tall in ÜBERGRÖSSE, übergröße; say "tall", 100%_sure, back\\slash.', "search")
    query = "/conversations/search?words=" + words.replace("%", "%25").replace(" ", "+").replace('"', "%22")
    found = read(
        daemon,
        query.replace("Ü", "%C3%9C").replace("ö", "%C3%B6").replace("ß", "%C3%9F").replace("\\", "%5C"),
    )
    (hit,) = [one for one in found["found"] if one["conversation"]["session"] == "search"]
    assert "giraffe" in hit["excerpts"][-1]["text"] or "tall" in hit["excerpts"][-1]["text"]


def test_bad_requests_say_what_to_do(daemon: RunningDaemon) -> None:
    say(daemon, "hello", "bad")
    id = row_of(daemon, "bad")["id"]  # type: ignore[index]
    for path in (
        "/conversations?before=x",
        "/conversations/search?words=",
        "/conversations/search?words=a+b+c+d+e+f+g+h+i",
        "/conversations/search?words=a&below=-1",
        f"/conversations/{id}?before=x",
        "/conversations/nothing",
    ):
        refused = daemon.get(path, control=True)
        assert refused.status in (400, 404) and refused.json()["do"], path
    assert daemon.post("/chat", {"user_input": "x", "follows": "y"}).status == 400


def test_stopped_answer_is_shown_as_stopped_with_what_had_come(
    make_daemon: Callable[..., RunningDaemon], model: Any
) -> None:
    model.will(calls(("Slow", {})) | {"content": "Let me wait."})
    daemon = make_daemon(OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_API_KEY="k", OPENAI_MODEL="small")
    daemon.drop("slow_agent.py", SLOW)
    daemon.start()
    turn = str(uuid.uuid4())
    body = {"user_input": "wait", "session_id": "stop", "turn_id": turn}
    asking = threading.Thread(target=daemon.post, args=("/chat/stream", body))
    asking.start()
    daemon.wait_for(lambda: (row := row_of(daemon, "stop")) and row["count"] >= 2)
    (live,) = shown(daemon, "stop")["turns"]
    assert (live["state"], live["running"]) == ("open", True)
    daemon.post("/chat/cancel", {"turn_id": turn})
    asking.join()
    daemon.wait_for(lambda: row_of(daemon, "stop")["state"] == "stopped")  # type: ignore[index]
    (stopped,) = shown(daemon, "stop")["turns"]
    assert (stopped["state"], stopped["text"]) == ("stopped", "Let me wait.")
    assert [(call["name"], call["ok"]) for call in stopped["calls"]] == [("Slow", False)]
