"""Phones that come back, after a restart, beside their older connection, or once what carried them has died."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from agents.runtimes.python.pools.started_processes import descendants
from envelopes.envelope import new_id
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]


async def connected(desk: RunningDaemon) -> list[str]:
    """Names of the phones that are registered and here."""
    answer = await asyncio.to_thread(desk.request, "GET", "/devices", None, control=True)
    return [one["name"] for one in answer.json()["devices"] if one["connected"]]


async def test_sentence_repeated_after_a_restart_is_asked_once(desk: RunningDaemon, phone: MakePhone) -> None:
    android = await phone(name="Android")
    id = await android.say("hello")
    await android.is_answered(id)
    await android.leave()
    await asyncio.to_thread(desk.stop)
    await asyncio.to_thread(desk.start)
    await android.resume()
    await android.say("hello", id=id)
    await android.is_answered(await android.say("what now?"))
    assert android.texts() == ["hello", "fake-llm: hello", "what now?", "fake-llm: what now?"]


async def test_phone_that_connects_anew_is_here_once(desk: RunningDaemon, phone: MakePhone) -> None:
    android, ben = await phone(name="Android"), await phone(name="Ben")
    again = PhoneClient(desk)
    again.remember(android.kept())
    await again.resume()
    assert await android.is_closed()
    await ben.sees(lambda: ben.here == ["Android", "Ben"])
    await again.is_answered(await again.say("still here"))
    assert sorted(await connected(desk)) == ["Android", "Ben"]
    await again.leave()
    await ben.sees(lambda: ben.here == ["Ben"])


@pytest.mark.own_process
async def test_phones_of_a_connection_process_that_died_are_away(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    android, ben = await phone(AiortcClient, name="Android"), await phone(name="Ben")
    assert ben.here == ["Android", "Ben"]
    os.kill(_rtc_process(desk), signal.SIGKILL)
    await ben.sees(lambda: ben.here == ["Ben"])
    assert await connected(desk) == ["Ben"]
    assert "connection ended: silent" not in desk.log, "it was noticed by nothing else"
    await android.leave()
    await android.resume()
    await ben.sees(lambda: ben.here == ["Android", "Ben"])


def _rtc_process(desk: RunningDaemon) -> int:
    assert desk.process is not None
    below = descendants(desk.process.pid, 100)
    (found,) = (pid for pid in below if b"rtc_worker" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


async def test_phone_that_may_only_listen_says_nothing_before_and_after_it_returns(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    async def owner(method: str, path: str, body: dict[str, Any]) -> None:
        answer = await asyncio.to_thread(desk.request, method, path, body, control=True)
        assert answer.status == 200, answer.body

    async def is_refused() -> None:
        id = await android.say("let me speak", id=new_id())
        await android.sees(lambda: id in android.refused)
        assert android.refused[id] == "This phone may only listen."

    android = await phone(name="Android", scope="listen")
    await is_refused()
    await android.leave()
    await android.resume()
    await is_refused()
    await owner("POST", "/devices/Android", {"scope": "talk"})
    await android.is_answered(await android.say("now I may"))
    await owner("POST", "/devices/Android", {"scope": "listen"})
    await is_refused()
    assert android.texts() == ["now I may", "fake-llm: now I may"]
