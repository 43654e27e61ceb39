"""Daemons that are killed while phones talk and while calls go to another machine: what was done stands in the record."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import random
import sqlite3
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import RunningDaemon, agent_source

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient
from tests.storm.storm import SECONDS, rounds

_ANSWERED_SECONDS = 100

pytestmark = [pytest.mark.timeout(600 + int(SECONDS)), pytest.mark.own_process(zygote=True)]


async def test_kill_9_loses_no_sentence_of_a_phone_and_asks_none_twice(tmp_path: Path) -> None:
    chance = random.Random(17)
    daemon = RunningDaemon(tmp_path / "home", **reachable(), LLM_FAKE="1").start()
    phone = await PhoneClient(daemon).pair(name="Android")
    said: list[str] = []
    for number in rounds(0.1):
        if number:
            daemon.start()
            await phone.resume()
        talking = asyncio.create_task(_talk(phone, said))
        await asyncio.sleep(chance.uniform(0.1, 0.8))  # the moment is what the test is about
        daemon.kill()
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        await phone.leave()
    daemon.start()
    await phone.resume()
    for id in said:  # as the page does with what it did not see
        if not any(event["event_id"] == id for event in phone.events):
            await phone.say("once", id=id)
        await phone.is_answered(id)
    seen = Counter((event["event_id"], event["kind"]) for event in phone.events)
    for id in said:
        assert (seen[id, "operator_input"], seen[id, "twin_response"]) == (1, 1)
    assert daemon.cli("threads", "verify").returncode == 0
    await phone.leave()
    daemon.stop()


async def _talk(phone: PhoneClient, said: list[str]) -> None:
    while True:
        said.append(str(uuid.uuid4()))
        await phone.say("once", id=said[-1])
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_every_call_that_was_performed_is_in_its_callers_record(tmp_path: Path, address: str) -> None:
    chance = random.Random(19)
    listens = {"RAPPD_PEERS_ADDRESS": address, "LLM_FAKE": "1"}
    desk, pi = (Machine(tmp_path / name, name, **listens) for name in ("desk", "pi"))
    pi.drop("stamp_agent.py", agent_source("Stamp"))
    desk.start()
    pi.start()
    acquaint(desk, pi)
    for number in rounds(0.1):
        if number:
            desk.start()
            desk.knows("pi")
        stop = threading.Event()
        callers = [threading.Thread(target=_call, args=(desk, stop)) for _ in range(4)]
        for one in callers:
            one.start()
        time.sleep(chance.uniform(0.3, 1.2))  # the moment is what the test is about
        desk.kill()
        stop.set()
        for one in callers:
            one.join(100)
        performed, called = _calls(pi), _calls(desk)
        assert performed and performed <= called, performed - called
    desk.start()
    desk.wait_for(lambda: not _unanswered(desk), _ANSWERED_SECONDS, "each call to have its answer")
    assert desk.cli("threads", "verify").returncode == 0
    desk.stop()
    pi.stop()


def _call(desk: Machine, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError, ValueError):
            desk.call("pi", agent="Stamp", args={})


_CALLS = """SELECT id FROM events WHERE verb = 'HELP' AND sender LIKE 'brainstem_%' AND recipient LIKE 'brainstem_%'
    AND CAST(body AS TEXT) LIKE '%"Stamp"%'"""


def _calls(machine: Machine) -> set[str]:
    """Ids of the calls from machine to machine in a record."""
    with contextlib.closing(sqlite3.connect(machine.home / "rappd.db")) as db:
        return {str(id) for (id,) in db.execute(_CALLS)}


def _unanswered(machine: Machine) -> set[str]:
    with contextlib.closing(sqlite3.connect(machine.home / "rappd.db")) as db:
        answered = {str(id) for (id,) in db.execute("SELECT id FROM events WHERE verb IN ('DONE', 'ERROR')")}
    return _calls(machine) - answered
