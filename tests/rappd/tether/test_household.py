"""Four phones of a household talk while their lines are cut 40 times: each sees its own, nothing is lost, nothing comes twice.

As the suite runs it, they talk as fast as they can. ``HOUSEHOLD_SECONDS=3600`` is an hour of it: 300 sentences each, slower
answers, and lines on which nothing moves any more; fewer seconds have the same in less time.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from fixtures.loopback_server import FakeModel, Message
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from rappd.tether.phone_session import DEAD_SECONDS
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient, told_events

SECONDS = float(os.environ.get("HOUSEHOLD_SECONDS", "0"))
CUTS = 10
"""Of each phone."""
SENTENCES = 300 if SECONDS else CUTS
EVERY = SECONDS / SENTENCES
WAYS = ("sent", "midst", "idle", *(("silent",) if SECONDS else ()))
"""Moments of a cut: when it is asked, in the midst of the answer, afterwards; and a line on which nothing moves."""
PIECES = 12
PAUSE = max(0.05, EVERY / 40)
"""Seconds between two pieces. A phone takes each at once here, and may send fifty frames a second."""
PEOPLE: dict[str, tuple[str, type[PhoneClient]]] = {
    "Anna": ("mine", AiortcClient),
    "Ben": ("mine", AiortcClient),
    "Carl": ("guest", AiortcClient),
    "Dora": ("guest", PhoneClient),
}


class SlowModel(FakeModel):
    """Answers each sentence by its words, in pieces with pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.sentences: Counter[str] = Counter()

    async def _stream(
        self, request: web.Request, model: str, message: Message, usage: dict[str, int]
    ) -> web.StreamResponse:
        said = next(one["content"] for one in reversed(self.asked[-1]["messages"]) if one["role"] == "user")
        self.sentences[said] += 1
        self.pieces = []
        return await self._slowly(request, model, said, usage)

    async def _slowly(
        self, request: web.Request, model: str, said: str, usage: dict[str, int]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces_to(said):
            await response.write(chunk(model, [{"index": 0, "delta": {"content": piece}}]))
            await asyncio.sleep(PAUSE)
        await response.write(chunk(model, [], usage=usage) + b"data: [DONE]\n\n")
        return response


def chunk(model: str, choices: list[Any], **more: Any) -> bytes:
    return b"data: " + json.dumps({"id": "x", "model": model, "choices": choices, **more}).encode() + b"\n\n"


def pieces_to(said: str) -> list[str]:
    return [f"To {said}: ", *(f"{number} " for number in range(PIECES))]


def answer_to(said: str) -> str:
    return "".join(pieces_to(said)).strip()


@pytest.fixture
def model() -> Iterator[SlowModel]:
    server = SlowModel()
    server.start()
    yield server
    server.stop()


class Talker:
    """A phone and the person who holds it."""

    def __init__(self, phone: PhoneClient, name: str, in_session: bool) -> None:
        self.phone, self.name, self.in_session = phone, name, in_session
        self.id = new_id()
        self.conversation = ""
        self.answers: list[str] = []
        self.said: list[str] = []
        self.cuts: Counter[str] = Counter()
        self.back: list[float] = []

    async def talks(self) -> None:
        """All of its sentences, each at its time, with a cut at every so many."""
        began, each = time.monotonic(), SENTENCES // CUTS
        for number in range(SENTENCES):
            await asyncio.sleep(max(0.0, began + number * EVERY - time.monotonic()))
            way = WAYS[number // each % len(WAYS)] if number % each == 0 else ""
            await self.asks(f"{self.name} {number}", way if sum(self.cuts.values()) < CUTS else "")
            if self.in_session and number % 3 == 0:
                await self.says(f"{self.name} in the session {number}", cut=bool(way))

    async def asks(self, text: str, way: str) -> None:
        """Asks in its own conversation; what the cut took is asked for again, from the last event that came."""
        body = {"user_input": text, "turn_id": new_id(), "session_id": self.id}
        before: list[tuple[int, dict[str, Any]]] = []
        if way in ("sent", "midst", "silent"):
            before = await self.begins(body, way)
        last = str(before[-1][0]) if before else ""
        status, rest = await self.phone.ask("POST", "/chat/stream", body, last)
        assert status == 200, rest
        events = [*before, *rest]
        numbers = [number for number, _ in events]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
        streamed = "".join(event["text"] for _, event in events if event["type"] == "delta")
        assert streamed.strip() == answer_to(text), "nothing lost, nothing twice"
        self.answers.append(events[-1][1]["response"])
        self.conversation = events[-1][1]["thread"]
        if way == "idle":
            await self.is_cut(way)

    async def begins(self, body: dict[str, Any], way: str) -> list[tuple[int, dict[str, Any]]]:
        """Asks, and is cut: at once, in the midst of the answer, or so that the computer has to notice."""
        phone = self.phone
        id = 100_000 + len(self.answers)
        answer = phone.answers_to[id] = {"text": "", "more": True}
        asked = {"type": "ask", "id": id, "method": "POST", "path": "/chat/stream", "text": json.dumps(body)}
        await phone.send(asked)
        if way == "midst":
            await phone.sees(lambda: answer["text"].count('"delta"') >= PIECES // 3)
        await self.is_cut(way)
        whole, _, _ = answer["text"].rpartition("\n\n")
        return told_events(f"{whole}\n\n") if whole else []

    async def is_cut(self, way: str) -> None:
        """The line is gone, or nothing moves on it until the computer gives it up."""
        self.cuts[way] += 1
        if way == "silent" and self.phone._reading is not None:
            self.phone._reading.cancel()  # it answers no ping
            await asyncio.sleep(DEAD_SECONDS + 1)
        await self.phone.leave()
        began = time.perf_counter()
        await self.phone.resume()
        self.back.append(time.perf_counter() - began)

    async def says(self, text: str, *, cut: bool) -> None:
        """Says something to all in the session; after a cut it is sent once more, as the page does."""
        self.said.append(text)
        id = await self.phone.say(text)
        if cut:
            await self.is_cut("session")
            await self.phone.say(text, id=id)
        await self.phone.is_answered(id)


@pytest.mark.timeout(0 if SECONDS else 600)  # an hour ends by itself: each wait in it has its own limit
async def test_household_of_four_phones_has_each_its_own(
    make_daemon: Callable[..., RunningDaemon], model: SlowModel
) -> None:
    desk = make_daemon("desk", **reachable(), OPENAI_BASE_URL=model.url, OPENAI_MODEL="small").start()
    talkers = []
    for name, (kind, over) in PEOPLE.items():
        phone = await over(desk).pair(name=name, kind=kind, session=False)
        talkers.append(Talker(phone, name, kind == "mine"))
    anna, ben, carl, dora = talkers
    began = time.monotonic()
    try:
        await asyncio.gather(*(one.talks() for one in talkers))
        took = time.monotonic() - began
        for one in talkers:
            said = [f"{one.name} {number}" for number in range(SENTENCES)]
            assert one.answers == [answer_to(text) for text in said]
            assert {text: model.sentences[text] for text in said} == dict.fromkeys(said, 1), "asked once each"
            assert await recorded(one.phone, one.conversation) == said
            seen = {row["id"] for row in await conversations(one.phone)}
            theirs = {anna, ben} if one.in_session else {one}
            assert seen & {two.conversation for two in talkers} == {two.conversation for two in theirs}
        spoken = Counter([*anna.said, *ben.said])
        for one in (anna, ben):
            await one.phone.sees(lambda one=one: sum(Counter(asked(one.phone)).values()) >= len(spoken))  # type: ignore[misc]
            assert Counter(asked(one.phone)) == spoken, "each sentence of the session once"
            heard = Counter(
                event["event_id"] for event in one.phone.events if event["kind"] == "twin_response"
            )
            assert len(heard) == len(spoken) and set(heard.values()) == {1}, "each is answered once"
        assert [carl.phone.events, dora.phone.events] == [[], []], "guests see nothing of the session"
    finally:
        for one in talkers:
            await one.phone.leave()
    cuts = sum((one.cuts for one in talkers), Counter[str]())
    back = sorted(seconds for one in talkers for seconds in one.back)
    print(
        f"{took:.0f} s, {sum(len(one.answers) for one in talkers)} answers, {len(spoken)} sentences in the session, "
        f"{cuts.total()} cuts {dict(cuts)}; back after {back[len(back) // 2] * 1000:.0f} ms, at most {back[-1] * 1000:.0f} ms"
    )
    assert cuts.total() >= 4 * CUTS


def asked(phone: PhoneClient) -> list[str]:
    return [event["text"] for event in phone.events if event["kind"] == "operator_input"]


async def conversations(phone: PhoneClient) -> list[dict[str, Any]]:
    status, found = await phone.ask("GET", "/conversations")
    assert status == 200, found
    rows: list[dict[str, Any]] = found["conversations"]
    return rows


async def recorded(phone: PhoneClient, thread: str) -> list[str]:
    """Everything that was asked in a conversation, page by page."""
    texts: list[str] = []
    before = ""
    while True:
        status, shown = await phone.ask("GET", f"/conversations/{thread}?limit=50&before={before}")
        assert status == 200, shown
        texts = [turn["user"] for turn in shown["turns"]] + texts
        if not shown["earlier"]:
            return texts
        before = shown["turns"][0]["id"]
