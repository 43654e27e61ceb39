"""Claims, answers and sends in the store given as argument until killed; prints what was acknowledged.

The second argument is the number of workers. Lines: ``taken ID``, ``begun ID``, ``done ID``, ``out NUMBER
ID``, ``gone FINGERPRINT``.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
import uuid
from pathlib import Path

from neighborhoods.durable_tables import OutgoingEnvelope
from neighborhoods.peer import Peer
from rappd.store.outbox_table import OutboxTable
from rappd.store.peer_table import PeerTable
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store
from rappd.store.write_operations import InboxClaim

PEER = "twin_0123456789abcdef"


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def receive(store: Store, later: bool) -> None:
    """Every third envelope is left as it is once it was taken."""
    for turn in itertools.count():
        id, thread, now = str(uuid.uuid4()), str(uuid.uuid4()), time.time_ns() // 1000
        asked = Record(thread, "HELP", PEER, "desk", id, b"asked " + id.encode() + b"x" * 300, now)
        info = ThreadInfo(thread, "brainstem", PEER, None, "load", now)
        state = "accepted" if later else "started"
        taking = InboxClaim(PEER, id, "HELP", state, "brainstem", thread, b"b" * 300, now, [info, asked])
        await asyncio.gather(store.claim(taking), store.claim(taking))
        say(f"taken {id}")
        if turn % 3 == 0:
            continue
        if later:
            begun = Record(thread, "HELP", "desk", "clock", f"begun {id}", b"begun", now)
            assert await store.start_claimed(PEER, id, "HELP", [begun])
            say(f"begun {id}")
        reply = Record(thread, "DONE", "desk", PEER, id, b"reply " + id.encode() + b"x" * 300, now)
        await store.commit_reply(reply, PEER, id, "HELP")
        say(f"done {id}")


async def send(store: Store) -> None:
    outbox, peers = OutboxTable(store), PeerTable(store)
    while True:
        id = str(uuid.uuid4())
        out = OutgoingEnvelope(0, "peer", id, "HELP", "t", "asks", b"x" * 300, "queued", 0, 1, 1, 1 << 60)
        number = await outbox.put(out)
        say(f"out {number} {id}")
        await peers.save_peer(Peer(id, "x", "mine", b"", b"", "", (), 1))
        await peers.remove_peer(id, 2)
        say(f"gone {id}")


async def main() -> None:
    store = await Store.open(Path(sys.argv[1]))
    workers = int(sys.argv[2])
    if workers == 1:  # what comes alone goes another way
        await receive(store, later=False)
    receiving = (receive(store, number % 2 == 0) for number in range(workers))
    await asyncio.gather(*receiving, *(send(store) for _ in range(workers)))


asyncio.run(main())
