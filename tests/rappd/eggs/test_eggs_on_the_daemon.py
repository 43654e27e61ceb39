"""Eggs on running daemons: packed, carried, planned, hatched, taken back; by the operator, by agents, by whoever tries."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import re
import shutil
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from daemon_under_test import Answer, RunningDaemon, agent_source
from loopback_server import LoopbackServer, calls
from place_under_test import Place, on

from rappd.doors.loopback import eggs as eggs_door
from tests.twins.eggs.hostile_corpus import HOSTILE, Hostile
from twins.eggs.opening.sniffing import open_egg

KETTLE = agent_source("Kettle", 'return "It boils."')
PUMP = 'name = "pump"\n\n\ndef handle(method, path, body):\n    return {"water": "runs"}, 200\n'


def lies(home: Path) -> dict[str, bytes]:
    """Every file of a home but for those that a running daemon writes by itself."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not re.match(r"rappd\.(db|log|pid)", path.name)
    }


def without_waiting(home: Path) -> dict[str, bytes]:
    return {name: content for name, content in lies(home).items() if "/.waiting/" not in name}


def unsigned(egg: Path, into: Path, **changes: bytes) -> Path:
    """The same egg without what rappd added to the published shape; ``changes`` by member."""
    with zipfile.ZipFile(egg) as old, zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "integrity.json":
                new.writestr(name, changes.get(name, old.read(name)))
    return into


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


def test_hatched_while_the_daemon_is_down_it_goes_on_at_the_next_start(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    desk, kitchen = make_place("desk"), make_place("kitchen")
    key = desk.new("Rose")
    desk.says_to(key, "The tomatoes are dry.")
    egg = desk.pack(key, tmp_path / "rose.egg")
    kitchen.daemon.stop()
    done = kitchen.daemon.cli("egg", "hatch", str(egg))
    assert "Its conversations go on at the next start." in done.stdout, done
    assert kitchen.threads(key) == {}
    kitchen.daemon.start()
    kitchen.says_to(key, "Yes, please.")
    (thread,) = kitchen.threads(key)
    assert [len(chain) for chain in kitchen.threads(key).values()] == [4]
    assert desk.threads(key)[thread] == kitchen.threads(key)[thread][:2]
    assert not list((kitchen.home / "eggs" / "receipts").glob("*.frames.json"))
    assert kitchen.verified()


# Conversations.


def test_conversations_that_went_on_on_both_sides_stand_beside_each_other(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
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


def test_an_egg_without_memory_brings_neither_memories_nor_conversations(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    key = desk.new("Forgetful")
    desk.says_to(key, "One.")
    desk.runs(key, "ManageMemory", memory_type="fact", content="The pump squeaks.")
    kitchen.hatch(desk.pack(key, tmp_path / "x.egg", exclude_memory=True))
    assert kitchen.threads(key) == {}
    assert "squeaks" not in kitchen.runs(key, "ContextMemory")


# Whose code runs.


def test_code_runs_when_its_signer_is_trusted_and_never_before(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    fingerprint = desk.get("/eggs/signers")["own"]
    eggs = {}
    for name in ("unsigned", "unknown", "trusted", "revoked"):
        key = desk.new(name)
        desk.give(key, "agents/kettle_agent.py", KETTLE)
        eggs[name] = key, desk.pack(key, tmp_path / f"{name}.egg")
    key, signed = eggs["unsigned"]
    eggs["unsigned"] = key, unsigned(signed, tmp_path / "bare.egg")

    def hatched(name: str) -> str:
        key, egg = eggs[name]
        kitchen.hatch(egg)
        return kitchen.runs(key, "Kettle")

    assert hatched("unsigned") != "It boils."
    assert hatched("unknown") != "It boils."
    kitchen.post("/eggs/signers", {"fingerprint": fingerprint, "name": "desk"})
    assert hatched("trusted") == "It boils."
    assert kitchen.runs(eggs["unknown"][0], "Kettle") != "It boils.", "trust is for what comes"
    kitchen.hatch(eggs["unknown"][1])
    assert kitchen.runs(eggs["unknown"][0], "Kettle") == "It boils.", (
        "the same once more, from somebody trusted now"
    )
    assert kitchen.ask("DELETE", f"/eggs/signers/{fingerprint}").status == 200
    assert hatched("revoked") != "It boils."
    assert kitchen.runs(eggs["trusted"][0], "Kettle") == "It boils.", "what was let in stays"


def test_approving_lets_agents_and_services_run(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Approved")
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    desk.give(key, "services/pump_service.py", PUMP)
    done = kitchen.hatch(desk.pack(key, tmp_path / "x.egg"))
    assert done["quarantine"]["count"] == 2
    held = kitchen.get(f"/twins/{key}/agents/held")["held"]
    assert [one["path"] for one in held] == ["agents/kettle_agent.py", "services/pump_service.py"]
    assert kitchen.get(f"/twins/{key}/agents/source/services/pump_service.py")["source"] == PUMP
    port = kitchen.post(f"/twins/{key}/boot")["port"]
    refused = on(port, "GET", "/api/pump")
    assert refused.status == 403
    assert refused.json()["do"] == f"rappd agents approve pump_service.py --twin {key[:12]}"
    for one in held:
        kitchen.post(f"/twins/{key}/agents/approve", {"filename": one["path"]})
    assert on(port, "GET", "/api/pump").json() == {"water": "runs"}
    assert kitchen.runs(key, "Kettle") == "It boils."
    assert kitchen.get(f"/twins/{key}/agents/held")["held"] == []


def test_what_is_quarantined_is_not_packed_and_signed(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Unread")
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    kitchen.hatch(desk.pack(key, tmp_path / "x.egg"))
    kitchen.give(key, "agents/mine_agent.py", agent_source("Mine"))
    packed = kitchen.post("/eggs/pack", {"twin": key, "into": str(tmp_path / "y.egg")})["packed"]
    assert [one["path"] for one in packed["left_out"] if "quarantined" in one["why"]] == [
        "agents/kettle_agent.py"
    ]
    with open_egg(tmp_path / "y.egg") as opened:
        assert {part.name for part in opened.parts if part.role == "agent"} == {"agents/mine_agent.py"}
    refused = kitchen.ask("POST", "/eggs/pack", {"twin": key, "form": "agent", "item": "kettle_agent.py"})
    assert refused.json()["error"] == "agents/kettle_agent.py is quarantined; nothing was packed."
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "kettle_agent.py"})
    kitchen.pack(key, tmp_path / "z.egg")
    with open_egg(tmp_path / "z.egg") as opened:
        assert len([part for part in opened.parts if part.role == "agent"]) == 2


def test_what_the_operator_brings_in_himself_is_no_longer_held(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    desk.daemon.drop("whisk_agent.py", agent_source("Whisk", 'return "It foams."'))
    desk.post("/eggs/pack", {"form": "agent", "item": "whisk_agent.py", "into": str(tmp_path / "whisk.egg")})
    assert kitchen.hatch(tmp_path / "whisk.egg")["quarantine"]["count"] == 1
    assert kitchen.runs("", "Whisk") != "It foams."
    source = (kitchen.daemon.agents / "whisk_agent.py").read_bytes()
    assert kitchen.daemon.upload("whisk_agent.py", source, control=True).status == 200
    assert kitchen.runs("", "Whisk") == "It foams."


# The plan that was said yes to.


def test_a_plan_that_was_approved_and_is_another_by_now_is_refused(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    key = desk.new("Planned")
    egg = desk.pack(key, tmp_path / "x.egg")
    kitchen.hatch(egg)
    desk.soul(key, "# Planned\n\nAnother soul.\n")
    laid = kitchen.lay_down(desk.pack(key, tmp_path / "y.egg").read_bytes(), "y.egg")
    plan = kitchen.post("/eggs/plan", {"id": laid["id"], "overwrite": ["soul"]})["plan"]
    assert [one["path"] for one in plan["replace"]["files"]] == ["soul.md"]
    kitchen.give(key, "soul.md", "# My own\n")
    before = lies(kitchen.twin(key))
    body = {"id": laid["id"], "overwrite": ["soul"], "approved": plan["digest"]}
    assert kitchen.refused("/eggs/hatch", body) == (409, "plan_changed")
    assert lies(kitchen.twin(key)) == before
    plan = kitchen.post("/eggs/plan", body)["plan"]
    kitchen.post("/eggs/hatch", {**body, "approved": plan["digest"]})
    assert "Another soul." in (kitchen.twin(key) / "soul.md").read_text()
    assert kitchen.refused("/eggs/hatch", body) == (404, "not_found"), "a hatched egg waits no more"


def test_what_is_hatched_is_what_was_looked_at_whatever_becomes_of_the_file(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    key, other = desk.new("Looked at"), desk.new("Slipped in")
    egg = desk.pack(key, tmp_path / "x.egg")
    planned = kitchen.post("/eggs/plan", {"path": str(egg)})
    desk.pack(other, egg, overwrite=True)
    approved = planned["plan"]["digest"]
    assert kitchen.refused("/eggs/hatch", {"path": str(egg), "approved": approved}) == (409, "plan_changed")
    assert not kitchen.twin(other).exists()
    kitchen.post("/eggs/hatch", {"id": planned["id"], "approved": approved})
    assert kitchen.twin(key).exists()
    assert not kitchen.twin(other).exists()


def test_an_egg_that_waits_for_more_than_a_day_goes(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    egg = desk.pack(desk.new("Patient"), tmp_path / "x.egg")
    ident = kitchen.lay_down(egg.read_bytes())["id"]
    folder = kitchen.home / "eggs" / ".waiting" / ident
    old = time.time() - 25 * 3600
    for path in (folder / "an.egg", folder):
        os.utime(path, (old, old))
    kitchen.refused("/eggs", b"no egg")
    assert ident not in kitchen.waiting()
    assert kitchen.ask("DELETE", f"/eggs/{ident}").status == 404


@pytest.mark.parametrize(
    "name", ["../../../x.egg", "/etc/x.egg", "a\x00b\n.egg", "..", "", "é" * 300, "x.egg.sig", " .", "a\\b"]
)
def test_an_egg_waits_under_its_name_and_inside_its_folder(two: tuple[Place, Place], name: str) -> None:
    desk, kitchen = two
    path = Path(desk.post("/eggs/pack", {"twin": desk.new("Named")})["packed"]["path"])
    before = without_waiting(kitchen.home)
    laid = kitchen.lay_down(path.read_bytes(), quote(name, safe=""))
    (file,) = (kitchen.home / "eggs" / ".waiting" / laid["id"]).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert without_waiting(kitchen.home) == before
    assert kitchen.post("/eggs/plan", {"id": laid["id"]})["plan"]["egg"]["file"] == file.name
    assert kitchen.ask("DELETE", f"/eggs/{laid['id']}").status == 200
    assert laid["id"] not in kitchen.waiting()


def test_a_signature_beside_a_file_counts_for_the_daemon_too(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    egg = desk.pack(desk.new("Strict"), tmp_path / "x.egg", form="rapp1-organism")
    assert (tmp_path / "x.egg.sig").exists()
    assert (
        kitchen.post("/eggs/plan", {"path": str(egg)})["plan"]["seal"]["signer"]
        == desk.get("/eggs/signers")["own"]
    )
    (tmp_path / "x.egg.sig").unlink()
    assert kitchen.post("/eggs/plan", {"path": str(egg)})["plan"]["seal"]["signer"] == ""


def test_a_signature_that_comes_with_an_egg_counts_and_holds_for_these_bytes_alone(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    egg = desk.pack(desk.new("Strict"), tmp_path / "x.egg", form="rapp1-organism").read_bytes()
    beside = quote((tmp_path / "x.egg.sig").read_bytes())
    laid = kitchen.lay_down(egg, f"x.egg&signature={beside}")
    own = desk.get("/eggs/signers")["own"]
    assert laid["plan"]["seal"]["signer"] == laid["egg"]["signer"] == own
    again = {"id": laid["id"], "overwrite": ["soul"]}
    assert kitchen.post("/eggs/plan", again)["plan"]["seal"]["signer"] == own
    assert kitchen.lay_down(egg, "x.egg")["plan"]["seal"]["signer"] == "", "this time it came alone"
    other = desk.pack(desk.new("Other"), tmp_path / "y.egg", form="rapp1-organism").read_bytes()
    for content, signature in ((other, beside), (egg, "{}"), (egg, beside[:-40])):
        assert kitchen.refused(f"/eggs?name=x.egg&signature={signature}", content) == (400, "bad_egg")
        assert hashlib.sha256(content).hexdigest() not in kitchen.waiting(), "nothing is kept"


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


# What is refused.


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A home in which nothing happens but what the test does."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("quiet") / "home", LLM_FAKE="1").start()
    daemon.request("POST", "/eggs", b"no egg", control=True)
    daemon.request("GET", "/peers", control=True)  # waits until what other machines need is there, too
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("few", range(4))
def test_hostile_eggs_leave_no_trace(quiet: RunningDaemon, few: int) -> None:
    before = lies(quiet.home)
    for one in HOSTILE[few::4]:
        answer = quiet.request("POST", f"/eggs?name={one.name}.egg", one.octets, control=True)
        _refused_well(answer, one)
    assert lies(quiet.home) == before
    assert list((quiet.home / "eggs" / ".waiting").iterdir()) == []


def _refused_well(answer: Answer, one: Hostile) -> None:
    assert answer.status == 400, one
    found = answer.json()
    assert found["code"] in ("hostile_egg", "bad_egg", "unknown_egg", "bad_body"), one
    assert "\n" not in found["error"] or found["code"] == "unknown_egg", "which says what is known"
    assert one.says in found["error"] or found["code"] in ("bad_body", "unknown_egg"), (one, found)


def test_a_hostile_egg_by_its_path_leaves_no_trace_either(quiet: RunningDaemon, tmp_path: Path) -> None:
    before = lies(quiet.home)
    for one in HOSTILE[::23]:
        path = tmp_path / "x.egg"
        path.write_bytes(one.octets)
        answer = quiet.request("POST", "/eggs/hatch", {"path": str(path)}, control=True)
        assert answer.status == 400, one
    for path in (tmp_path, tmp_path / "none.egg", Path("/dev/zero"), Path("relative.egg"), Path("/a\0b")):
        answer = quiet.request("POST", "/eggs/plan", {"path": str(path)}, control=True)
        assert answer.status in (400, 404), path
    assert lies(quiet.home) == before


def test_an_upload_that_breaks_off_leaves_nothing(quiet: RunningDaemon) -> None:
    key = re.search(r"#k=([\w-]+)", quiet.cli("open").stdout)
    assert key is not None
    session = quiet.post("/operator/session", {"key": key[1]}, headers={"Host": f"127.0.0.1:{quiet.port}"})
    cookie = session.headers["set-cookie"].partition(";")[0]
    head = (
        f"POST /eggs?name=x.egg HTTP/1.1\r\nHost: 127.0.0.1:{quiet.port}\r\nContent-Length: 9000000\r\n"
        f"Cookie: {cookie}\r\nX-Rappd-Proof: {session.json()['proof']}\r\n\r\n"
    )
    folder = quiet.home / "eggs" / ".waiting"
    with socket.create_connection(("127.0.0.1", quiet.port)) as line:
        line.sendall(head.encode() + b"PK\3\4" + bytes(3_000_000))
        quiet.wait_for(lambda: any(path.stat().st_size > 1_000_000 for path in folder.iterdir()))
    quiet.wait_for(lambda: not list(folder.iterdir()))
    assert quiet.get("/health").status == 200


def test_a_likely_secret_stops_the_packing_and_says_where(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, _ = two
    key = desk.new("Careless")
    desk.give(key, "agents/mail_agent.py", f'{KETTLE}\nPASSWORD = "hunter2-but-longer-9X"\n')
    answer = desk.ask("POST", "/eggs/pack", {"twin": key, "into": str(tmp_path / "x.egg")})
    assert answer.status == 409
    (finding,) = answer.json()["findings"]
    line = KETTLE.count("\n") + 2
    assert (finding["path"], finding["line"]) == ("mail_agent.py", line)
    assert answer.json()["error"].startswith(f"mail_agent.py line {line} holds a likely")
    assert not (tmp_path / "x.egg").exists()
    packed = desk.post("/eggs/pack", {"twin": key, "into": str(tmp_path / "x.egg"), "allow": [finding["id"]]})
    assert packed["packed"]["allowed"][0]["path"] == "mail_agent.py"


def _operators() -> list[tuple[str, str]]:
    return [
        (route.method, route.path)
        for route in eggs_door.routes
        if isinstance(route, web.RouteDef) and not route.path.startswith("/eggs/out/")
    ]


@pytest.mark.parametrize(("method", "path"), _operators())
def test_eggs_are_the_operators_business(
    quiet: RunningDaemon, tmp_path: Path, method: str, path: str
) -> None:
    before = lies(quiet.home)
    place = re.sub(r"\{\w+\}", "0" * 64, path)
    body = json.dumps({"path": str(tmp_path), "twin": "", "fingerprint": "0" * 64, "name": "x"}).encode()
    answer = quiet.request(method, place, body)
    assert (answer.status, answer.json()["code"]) == (403, "not_operator")
    if method != "GET":
        remote = quiet.request(method, place, body, {"Origin": "http://evil.example"})
        assert (remote.status, remote.json()["code"]) == (403, "refused")
        assert "access-control-allow-origin" not in remote.headers
    assert lies(quiet.home) == before


def test_a_packed_egg_is_fetched_by_its_link_and_by_nothing_like_it(two: tuple[Place, Place]) -> None:
    desk, _ = two
    done = desk.post("/eggs/pack", {"twin": desk.new("Dragged")})
    link = done["link"]
    got = desk.daemon.get(link)
    assert hashlib.sha256(got.body).hexdigest() == done["packed"]["sha256"]
    rest, folder, name = link.removeprefix("/eggs/out/").split("/")
    until, _, key = rest.partition("-")
    for wrong in (
        f"/eggs/out/{int(until) + 3600}-{key}/{folder}/{name}",
        f"/eggs/out/{until}-{'0' * 64}/{folder}/{name}",
        f"/eggs/out/x/{folder}/{name}",
        f"/eggs/out/{rest}/{folder}/..%2f..%2frappd.toml",
        f"/eggs/out/{rest}/..%2fkeys/identity.pem",
    ):
        assert desk.daemon.get(wrong).status == 404, wrong


# Agents, in conversation.


@pytest.mark.parametrize("agent", ["HatchEgg", "LayEgg", "Twin"])
def test_agents_of_eggs_and_twins_work_in_the_operators_turn_alone(
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

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/{path:.*}", self._serve)

    async def _serve(self, request: web.Request) -> web.Response:
        found = self.files.get(request.match_info["path"])
        return web.Response(body=found) if found is not None else web.Response(status=404)


@pytest.fixture
def hub() -> Iterator[EggHub]:
    server = EggHub()
    server.start()
    yield server
    server.stop()


def test_eggs_from_the_web_are_compared_with_what_is_known_of_them(
    two: tuple[Place, Place], tmp_path: Path, hub: EggHub
) -> None:
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


def test_killed_or_stopped_at_any_moment_of_a_hatching_it_is_whole_or_not_there(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
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
        worker.join(20)
