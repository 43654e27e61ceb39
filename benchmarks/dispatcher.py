"""The dispatcher in process, with the store: records that pass it in a second, as they are and signed."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

AT_ONCE = 256
TURNS = 12_000


def run() -> list[tuple[str, str]]:
    """A HELP and its DONE are two records. Signed: each HELP verified, each DONE signed."""

    rows = []
    for title, signed, once in (
        ("HELP and DONE", False, False),
        ("HELP and DONE, each begun once and synced to the disk", False, True),
        ("HELP and DONE, a signature verified and made for each pair", True, False),
    ):
        with tempfile.TemporaryDirectory() as folder:
            rate = asyncio.run(_pass(Path(folder), signed=signed, once=once))
        rows.append((title, f"{rate:,.0f} records/s"))
    return rows


async def _pass(folder: Path, *, signed: bool, once: bool) -> float:
    from envelopes.envelope import HELP, Envelope, agent_id, new_id
    from envelopes.identity.keys import IdentityKey
    from envelopes.identity.signatures import sign, verify
    from rappd.dispatch.dispatcher import Dispatcher
    from rappd.dispatch.rights import Caller
    from rappd.store.store import Store

    store = await Store.open(folder / "rappd.db")
    dispatcher = Dispatcher(store)
    key, peer = IdentityKey.generate(), IdentityKey.generate()
    own, theirs = agent_id("brainstem", key.fingerprint), agent_id("brainstem", peer.fingerprint)

    async def handler(context: Any) -> dict[str, Any]:
        return {"result": context.envelope.data["prompt"]}

    dispatcher.route(own, "brainstem", handler)
    caller = Caller("federation", peer=peer.fingerprint, caps=("*",))
    turns = TURNS // 4 if signed else TURNS
    asked = [Envelope(new_id(), theirs, own, HELP, {"prompt": "hello"}) for _ in range(turns)]
    if signed:
        now = time.time()
        asked = [sign(one, peer, now) for one in asked]
    waiting = iter(asked)

    async def work() -> None:
        for one in waiting:
            if signed:
                verify(one, time.time())
            if once:
                reply = await dispatcher.submit_once(one, caller).reply()
            else:
                reply = await dispatcher.submit(one, caller, session="bench").reply()
            if signed:
                sign(reply, key, time.time())

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - started
    await store.close()
    return 2 * turns / seconds
