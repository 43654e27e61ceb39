"""Sessions with phones on a running daemon: the owner's routes and commands, presence, and clear screens."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from rappd.sessions.sentence_routing import addressed
from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]


async def ask(desk: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await asyncio.to_thread(desk.request, method, path, body, control=True)
    return answer.json()


async def command(desk: RunningDaemon, *words: str) -> Any:
    done = await asyncio.to_thread(desk.cli, "sessions", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def next_message(stream: http.client.HTTPResponse, kind: str) -> dict[str, Any]:
    for line in iter(stream.readline, b""):
        if line.startswith(b"data: "):
            found: dict[str, Any] = json.loads(line[6:])
            if found["type"] == kind:
                return found
    raise AssertionError(f"the stream ended before {kind}")


async def test_session_lists_who_is_here(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone(name="Android")
    await phone(name="iPad")
    (row,) = (await ask(desk, "GET", "/sessions"))["sessions"]
    assert (row["id"], row["here"], row["closed"], row["current"]) == (
        android.session, ["Android", "iPad"], False, True,
    )  # fmt: skip
    listed = await asyncio.to_thread(desk.cli, "sessions", "list")
    assert row["id"][:8] in listed.stdout and "Android, iPad" in listed.stdout


async def test_beginning_of_a_session_is_said_in_words(desk: RunningDaemon) -> None:
    await command(desk, "open")
    (row,) = (await ask(desk, "GET", "/activity"))["events"]
    assert row["title"] == "session start"
    for verb in (("sessions", "show"), ("threads", "show", row["thread"])):
        shown = await asyncio.to_thread(desk.cli, *verb)
        assert "session start" in shown.stdout and "session_start" not in shown.stdout


async def test_owner_and_phone_see_the_same_events(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone(name="Android")
    stream = await asyncio.to_thread(desk.stream, f"/sessions/{android.session}/stream")
    await android.sees(lambda: android.here == ["Android", "Owner"])
    await android.is_answered(await android.say("from the phone"))
    said = await command(desk, "say", "from the computer")
    await android.is_answered(said["event_id"])
    texts = ["from the phone", "fake-llm: from the phone", "from the computer", "fake-llm: from the computer"]
    assert android.texts() == texts
    assert said["answer"]["text"] == texts[-1]
    seen: list[Any] = []
    while not seen or seen[-1]["seq"] < android.last_seq:
        seen += (await asyncio.to_thread(next_message, stream, "events"))["events"]
    assert seen == android.events
    stream.close()
    await android.sees(lambda: android.here == ["Android"])
    shown = await ask(desk, "GET", "/sessions/current")
    assert shown["events"] == android.events
    assert [one["by"] for one in shown["events"] if one["kind"] == "operator_input"] == ["Android", "Owner"]


async def test_open_stream_does_not_hold_up_the_end(desk: RunningDaemon) -> None:
    await ask(desk, "POST", "/sessions")
    stream = await asyncio.to_thread(desk.stream, "/sessions/current/stream")
    await asyncio.to_thread(next_message, stream, "events")
    await asyncio.to_thread(desk.stop)
    assert stream.read().strip() == b""


async def test_session_opened_takes_connected_phones_there(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone()
    before = android.session
    await android.is_answered(await android.say("in the first"))
    row = await command(desk, "open")
    await android.sees(lambda: android.session == row["id"] and android.events)
    assert android.session != before and android.texts() == []
    await android.is_answered(await android.say("in the second"))
    assert android.texts() == ["in the second", "fake-llm: in the second"]
    rows = (await ask(desk, "GET", "/sessions"))["sessions"]
    assert [(one["id"], one["current"]) for one in rows] == [(row["id"], True), (before, False)]
    desk.stop()
    desk.start()
    await android.leave()
    await android.resume()
    assert android.session == row["id"]


async def test_older_session_opened_again_is_where_phones_are(desk: RunningDaemon, phone: MakePhone) -> None:
    android, ipad = await phone(name="Android"), await phone(name="iPad")
    first = android.session
    await android.is_answered(await android.say("in the first"))
    second = (await command(desk, "open"))["id"]
    await android.sees(lambda: android.session == second)
    row = await command(desk, "open", first[:8])
    assert (row["id"], row["current"]) == (first, True)
    for one in (android, ipad):
        await one.sees(lambda one=one: one.session == first and len(one.texts()) == 2)
        assert one.texts() == ["in the first", "fake-llm: in the first"]
    said = await command(desk, "say", "from the computer")
    assert said["session"] == first, "the session that phones are in"
    await android.is_answered(said["event_id"])
    exported = await asyncio.to_thread(desk.cli, "sessions", "export")
    assert "from the computer" in exported.stdout
    await asyncio.to_thread(desk.stop)
    await asyncio.to_thread(desk.start)
    for one in (android, ipad):
        await one.leave()
        await one.resume()
        assert one.session == first, "also after a restart"
    await command(desk, "close")
    await command(desk, "open", second[:8])
    told = await asyncio.to_thread(desk.cli, "sessions", "open", first[:8])
    assert "It was closed" in told.stdout + told.stderr
    await android.sees(lambda: android.session == first and android.welcome["closed"])


async def test_sentence_asked_before_the_move_is_refused(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone()
    id = await android.say("hello")
    await android.is_answered(id)
    row = await command(desk, "open")
    await android.sees(lambda: android.session == row["id"])
    await android.say("hello", id=id)
    await android.sees(lambda: android.refused)
    assert android.refused == {id: "That was asked in the session before."}


async def test_session_closed_takes_no_sentence(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone()
    await command(desk, "close")
    await android.sees(lambda: android.events[-1]["kind"] == "session_end")
    id = await android.say("too late")
    await android.sees(lambda: id in android.refused)
    refused = await ask(desk, "POST", "/sessions/current/say", {"text": "too late"})
    assert refused["code"] == "session_closed"
    desk.stop()
    desk.start()
    await android.leave()
    await android.resume()
    assert android.welcome["closed"] and android.texts() == []
    notes = [one for one in android.events if one["kind"] == "session_end"]
    assert [(one["by"], one["text"]) for one in notes] == [("Owner", "This session is closed.")]


async def test_branch_copies_events_and_names_its_parent(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone(name="Android")
    await android.is_answered(await android.say("first"))
    parent, at_seq = android.session, android.last_seq
    await android.is_answered(await android.say("second"))
    before = list(android.events)
    row = await command(desk, "branch", parent[:8], "--at", str(at_seq))
    await android.sees(lambda: android.session == row["id"] and android.last_seq > at_seq)
    copied, (note, *rest) = android.events[: len(android.events) - 1], android.events[-1:]
    assert copied == [one for one in before if one["seq"] <= at_seq]
    assert (note["kind"], note["parent"], note["at_seq"], rest) == ("branch", parent, at_seq, [])
    verified = await asyncio.to_thread(desk.cli, "threads", "verify", "--json")
    assert verified.returncode == 0, verified.stdout
    again = (await ask(desk, "GET", f"/sessions/{parent}"))["events"]
    assert again == before


async def test_branch_before_an_answer_says_so_and_goes_on(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone()
    id = await android.say("first")
    await android.is_answered(id)
    asked = next(one["seq"] for one in android.events if one["kind"] == "operator_input")
    row = await command(desk, "branch", "--at", str(asked))
    await android.sees(lambda: android.session == row["id"] and android.answers(id))
    (failed,) = android.answers(id)
    assert failed["error"] and failed["again"]
    await android.is_answered(await android.say("first"))


async def test_export_of_a_session_works_with_daemon_down(
    desk: RunningDaemon, phone: MakePhone, tmp_path: Path
) -> None:
    android = await phone(name="Android")
    await android.is_answered(await android.say("keep this"))
    await command(desk, "close")
    await android.leave()
    desk.stop()
    exported = await command(desk, "export", "--format", "markdown")
    assert "**Android**" in exported["export"]["content"]
    assert "This session is closed." in exported["export"]["content"]
    thread = exported["export"]["thread"]
    lines = await asyncio.to_thread(desk.cli, "sessions", "export", android.session[:8])
    same = await asyncio.to_thread(desk.cli, "threads", "export", thread)
    assert lines.stdout == same.stdout and "keep this" in lines.stdout
    shown = await asyncio.to_thread(desk.cli, "threads", "show", thread)
    assert "Android" in shown.stdout and "This session is closed." in shown.stdout
    assert (await asyncio.to_thread(desk.cli, "threads", "verify")).returncode == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/sessions"), ("POST", "/sessions"), ("GET", "/sessions/current"),
        ("GET", "/sessions/current/stream"), ("POST", "/sessions/current/say"), ("POST", "/sessions/current/clear"),
        ("POST", "/sessions/current/branch"), ("POST", "/sessions/current/close"),
    ],
)  # fmt: skip
def test_sessions_need_the_operator(fake_daemon: RunningDaemon, method: str, path: str) -> None:
    answer = fake_daemon.request(method, path, {"text": "hello"} if method == "POST" else None)
    assert (answer.status, answer.json()["code"]) == (403, "not_operator")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("say", {"text": " "}, 422), ("say", {"text": "x" * 100_001}, 422), ("say", {"text": "x", "to": 5}, 422),
        ("say", {"text": "x", "event_id": "5"}, 422), ("branch", {"at_seq": -1}, 422), ("branch", {"at_seq": 9999}, 422),
        ("branch", {"at_seq": True}, 422),
    ],
)  # fmt: skip
def test_session_routes_refuse_what_is_no_request(
    fake_daemon: RunningDaemon, path: str, body: dict[str, Any], status: int
) -> None:
    fake_daemon.post("/sessions", control=True)
    answer = fake_daemon.post(f"/sessions/current/{path}", body, control=True)
    assert answer.status == status and answer.json()["do"]


def test_session_unknown_is_not_found(fake_daemon: RunningDaemon) -> None:
    fake_daemon.post("/sessions", control=True)
    done = fake_daemon.cli("sessions", "show", "ffffffff-0000")
    assert done.returncode == 4 and "rappd sessions list" in done.stderr


async def test_clear_empties_screens_and_the_models_memory(desk: RunningDaemon, phone: MakePhone) -> None:
    android, ipad = await phone(name="Android"), await phone(name="iPad")
    listener = await phone(name="guest", scope="listen")
    await android.is_answered(await android.say("a secret"))
    await listener.clear()  # may not
    await android.clear()
    await ipad.sees(lambda: ipad.events[-1]["kind"] == "clear")
    assert [one["by"] for one in ipad.events if one["kind"] == "clear"] == ["Android"]
    await android.is_answered(await android.say("after"))
    events = (await ask(desk, "GET", f"/threads/{await thread_of(desk)}"))["events"]
    asked = [one["data"] for one in events if one["verb"] == "HELP" and "user_input" in one["data"]]
    assert [(one["user_input"], one["history_messages"]) for one in asked] == [("a secret", 0), ("after", 0)]


async def thread_of(desk: RunningDaemon) -> str:
    return str((await ask(desk, "GET", "/sessions"))["sessions"][0]["thread"])


async def test_presence_follows_joins_and_leaves_unrecorded(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone(name="Android")
    assert android.here == ["Android"]
    ipad = await phone(name="iPad")
    await android.sees(lambda: android.here == ["Android", "iPad"])
    await ipad.leave()
    await android.sees(lambda: android.here == ["Android"])
    await ipad.resume()
    await android.sees(lambda: android.here == ["Android", "iPad"])
    assert {one["kind"] for one in android.events} == {"session_start"}


async def test_owner_in_a_session_reaches_no_structural_agent(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    desk = make_daemon("offline", RAPPD_TETHER_ADDRESS="127.0.0.1").start()
    before = sorted(path.name for path in desk.agents.glob("*_agent.py"))
    creates = "create an agent that counts words"
    await ask(desk, "POST", "/sessions")
    said = {"text": creates, "wait": True, "event_id": new_id()}
    assert (await ask(desk, "POST", "/sessions/current/say", said))["event_id"] == said["event_id"]
    assert sorted(path.name for path in desk.agents.glob("*_agent.py")) == before
    await ask(desk, "POST", "/chat", {"user_input": creates})
    assert sorted(path.name for path in desk.agents.glob("*_agent.py")) != before


async def test_phone_named_owner_gets_another_name(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone(name="Owner")
    assert android.name == "Owner 2"
    renamed = await ask(desk, "POST", "/devices/Owner%202", {"name": "owner"})
    assert "Another device" in renamed["error"]


NAMES = ["desk", "Rose", "Rosemary", "Debater A", "Ink@pi"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@Rose what is it?", "Rose"),
        ("@rosemary hello", "Rosemary"),
        ("  @Rose", "Rose"),
        ("Rose, what is it?", "Rose"),
        ("rose: what is it?", "Rose"),
        ("Debater A, go on", "Debater A"),
        ("@Ink@pi, go on", "Ink@pi"),
        ("Rose is red", ""),
        ("roses, red ones", ""),
        ("@Rose_2 hello", ""),
        ("@Rose@pi hello", ""),
        ("tell Rose, please", ""),
        ("@nobody hello", ""),
    ],
)
def test_text_that_calls_somebody_names_them(text: str, name: str) -> None:
    assert addressed(text, NAMES) == name


async def test_sentence_goes_to_the_one_that_it_calls(desk: RunningDaemon, phone: MakePhone) -> None:
    await ask(desk, "POST", "/twins", {"name": "Rose", "text": "You are Rose."})
    android = await phone(name="Android")
    for text, to in (("@Rose are you there?", "desk"), ("Rose, and now?", ""), ("Rose is red", "desk")):
        id = await android.say(text, to=to)
        answer = await android.is_answered(id)
        (asked,) = [
            one for one in android.events if one["event_id"] == id and one["kind"] == "operator_input"
        ]
        assert answer["by"] == asked["to"] == ("desk" if text == "Rose is red" else "Rose")
