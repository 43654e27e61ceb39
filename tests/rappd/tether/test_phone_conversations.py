"""Conversations of phones: each its own, streamed over its connection; the owner's own phone has the owner's."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel
from fixtures.loopback_server import says as assistant
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from rappd.features.operation import OperationTable, Stream, operation
from rappd.tether.devices import TALK, Device
from rappd.tether.phone_requests import (
    MOST_BODY,
    MOST_OPEN,
    MOST_WAITING,
    PART,
    Ask,
    Drop,
    Next,
    Part,
    PhoneRequests,
    RequestTable,
)
from rappd.tether.phone_session import FRAMES_A_SECOND, Hang, PhoneSession, Request
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.phone_client import PhoneClient, told_events

MakePhone = Callable[..., Awaitable[PhoneClient]]


async def says(phone: PhoneClient, text: str, session: str = "", **more: Any) -> dict[str, Any]:
    """The last event of a turn."""
    body = {"user_input": text, "turn_id": new_id(), "session_id": session or new_id()} | more
    status, events = await phone.ask("POST", "/chat/stream", body)
    assert status == 200, events
    last: dict[str, Any] = events[-1][1]
    return last


async def titles(phone: PhoneClient) -> list[str]:
    status, found = await phone.ask("GET", "/conversations")
    assert status == 200, found
    return [row["title"] for row in found["conversations"]]


async def test_phone_talks_in_a_conversation_of_its_own(desk: RunningDaemon, phone: MakePhone) -> None:
    guest = await phone(AiortcClient, name="Guest", session=False)
    assert (guest.standing["kind"], guest.session) == ("guest", "")
    done = await says(guest, "hello")
    assert (done["type"], done["response"]) == ("done", "fake-llm: hello")
    assert await titles(guest) == ["hello"]
    status, found = await guest.ask("GET", f"/conversations/{done['thread']}")
    assert (status, found["turns"][0]["text"]) == (200, "fake-llm: hello")
    page = await asyncio.to_thread(desk.get, "/conversations", control=True)
    assert page.json()["conversations"] == [], "a guest's is not the owner's"


async def page_conversations(desk: RunningDaemon) -> list[str]:
    found = await asyncio.to_thread(desk.get, "/conversations", control=True)
    return [row["title"] for row in found.json()["conversations"]]


async def test_guest_gets_nothing_of_others_by_any_id(desk: RunningDaemon, phone: MakePhone) -> None:
    mine = await phone(AiortcClient, name="Mine", kind="mine")
    guest = await phone(AiortcClient, name="Guest", session=False)
    other = await phone(AiortcClient, name="Other", session=False)
    session, turn = new_id(), new_id()
    secret = await says(mine, "the safe is behind the painting", session, turn_id=turn)
    theirs = await says(other, "I owe Tom ten", session)
    for thread in (secret["thread"], theirs["thread"], new_id()):
        for method, path in (
            ("GET", f"/conversations/{thread}"),
            ("GET", f"/threads/{thread}/pictures/{turn}"),
            ("POST", f"/conversations/{thread}/remove"),
            ("POST", f"/conversations/{thread}/rename"),
        ):
            status, found = await guest.ask(method, path, {"title": "x"} if method == "POST" else None)
            assert (status, found["error"]) == (404, "There is no such conversation."), path
    assert (await guest.ask("POST", "/chat/cancel", {"turn_id": turn}))[0] == 404
    for path in ("/conversations/search?words=safe", "/conversations/search?words=owe"):
        assert (await guest.ask("GET", path))[1]["found"] == []
    asked = f"/conversations?user_guid={mine.standing.get('user', 'c0p110t0-aaaa-bbbb-cccc-123456789abc')}"
    assert (await guest.ask("GET", asked))[1]["conversations"] == []
    again = await says(guest, "the same session and turn", session, turn_id=turn)
    assert again["response"] == "fake-llm: the same session and turn", "a turn's id is its user's"
    assert again["thread"] not in (secret["thread"], theirs["thread"])
    assert (await titles(mine), await titles(other)) == (
        ["the safe is behind the painting"],
        ["I owe Tom ten"],
    )


async def test_program_on_this_machine_follows_and_stops_no_guests_turn(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, phone: MakePhone, desk: RunningDaemon
) -> None:
    """The caller knows the turn's id and the guest's user, which is in no list but the operator's."""
    desk.stop()
    del desk.environment["LLM_FAKE"]
    desk.environment |= {"OPENAI_BASE_URL": fake_model.url, "OPENAI_MODEL": "small"}
    desk.start()
    guest = await phone(AiortcClient, name="Guest", session=False)
    fake_model.hang = True
    turn, user = new_id(), Device(id=guest.id, name="", secret="", created_at=0.0).user_guid
    body = {"user_input": "my secret", "turn_id": turn, "session_id": new_id()}
    asking = asyncio.ensure_future(guest.ask("POST", "/chat/stream", body))
    await asyncio.to_thread(fake_model.reached.wait)
    stop = {"turn_id": turn, "user_guid": user}
    assert (await asyncio.to_thread(desk.post, "/chat/cancel", stop)).status == 404
    fake_model.hang = False
    fake_model.will(assistant("to the program"))
    asked = {"user_input": "what was said?", "turn_id": turn, "session_id": new_id(), "user_guid": user}
    followed = await asyncio.to_thread(desk.post, "/chat/stream", asked)
    assert b"to the program" in followed.body and len(fake_model.asked) == 1, "it began a turn of its own"
    assert not asking.done(), "the guest's goes on"
    assert (await guest.ask("POST", "/chat/cancel", {"turn_id": turn}))[0] == 200, "its own phone stops it"
    assert (await asking)[0] == 200


async def test_own_phone_has_the_owners_conversations_and_memory(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    mine = await phone(AiortcClient, name="Mine", kind="mine")
    assert mine.standing["kind"] == "mine"
    rights = (await asyncio.to_thread(desk.get, "/devices/Mine", control=True)).json()
    assert [rights[one] for one in ("workflows", "eggs", "notices", "user")] == [True, True, True, "shared"]
    await asyncio.to_thread(desk.chat, "said at the desk")
    await says(mine, "said on the phone")
    both = ["said on the phone", "said at the desk"]
    assert (await titles(mine), await page_conversations(desk)) == (both, both)


async def test_own_phone_is_a_guests_over_a_websocket(desk: RunningDaemon, phone: MakePhone) -> None:
    await asyncio.to_thread(desk.chat, "said at the desk")
    mine = await phone(name="Mine", kind="mine")
    assert mine.standing["kind"] == "guest"
    assert await titles(mine) == []
    await says(mine, "over the socket")
    assert await page_conversations(desk) == ["said at the desk"]


async def test_phone_of_before_is_a_guest_in_its_session_until_it_is_mine(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    await asyncio.to_thread(desk.chat, "said at the desk")
    old = await phone(AiortcClient, name="Old")
    await old.leave()
    desk.stop()
    file = desk.home / "devices.json"
    kept = json.loads(file.read_text())
    for row in kept["devices"]:
        del row["kind"], row["invited"]
    file.write_text(json.dumps(kept))
    desk.start()
    async with asyncio.timeout(100):
        while not (await asyncio.to_thread(desk.get, "/operator/status", control=True)).json()["phones"][
            "port"
        ]:
            await asyncio.sleep(0.02)
    await old.resume()
    assert (old.standing["kind"], bool(old.session), await titles(old)) == ("guest", True, [])
    await asyncio.to_thread(desk.post, "/devices/Old", {"kind": "mine"}, control=True)
    await old.sees(lambda: old.standing["kind"] == "mine")
    assert await titles(old) == ["said at the desk"]
    await asyncio.to_thread(desk.post, "/devices/Old", {"kind": "guest", "session": False}, control=True)
    await old.sees(lambda: old.standing["kind"] == "guest" and not old.session)
    assert await titles(old) == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/devices", 404),
        ("GET", "/memories", 404),
        ("POST", "/agents/approve", 404),
        ("GET", "/conversations/../devices", 404),
        ("POST", "/twins", 404),
        ("GET", "/twins/x/agents", 404),
        ("GET", "/threads", 404),
        ("POST", "/conversations", 404),
        ("POST", "/chat/stream", 400),
    ],
)
async def test_phone_asks_for_nothing_beyond_its_table(
    desk: RunningDaemon, phone: MakePhone, method: str, path: str, status: int
) -> None:
    mine = await phone(AiortcClient, name="Mine", kind="mine")
    found = await mine.ask(method, path, {} if method == "POST" else None)
    assert found[0] == status, found
    assert set(found[1]) >= {"error", "code"}


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "ask", "id": "1", "method": "GET", "path": "/health"},
        {"type": "ask", "id": 1, "method": "DELETE", "path": "/health"},
        {"type": "ask", "id": 1, "method": "GET"},
        {"type": "part", "id": 1},
        {"type": "next"},
        {"type": "drop", "id": None},
    ],
)
def test_malformed_request_ends_the_connection(frame: dict[str, Any]) -> None:
    session = PhoneSession(0.0, may_talk=True)
    session.on_frame({"type": "hello"}, 0.0)
    assert session.on_frame(frame, 1.0) == [Hang("malformed request")]


async def test_phone_that_may_only_listen_has_no_conversations(desk: RunningDaemon, phone: MakePhone) -> None:
    guest = await phone(AiortcClient, name="Guest", scope="listen")
    body = {"user_input": "hello", "turn_id": new_id(), "session_id": new_id()}
    assert (await guest.ask("POST", "/chat/stream", body))[0] == 403
    assert (await guest.ask("GET", "/conversations"))[0] == 403


class OneAnswer:
    """An operation that answers with much, and notes how much of it was made."""

    def __init__(self) -> None:
        self.made = 0
        self.waits = asyncio.Event()

    @operation("phone_test.much", "GET", "/much", right=TALK)
    async def much(self, device: Device) -> Stream:
        """Much."""
        return Stream(self._events())

    async def _events(self) -> AsyncGenerator[tuple[int | None, bytes | dict[str, Any]], None]:
        for number in range(1, 1001):
            self.made = number
            yield number, {"text": "x" * 10_000}

    @operation("phone_test.wait", "POST", "/wait", right=TALK)
    async def wait(self, device: Device, body: bytes) -> dict[str, Any]:
        """Waits."""
        await self.waits.wait()
        return {"size": len(body)}


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(100):
        while not condition():
            await asyncio.sleep(0.001)


async def test_requests_of_a_phone_are_bounded() -> None:
    sent: list[dict[str, Any]] = []
    feature = OneAnswer()
    device = Device(id="a", name="Anna", secret="", created_at=0.0)
    requests = PhoneRequests(RequestTable(OperationTable(feature)), lambda: device, sent.append)
    requests.on_frame(Ask(1, "GET", "/much"))
    await until(lambda: len(sent) == 1 and feature.made > 5)
    await asyncio.sleep(0.01)
    assert feature.made * 10_000 < MOST_WAITING + 3 * PART, "no more is made than the phone takes"
    requests.on_frame(Next(1))
    assert [len(one["text"]) <= PART for one in sent] == [True, True]
    requests.on_frame(Drop(1))
    await asyncio.sleep(0)
    made = feature.made
    requests.on_frame(Next(1))
    await asyncio.sleep(0.01)
    assert (len(sent), feature.made) == (2, made)

    sent.clear()
    for id in range(2, 2 + MOST_OPEN):
        requests.on_frame(Ask(id, "POST", "/wait"))
    requests.on_frame(Ask(90, "POST", "/wait"))
    assert [(one["id"], one["status"]) for one in sent] == [(90, 429)]
    feature.waits.set()
    await until(lambda: len(sent) == 1 + MOST_OPEN)
    await asyncio.sleep(0.01)

    sent.clear()
    requests.on_frame(Ask(91, "POST", "/wait", "x" * 10, more=True))
    requests.on_frame(Ask(92, "POST", "/wait", more=True))
    await until(lambda: len(sent) == 2)
    requests.on_frame(Part(91, "x" * (MOST_BODY - 10), more=True))
    requests.on_frame(Part(92, "xy", more=False))
    await until(lambda: any(one.get("status") for one in sent))
    refused = next(one for one in sent if one.get("status"))
    assert (refused["id"], refused["status"]) == (92, 400)
    requests.on_frame(Part(91, "", more=False))
    await until(lambda: sent[-1].get("status") == 200)
    assert json.loads(sent[-1]["text"]) == {"size": MOST_BODY}
    requests.close()


async def test_large_request_and_answer_are_not_too_many_frames_however_fast_the_line() -> None:
    """All frames come in one moment, as from a phone beside a fast computer."""
    sent: list[dict[str, Any]] = []
    feature = OneAnswer()
    feature.waits.set()
    device = Device(id="a", name="Anna", secret="", created_at=0.0)
    requests = PhoneRequests(RequestTable(OperationTable(feature)), lambda: device, sent.append)
    session = PhoneSession(0.0, may_talk=True)

    def comes(frame: dict[str, Any]) -> list[Hang]:
        actions = session.on_frame(frame, 0.0, asked_for=requests.awaits(frame))
        for action in actions:
            if isinstance(action, Request):
                requests.on_frame(action.frame)
        return [action for action in actions if isinstance(action, Hang)]

    comes({"type": "hello"})
    comes({"type": "ask", "id": 1, "method": "POST", "path": "/wait", "text": "x" * PART, "more": True})
    parts = 3 * FRAMES_A_SECOND
    for number in range(1, parts):
        await until(lambda: sent and sent.pop()["type"] == "next")
        assert comes({"type": "part", "id": 1, "text": "x" * PART, "more": number < parts - 1}) == []
    await until(lambda: sent)
    assert json.loads(sent.pop()["text"]) == {"size": parts * PART}

    comes({"type": "ask", "id": 2, "method": "GET", "path": "/much"})
    for _ in range(parts):
        await until(lambda: sent and sent.pop()["more"])
        assert comes({"type": "next", "id": 2}) == []

    for unasked in ({"type": "next", "id": 9}, {"type": "part", "id": 2, "text": "", "more": False}):
        assert any(comes(unasked) for _ in range(FRAMES_A_SECOND)), "nobody asked for these"
    requests.close()


ANSWER_SECONDS = float(os.environ.get("ANSWER_SECONDS", "0"))
"""Seconds that the answer takes at least; the figure of ten minutes is of 600."""


@pytest.mark.timeout(ANSWER_SECONDS * 1.5 + 600)
async def test_answer_is_followed_by_three_phones_and_the_page_alike(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, phone: MakePhone, desk: RunningDaemon
) -> None:
    desk.stop()
    del desk.environment["LLM_FAKE"]
    desk.environment |= {"OPENAI_BASE_URL": fake_model.url, "OPENAI_MODEL": "small"}
    desk.start()
    phones = [await phone(AiortcClient, name=name, kind="mine", session=False) for name in ("A", "B", "C")]
    text = "".join(f"word {number} " for number in range(5000))
    fake_model.pieces = [f"word {number} " for number in range(5000)]
    fake_model.pause = ANSWER_SECONDS / 5000
    fake_model.will(assistant(text))
    began = time.monotonic()
    body = {"user_input": "tell me much", "turn_id": new_id(), "session_id": new_id()}

    def page() -> list[tuple[int, dict[str, Any]]]:
        told = desk.request("POST", "/chat/stream", body)
        return told_events(told.body.decode())

    found = await asyncio.gather(
        *(one.ask("POST", "/chat/stream", body) for one in phones), asyncio.to_thread(page)
    )
    streams = [events for _, events in found[:3]] + [found[3]]
    for events in streams:
        assert "".join(event["text"] for _, event in events if event["type"] == "delta") == text
        numbers = [number for number, _ in events]
        assert numbers == sorted(set(numbers)), "nothing lost, nothing twice"
    assert all(events == streams[0] for events in streams[1:])
    assert len(fake_model.asked) == 1, "it was asked once"
    print(
        f"{len(streams[0])} events in {time.monotonic() - began:.0f} s, the same on three phones and the page"
    )
