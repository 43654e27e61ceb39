"""A disk that fills and empties again and again while a phone talks: each sentence is refused, or asked once and answered."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from pathlib import Path

import pytest
from fixtures.full_disk import fillable_disk
from fixtures.running_daemon import RunningDaemon

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient
from tests.storm.storm import SECONDS, rounds

_LONG = "x" * 8_000
_ANSWERED_SECONDS = 100

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.timeout(600 + int(SECONDS)),
    pytest.mark.own_process(zygote=True),
]


async def test_each_sentence_on_a_disk_that_fills_is_refused_or_answered_once(tmp_path: Path) -> None:
    chance = random.Random(23)
    with fillable_disk(tmp_path, "256m") as disk:
        daemon = RunningDaemon(disk.root / "home", **reachable(), LLM_FAKE="1").start()
        phone = await PhoneClient(daemon).pair(name="Android")
        said: list[str] = []
        refused: set[str] = set()
        for _ in rounds(0.1, least=2):
            await asyncio.to_thread(disk.fill)
            for _ in range(chance.randrange(5, 40)):
                said.append(str(uuid.uuid4()))
                await phone.say(_LONG, id=said[-1])
                await asyncio.sleep(0.02)
            await asyncio.to_thread(disk.empty)
            async with asyncio.timeout(_ANSWERED_SECONDS):
                while not all(phone.answers(id) or _never_asked(phone, id) for id in said):
                    await asyncio.sleep(0.1)
            refused |= {id for id in said if _never_asked(phone, id)}
        assert refused, "the disk was never full"
        seen = Counter((event["event_id"], event["kind"]) for event in phone.events)
        for id in said:
            times = 0 if id in refused else 1
            assert (seen[id, "operator_input"], seen[id, "twin_response"]) == (times, times)
        assert not any(event.get("error") for event in phone.events), "what was done is not asked for again"
        assert daemon.cli("threads", "verify").returncode == 0
        await phone.leave()
        daemon.stop()


def _never_asked(phone: PhoneClient, id: str) -> bool:
    recorded = any(event["event_id"] == id for event in phone.events)
    return id in phone.refused and not recorded
