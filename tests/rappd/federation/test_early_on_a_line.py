"""Answers in binary frames: to a machine that is no rappd and follows the document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.rappd.federation.conftest import House
from tests.rappd.federation.plain_line import PlainLine, line_of
from tests.slow_disk import hold_up, with_slow_disk

BINARY, TEXT = aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT


async def _answers(line: PlainLine, ids: set[str]) -> tuple[dict[str, Any], set[str]]:
    """What each comes to once it counts, and which of them were told early."""
    early: dict[str, Any] = {}
    counting: dict[str, Any] = {}
    async with asyncio.timeout(60):
        while not ids <= counting.keys():
            message = await line.receive()
            assert message.type in (BINARY, TEXT), message
            if message.type is BINARY and not message.data.startswith(b"{"):
                settled = message.data.decode()
                for at in range(0, len(settled), 36):
                    counting[settled[at : at + 36]] = early[settled[at : at + 36]]
                continue
            found = json.loads(message.data)
            (early if message.type is BINARY else counting)[found["id"]] = found
    return counting, early.keys() & ids


async def test_an_answer_is_told_before_it_is_on_the_disk_and_then_that_it_is(
    make: Callable[..., House], tmp_path: Path
) -> None:
    house = make(**with_slow_disk(tmp_path / "site")).start()
    mine = house.peer("early")
    async with line_of(mine, "rappd.3") as line:
        asked = mine.help("Counted", {"tell": "early"})
        hold_up(house.daemon.home, 60)
        await line.send(asked)
        told = await asyncio.wait_for(line.receive(), 20)
        assert told.type is BINARY
        assert json.loads(told.data)["data"]["result"] == "counted early"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.receive(), 0.3)
        hold_up(house.daemon.home, 0)
        settled = await asyncio.wait_for(line.receive(), 20)
        assert (settled.type, settled.data) == (BINARY, asked["id"].encode())
        await line.send(asked)  # from the record, where it is
        again, early = await _answers(line, {asked["id"]})
        assert again[asked["id"]] == json.loads(told.data)
        assert early == set()
        refused = mine.help("Nobody")
        await line.send(refused)
        counting, early = await _answers(line, {refused["id"]})
        assert (counting[refused["id"]]["verb"], early) == ("ERROR", set())
    assert house.counted() == ["early"]
    assert [one["verb"] for one in house.records(asked["id"])] == ["HELP", "DONE"]


async def test_where_many_are_under_way_each_is_told_once(house: House) -> None:
    """They wait for the disk together, and a frame more for each would only cost."""
    mine = house.peer("many")
    told_early = 0
    async with line_of(mine, "rappd.3") as line:
        for _ in range(4):
            asked = [mine.help() for _ in range(64)]
            for one in asked:
                await line.send(one)
            ids = {one["id"] for one in asked}
            counting, early = await _answers(line, ids)
            assert {counting[id]["verb"] for id in ids} == {"DONE"}
            told_early += len(early)
    assert told_early < 64
