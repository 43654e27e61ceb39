"""News that are settled leave every screen at once: streams of pages, and phones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.tether import phone_session
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable


async def test_news_come_to_pages_and_phones_and_leave_them_at_once(
    make_daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        phone_session, "PING_SECONDS", 600.0
    )  # nothing else makes a phone's list be looked at
    monkeypatch.setattr(phone_session, "DEAD_SECONDS", 1200.0)
    desk = make_daemon("desk", **reachable())
    await asyncio.to_thread(desk.start)
    mine, guest = (
        await AiortcClient(desk).pair("mine", name="Mine"),
        await AiortcClient(desk).pair(name="Guest"),
    )
    for phone in (mine, guest):
        path = f"/devices/{phone.id}"
        await asyncio.to_thread(desk.request, "POST", path, {"notices": phone is mine}, control=True)
    await mine.sees(lambda: mine.waiting.get("may") is True)
    page = await asyncio.to_thread(desk.stream, "/activity/stream")
    added = {"text": "remind me in 1 second to call mum"}
    await asyncio.to_thread(desk.request, "POST", "/timers", added, control=True)
    await mine.sees(lambda: [row["what"] for row in mine.waiting["rows"]] == ["Reminder: call mum."])
    came = await asyncio.to_thread(told, page, "notice")
    dismissed = {"key": came["key"]}
    await asyncio.to_thread(desk.request, "POST", "/notices/dismiss", dismissed, control=True)
    await mine.sees(lambda: mine.waiting["rows"] == [])
    assert (await asyncio.to_thread(told, page, "notice_gone"))["key"] == came["key"]
    assert guest.waiting == {}, "news are for phones that may see them"
    page.close()
    await mine.leave()
    await guest.leave()


def told(page: object, kind: str) -> dict[str, str]:
    """The next message of a kind on a page's stream."""
    for line in page:  # type: ignore[attr-defined]  # an HTTPResponse
        text = line.decode().removeprefix("data:").strip()
        if text.startswith("{") and (found := json.loads(text)).get("type") == kind:
            return dict(found)
    raise AssertionError(f"the stream ended without {kind}")
