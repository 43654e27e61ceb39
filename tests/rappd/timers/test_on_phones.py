"""Timers of phones: told in their session, also at the next visit; those of a phone that was removed are not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient


async def ask(daemon: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    return (await asyncio.to_thread(daemon.request, method, path, body, control=True)).json()


async def test_a_phone_is_told_in_its_session_and_at_its_next_visit(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    desk = make_daemon("desk", **reachable())
    await asyncio.to_thread(desk.start)
    phone = await PhoneClient(desk).pair()
    told = await phone.is_answered(await phone.say("remind me in 1 second to call mum"))
    assert "Reminder set: call mum" in told["text"]
    assert "If this phone's page is closed then, it says so at your next visit." in told["text"]
    await phone.sees(lambda: "Reminder: call mum." in phone.texts())
    shown = next(one for one in phone.events if one["text"].startswith("Reminder, due"))
    assert shown["timer"]["due"] > 0 and shown["by"] == "Timer"

    await phone.is_answered(await phone.say("remind me in 1 second to stretch"))
    await phone.leave()
    listed: Callable[[], Any] = lambda: desk.get("/timers", control=True).json()["timers"]  # noqa: E731
    await asyncio.to_thread(desk.wait_for, lambda: not listed(), what="the reminder to fire")
    await phone.resume()
    await phone.sees(lambda: "Reminder: stretch." in phone.texts())
    notices = (await ask(desk, "GET", "/notices"))["notices"]
    assert not [one for one in notices if "call mum" in one["what"]], (
        "what a phone asked for is no news of others"
    )

    await phone.is_answered(await phone.say("remind me tomorrow at 9 to pay"))
    (row,) = listed()
    await ask(desk, "DELETE", f"/devices/{phone.id}")
    await ask(desk, "POST", f"/timers/{row['id']}/run", {})
    await asyncio.to_thread(desk.wait_for, lambda: not listed(), what="the timer to go")
    notices = (await ask(desk, "GET", "/notices"))["notices"]
    assert [one for one in notices if "is removed" in one["what"]]
    await phone.leave()


def test_a_model_sets_a_timer_in_words(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(
        OPENAI_BASE_URL=f"{fake_model.url}/v1", OPENAI_API_KEY="k", OPENAI_MODEL="small"
    ).start()
    wanted = {"action": "add", "what": "call mum", "when": "tomorrow at 9"}
    fake_model.will(calls(("Timer", wanted)), says("I will remind you."))
    daemon.post("/chat", {"user_input": "Could you nudge me about mum in the morning?"}, control=True)
    (row,) = daemon.get("/timers", control=True).json()["timers"]
    assert (row["what"], row["kind"]) == ("call mum", "reminder") and "09:00" in row["when"]
