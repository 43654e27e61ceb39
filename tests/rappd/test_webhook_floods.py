"""A webhook that is called very often, on a real store with made-up time: what is begun, what is refused, what is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rappd.daemon.rate_limit import RateLimitedError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import RequestContext
from rappd.features.webhooks.webhooks import PER_MINUTE, TOLD_PER_MINUTE, Webhooks, new_webhook
from rappd.notices.notices import Notices
from rappd.store.notice_table import Notice
from rappd.store.store import Store
from rappd.tenants.tenant import HOST

ID = "brainstem_0123456789abcdef"


async def test_ten_thousand_posts_in_a_minute_are_one_notice(tmp_path: Path) -> None:
    now, begun = 1000.0, 0
    told: list[Notice] = []

    async def answer(context: RequestContext) -> dict[str, Any]:
        nonlocal begun
        begun += 1
        return {"response": f"answer {begun}"}

    async def tenant(name: str) -> Any:
        return SimpleNamespace(id=ID, name=HOST)

    store = await Store.open(tmp_path / "rappd.db")
    dispatcher = Dispatcher(store)
    dispatcher.route(ID, HOST, answer)
    notices = Notices(listeners=[told.append])
    hooks = Webhooks(tmp_path / "webhooks.json", dispatcher, tenant, notices, lambda: now)
    hook = new_webhook("ci", HOST, agent="", ask="", signed=False, folder="")
    hooks.add(hook)
    advice: Counter[str] = Counter()
    try:
        for number in range(10_000):
            try:
                await hooks.post(hook.id, b"failed")
            except RateLimitedError as problem:
                advice[problem.do] += 1
            now += 60 / 10_000
            if number < 200:  # those that are begun may end
                async with asyncio.timeout(100):
                    while hooks._tasks:
                        await asyncio.sleep(0)
        assert begun == PER_MINUTE
        assert sum(advice.values()) == 10_000 - PER_MINUTE
        assert all(one.startswith("Wait ") for one in advice)
        flood = "The webhook ci is called more often than once a second; what is above is refused."
        assert [one.what for one in notices.waiting()] == [flood, f"Webhook ci: answer {PER_MINUTE}"]
        kinds = Counter(one.key for one in told)
        assert kinds == {"webhook:ci": 1, "webhook-answer:ci": TOLD_PER_MINUTE}
        now += 60
        await hooks.post(hook.id, b"failed")
        async with asyncio.timeout(100):
            while hooks._tasks:
                await asyncio.sleep(0)
        assert told[-1].what == f"Webhook ci: answer {PER_MINUTE + 1}", "afterwards it is told again"
    finally:
        await hooks.close()
        await dispatcher.stop()
        await dispatcher.close()
        await store.close()
