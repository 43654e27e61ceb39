"""Many together, or one alone."""

from __future__ import annotations

import asyncio

from neighborhoods.delivery.outbox_state import ReadWriteLock


async def test_alone_means_alone_and_is_not_overtaken() -> None:
    turns, inside, log = ReadWriteLock(), set[str](), list[str]()

    async def shares(name: str) -> None:
        async with turns.shared():
            assert "alone" not in inside
            inside.add(name)
            log.append(name)
            await asyncio.sleep(0.02)
            inside.discard(name)

    async def alone() -> None:
        async with turns.exclusive():
            assert not inside
            inside.add("alone")
            log.append("alone")
            await asyncio.sleep(0.02)
            inside.discard("alone")

    await asyncio.gather(shares("a"), shares("b"), alone(), shares("c"), alone(), shares("d"))
    assert log == ["a", "b", "alone", "c", "alone", "d"]


async def test_who_gives_up_waiting_blocks_nobody() -> None:
    turns = ReadWriteLock()
    async with turns.shared():
        waiting = asyncio.ensure_future(turns.exclusive().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(100), turns.shared():
            pass
    async with asyncio.timeout(100), turns.exclusive():
        pass
