"""Background tasks: kept, ended with their owner, and no failure of theirs is lost."""

from __future__ import annotations

import asyncio
import logging

import pytest

from twins.background_tasks import BackgroundTasks


async def _fails() -> None:
    raise ValueError("nothing here")


async def test_failure_is_logged_or_handled(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[BaseException] = []
    for tasks in (BackgroundTasks("work failed"), BackgroundTasks(failures.append)):
        with caplog.at_level(logging.ERROR):
            tasks.spawn(_fails())
            await tasks.settle()
            await asyncio.sleep(0)
        assert len(tasks) == 0
    assert [(one.getMessage(), bool(one.exc_info)) for one in caplog.records] == [("work failed", True)]
    assert [str(one) for one in failures] == ["nothing here"]


async def test_close_ends_all_and_cancellation_is_no_failure() -> None:
    failures: list[BaseException] = []
    tasks = BackgroundTasks(failures.append)
    waiting = tasks.spawn(asyncio.sleep(3600))
    await tasks.close()
    assert waiting.cancelled()
    assert not failures
