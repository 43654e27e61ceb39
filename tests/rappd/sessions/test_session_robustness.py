"""Sessions that are long, cut off, said twice at once, or whose twin is gone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

from envelopes.codecs import emergence
from envelopes.envelope import DONE, HELP, THREAD, Envelope, new_id
from rappd.sessions.session_record import PAGE_EVENTS
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.tether.framing import MESSAGE_BYTES, frames_of
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]
LONG = 5_000
BEGUN = '__import__("pathlib").Path(__file__).parents[1] / ".brainstem_data" / "begun"'
SLOW = agent_source("Slow", f'({BEGUN}).write_text("")\n        __import__("time").sleep(60)')


async def ask(desk: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await asyncio.to_thread(desk.request, method, path, body, control=True)
    return answer.json()


async def add_answers(desk: RunningDaemon, thread: str, answers: list[str]) -> None:
    """Writes sentences with their answers into the event log of a daemon that is stopped."""
    store = await Store.open(desk.home / "rappd.db")
    (start,) = await store.thread_events(thread)
    for number, text in enumerate(answers):
        data = {"user_input": f"sentence {number}", "by": "Android"}
        asked = Envelope(new_id(), "guid", start.recipient, HELP, data, {THREAD: thread})
        for one in (asked, asked.reply(DONE, {"response": text})):
            at = time.time_ns() // 1000
            store.queue(
                Record(thread, one.verb, one.sender, one.recipient, one.id, emergence.encode(one), at)
            )
    await store.flush()
    await store.close()


async def reopened_with(desk: RunningDaemon, phone: MakePhone, answers: list[str]) -> PhoneClient:
    """A phone that was away while its session got these answers; it has seen nothing of it yet."""
    android = await phone()
    thread = (await ask(desk, "GET", "/sessions"))["sessions"][0]["thread"]
    await android.leave()
    await asyncio.to_thread(desk.stop)
    await add_answers(desk, thread, answers)
    await asyncio.to_thread(desk.start)
    android.last_seq, android.events, android.pages = 0, [], []
    return android


async def test_long_session_comes_in_pages(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await reopened_with(desk, phone, [f"answer {number}" for number in range(LONG // 2)])
    await android.resume()
    await android.sees(lambda: android.last_seq == LONG + 1)
    assert [one["seq"] for one in android.events] == list(range(1, LONG + 2))
    assert max(android.pages) == PAGE_EVENTS and len(android.pages) == -(-(LONG + 1) // PAGE_EVENTS)
    id = await android.say("and now")
    assert (await android.is_answered(id))["text"] == "fake-llm: and now"


async def test_large_answers_reach_a_phone_whole_or_cut(desk: RunningDaemon, phone: MakePhone) -> None:
    texts = ["\x01" * 300_000, "é" * 90_000, *("word " * 8_000 for _ in range(30))]
    android = await reopened_with(desk, phone, texts)
    await android.resume()
    await android.sees(lambda: android.last_seq == 2 * len(texts) + 1)
    answers = [one["text"] for one in android.events if one["kind"] == "twin_response"]
    assert answers == [text[:100_000] for text in texts]


async def test_same_event_said_by_two_devices_is_asked_once(desk: RunningDaemon, phone: MakePhone) -> None:
    users = (new_id(), new_id())  # of different users: the dispatcher alone would ask twice
    phones = [await phone(name=f"phone {number}", user=user) for number, user in enumerate(users)]
    for _ in range(10):
        id = new_id()
        await asyncio.gather(*(one.say("once", id=id) for one in phones))
        for one in phones:
            await one.is_answered(id)
    await phones[0].is_answered(await phones[0].say("last"))
    await phones[1].sees(lambda: phones[1].last_seq == phones[0].last_seq)
    assert [one.refused for one in phones] == [{}, {}]
    assert (
        phones[0].texts() == phones[1].texts() == [*["once", "fake-llm: once"] * 10, "last", "fake-llm: last"]
    )


async def test_sentences_are_recorded_in_the_order_said(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone()
    texts = [f"sentence {number}" for number in range(40)]
    ids = [await android.say(text) for text in texts]
    for id in ids:
        await android.is_answered(id)
    assert [one["text"] for one in android.events if one["kind"] == "operator_input"] == texts


@pytest.mark.parametrize(("end", "do"), [(RunningDaemon.kill, "Ask again."), (RunningDaemon.stop, "")])
@pytest.mark.own_process
async def test_sentence_cut_off_by_a_restart_fails_once(
    make_daemon: Callable[..., RunningDaemon],
    fake_model: FakeModel,
    end: Callable[[RunningDaemon], None],
    do: str,
) -> None:
    desk = make_daemon("desk", **reachable(), OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small")
    desk.drop("slow_agent.py", SLOW)
    desk.start()
    android = await PhoneClient(desk).pair()
    fake_model.will(calls(("Slow", {})), says("never"))
    id = await android.say("take long")
    await asyncio.to_thread(desk.wait_for, (desk.data / "begun").exists)
    await android.sees(lambda: any(one["kind"] == "tool_dispatch" for one in android.events))
    await asyncio.to_thread(end, desk)
    await android.leave()
    for _ in range(2):  # the second start finds it answered
        await asyncio.to_thread(desk.start)
        await android.resume()
        failed = await android.is_answered(id)
        assert (failed["error"], failed["again"], failed["do"]) == (True, True, do)
        assert len(android.answers(id)) == 1
        errors = [one for one in android.events if one.get("error")]
        assert errors == [failed]
        await android.leave()
        await asyncio.to_thread(desk.stop)


async def test_twin_keeps_its_name_asleep_and_archived(desk: RunningDaemon, phone: MakePhone) -> None:
    async def twins(*words: str) -> None:
        done = await asyncio.to_thread(desk.cli, "twins", *words)
        assert done.returncode == 0, done.stderr

    await twins("new", "Käthe")
    android = await phone()
    assert [one["name"] for one in android.welcome["participants"]] == ["desk", "Käthe"]
    await android.is_answered(await android.say("hello", to="Käthe"))
    await twins("archive", "Käthe", "--yes")
    await android.leave()
    await asyncio.to_thread(desk.stop)
    await asyncio.to_thread(desk.start)
    android.last_seq = 0
    await android.resume()
    await android.sees(lambda: android.texts())
    asked, answered = (one for one in android.events if one["kind"] in ("operator_input", "twin_response"))
    assert (asked["to"], answered["by"]) == ("Käthe", "Käthe")
    failed = await android.is_answered(await android.say("still there?", to="Käthe"))
    assert failed["error"] and "archived" in failed["text"]
    exported = await asyncio.to_thread(desk.cli, "sessions", "show", "--json")
    assert [one["by"] for one in json.loads(exported.stdout)["events"]][1:3] == ["Android", "Käthe"]


def test_page_of_the_largest_events_fits_a_message() -> None:
    event = {"kind": "twin_response", "text": "\x01" * 100_000, "do": "", "by": "x" * 200}
    page = {"type": "events", "events": [event], "last_seq": 1, "more": True}
    assert sum(map(len, frames_of(page))) > MESSAGE_BYTES // 2
