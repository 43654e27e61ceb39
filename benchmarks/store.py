"""The store: turns per second and their latency, verification, and a plain peer on the same disk."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import orjson

from envelopes.identity.keys import IdentityKey
from rappd.store.anchor_signing import Anchorer
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store
from rappd.store.verify import verify

SECONDS = 2.0
EVENTS_PER_TURN = 4


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure). A turn is four chained events of about 400 bytes, the last one awaited."""
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder)
        for mode in ("NORMAL", "FULL"):
            peer = _peer(root / f"peer-{mode}.db", mode)
            rows.append((f"plain sqlite3, a transaction per event, {mode}", f"{peer:,.0f} events/s"))
            for writers in (1, 32):
                taken = asyncio.run(_turns(root / f"{mode}-{writers}" / "rappd.db", writers, mode == "FULL"))
                rate = len(taken) / SECONDS
                ratio = rate * EVENTS_PER_TURN / peer
                rows.append(
                    (
                        f"store, {writers} at once, {mode}",
                        f"{rate:,.0f} turns/s, p50 {_at(taken, 50):.2f} ms, p99 {_at(taken, 99):.2f} ms"
                        f"; {ratio:.1f} x the peer's events",
                    )
                )
        report = verify(root / "NORMAL-32" / "rappd.db")
        rows.append(("verify", f"{report.events / report.seconds:,.0f} events/s of {report.events:,}"))
        rows.append(
            (
                "queueing, on the event loop",
                f"{asyncio.run(_on_the_loop(root / 'loop' / 'rappd.db')):.1f} µs an event",
            )
        )
        rows += _anchors(root / "anchored" / "rappd.db")
    return rows


def _anchors(path: Path) -> list[tuple[str, str]]:
    """The cost of anchors with 10,000 threads: the first one, and one after 1,000 events on different threads."""

    async def fill(threads: list[str]) -> None:
        store = await Store.open(path)
        for thread in threads:
            asked, *_ = _turn(thread)
            store.thread(ThreadInfo(thread, "brainstem", "guid", '"s"', "How warm is it?", asked().at))
            store.queue(asked())
        await store.close()

    threads = [str(uuid.uuid4()) for _ in range(10_000)]
    asyncio.run(fill(threads))
    anchorer = Anchorer(path, IdentityKey.generate())
    rows = [("first anchor over 10,000 threads", _cost(anchorer.open_log))]
    for count in (1, 1_000):
        asyncio.run(fill(threads[:count]))
        rows.append((f"an anchor after {count:,} of them got an event", _cost(anchorer.advance)))
    anchorer.close()
    return rows


def _cost(work: Callable[[], object]) -> str:
    began, used = time.perf_counter(), time.thread_time()
    work()
    passed = time.perf_counter() - began
    return f"{1000 * passed:.0f} ms, {1000 * (time.thread_time() - used):.0f} ms of it computing"


async def _turns(path: Path, writers: int, strict: bool) -> list[float]:
    """Seconds each turn took, over ``SECONDS`` of as many turns at once as there are writers."""
    store = await Store.open(path, strict=strict)
    taken: list[float] = []
    end = time.perf_counter() + SECONDS

    async def converse() -> None:
        thread = str(uuid.uuid4())
        asked, called, returned, answered = _turn(thread)
        info = ThreadInfo(thread, "brainstem", "guid", '"s"', "How warm is it?", asked().at)
        while (started := time.perf_counter()) < end:
            store.thread(info)
            store.queue(asked())
            store.queue(called())
            store.queue(returned())
            await store.commit(answered())
            taken.append(time.perf_counter() - started)

    await asyncio.gather(*(converse() for _ in range(writers)))
    await store.close()
    return taken


async def _on_the_loop(path: Path) -> float:
    """The cost of queueing an event on the event loop, in µs."""
    store = await Store.open(path)
    make = _turn(str(uuid.uuid4()))[0]
    records = [make() for _ in range(500)]
    samples = []
    for _ in range(20):
        started = time.perf_counter()
        for record in records:
            store.queue(record)
        samples.append((time.perf_counter() - started) / len(records))
        await store.flush()
    await store.close()
    return statistics.median(samples) * 1e6


def _turn(thread: str) -> list[Callable[[], Record]]:
    id = str(uuid.uuid4())
    padding = "x" * 180
    said: list[tuple[str, str, str, dict[str, object]]] = [
        ("HELP", "guid", "desk_4f2a", {"user_input": padding}),
        ("HELP", "desk_4f2a", "thermometer_4f2a", {"agent": "Thermometer", "args": {"unit": padding}}),
        ("DONE", "thermometer_4f2a", "desk_4f2a", {"agent": "Thermometer", "result": padding}),
        ("DONE", "desk_4f2a", "guid", {"response": padding}),
    ]

    def record(verb: str, sender: str, recipient: str, data: dict[str, object]) -> Callable[[], Record]:
        body = orjson.dumps(
            {"id": id, "from": sender, "to": recipient, "verb": verb, "data": data, "_x_thread": thread}
        )
        return lambda: Record(thread, verb, sender, recipient, id, body, time.time_ns() // 1000)

    return [record(*one) for one in said]


def _peer(path: Path, mode: str) -> float:
    """Events per second of the straightforward way: WAL, one INSERT and one COMMIT per event, no chain."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {mode}")
    db.execute("CREATE TABLE events(id INTEGER PRIMARY KEY, thread TEXT, at INTEGER, body BLOB)")
    record = _turn(str(uuid.uuid4()))[0]()
    count = 0
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        db.execute(
            "INSERT INTO events(thread, at, body) VALUES(?, ?, ?)", (record.thread, record.at, record.body)
        )
        db.commit()
        count += 1
    db.close()
    return count / SECONDS


def _at(taken: list[float], percent: int) -> float:
    return statistics.quantiles(taken, n=100)[percent - 1] * 1e3
