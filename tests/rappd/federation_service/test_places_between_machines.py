"""A neighborhood across machines: invite, join, presence, scopes as capabilities, and a call to all members."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source

from envelopes.codecs.emergence import encode
from envelopes.envelope import HELLO, HELP, Envelope, new_id
from neighborhoods.auth.tls import client_context
from neighborhoods.transport.http_client import session
from rappd.federation.handshake_client import post, say_hello

Three = tuple[Machine, Machine, Machine]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    """Desk and pi, which are friends and members of one neighborhood; shed, a friend of desk's and no member."""
    folder = tmp_path_factory.mktemp("club")
    desk, pi, shed = (Machine(folder / name, name, LLM_FAKE="1") for name in ("desk", "pi", "shed"))
    for name in ("Clock", "Weather", "Mail"):
        desk.drop(f"{name.lower()}_agent.py", agent_source(name, f'return "{name} of desk"'))
    pi.drop("clock_agent.py", agent_source("Clock", 'return "Clock of pi"'))
    try:
        for one in (desk, pi, shed):
            one.start()
        pair(desk, pi, "friend")
        pair(desk, shed, "friend")
        desk.owner("POST", "/neighborhoods", {"name": "Book club"})
        invite = folder / "invite.egg"
        done(desk, "neighborhood", "invite", "Book club", "--peer", "pi", "-o", invite)
        done(pi, "neighborhood", "join", invite)
        yield desk, pi, shed
    finally:
        for one in (desk, pi, shed):
            one.stop()


def done(machine: Machine, *words: str | Path, code: int = 0) -> Any:
    found = machine.cli(*words, "--json")
    assert found.returncode == code, (found.stdout, found.stderr)
    return json.loads(found.stdout or found.stderr)


def call(machine: Machine, agent: str) -> tuple[int, Any]:
    found = machine.cli("call", f"desk:{agent}", "--json")
    return found.returncode, json.loads(found.stdout or found.stderr)


def is_refused(machine: Machine, agent: str) -> bool:
    """4 where the caller knows of other agents for it, and is told that this is none of them."""
    code, found = call(machine, agent)
    return code in (4, 5) and "result" not in json.dumps(found)


def hello_of_a_stranger(machine: Machine) -> dict[str, Any]:
    hello = Envelope(new_id(), "stranger_" + "0" * 16, "broadcast", HELLO, {"capabilities": []})
    said, _ = asyncio.run(say_hello(machine.address, encode(hello)))
    return said


def told_to_a_stranger(machine: Machine, path: str) -> tuple[int, str]:
    async def ask() -> tuple[int, str]:
        async with (
            session() as client,
            client.get(f"https://{machine.address}{path}", ssl=client_context(None)) as got,
        ):
            return got.status, await got.text()

    return asyncio.run(ask())


def test_members_see_each_other_with_presence(network: Three) -> None:
    desk, pi, _ = network
    for here, other in ((desk, "pi"), (pi, "desk")):
        here.wait_for(lambda here=here, other=other: here.row(other)["presence"] == "here", what="the other")  # type: ignore[misc]
        rows = done(here, "neighborhood", "show", "book club")["neighborhood"]["members"]
        assert {(row["name"], row["self"], row["presence"]) for row in rows} >= {
            (here.name, True, "here"),
            (other, False, "here"),
        }


def test_agent_published_to_members_is_called_by_them_alone(network: Three) -> None:
    desk, pi, shed = network
    assert is_refused(pi, "Clock")
    done(desk, "neighborhood", "publish", "Book club", "clock")
    code, found = call(pi, "Clock")
    assert (code, found["call"]["result"]) == (0, "Clock of desk")
    assert is_refused(pi, "Mail")
    assert is_refused(shed, "Clock")
    assert "public" not in hello_of_a_stranger(desk)
    done(desk, "neighborhood", "publish", "Book club", "Clock", "--personal")
    assert is_refused(pi, "Clock")


def test_public_agent_is_read_of_by_strangers_and_called_by_peers(network: Three) -> None:
    desk, pi, shed = network
    done(desk, "neighborhood", "publish", "Book club", "Weather", "--public")
    said = hello_of_a_stranger(desk)
    assert said["public"] == [{"name": "Weather", "description": "A test."}]
    assert said["capabilities"] == []
    assert "agents" not in said
    node = desk.fingerprint[:16]
    for name in ("brainstem", "Weather", "Mail", "Nobody"):
        answer = told_to_a_stranger(desk, f"/agents/{name}_{node}/capabilities")
        assert answer == told_to_a_stranger(desk, "/agents/x/capabilities")
        assert answer[0] == 401
        help = Envelope(new_id(), "stranger_" + "0" * 16, f"{name}_{node}", HELP, {"agent": name, "args": {}})
        status, refusal, _ = asyncio.run(post(desk.address, "/envelopes", encode(help)))
        assert (status, refusal["data"]["reason"]) == (401, "not_paired")
    for peer in (pi, shed):
        assert call(peer, "Weather")[0] == 0
    assert is_refused(shed, "Mail")
    done(desk, "neighborhood", "publish", "Book club", "Weather", "--personal")
    assert "public" not in hello_of_a_stranger(desk)
    assert is_refused(shed, "Weather")


def test_agent_that_changes_the_machine_is_never_published(network: Three) -> None:
    desk, _, _ = network
    assert done(desk, "neighborhood", "publish", "Book club", "Nobody", code=4)["code"] == "not_found"
    rows = done(desk, "agents", "list")["agents"]
    structural = next(row["name"] for row in rows if row.get("structural"))
    found = done(desk, "neighborhood", "publish", "Book club", structural, "--public", code=5)
    assert "never published" in found["error"]


def test_call_to_a_neighborhood_reaches_its_paired_members(network: Three) -> None:
    desk, pi, _ = network
    done(pi, "neighborhood", "publish", "Book club", "Clock")
    found = done(desk, "call", "--all", "@Book club:Clock")
    assert [(row["peer"], row["result"]) for row in found["calls"]] == [("pi", "Clock of pi")]
    found = done(desk, "call", "--first", "@book-club:Clock")
    assert found["winner"] == "pi"
    assert done(desk, "call", "--all", "@nobody", "x", code=4)["code"] == "no_neighborhood"


def test_neighborhood_whose_members_are_not_paired_is_told(network: Three) -> None:
    desk, _, _ = network
    done(desk, "neighborhood", "create", "Alone")
    found = done(desk, "call", "--all", "@Alone", "x", code=4)
    assert "No other member" in found["error"]


def test_who_leaves_publishes_nothing_any_more(network: Three) -> None:
    desk, pi, _ = network
    done(desk, "neighborhood", "create", "Short")
    done(desk, "neighborhood", "invite", "Short", "--peer", "pi")
    done(desk, "neighborhood", "publish", "Short", "Mail")
    assert call(pi, "Mail")[0] == 0
    left = done(desk, "neighborhood", "leave", "Short")["left"]
    assert is_refused(pi, "Mail")
    assert (Path(left["aside"]) / "neighborhood.json").exists()


def test_hatched_roster_lets_nobody_in(network: Three) -> None:
    """Pi is a friend of desk's; an egg whose roster names pi gives it nothing, not even when it changes later."""
    desk, pi, _ = network
    done(desk, "neighborhood", "create", "Closed")
    done(desk, "neighborhood", "publish", "Closed", "Mail")
    place = done(desk, "neighborhood", "show", "Closed")["neighborhood"]
    roster = Path(place["folder"]) / "members.json"
    said = json.loads(roster.read_text())
    said["members"].append({"name": "pi", "fingerprint": pi.fingerprint, "rappid": ""})
    roster.write_text(json.dumps(said))
    assert is_refused(pi, "Mail")
    desk.stop()
    desk.start()
    pi.wait_for(lambda: pi.row("desk")["presence"] == "here", what="desk")
    assert is_refused(pi, "Mail")


def told_of(machine: Machine) -> list[tuple[str, str]]:
    rows = machine.owner("GET", "/notices")["notices"]
    return [(row["what"], row["do"]) for row in rows if row["kind"] in ("member", "left")]


def test_inviter_learns_once_that_an_invited_machine_joined(network: Three) -> None:
    desk, pi, _ = network
    known = [("pi joined Book club.", "rappd neighborhood show 'Book club'")]
    desk.wait_for(lambda: told_of(desk) == known, what="the notice")
    assert told_of(pi) == [], "an earlier member is not reported again"
    desk.stop()
    desk.start()
    pi.wait_for(lambda: pi.row("desk")["presence"] == "here", what="desk")
    assert told_of(desk) == known


def test_who_joins_uninvited_stands_in_the_roster_and_may_call_nothing(
    network: Three, tmp_path: Path
) -> None:
    desk, _, shed = network
    done(desk, "neighborhood", "create", "Chess")
    done(desk, "neighborhood", "publish", "Chess", "Mail")
    done(desk, "neighborhood", "invite", "Chess", "-o", tmp_path / "chess.egg")
    done(shed, "neighborhood", "join", tmp_path / "chess.egg")
    desk.wait_for(lambda: any("shed joined Chess" in text for text, _ in told_of(desk)), what="the notice")
    (_, do) = next(one for one in told_of(desk) if "Chess" in one[0])
    rows = done(desk, "neighborhood", "show", "Chess")["neighborhood"]["members"]
    assert [(row["name"], row["admitted"]) for row in rows if not row["self"]] == [("shed", False)]
    assert is_refused(shed, "Mail")
    assert desk.cli(*shlex.split(do)[1:]).returncode == 0
    assert call(shed, "Mail")[0] == 0
    assert not any("Chess" in text for text, _ in told_of(desk)), "it was admitted: nothing is to be decided"


def others_in(machine: Machine, place: str) -> list[tuple[str, bool]]:
    rows = done(machine, "neighborhood", "show", place)["neighborhood"]["members"]
    return [(row["name"], row["admitted"]) for row in rows if not row["self"]]


def club_of_desk_and_pi(network: Three, name: str, folder: Path) -> None:
    desk, pi, _ = network
    done(desk, "neighborhood", "create", name)
    done(desk, "neighborhood", "publish", name, "Mail")
    done(desk, "neighborhood", "invite", name, "--peer", "pi", "-o", folder / "invite.egg")
    done(pi, "neighborhood", "join", folder / "invite.egg")
    assert call(pi, "Mail")[0] == 0


def test_member_that_leaves_is_told_to_the_others_and_may_call_nothing(
    network: Three, tmp_path: Path
) -> None:
    desk, pi, _ = network
    club_of_desk_and_pi(network, "Choir", tmp_path)
    done(pi, "neighborhood", "leave", "Choir")
    text = "pi left Choir; it may call nothing of yours in it any more."
    desk.wait_for(lambda: (text, "rappd neighborhood show Choir") in told_of(desk), what="the notice")
    rows = done(desk, "notices", "list")["notices"]
    assert [row["kind"] for row in rows if row["what"] == text] == ["left"]
    assert others_in(desk, "Choir") == []
    assert is_refused(pi, "Mail")
    assert ("pi", True) in others_in(desk, "Book club"), "it left one, not all"
    done(desk, "neighborhood", "invite", "Choir", "--peer", "pi")
    desk.stop()
    desk.start()
    pi.wait_for(lambda: pi.row("desk")["presence"] == "here", what="desk")
    assert others_in(desk, "Choir") == [("pi", True)], "what was told is not told again"
    assert call(pi, "Mail")[0] == 0
    done(desk, "neighborhood", "leave", "Choir")


def test_member_that_left_while_another_was_away_is_told_later(network: Three, tmp_path: Path) -> None:
    desk, pi, _ = network
    club_of_desk_and_pi(network, "Walks", tmp_path)
    desk.stop()
    pi.stop()
    done(pi, "neighborhood", "leave", "Walks")
    desk.start()
    pi.start()
    desk.wait_for(lambda: any("pi left Walks" in text for text, _ in told_of(desk)), what="the notice")
    assert others_in(desk, "Walks") == []
    assert is_refused(pi, "Mail")


def test_bad_invites_join_nothing(network: Three, tmp_path: Path) -> None:
    desk, pi, _ = network
    path = tmp_path / "invite.egg"
    done(desk, "neighborhood", "invite", "Book club", "-o", path)
    said = json.loads(path.read_text())
    before = (pi.home / "memberships.json").read_bytes()
    names = sorted(one.name for one in (pi.home / "neighborhoods").iterdir())
    other = f"rappid:@ada/other:{'f' * 64}"
    for change, code in (
        ({"rappid": other, "invite_expires_at": "2020-01-01T00:00:00Z"}, 8),
        ({"rappid": other, "type": "payphone"}, 5),
        ({"rappid": "../../outside"}, 5),
        ({"schema": "brainstem-egg/2.3-session", "type": "session"}, 5),
    ):
        path.write_text(json.dumps({**said, **change}))
        assert pi.cli("neighborhood", "join", path, "--json").returncode == code, change
    assert (pi.home / "memberships.json").read_bytes() == before
    assert sorted(one.name for one in (pi.home / "neighborhoods").iterdir()) == names
