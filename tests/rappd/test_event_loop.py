"""The daemon's event loop: of its own accord it logs what somebody has to know."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from rappd.daemon.event_loop import new_event_loop

pytest.importorskip("uvloop")
NOT_FOUND = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_name_that_is_not_found_after_whoever_asked_gave_up_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = new_event_loop()
    forgotten = loop.create_future()
    forgotten.set_exception(NOT_FOUND)
    del forgotten
    gc.collect()
    loop.close()
    assert caplog.records == []


@pytest.mark.parametrize("error", [NOT_FOUND, OSError("the pump is stuck")], ids=["name", "other"])
def test_task_that_fails_unseen_is_logged(caplog: pytest.LogCaptureFixture, error: OSError) -> None:
    async def fails() -> None:
        raise error

    loop = new_event_loop()
    forgotten = loop.create_task(fails())
    loop.run_until_complete(asyncio.wait([forgotten]))
    del forgotten
    gc.collect()
    loop.close()
    assert [record.name for record in caplog.records] == ["asyncio"]
