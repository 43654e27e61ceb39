"""A conversation of 5,000 messages in Chromium: opened, scrolled up and down, searched."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.daemon import BenchDaemon
from benchmarks.page import missing
from envelopes.codecs import emergence
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import DONE, HELP, THREAD, Envelope, new_id, thread_id
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store

__all__ = ["missing", "run"]

_MESSAGES = 5000
_STEP = 300  # pixels in a frame: 18,000 in a second, as a quick wheel scrolls
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
_ANSWER = """Here is what I know about it, number {n}.

- **first**, that it takes a while;
- second, that `rain_{n}` falls; and
- third, nothing.

```
for drop in range({n}):
    print(drop)
```

And so on, for one more sentence that is long enough to break into two lines on any screen that people have."""

_FRAMES = 10
_ROUNDS = 30
_SCROLL = """async ({step, frames}) => {
    const box = document.querySelector(".chat-scroll");
    const times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < frames; frame += 1) {
        box.scrollTop += step;
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
    }
    return times;
}"""


def run() -> list[tuple[str, str]]:
    """Frame times in each direction, and moments until something is there."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        thread = asyncio.run(_filled(home / "rappd.db"))
        with BenchDaemon(home, LLM_FAKE="1") as daemon, sync_playwright() as playwright:
            daemon.start()
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(daemon.control("POST", "/operator/key")["url"])
            page.locator(".conversation-link").first.wait_for()
            began = time.perf_counter()
            page.evaluate("thread => { location.hash = `#/chat/conversation/${thread}` }", thread)
            page.locator(".written", has_text=f"question {_MESSAGES // 2 - 1} ").wait_for()
            opened = time.perf_counter() - began
            up = _scrolled(page, -_STEP)
            turns = page.locator(".turn").count()
            down = _scrolled(page, _STEP)
            began = time.perf_counter()
            page.get_by_role("searchbox").fill("needle haystack")
            page.locator(".excerpt").first.wait_for()
            searched = time.perf_counter() - began
            browser.close()
    return [
        ("until the last turn shows", f"{opened * 1000:.0f} ms"),
        ("turns drawn at once", str(turns)),
        ("frames upwards, earlier turns loading", _frames(up)),
        ("frames downwards", _frames(down)),
        (
            "until a sentence is found (250 ms of it: waiting for the typing to end)",
            f"{searched * 1000:.0f} ms",
        ),
    ]


def _scrolled(page: Any, step: int) -> tuple[list[float], list[float]]:
    """Times of frames, and the processor time that the page's thread spent for one, by rounds; in milliseconds."""
    protocol = page.context.new_cdp_session(page)
    protocol.send("Performance.enable", {"timeDomain": "threadTicks"})
    times, spent = [], []
    before = _busy(protocol)
    for _ in range(_ROUNDS):
        times += page.evaluate(_SCROLL, {"step": step, "frames": _FRAMES})
        now = _busy(protocol)
        spent.append((now - before) * 1000 / _FRAMES)
        before = now
    protocol.detach()
    return times, spent


def _busy(protocol: Any) -> float:
    metrics = protocol.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def _frames(found: tuple[list[float], list[float]]) -> str:
    times, spent = found
    return (
        f"processor {statistics.median(spent):.1f} ms a frame, worst ten {max(spent):.1f} ms; "
        f"shown every {statistics.median(times):.1f} ms, {sum(one > 50 for one in times)} of {len(times)} over 50 ms"
    )


async def _filled(path: Path) -> str:
    """Writes the conversation down; its thread."""
    thread = thread_id("brainstem", DEFAULT_USER_GUID, '"bench"')
    store = await Store.open(path)
    at = (int(time.time()) - _MESSAGES) * 1_000_000
    store.thread(ThreadInfo(thread, "brainstem", DEFAULT_USER_GUID, '"bench"', "question 0", at))
    for number in range(_MESSAGES // 2):
        needle = " needle in a haystack" if number == 7 else ""
        asked = Envelope(
            new_id(), DEFAULT_USER_GUID, "brainstem_0123456789abcdef", HELP,
            {"user_input": f"question {number} of many{needle}"}, {THREAD: thread},
        )  # fmt: skip
        for said in (asked, asked.reply(DONE, {"response": _ANSWER.format(n=number), "model": "bench"})):
            _queue(store, said, at)
            at += 1_000_000
    await store.flush()
    await store.close()
    return thread


def _queue(store: Store, said: Envelope, at: int) -> None:
    thread: Any = said.extensions[THREAD]
    store.queue(Record(thread, said.verb, said.sender, said.recipient, said.id, emergence.encode(said), at))
