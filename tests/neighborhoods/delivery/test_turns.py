"""Many together, or one alone."""

from __future__ import annotations

import asyncio

from neighborhoods.delivery.rwlock import Turns


async def test_alone_means_alone_and_is_not_overtaken() -> None:
    turns, inside, log = Turns(), set[str](), list[str]()

    async def shares(name: str) -> None:
        async with turns.together():
            assert "alone" not in inside
            inside.add(name)
            log.append(name)
            await asyncio.sleep(0.02)
            inside.discard(name)

    async def alone() -> None:
        async with turns.alone():
            assert not inside
            inside.add("alone")
            log.append("alone")
            await asyncio.sleep(0.02)
            inside.discard("alone")

    await asyncio.gather(shares("a"), shares("b"), alone(), shares("c"), alone(), shares("d"))
    assert log == ["a", "b", "alone", "c", "alone", "d"]


async def test_who_gives_up_waiting_blocks_nobody() -> None:
    turns = Turns()
    async with turns.together():
        waiting = asyncio.ensure_future(turns.alone().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(10), turns.together():
            pass
    async with asyncio.timeout(10), turns.alone():
        pass
