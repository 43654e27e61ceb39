"""A call stands in its caller's record before the other machine hears of it, and its reply on the disk before it goes out."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import agent_source
from fixtures.slow_disk import hold_up, with_slow_disk

from envelopes.envelope import DONE, HELP, Envelope, new_id
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.peer import Peer
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.errors import StoreError
from rappd.federation.peer_tools import PeerToolGateway
from rappd.federation.session_guests import SessionGuests
from rappd.federation.startup_state import Availability
from rappd.sessions.guests import Guest
from rappd.store import connections
from rappd.store.store import Store
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_connection import line_of
from tests.rappd.federation_service.test_legacy import Published
from twins.background_tasks import BackgroundTasks


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    base = tmp_path_factory.mktemp("machines")
    desk, pi = (Machine(base / name, name) for name in ("desk", "pi"))
    pi.drop("stamp_agent.py", agent_source("Stamp"))
    desk.start()
    pi.start()
    acquaint(desk, pi)
    yield desk, pi
    desk.stop()
    pi.stop()


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another program has the caller's event log."""
    other = sqlite3.connect(home / "rappd.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def calls_at(machine: Machine) -> int:
    """Calls of other machines in its record."""
    with sqlite3.connect(f"file:{machine.home / 'rappd.db'}?mode=ro", uri=True) as db:
        (found,) = db.execute(
            "SELECT count(*) FROM events WHERE verb = 'HELP' AND sender LIKE 'brainstem_%' AND CAST(body AS TEXT) LIKE '%Stamp%'"
            " AND recipient LIKE 'brainstem_%'"
        ).fetchone()
    return int(found)


@pytest.fixture
def kitchen(machines: tuple[Machine, Machine]) -> Iterator[Published]:
    """A published brainstem that desk knows."""
    server = Published()
    server.start()
    machines[0].owner("POST", "/peers", {"address": server.url})
    yield server
    machines[0].owner("POST", "/peers/forget", {"address": server.url})
    server.stop()


@pytest.mark.parametrize("way", ["call", "broadcast", "agent of a turn", "published brainstem"])
def test_nothing_is_sent_before_its_help_is_committed(
    machines: tuple[Machine, Machine], kitchen: Published, way: str
) -> None:
    desk, pi = machines
    answers: list[str] = []

    def sent() -> int:
        return calls_at(pi) + len(kitchen.asked)

    def ask() -> Any:
        if way == "published brainstem":
            return desk.call(kitchen.url, text="hello")["state"]
        if way == "call":
            return desk.call("pi", agent="Stamp", args={})["state"]
        if way == "broadcast":
            asked = {"peers": ["pi"], "agent": "Stamp", "args": {}}
            return desk.owner("POST", "/call/broadcast", asked)["calls"][0]["state"]
        return "done" in desk.talk("ask pi for the Stamp")["response"] and "done"

    before = sent()
    asking = threading.Thread(target=lambda: answers.append(ask()))
    with locked(desk.home):
        asking.start()
        time.sleep(1)  # the lock lasts that long
        assert sent() == before, "it is not sent while it cannot be recorded"
    asking.join(100)
    assert answers == ["done"]
    assert sent() == before + 1


PEER = Peer("ab" * 32, "pi", "mine", public_key=b"", certificate=b"", sealing_key="", scopes=("*",), paired_at=1)  # fmt: skip
KITCHEN = Entry("http://kitchen:7071", "kitchen", 7071, True, "list", name="kitchen")


class Guests:
    """A session's guests at desk, whose event log is real; ``asked`` is what they get, with the record at that moment."""

    def __init__(self, store: Store) -> None:
        self.store, self.asked = store, list[str]()
        self.dispatcher = Dispatcher(store)
        availability = Availability()
        availability.started()
        node: Any = SimpleNamespace(id="brainstem_desk", identity=SimpleNamespace(fingerprint="cd" * 32))
        peers: Any = SimpleNamespace(get={PEER.fingerprint: PEER}.get)
        greetings: Any = SimpleNamespace(of=lambda fingerprint: SimpleNamespace(agents=()))
        presence: Any = SimpleNamespace(presence=lambda fingerprint: SimpleNamespace(state="here"))
        resolver: Any = SimpleNamespace(legacy=self._legacy)
        calls: Any = SimpleNamespace(ask=self._ask, ask_published=self._ask_published)
        gateways: Any = SimpleNamespace()  # nobody is invited by name here
        tasks = BackgroundTasks("failed")
        tools = PeerToolGateway(
            node.id, availability, peers, presence, greetings, self.dispatcher, calls, tasks
        )
        self.guests = SessionGuests(
            node,
            availability,
            peers,
            presence,
            resolver,
            greetings,
            self.dispatcher,
            calls,
            tools,
            gateways,
        )

    async def say(self, guest: Guest) -> dict[str, Any]:
        data = {"user_input": "hello", "guest": {"peer": guest.peer, "written": guest.written}}
        said = Envelope(new_id(), "phone", self.guests.recipient, HELP, data)
        placed = self.dispatcher.open_thread(said, "brainstem", session="s")
        return await self.guests.handle(RequestContext(placed, Caller("tether"), "brainstem", records=[]))

    async def _legacy(self) -> list[Entry]:
        return [KITCHEN]

    async def _ask(self, peer: Peer, asked: Envelope, **_: Any) -> Envelope:
        return asked.reply(DONE, {"response": await self._ask_published(KITCHEN, asked)})

    async def _ask_published(self, entry: Entry, asked: Envelope, **_: Any) -> str:
        recorded = [one.id for one in await self.store.thread_events(asked.thread)]
        self.asked.append("recorded" if asked.id in recorded else "not recorded")
        return "hello"


@pytest.mark.parametrize("guest", [Guest(peer=PEER.fingerprint), Guest(written="kitchen")])
async def test_guest_of_a_session_is_asked_once_its_help_is_committed(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 50)
    store = await Store.open(tmp_path / "rappd.db")
    guests = Guests(store)
    with locked(tmp_path), pytest.raises(StoreError, match="locked"):
        await guests.say(guest)
    assert guests.asked == []
    assert await guests.say(guest) == {"response": "hello"}
    assert guests.asked == ["recorded"]
    await store.close()


OFFERS = ("rappd.3", "rappd.2", "rappd.1")
"""The subprotocols that daemons offered while replies could be provisional."""


async def test_call_and_its_reply_wait_for_the_disk(make: Callable[..., Node], tmp_path: Path) -> None:
    node = make(**with_slow_disk(tmp_path / "site")).start()
    mine = node.peer("durable")
    async with line_of(mine, "rappd.2", offers=OFFERS) as line:
        asked = mine.help("Counted", {"tell": "once", "seconds": 1.5})
        hold_up(node.daemon.home, 60)
        await line.send(asked)
        await asyncio.sleep(0.5)
        assert node.counted() == [], "it is not begun before its claim is on the disk"
        hold_up(node.daemon.home, 0)
        node.daemon.wait_for(lambda: node.counted() == ["once"], what="the agent to run")
        hold_up(node.daemon.home, 60)
        node.daemon.wait_for(lambda: node.counted("ended") == ["once"], what="the agent to end")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.receive(), 0.5)
        hold_up(node.daemon.home, 0)
        told = await asyncio.wait_for(line.receive(), 100)
        assert told.type is aiohttp.WSMsgType.TEXT
        assert json.loads(told.data)["data"]["result"] == "counted once"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.receive(), 0.3)
    assert [one["verb"] for one in node.records(asked["id"])] == ["HELP", "DONE"]
