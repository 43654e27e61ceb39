"""A call begins, and its reply goes out, once it is on the disk; also for a peer that offers provisional replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from fixtures.slow_disk import hold_up, with_slow_disk

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_connection import line_of

OFFERS = ("rappd.3", "rappd.2", "rappd.1")
"""The subprotocols that daemons offered while replies could be provisional."""


async def test_call_and_its_reply_wait_for_the_disk(make: Callable[..., Node], tmp_path: Path) -> None:
    node = make(**with_slow_disk(tmp_path / "site")).start()
    mine = node.peer("durable")
    async with line_of(mine, "rappd.2", offers=OFFERS) as line:
        asked = mine.help("Counted", {"tell": "once", "seconds": 1.5})
        hold_up(node.daemon.home, 60)
        await line.send(asked)
        await asyncio.sleep(0.5)
        assert node.counted() == [], "it is not begun before its claim is on the disk"
        hold_up(node.daemon.home, 0)
        node.daemon.wait_for(lambda: node.counted() == ["once"], what="the agent to run")
        hold_up(node.daemon.home, 60)
        node.daemon.wait_for(lambda: node.counted("ended") == ["once"], what="the agent to end")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.receive(), 0.5)
        hold_up(node.daemon.home, 0)
        told = await asyncio.wait_for(line.receive(), 100)
        assert told.type is aiohttp.WSMsgType.TEXT
        assert json.loads(told.data)["data"]["result"] == "counted once"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.receive(), 0.3)
    assert [one["verb"] for one in node.records(asked["id"])] == ["HELP", "DONE"]
