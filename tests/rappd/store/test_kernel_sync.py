"""The kernel's own sync: who waits is told on the loop, once; where there is none, somebody else has to do it."""

from __future__ import annotations

import asyncio
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rappd.store import kernel_sync
from rappd.store.kernel_sync import KernelSync

Told = list[tuple[Any, OSError | None]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(opened, b"x" * 5000)
    yield opened
    os.close(opened)


async def _until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def _ready(told: Told, descriptor: int) -> KernelSync:
    sync = KernelSync(lambda waiting, error: told.append((waiting, error)))
    assert not sync.put([], descriptor), "it is being opened, and nobody waits for that"
    assert sync._opening is not None
    await asyncio.to_thread(sync._opening.join)
    if sync._context is None:
        pytest.skip("no such thing on this machine")
    return sync


async def test_who_waits_is_told_once_all_of_them(told: Told, descriptor: int) -> None:
    sync = await _ready(told, descriptor)
    waiting: list[Any] = [[(object(), number)] for number in range(kernel_sync.MOST)]
    assert all(sync.put(one, descriptor) for one in waiting)
    assert not sync.put([], descriptor), "more than it takes at a time"
    assert (sync.is_busy, told) == (True, []), "nobody is told before the loop comes round"
    await _until(lambda: len(told) == len(waiting))
    assert (sorted(told, key=lambda one: one[0][0][1]), sync.is_busy) == (
        [(one, None) for one in waiting],
        False,
    )
    assert sync.put(waiting[0], descriptor), "there is room again"
    await sync.finish()
    assert len(told) == len(waiting) + 1, "whoever waits at the end is told before it"
    assert not sync.put([], descriptor)


async def test_a_file_that_cannot_be_synced_is_for_somebody_else(told: Told, descriptor: int) -> None:
    sync = await _ready(told, descriptor)
    reading, writing = os.pipe()
    assert not sync.put([], writing)
    os.close(reading)
    os.close(writing)
    assert not sync.put([], writing), "it is closed"
    assert (sync.is_busy, told) == (False, [])
    await sync.finish()


async def test_what_the_disk_says_is_told(
    told: Told, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = await _ready(told, descriptor)

    def fails(descriptor: int) -> Any:
        return types.SimpleNamespace(
            set_callback=lambda over: asyncio.get_running_loop().call_soon(over, -5 % 2**64)
        )

    monkeypatch.setattr(sync, "_sync_of", fails)
    monkeypatch.setattr(
        sync, "_context", types.SimpleNamespace(submit=lambda one: 1, fileno=sync._context.fileno)
    )
    assert sync.put([("who", "what")], descriptor)  # type: ignore[list-item]
    await _until(lambda: told)
    [(waiting, error)] = told
    assert (waiting, error and error.errno) == ([("who", "what")], 5)
    await sync.finish()


async def test_without_it_every_put_is_refused_and_that_is_told_once(
    told: Told, descriptor: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "caio", None)
    sync = KernelSync(lambda waiting, error: told.append((waiting, error)))
    with caplog.at_level("INFO"):
        assert not sync.put([], descriptor)
        assert sync._opening is not None
        await asyncio.to_thread(sync._opening.join)
        assert not sync.put([], descriptor)
    assert caplog.text.count("a thread waits for the disk") == 1
    await sync.finish()


async def test_what_it_opened_is_not_handed_down_to_other_programs(told: Told, descriptor: int) -> None:
    sync = await _ready(told, descriptor)
    assert sync._context is not None
    assert not os.get_inheritable(sync._context.fileno)
    await sync.finish()
