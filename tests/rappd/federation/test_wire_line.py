"""docs/wire.md and a daemon on a line: the dialogue on the page happens as it stands there, frame by frame."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import aiohttp
import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import Json, PlainMachine
from tests.rappd.federation.wire_page import blocks, introductions, shown, whole

THEIRS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|00-[0-9a-f]{32}-[0-9a-f]{16}-01")
"""Ids, threads and traces, which pi chooses by itself."""


@pytest.fixture(scope="module")
def desk(node: Node) -> PlainMachine:
    return node.peer("desk", "friend", ["HELP.brainstem", "HELP.brainstem.Clock"])


def filled(text: str, node: Node, machine: PlainMachine) -> str:
    """With the keys of the two that talk."""
    keys = {"desk": machine.fingerprint, "pi": node.fingerprint}
    for name, found in introductions().items():
        if name in keys:
            text = text.replace(found["fingerprint"][:16], keys[name][:16])
    return text


class Dialogue:
    """Frames of the recorded dialogue: one side sends them, the other is compared, ids and times by the page's names."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.chosen: dict[str, str] = {}
        self.came: list[Json] = []

    def of_here(self, frame: Any) -> str:
        text = json.dumps(whole(frame))
        for name, value in self.chosen.items():
            text = text.replace(name, value)
        return text

    def take(self, told: Json) -> bool:
        """True once something came that is as the page says; it is taken away."""
        for one in self.came:
            chosen = dict(self.chosen)
            if self._same(told, one, chosen):
                self.chosen = chosen
                self.came.remove(one)
                return True
        return False

    def _same(self, told: Any, found: Any, chosen: dict[str, str]) -> bool:
        if isinstance(told, dict):
            keys = told.keys() - {"…"}
            all_told = "…" in told or keys == set(found)
            return all_told and all(
                key in found and self._same(told[key], found[key], chosen) for key in keys
            )
        if isinstance(told, str) and THEIRS.fullmatch(told) and told not in self.known:
            is_theirs = THEIRS.fullmatch(found) and found not in self.known
            return bool(chosen.setdefault(told, found) == found and is_theirs)
        return bool(told == found)


async def test_the_dialogue_on_the_page_happens_as_it_stands_there(node: Node, desk: PlainMachine) -> None:
    (text,) = blocks("vector-line")
    steps = json.loads(filled(text, node, desk))
    ours = {one["id"] for step in steps if step["by"] == "desk"
            for one in (step["frame"] if isinstance(step["frame"], list) else [step["frame"]])}  # fmt: skip
    begun_by_pi = {step["frame"]["id"] for at, step in enumerate(steps) if step["by"] == "pi"
                   and not any(step["frame"]["id"] in json.dumps(before) for before in steps[:at])}  # fmt: skip
    dialogue = Dialogue(ours - begun_by_pi)
    calling: asyncio.Task[Any] | None = None
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"https://{node.address}/line", ssl=desk.context(), protocols=("rappd.2",)
        ) as socket,
    ):
        for step in steps:
            frame = step["frame"]
            if step["by"] == "desk":
                await socket.send_str(dialogue.of_here(frame))
                continue
            if frame["verb"] == "HELP":
                call = {"peer": desk.name, "agent": "Note", "args": {"text": "milk"}}
                calling = asyncio.create_task(asyncio.to_thread(node.owner, "POST", "/call", call))
            while not dialogue.take(frame):
                try:
                    message = await socket.receive(3)
                except TimeoutError:
                    raise AssertionError(f"not said: {frame}; but {dialogue.came}") from None
                assert message.type is aiohttp.WSMsgType.TEXT, (frame, message)
                said = json.loads(message.data)
                dialogue.came += said if isinstance(said, list) else [said]
    assert calling is not None
    status, found = await calling
    assert (status, found["call"]["result"]) == (200, "noted: milk")
    assert {one["verb"] for one in dialogue.came} <= {"HELLO"}, "nothing else was said"


def test_the_line_opens_as_the_page_says(node: Node, desk: PlainMachine) -> None:
    (text,) = blocks("line-opening")
    asked, _, told = text.partition("\n\n")
    got = desk.raw(f"{asked}\n\n".replace("\n", "\r\n").encode(), until=b"\r\n\r\n")
    head = got.partition(b"\r\n\r\n")[0].decode().splitlines()
    assert set(told.strip().splitlines()) <= set(head)


def test_a_peers_hello_is_answered_as_the_page_says(node: Node, desk: PlainMachine) -> None:
    told = json.loads(filled(json.dumps(shown("response-hello-peer-200")), node, desk))
    asked = {**desk.envelope("HELLO", {"capabilities": []}), "id": told["id"]}
    got = desk.post(asked)
    assert got.status == 200
    assert {**got.json, "data": 0} == {**told, "data": 0}
    assert {**got.data, "introduction": 0} == {**told["data"], "introduction": 0}


def test_the_journal_on_the_page_is_one_that_the_small_peer_reads() -> None:
    (text,) = blocks("journal")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [reply and reply["verb"] for _, reply in rows] == [None, "DONE"]
    assert len({key for key, _ in rows}) == 1
    assert re.fullmatch(rf"brainstem_[0-9a-f]{{16}} {THEIRS.pattern.partition('|')[0]}", rows[0][0])
