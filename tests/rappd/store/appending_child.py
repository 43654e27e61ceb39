"""Appends to the store given as argument until killed; prints ``thread n`` for each acknowledged record.

The second argument is the number of writers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from pathlib import Path

from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store


async def converse(store: Store, strict: bool) -> None:
    thread = str(uuid.uuid4())
    n = 0
    while True:
        now = time.time_ns() // 1000
        store.thread(ThreadInfo(thread, "brainstem", "guid", None, "load", now))
        for _ in range(3):
            n += 1
            store.queue(Record(thread, "HELP", "guid", "desk", str(n), b"%d " % n + b"x" * 400, now))
        n += 1
        record = Record(thread, "DONE", "desk", "guid", str(n), b"%d " % n + b"x" * 400, now, True)
        await store.commit(record, strict=strict)
        os.write(1, f"{thread} {n}\n".encode())


async def main() -> None:
    store = await Store.open(Path(sys.argv[1]))
    await asyncio.gather(*(converse(store, strict=number % 4 == 0) for number in range(int(sys.argv[2]))))


asyncio.run(main())
