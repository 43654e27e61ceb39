"""Eggs on running daemons: packed, carried, planned, hatched, taken back; by the operator, by agents, by strangers."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fixtures.loopback_server import LoopbackServer, calls
from fixtures.twin_workspace import KETTLE, Place, lies, without_waiting

from twins.eggs.readers.detect import open_egg

# The whole story.


def test_a_twin_goes_on_mid_thought_on_another_home(make_place: Callable[..., Place], tmp_path: Path) -> None:
    desk = make_place("desk")
    key = desk.new("Rose")
    desk.says_to(key, "The tomatoes are dry.", "Shall I water them?")
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    assert "Successfully" in desk.runs(key, "ManageMemory", memory_type="fact", content="The pump squeaks.")
    desk.soul(key, "# Rose\n\nYou keep the garden.\n")
    egg = desk.pack(key, tmp_path / "rose.egg")
    threads = desk.threads(key)
    identity = (desk.twin(key) / "rappid.json").read_bytes()
    desk.daemon.stop()
    shutil.rmtree(desk.home)

    kitchen = make_place("kitchen")
    done = kitchen.hatch(egg)
    assert done["conversations"] == sum(map(len, threads.values()))
    assert kitchen.threads(key) == threads, "the very chains, not only the words"
    assert (
        json.loads((kitchen.twin(key) / "rappid.json").read_bytes())["rappid"]
        == json.loads(identity)["rappid"]
    )
    kitchen.says_to(key, "Yes, please.", "I do.")
    longer = kitchen.threads(key)
    assert longer.keys() == threads.keys(), "no new thread: the old one went on"
    grown = [thread for thread in threads if len(longer[thread]) > len(threads[thread])]
    assert len(grown) == 1
    assert longer[grown[0]][: len(threads[grown[0]])] == threads[grown[0]]
    assert "You keep the garden." in kitchen.model.system()
    assert "The pump squeaks." in kitchen.runs(key, "ContextMemory")
    assert kitchen.runs(key, "Kettle") != "It boils.", "nobody has read it here yet"
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "kettle_agent.py"})
    assert kitchen.runs(key, "Kettle") == "It boils."
    assert kitchen.verified()


def test_conversations_go_on_that_were_hatched_without_a_daemon(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    desk, kitchen = make_place("desk"), make_place("kitchen")
    key = desk.new("Rose")
    desk.says_to(key, "The tomatoes are dry.")
    egg = desk.pack(key, tmp_path / "rose.egg")
    kitchen.daemon.stop()
    done = kitchen.daemon.cli("egg", "hatch", str(egg))
    assert "2 records of conversations went on." in done.stdout, done
    assert [len(chain) for chain in kitchen.threads(key).values()] == [2]
    kitchen.daemon.start()
    kitchen.says_to(key, "Yes, please.")
    (thread,) = kitchen.threads(key)
    assert [len(chain) for chain in kitchen.threads(key).values()] == [4]
    assert desk.threads(key)[thread] == kitchen.threads(key)[thread][:2]
    assert not list((kitchen.home / "eggs" / "receipts").glob("*.frames.json"))
    assert kitchen.verified()


# Conversations.


def test_diverged_conversations_stand_side_by_side(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Torn")
    desk.says_to(key, "One.")
    kitchen.hatch(desk.pack(key, tmp_path / "1.egg"))
    desk.says_to(key, "Two, at the desk.")
    kitchen.says_to(key, "Two, in the kitchen.")
    before = kitchen.threads(key)
    second = desk.pack(key, tmp_path / "2.egg")
    assert kitchen.hatch(second)["conversations"] == 4
    after = kitchen.threads(key)
    (own,) = before
    assert after[own] == before[own], "what was said here stays as it is"
    (other,) = after.keys() - before.keys()
    assert after[other] == desk.threads(key)[own], "and the other life is there, whole"
    assert sorted(kitchen.said(key)) == ["One.", "One. (as hatched)"]
    assert kitchen.hatch(second)["conversations"] == 0, "it has them by now"

    third = kitchen.pack(key, tmp_path / "3.egg")
    desk.hatch(third)
    assert set(map(tuple, desk.threads(key).values())) == set(map(tuple, after.values()))
    assert kitchen.hatch(desk.pack(key, tmp_path / "4.egg"))["conversations"] == 0, (
        "back and forth adds nothing"
    )
    assert kitchen.verified()
    assert desk.verified()


def test_a_longer_conversation_continues_the_shorter_one(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Long")
    desk.says_to(key, "One.")
    first = desk.pack(key, tmp_path / "1.egg")
    desk.says_to(key, "Two.")
    assert kitchen.hatch(desk.pack(key, tmp_path / "2.egg"))["conversations"] == 4
    assert kitchen.hatch(first)["conversations"] == 0, "an older egg takes nothing away"
    assert kitchen.threads(key) == desk.threads(key)


def test_egg_without_memory_brings_no_conversations(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Forgetful")
    desk.says_to(key, "One.")
    desk.runs(key, "ManageMemory", memory_type="fact", content="The pump squeaks.")
    kitchen.hatch(desk.pack(key, tmp_path / "x.egg", exclude_memory=True))
    assert kitchen.threads(key) == {}
    assert "squeaks" not in kitchen.runs(key, "ContextMemory")


# Hatching beside turns, and back.


def test_taking_back_restores_what_was_there_before(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Returned")
    first = kitchen.hatch(desk.pack(key, tmp_path / "1.egg"))
    kitchen.post(f"/twins/{key}/boot")
    kitchen.give(key, "soul.md", "# My own\n")
    before = lies(kitchen.twin(key))
    desk.soul(key, "# Another\n")
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    second = kitchen.hatch(desk.pack(key, tmp_path / "2.egg"), overwrite=["soul"])
    assert "Another" in (kitchen.twin(key) / "soul.md").read_text()
    back = kitchen.post("/eggs/rollback", {"receipt": second["receipt"]})["rolled_back"]
    assert "soul.md" in back["restored"]
    assert "agents/kettle_agent.py" in back["removed"]
    assert lies(kitchen.twin(key)) == before
    assert kitchen.get(f"/twins/{key}")["twin"]["state"] == "awake"
    rows = {row["id"]: row for row in kitchen.get("/eggs/hatchings")["hatchings"]}
    assert rows[second["receipt"]]["rolled_back_at"]
    assert not rows[first["receipt"]]["rolled_back_at"]

    assert kitchen.refused("/eggs/rollback", {"receipt": first["receipt"]}) == (409, "changed_since")
    kitchen.post("/eggs/rollback", {"receipt": first["receipt"], "even_if_changed": True})
    assert not kitchen.twin(key).exists()
    assert kitchen.ask("GET", f"/twins/{key}").status == 404
    assert kitchen.refused("/eggs/rollback", {"receipt": "20000101T000000Z-000000"}) == (
        404,
        "no_such_hatching",
    )


def test_a_brainstem_takes_an_egg_in_after_it_was_packed_itself(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    desk = make_place("desk")
    desk.daemon.drop("kettle_agent.py", KETTLE)
    desk.post(
        "/eggs/pack", {"form": "agent", "item": "kettle_agent.py", "into": str(tmp_path / "kettle.egg")}
    )
    kitchen = make_place("kitchen")
    (kitchen.home / "brainstem" / "soul.md").write_text("# Before\n")
    done = kitchen.hatch(tmp_path / "kettle.egg")
    with open_egg(Path(done["pre_bond_egg"])) as before:
        assert before.family.kind == "brainstem"
        assert b"# Before" in next(part for part in before.parts if part.role == "soul").read()
    kitchen.post("/agents/approve", {"filename": "kettle_agent.py"})
    assert kitchen.runs("", "Kettle") == "It boils."


# Agents, in conversation.


@pytest.mark.parametrize("agent", ["HatchEgg", "LayEgg", "Twin"])
def test_egg_and_twin_agents_need_the_operators_turn(
    two: tuple[Place, Place], tmp_path: Path, agent: str
) -> None:
    desk, kitchen = two
    name = f"Wanted by {agent}"
    egg = desk.pack(desk.new(name), tmp_path / "x.egg")
    given = {
        "HatchEgg": {"egg_path": str(egg)},
        "LayEgg": {"egg_path": str(tmp_path / "y.egg")},
        "Twin": {"action": "hatch", "egg_path": str(egg)},
    }[agent]
    kitchen.runs("", "ContextMemory", as_operator=False)  # the first worker lays files that no agent may make
    before = lies(kitchen.home)
    assert "twin" not in kitchen.runs("", agent, as_operator=False, **given)
    assert lies(kitchen.home) == before
    assert not (tmp_path / "y.egg").exists()
    other = kitchen.new(f"Asked by {agent}")
    kitchen.model.will(
        calls(("Twin", {"action": "chat", "rappid_uuid": other, "text": "do it"})), calls((agent, given))
    )
    kitchen.post("/chat", {"user_input": "go"})
    assert agent not in kitchen.model.tools(1), "a twin that is asked by the brainstem may change nothing"
    assert not (tmp_path / "y.egg").exists()
    told = kitchen.runs("", agent, **given)
    assert "packed" in told if agent == "LayEgg" else f"{name} hatched" in told, told


class EggHub(LoopbackServer):
    """Serves eggs, and entries beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.moved: dict[str, str] = {}
        self.asked: list[str] = []

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/{path:.*}", self._serve)

    async def _serve(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        self.asked.append(path)
        if path in self.moved:
            return web.Response(status=302, headers={"Location": self.moved[path]})
        found = self.files.get(path)
        return web.Response(body=found) if found is not None else web.Response(status=404)


@pytest.fixture
def hub() -> Iterator[EggHub]:
    server = EggHub()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def inner() -> Iterator[EggHub]:
    """A service of this machine that holds no eggs."""
    server = EggHub()
    server.files = {"status": b"the inner word", "eggs/status.egg": b"the inner word"}
    server.start()
    yield server
    server.stop()


FETCHER = """
from agents.basic_agent import BasicAgent
from utils.host import request


class AskPeerAgent(BasicAgent):
    def __init__(self):
        self.name = "AskPeer"
        text = {"type": "object", "properties": {"url": {"type": "string"}}}
        super().__init__(self.name, {"name": "AskPeer", "description": "Fetches.", "parameters": text})

    def perform(self, url="", **kwargs):
        try:
            return "heard: " + str(request("eggs.inspect", url=url))
        except Exception as error:
            return "refused: " + str(error)
"""
"""The one agent that is offered in everyday turns and may make requests of the daemon, written anew."""


def test_inner_address_is_asked_in_the_operators_turn_alone_and_never_shown(
    two: tuple[Place, Place], inner: EggHub
) -> None:
    _, kitchen = two
    kitchen.daemon.drop("ask_peer_agent.py", FETCHER)
    kitchen.post("/agents/approve", {"filename": "ask_peer_agent.py"})
    address = f"{inner.url}/status"
    told = kitchen.runs("", "AskPeer", as_operator=False, url=address)
    assert told == "refused: Only this machine's operator can do that."
    assert inner.asked == []
    for agent, given in (("AskPeer", {"url": address}), ("HatchEgg", {"egg_path": address})):
        told = kitchen.runs("", agent, **given)
        assert "status is not an egg" in told
        assert "the inner word" not in told
    assert inner.asked == ["status", "status"], "positive control"
    assert kitchen.waiting() == []


@pytest.mark.parametrize("path", ["bare.egg", "eggs/entry.egg"])
def test_redirect_of_a_web_address_leads_to_no_other_origin_but_by_https(
    two: tuple[Place, Place], tmp_path: Path, hub: EggHub, inner: EggHub, path: str
) -> None:
    desk, kitchen = two
    octets = desk.pack(desk.new(f"Moved to {path}"), tmp_path / "x.egg").read_bytes()
    entry = json.dumps({"sha256": hashlib.sha256(octets).hexdigest()}).encode()
    hub.files = {"lies/here.egg": octets, "eggs/entry.json": entry}
    inside = f"{inner.url}/status"
    round_and_round = f"/{path}"
    for leads_to in (
        inside,
        f"//127.0.0.1:{inner.port}/status",
        "file:///etc/passwd",
        "http://[",
        round_and_round,
        "",
    ):
        hub.moved = {path: leads_to}
        told = kitchen.runs("", "HatchEgg", egg_path=f"{hub.url}/{path}")
        assert "leads elsewhere" in told, leads_to
    hub.moved = {"eggs/entry.json": inside}
    kitchen.runs("", "HatchEgg", egg_path=f"{hub.url}/eggs/entry.egg")
    assert inner.asked == []
    assert kitchen.waiting() == []
    hub.moved = {path: "/on/the/way", "on/the/way": f"{hub.url}/lies/here.egg"}
    assert "hatched" in kitchen.runs("", "HatchEgg", egg_path=f"{hub.url}/{path}"), "positive control"


def test_web_eggs_are_compared_with_known_ones(two: tuple[Place, Place], tmp_path: Path, hub: EggHub) -> None:
    desk, kitchen = two
    key = desk.new("Fetched")
    octets = desk.pack(key, tmp_path / "x.egg").read_bytes()
    right = hashlib.sha256(octets).hexdigest()
    hub.files = {
        "eggs/right.egg": octets,
        "eggs/right.json": json.dumps({"schema": "rapp-egg-hub-entry/1.0", "sha256": right.upper()}).encode(),
        "eggs/wrong.egg": octets,
        "eggs/wrong.json": json.dumps({"sha256": "0" * 64}).encode(),
        "plain/bare.egg": octets,
        "plain/page.egg": b"<html>",
    }

    def hatched(path: str, **more: Any) -> str:
        told = kitchen.runs("", "Twin", action="hatch", egg_url=f"{hub.url}/{path}", **more)
        assert kitchen.twin(key).exists() is ("status" in told)
        return told

    before = without_waiting(kitchen.home)
    other = "The egg at that address is not the one that is expected"
    assert other in hatched("eggs/wrong.egg")
    assert other in hatched("plain/bare.egg", expect_sha256="1" * 64)
    assert "is no SHA-256" in hatched("plain/bare.egg", expect_sha256="abc")
    assert "answered 404" in hatched("eggs/none.egg")
    assert "page.egg" in hatched("plain/page.egg")
    hub_url, hub_down = hub.url, "http://127.0.0.1:1/x.egg"
    assert "does not answer" in kitchen.runs("", "HatchEgg", egg_path=hub_down)
    assert without_waiting(kitchen.home) == before
    assert right not in kitchen.waiting()
    assert "Fetched hatched: " in kitchen.runs("", "HatchEgg", egg_path=f"{hub_url}/eggs/right.egg")
    assert "Fetched" in [row["name"] for row in kitchen.get("/eggs/hatchings")["hatchings"]]
    assert right not in kitchen.waiting()
    assert "is here already" in hatched("plain/bare.egg", expect_sha256=right)


# Killed.


@pytest.mark.own_process
def test_interrupted_hatching_is_whole_or_absent(make_place: Callable[..., Place], tmp_path: Path) -> None:
    desk, kitchen = make_place("desk"), make_place("kitchen")
    key = desk.new("Rose")
    for number in range(120):
        desk.give(key, f".brainstem_data/notes/{number}.txt", f"{number}\n" * 50)
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    for number in range(12):
        desk.says_to(key, f"Sentence {number}.", session=f"{number % 3}")
    egg = desk.pack(key, tmp_path / "rose.egg")
    desk.daemon.stop()
    with open_egg(egg) as opened:
        files = {part.target for part in opened.parts if part.role != "conversations"}
    threads = desk.threads(key)
    longest, outcomes = 0.25, []
    for end in (kitchen.daemon.kill,) * 4 + (kitchen.daemon.stop,):
        _while_hatching(kitchen, egg, end, after=random.uniform(0, longest))
        kitchen.daemon.start()
        assert not list(kitchen.home.rglob(".hatch-*")), "what was left half-way came to its end"
        there = kitchen.twin(key)
        outcomes.append(there.exists())
        if there.exists():
            assert {name for name in files if not (there / name).is_file()} == set()
            assert kitchen.threads(key) == threads
            assert kitchen.get(f"/twins/{key}/agents/held")["held"][0]["path"] == "agents/kettle_agent.py"
            assert kitchen.says_to(key, "Well?", "Here.", "new")["response"] == "Here."
            kitchen.daemon.stop()
            shutil.rmtree(kitchen.home)
            kitchen.daemon.start()
        else:
            longest *= 1.5
        assert kitchen.verified(), outcomes


def _while_hatching(place: Place, egg: Path, end: Callable[[], None], *, after: float) -> None:
    """Ends a daemon that is busy with turns, so many seconds after it was told to hatch."""
    done = threading.Event()

    def load() -> None:
        while not done.is_set():
            with suppress(OSError, http.client.HTTPException):
                place.daemon.post("/chat", {"user_input": "load", "session_id": "load"})

    def hatch() -> None:
        with suppress(OSError, http.client.HTTPException):
            place.ask("POST", "/eggs/hatch", {"path": str(egg)})

    workers = [threading.Thread(target=one) for one in (load, hatch)]
    for worker in workers:
        worker.start()
    time.sleep(after)
    end()
    done.set()
    for worker in workers:
        worker.join(100)
