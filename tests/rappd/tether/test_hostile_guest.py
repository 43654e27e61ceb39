"""A guest's phone that sends whatever an owner's phone may send: all of it answers as if what it names were not there."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from rappd.dispatch.rights import Right
from rappd.features.conversations.phone_operations import ConversationsForPhones
from rappd.features.operation import operations_of
from rappd.sessions.participants import WORKFLOWS, caller_of, looking_caller_of
from rappd.sessions.sentence_routing import Say
from rappd.tenants.tenant_endpoints import LOOKS
from rappd.tether.devices import APPROVE, EGGS, NOTICES, TALK, Device, by_key, by_secret_alone
from rappd.tether.phone_session import Answer, Dismiss, Hang, Look, PhoneSession, RunWorkflow
from rappd.tether.phone_waiting import PhoneWaiting
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient
from tests.rappd.tether.test_phone_approvals import KEY, hold
from tests.rappd.tether.test_phone_conversations import says

OWN = Device(
    id="a" * 64, name="Own", secret="", created_at=0.0, kind="mine", workflows=True, eggs=True, notices=True
)
GUEST = Device(id="b" * 64, name="Guest", secret="", created_at=0.0)


@pytest.mark.parametrize("device", [GUEST, by_secret_alone(OWN), by_key(GUEST)])
@pytest.mark.parametrize("right", [WORKFLOWS, EGGS, NOTICES, APPROVE, LOOKS])
def test_guest_and_a_phone_known_by_its_secret_alone_have_no_right_but_to_talk(
    device: Device, right: Right
) -> None:
    assert TALK.admits(caller_of(device))
    assert not right.admits(caller_of(device)) and not right.admits(looking_caller_of(device))


class Guests:
    """The connection of a phone that may talk."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []
        self.speaker = GUEST

    def withholds(self, right: Right) -> bool:
        return False

    def show(self, message: dict[str, Any]) -> None:
        self.shown.append(message)


class NeverAsked:
    """The owner's list, which a guest's frame must not reach."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a guest's frame came to {name} of the owner's list")


async def test_frames_about_what_waits_get_the_same_words_whatever_they_name() -> None:
    screen, waiting = Guests(), PhoneWaiting(NeverAsked())  # type: ignore[arg-type]
    for key in (KEY, "code::agents/none_agent.py", "", "phone:x", "egg:" + "0" * 64):
        waiting.show(screen)
        waiting.look(screen, key)
        waiting.dismiss(screen, key)
        for yes in (True, False):
            waiting.answer(screen, Answer(key, "0" * 64, yes))
    await waiting.close()
    texts = {one["error"] for one in screen.shown}
    assert {one["type"] for one in screen.shown} == {"refused"} and len(texts) == 2
    assert all(one["event_id"] == "" for one in screen.shown)


LONG = "x" * 5_000
MALFORMED = [
    {"type": "say", "event_id": "1", "text": "hello"},
    {"type": "say", "event_id": new_id(), "text": 5},
    {"type": "dismiss", "key": 5},
    {"type": "look"},
    {"type": "answer", "key": KEY, "sha256": "0", "yes": "true"},
    {"type": "answer", "key": KEY, "sha256": None, "yes": True},
    {"type": "workflow", "action": "delete", "name": "lantern"},
    {"type": "workflow", "action": "start", "name": "lantern", "files": {"a": 5}},
    {"type": "workflow", "action": "start", "name": "lantern", "plays": {str(n): "x" for n in range(21)}},
    {"type": "hello", "last_seq": -1},
    {"type": "hello", "last_seq": True},
    {"type": "hello", "session": 5},
    {"type": "devices"},
    {"type": "welcome", "kind": "mine"},
    {"type": "standing", "kind": "mine"},
    {"type": "auth_ok"},
    {"type": None},
    {"type": []},
    {"type": {}},
    {},
]


@pytest.mark.parametrize("frame", MALFORMED, ids=str)
def test_malformed_frame_ends_the_connection(frame: dict[str, Any]) -> None:
    session = PhoneSession(0.0, may_talk=True)
    session.on_frame({"type": "hello"}, 0.0)
    (done,) = session.on_frame(frame, 1.0)
    assert isinstance(done, Hang)


def test_what_a_frame_names_is_bounded_and_nothing_is_heard_before_hello() -> None:
    session = PhoneSession(0.0, may_talk=True)
    assert session.on_frame({"type": "look", "key": KEY}, 0.0) == [Hang("no hello")]
    session.on_frame({"type": "hello"}, 0.0)
    id = new_id()
    for number in range(3):  # again and again with the same id: the session answers it once
        found = session.on_frame(
            {"type": "say", "event_id": id.upper(), "text": "hi", "to": LONG}, 1.0 + number
        )
        assert found == [Say(id, "hi", "x" * 80, "")]
    assert session.on_frame({"type": "look", "key": LONG}, 5.0) == [Look("x" * 500)]
    assert session.on_frame({"type": "dismiss", "key": LONG}, 5.0) == [Dismiss("x" * 100)]
    answer = {"type": "answer", "key": LONG, "sha256": LONG, "yes": True}
    assert session.on_frame(answer, 5.0) == [Answer("x" * 500, "x" * 64, True)]
    run = {"type": "workflow", "action": "abort", "name": LONG}
    assert session.on_frame(run, 5.0) == [RunWorkflow("abort", "x" * 80, {}, {})]


# A real phone.

LANTERN = {
    "name": "lantern",
    "title": "Lantern",
    "participants": [{"name": "Keeper"}],
    "steps": [{"participant": "Keeper", "cue": "light it"}],
}
SECRET = "the safe is behind the painting"
PAGES = {
    "phone_conversations.list": ["/conversations?removed={flag}", "/conversations?before=9.{thread}"],
    "phone_conversations.search": ["/conversations/search?words=safe", "/conversations/search?words=painting&below=9"],
    "phone_conversations.show": ["/conversations/{thread}", "/conversations/{thread}?at={turn}",
                                 "/conversations/{own}?at={turn}", "/conversations/{own}?before={turn}"],
    "phone_conversations.pictures": ["/threads/{thread}/pictures/{turn}", "/threads/{own}/pictures/{turn}"],
    "phone_conversations.rename": ["/conversations/{thread}/rename"],
    "phone_conversations.remove": ["/conversations/{thread}/remove"],
    "phone_conversations.restore": ["/conversations/{thread}/restore"],
    "phone_chat.cancel": ["/chat/cancel"],
}  # fmt: skip
"""Requests by operations, where these name something of others. The rest names nothing but twins, which are there for everybody."""
NAMING_NOTHING = {"phone_chat.health", "phone_chat.rights", "phone_chat.twins", "phone_chat.pictures",
                  "phone_chat.stream", "phone_chat.stream_of_twin"}  # fmt: skip
BEYOND = [
    ("GET", "/devices"), ("GET", "/devices/window"), ("POST", "/devices/window"), ("GET", "/notices"), ("GET", "/threads"),
    ("GET", "/threads/{thread}"), ("GET", "/sessions"), ("GET", "/sessions/{session}"), ("GET", "/sessions/current"),
    ("POST", "/sessions/{session}/replay"), ("POST", "/sessions/{session}/branch"), ("GET", "/sessions/{session}/export"),
    ("POST", "/sessions/{session}/title"), ("POST", "/workflows/lantern/run"), ("POST", "/workflows/abort"), ("GET", "/workflows"),
    ("GET", "/eggs/arrived"), ("GET", "/eggs/{egg}"), ("POST", "/eggs/hatch"), ("GET", "/waiting"), ("POST", "/agents/approve"),
    ("GET", "/memories"), ("GET", "/timers"), ("GET", "/peers"), ("GET", "/operator/status"), ("GET", "/tether/v2/eggs/{egg}"),
]  # fmt: skip
FRAMES: list[dict[str, Any]] = [
    {"type": "look", "key": "{matter}"},
    {"type": "answer", "key": "{matter}", "sha256": "{sha256}", "yes": True},
    {"type": "answer", "key": "{matter}", "sha256": "{sha256}", "yes": False},
    {"type": "dismiss", "key": "{news}"},
    {"type": "workflow", "action": "start", "name": "{workflow}"},
    {"type": "workflow", "action": "abort", "name": "{workflow}"},
    {"type": "say", "event_id": "{turn}", "text": "hello", "to": "desk"},
    {"type": "hello", "last_seq": 5, "session": "{session}"},
    {"type": "typing"},
    {"type": "more"},
    {"type": "clear"},
    {"type": "egg_token"},
]


class Heard(PhoneClient):
    """Keeps every message that came, but for pings."""

    def __init__(self, daemon: Any) -> None:
        super().__init__(daemon)
        self.heard: list[dict[str, Any]] = []

    async def _on_message(self, message: dict[str, Any]) -> None:
        if message["type"] not in ("ping", "pong"):
            self.heard.append(message)
        await super()._on_message(message)


class Listening(Heard, AiortcClient):
    """The same over a data channel."""


class Home(NamedTuple):
    """A daemon, the owner's own phone, and what is there, by the names that a request uses."""

    desk: RunningDaemon
    own: PhoneClient
    there: dict[str, str]


@pytest.fixture
async def home(make_daemon: Callable[..., RunningDaemon], tmp_path: Path) -> AsyncIterator[Home]:
    desk = make_daemon("desk", **reachable(), LLM_FAKE="1", RAPPD_TETHER_TLS="on")
    folder = desk.home / "brainstem/workflows"
    folder.mkdir(parents=True)
    (folder / "lantern.json").write_text(json.dumps(LANTERN))
    hold(desk)
    desk.start()

    async def owner(method: str, path: str, body: Any = None) -> Any:
        found = await asyncio.to_thread(desk.request, method, path, body, control=True)
        assert found.status == 200, found.body
        return found.json()

    own = await AiortcClient(desk).pair(name="Own", kind="mine")
    turn = new_id()
    said = await says(own, SECRET, turn_id=turn)
    removed = await says(own, "the safe again")
    assert (await own.ask("POST", f"/conversations/{removed['thread']}/remove", {}))[0] == 200
    await own.is_answered(await own.say("only for the session"))
    egg = tmp_path / "desk.egg"
    await owner("POST", "/eggs/pack", {"into": str(egg)})
    await owner("POST", "/devices/Own/eggs", {"path": str(egg)})
    waiting = (await owner("GET", "/waiting"))["waiting"]
    there = {
        "thread": said["thread"], "turn": turn, "flag": "1", "session": own.session, "workflow": "lantern", "matter": KEY,
        "sha256": next(row["sha256"] for row in waiting if row["key"] == KEY), "news": waiting[0]["key"],
        "egg": own.eggs["offers"][0]["id"] if own.eggs.get("offers") else "0" * 32,
    }  # fmt: skip
    yield Home(desk, own, there)
    await own.leave()


def nothing() -> dict[str, str]:
    """Names of the same form, of what is nowhere."""
    return {
        "thread": new_id(), "turn": new_id(), "flag": "1", "session": new_id(), "workflow": "nowhere", "matter": "code::agents/no_agent.py",
        "sha256": "0" * 64, "news": "news:none", "egg": "0" * 32,
    }  # fmt: skip


def filled(value: Any, names: dict[str, str]) -> Any:
    text = json.dumps(value)
    for name, one in names.items():
        text = text.replace("{" + name + "}", one)
    return json.loads(text)


def without(found: Any, names: dict[str, str]) -> str:
    """An answer without the names that were asked for."""
    text = json.dumps(found, sort_keys=True)
    for name, one in names.items():
        if len(one) > 4:
            text = text.replace(one, "{" + name + "}")
    return re.sub(r'"(id|seq|at)": "?[\w.-]+"?', "", text)


def test_every_operation_of_phones_is_tried() -> None:
    assert {one.name for one in operations_of(ConversationsForPhones)} == {*PAGES, *NAMING_NOTHING}


async def test_guest_gets_the_same_for_what_others_have_and_for_what_is_not_there(home: Home) -> None:
    guest = await Listening(home.desk).pair(name="Guest", session=False)
    own = (await says(guest, "mine alone"))["thread"]
    requests = [
        ("POST" if path.endswith(("rename", "remove", "restore", "cancel")) else "GET", path)
        for paths in PAGES.values()
        for path in paths
    ]
    try:
        for method, path in [*requests, *BEYOND]:
            answers = []
            for names in ({**home.there, "own": own}, {**nothing(), "own": own}):
                body = (
                    filled({"title": "x", "turn_id": "{turn}", "id": "{egg}"}, names)
                    if method == "POST"
                    else None
                )
                await asyncio.sleep(0.04)  # fifty frames a second are too many
                status, found = await guest.ask(method, filled(path, names), body)
                answers.append((status, without(found, names)))
            assert answers[0] == answers[1], (method, path)
            assert (method, path) in requests or answers[0][0] == 404, (method, path, answers[0])
        assert "behind" not in json.dumps(guest.heard)
        assert (await home.own.ask("GET", f"/conversations/{home.there['thread']}"))[1]["turns"][0][
            "user"
        ] == SECRET
    finally:
        await guest.leave()


@pytest.mark.parametrize("over", [Listening, Heard])
async def test_frames_of_a_guest_say_the_same_and_change_nothing(home: Home, over: type[Heard]) -> None:
    guest = await over(home.desk).pair(name="Guest", session=False)
    before = await state(home)
    try:
        for frame in FRAMES:
            told = []
            for names in (home.there, nothing()):
                had = len(guest.heard)
                await guest.send(filled(frame, names))
                assert (await guest.ask("GET", "/health"))[0] == 200, "its connection stays"
                await asyncio.sleep(0.05)
                heard = [one for one in guest.heard[had:] if one["type"] != "reply"]
                told.append(without(heard, names))
            assert told[0] == told[1], frame
        assert await state(home) == before
        assert guest.events == [] and guest.here == [] and guest.matters == []
    finally:
        await guest.leave()


async def state(home: Home) -> Any:
    """The screen of the owner's phone."""
    await home.own.ask("GET", "/health")
    rows = [row["key"] for row in home.own.waiting["rows"]]
    listed = (await home.own.ask("GET", "/conversations"))[1]["conversations"]
    return rows, [row["title"] for row in listed], home.own.texts(), home.own.eggs


async def test_guest_hears_nothing_while_others_talk_come_and_go(home: Home) -> None:
    guest = await Listening(home.desk).pair(name="Guest", session=False)
    await guest.ask("GET", "/health")
    had = len(guest.heard)
    try:
        await says(home.own, "more of the safe")
        await home.own.is_answered(await home.own.say("and in the session"))
        await home.own.send({"type": "typing"})
        hold(home.desk, "Stove")
        other = await PhoneClient(home.desk).pair(name="Other")
        await other.leave()
        await home.own.send({"type": "workflow", "action": "start", "name": "lantern"})
        await home.own.sees(lambda: any("Lantern" in one.get("text", "") for one in home.own.events))
        await home.own.sees(lambda: any("stove" in row["key"] for row in home.own.waiting["rows"]))
        await guest.ask("GET", "/health")
        assert [one for one in guest.heard[had:] if one["type"] != "reply"] == []
    finally:
        await guest.leave()
