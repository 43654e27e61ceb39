"""Threads become frames and threads again: the very chains, of any writer and in any order."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envelopes.codecs.pictures import MOST_TOGETHER, Picture, recorded
from envelopes.envelope import PICTURES, thread_id
from rappd.errors import StoreError
from rappd.store.reader import Reader
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.transcript.exchanges import exchanges
from rappd.transcript.frames import KIND, RecordedConversations, RestoredConversations, ThreadsHeld
from rappd.transcript.thread_rows import event_row, thread_row
from twins.eggs.frames import Frame, chained, decoded, encoded, verified

KEY = "4f2a" * 16
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40)
SESSIONS = st.one_of(TEXTS, st.integers(-5, 5), st.lists(TEXTS, max_size=2), st.booleans())


class Home:
    """A record, and conversations that are held in it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.database = folder / "rappd.db"

    async def hold(
        self,
        *said: tuple[Any, str],
        workspace: str = KEY,
        at: int = 1_700_000_000_000_000,
        pictures: list[Picture] | None = None,
    ) -> None:
        """Records (session, text), each as a question."""
        store = await Store.open(self.database)
        for number, (session, text) in enumerate(said):
            name = orjson.dumps(session, option=orjson.OPT_SORT_KEYS).decode()
            thread = thread_id(workspace, "ada", name)
            store.thread(ThreadInfo(thread, workspace, "ada", name, text[:80], at))
            body = envelope(text, thread, **({PICTURES: pictures} if pictures else {}))
            store.queue(Record(thread, "HELP", "ada", "rose", json.loads(body)["id"], body, at + number))
        await store.flush()
        await store.close()

    async def take_in(self, frames: Iterable[Frame]) -> int:
        """Restores frames as hatching does: written into a file and read again."""
        octets = b"".join(encoded(frames))
        store = await Store.open(self.database)
        sink = RestoredConversations(store, self.database, asyncio.get_running_loop())
        try:
            return await asyncio.to_thread(sink.restore, KEY, verified(decoded([octets])) if octets else ())
        finally:
            await store.close()

    def frames(self) -> list[Frame]:
        return list(RecordedConversations(self.database, KEY).frames(KEY))

    def threads(self) -> dict[str, list[bytes]]:
        with Reader(self.database) as record:
            return {
                one.id: [event.hash for event in record.events_of(one.id)] for one in record.threads_of(KEY)
            }

    def reads_well(self) -> bool:
        """True when every screen can show every thread."""
        with Reader(self.database) as record:
            for thread in record.threads():
                json.dumps(thread_row(thread))
                events = record.thread_events(thread.id)
                json.dumps([event_row(event) for event in events])
                exchanges(events)
        return verify(self.database).whole


def envelope(text: str, thread: str, **more: Any) -> bytes:
    data = {"user_input": text}
    return orjson.dumps(
        {
            "id": str(uuid.uuid4()),
            "from": "ada",
            "to": "rose",
            "verb": "HELP",
            "data": data,
            "_x_thread": thread,
            **more,
        }
    )


@given(said=st.lists(st.tuples(SESSIONS, TEXTS), max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_said_comes_back_with_the_very_chains(tmp_path: Path, said: list[tuple[Any, str]]) -> None:
    folder = tmp_path / uuid.uuid4().hex

    async def travel() -> None:
        here, there = Home(folder / "a"), Home(folder / "b")
        await here.hold(*said)
        assert not said or not ThreadsHeld(there.database).holds(KEY, here.frames())
        assert await there.take_in(here.frames()) == len(said)
        assert not said or ThreadsHeld(there.database).holds(KEY, here.frames())
        assert not said or not ThreadsHeld(there.database).holds("another", here.frames())
        assert there.threads() == here.threads()
        assert await there.take_in(here.frames()) == 0
        assert sorted(there.frames(), key=str) == sorted(here.frames(), key=str)
        assert there.reads_well()

    asyncio.run(travel())


async def test_frames_sorted_by_time_give_same_threads(tmp_path: Path) -> None:
    here, there = Home(tmp_path / "a"), Home(tmp_path / "b")
    await here.hold(*[(f"session {number % 3}", f"{number}") for number in range(30)])
    merged = sorted(here.frames(), key=lambda frame: (frame["utc"], frame["hash"]))
    assert [frame["stream_id"] for frame in merged[:4]] != [merged[0]["stream_id"]] * 4
    assert await there.take_in(merged) == 30
    assert there.threads() == here.threads()


async def test_pictures_of_a_sentence_travel_with_it(tmp_path: Path) -> None:
    content = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes((MOST_TOGETHER >> 1) - 8)).decode()
    pictures = [{"type": "image/png", "data": content}] * 2
    here, there = Home(tmp_path / "a"), Home(tmp_path / "b")
    await here.hold(("garden", "what is this?"), pictures=pictures)
    assert await there.take_in(here.frames()) == 1
    assert there.threads() == here.threads()
    with Reader(there.database) as record:
        (thread,) = there.threads()
        (event,) = record.events_of(thread)
    assert recorded(orjson.loads(event.body)) == pictures


async def test_only_the_twins_own_threads_travel(tmp_path: Path) -> None:
    here = Home(tmp_path / "a")
    await here.hold(("garden", "mine"))
    await here.hold(("garden", "somebody else's"), workspace="brainstem")
    assert [json.loads(frame["payload"]["body"])["data"]["user_input"] for frame in here.frames()] == ["mine"]


async def test_two_lives_of_a_conversation_stand_once(tmp_path: Path) -> None:
    here, there = Home(tmp_path / "a"), Home(tmp_path / "b")
    await here.hold(("garden", "here"))
    await there.hold(("garden", "there"))
    own = there.threads()
    assert not ThreadsHeld(there.database).holds(KEY, here.frames()), (
        "of this one only the other life is here"
    )
    assert await there.take_in(here.frames()) == 1
    assert await there.take_in(here.frames()) == 0
    assert len(there.threads()) == 2
    assert own.items() <= there.threads().items()
    assert await here.take_in(there.frames()) == 1
    assert sorted(here.threads().values()) == sorted(there.threads().values())
    assert await there.take_in(here.frames()) == 0
    with Reader(there.database) as record:
        sessions = sorted(str(thread.session) for thread in record.threads_of(KEY))
    assert sessions[0] == '"garden"'
    assert sessions[1].startswith('"garden, as hatched ')
    assert there.reads_well()


FOREIGN = [
    *chained(
        "rappid:@a/b#1",
        [("2026-01-02T03:04:05Z", "note", {"text": "one"}), ("2026-01-02T03:04:06Z", "note", "two")],
    ),
    *chained("", [("whenever", "note", None)]),
    *chained("x" * 400, [("2026-01-02T03:04:05+02:00", "note", [1, 2.5, {"deep": {"er": True}}])]),
]


async def test_foreign_frames_are_kept_unchanged(tmp_path: Path) -> None:
    here, there = Home(tmp_path / "a"), Home(tmp_path / "b")
    assert await here.take_in(FOREIGN) == 4
    assert await here.take_in(FOREIGN) == 0
    assert sorted(here.frames(), key=str) == sorted(FOREIGN, key=str)
    assert here.reads_well()
    assert await there.take_in(here.frames()) == 4
    assert there.threads() == here.threads()


def _hostile() -> list[tuple[str, dict[str, Any]]]:
    good = {
        "thread": "t",
        "caller": "ada",
        "session": '"garden"',
        "title": "t",
        "body": envelope("x", "t").decode(),
    }
    wrong: dict[str, dict[str, Any]] = {
        "no JSON in the session": {"session": "garden"},
        "half a session": {"session": '{"a":'},
        "a session that is no text": {"session": 7},
        "no caller": {"caller": ""},
        "a caller that is no text": {"caller": {"a": 1}},
        "a title that is no text": {"title": 5},
        "no body": {"body": None},
        "a body that is no JSON": {"body": "hello"},
        "a body that is a list": {"body": "[]"},
        "a body without data": {
            "body": '{"id":"00000000-0000-4000-8000-000000000000","from":"a","to":"b","verb":"HELP"}'
        },
        "data that is a number": {"body": envelope("x", "t", data=7).decode()},
        "a verb that is a number": {"body": envelope("x", "t", verb=7).decode()},
        "a key that nobody knows": {"body": envelope("x", "t", surprise=1).decode()},
        "an id that is none": {"body": envelope("x", "t", id="../../etc").decode()},
        "the body in hex": {"body": None, "body_hex": "ff"},
    }
    return [(name, {**good, **change}) for name, change in wrong.items()]


@pytest.mark.parametrize(("name", "payload"), _hostile(), ids=lambda one: one if isinstance(one, str) else "")
async def test_pretended_frames_break_no_screen(tmp_path: Path, name: str, payload: dict[str, Any]) -> None:
    home = Home(tmp_path / "a")
    frames = list(chained(f"{KEY}:x", [("2026-01-02T03:04:05Z", KIND, payload)]))
    assert await home.take_in(frames) == 1
    assert home.reads_well()
    assert home.frames() == frames, name


async def test_no_egg_puts_words_into_a_thread_of_somebody_else(tmp_path: Path) -> None:
    home = Home(tmp_path / "a")
    await home.hold(("garden", "mine"), workspace="brainstem")
    with Reader(home.database) as record:
        (own,) = record.threads()
    payload = {
        "thread": own.id, "caller": "ada", "session": own.session, "title": "t",
        "body": envelope("forged", own.id).decode(),
    }  # fmt: skip
    for session in (own.session, None):
        await home.take_in(
            chained(f"brainstem:{own.id}", [("2026-01-02T03:04:05Z", KIND, {**payload, "session": session})])
        )
    with Reader(home.database) as record:
        assert [event.hash for event in record.events_of(own.id)] == [own.head]
        assert {thread.workspace for thread in record.threads() if thread.id != own.id} == {KEY}


async def test_a_record_that_is_closed_meanwhile_is_told_as_such(tmp_path: Path) -> None:
    home = Home(tmp_path / "a")
    store = await Store.open(home.database)
    sink = RestoredConversations(store, home.database, asyncio.get_running_loop())
    await store.close()
    with pytest.raises(StoreError):
        await asyncio.to_thread(sink.restore, KEY, FOREIGN)


def test_a_loop_that_has_ended_is_told_as_such(tmp_path: Path) -> None:
    home = Home(tmp_path / "a")

    async def opened() -> RestoredConversations:
        store = await Store.open(home.database)
        await store.close()
        return RestoredConversations(store, home.database, asyncio.get_running_loop())

    with pytest.raises(StoreError):
        asyncio.run(opened()).restore(KEY, FOREIGN)
