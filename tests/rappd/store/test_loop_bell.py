"""Threads that ring for an event loop: whoever rang is heard, whether the loop is busy or not, and to the end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from pathlib import Path

import pytest

from rappd.store.bell import LoopBell


class Heard:
    """What threads leave for a loop, and what it found."""

    def __init__(self) -> None:
        self.left: deque[int] = deque()
        self.found: list[int] = []
        self.threads: set[int] = set()
        self.bell = LoopBell(self._heard)

    def _heard(self) -> None:
        self.threads.add(threading.get_ident())
        while self.left:
            self.found.append(self.left.popleft())

    def leave(self, number: int, loop: asyncio.AbstractEventLoop, *, is_busy: bool) -> None:
        self.left.append(number)
        self.bell.ring(loop, is_busy=is_busy)


@pytest.mark.parametrize("busy", ["never", "always", "by turns"])
async def test_all_that_many_threads_leave_is_found_on_the_loop(busy: str) -> None:
    heard, loop = Heard(), asyncio.get_running_loop()

    def several(first: int) -> None:
        for number in range(first, first + 500):
            heard.leave(number, loop, is_busy=busy == "always" or (busy == "by turns" and number % 3 == 0))

    await asyncio.gather(*(asyncio.to_thread(several, first) for first in (0, 500, 1000, 1500)))
    async with asyncio.timeout(10):
        while len(heard.found) < 2000:
            await asyncio.sleep(0.001)
    assert sorted(heard.found) == list(range(2000))
    assert heard.threads == {threading.get_ident()}
    for first in (0, 500, 1000, 1500):  # each thread's in its order
        mine = [number for number in heard.found if first <= number < first + 500]
        assert mine == sorted(mine)
    heard.bell.close()


@pytest.mark.parametrize("rings", [1, 2, 3])
async def test_who_rang_before_the_end_is_heard(rings: int) -> None:
    heard, loop = Heard(), asyncio.get_running_loop()
    heard.leave(0, loop, is_busy=False)
    await asyncio.sleep(0.01)
    for number in range(1, rings):
        heard.leave(number, loop, is_busy=False)
    heard.bell.close()
    assert heard.found == list(range(rings))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it has no descriptor")
async def test_it_gives_its_descriptor_back() -> None:
    heard, loop = Heard(), asyncio.get_running_loop()
    before = _open()
    heard.leave(1, loop, is_busy=False)
    await asyncio.sleep(0.01)
    assert _open() == before + 1
    heard.bell.close()
    assert _open() == before


async def test_elsewhere_than_on_linux_it_does_without_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "eventfd", raising=False)
    heard, loop = Heard(), asyncio.get_running_loop()
    for number in range(3):
        await asyncio.to_thread(heard.leave, number, loop, is_busy=False)
    await asyncio.sleep(0.01)
    assert heard.found == [0, 1, 2]
    heard.bell.close()


def test_a_closed_loop_says_so() -> None:
    heard, loop = Heard(), asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError):
        heard.leave(1, loop, is_busy=False)


def _open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
