"""``rappd peers`` and what other screens tell of machines, with real ones beside each other."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import agent_source
from fixtures.terminal import Terminal, on_terminal

from rappd.cli.tables import cells
from rappd.features.peers.text import show_peers

Both = tuple[Machine, Machine]
NOBODY = """\
No peers yet. Looked in:
  local network         switched off (peers.nearby)
  last known addresses  none
  peers.json            nothing in it
  added by hand         nothing
  → start rappd on another machine, or rappd peers add ADDRESS"""
ROWS = {"name", "fingerprint", "short", "paired", "legacy", "presence", "reached", "address"}
PAIRED = ROWS | {
    "whose",
    "ms",
    "since",
    "agents",
    "waiting",
    "scopes",
    "offered",
    "called",
    "note",
    "paired_at",
    "seen_at",
}
COMMAND = re.compile(r"rappd [a-z]+|[0-9a-f]{64}|https?://")


@pytest.fixture
def make_machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Starts a machine of that name; all are stopped at the end."""
    made: list[Machine] = []

    def make(name: str, folder: str = "", **environment: str) -> Machine:
        made.append(Machine(tmp_path / (folder or name), name, LLM_FAKE="1", **environment))
        return made[-1].start()

    yield make
    for daemon in made:
        daemon.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Desk and pi, which trust each other; tests put back what they change."""
    folder = tmp_path_factory.mktemp("two")
    desk, pi = Machine(folder / "desk", "desk", LLM_FAKE="1"), Machine(folder / "pi", "pi", LLM_FAKE="1")
    pi.drop("clock_agent.py", agent_source("Clock", 'return "noon"'))
    desk.start()
    pi.start()
    acquaint(desk, pi)
    yield desk, pi
    desk.stop()
    pi.stop()


@pytest.mark.parametrize(("several", "one"), [("sources", "source"), ("rungs", "rung")])
def test_the_places_of_a_daemon_that_ran_before_an_upgrade_are_read(
    several: str, one: str, capsys: pytest.CaptureFixture[str]
) -> None:
    looked_in = [{one: "file", "found": 0, "trouble": "it cannot be read"}]
    show_peers({"peers": [], "asking": [], "self": {}, several: looked_in})
    assert "it cannot be read" in capsys.readouterr().out


def told(daemon: Machine, *arguments: str) -> Any:
    done = daemon.cli("peers", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def error(daemon: Machine, *arguments: str, exits: int) -> dict[str, str]:
    done = daemon.cli("peers", *arguments, "--json")
    assert done.returncode == exits, done.stdout + done.stderr
    [line] = done.stderr.splitlines()
    found: dict[str, str] = json.loads(line)
    assert found.keys() == {"error", "do", "code"}
    return found


# Nobody, found ones, written-down ones.


def test_an_empty_list_tells_where_was_looked_and_what_to_do(
    make_machine: Callable[..., Machine],
) -> None:
    desk = make_machine("desk")
    assert on_terminal(desk, "peers", "list").text == NOBODY
    narrow = on_terminal(desk, "peers", "list", columns=40)
    assert all(cells(line) <= 40 or COMMAND.search(line) for line in narrow.lines)
    found = told(desk, "list")
    assert (found["peers"], found["asking"]) == ([], [])
    assert [source["source"] for source in found["sources"]] == ["nearby", "last address", "list", "typed"]
    desk.stop()
    down = on_terminal(desk, "peers", "list")
    assert down.code == 0
    assert down.lines[-1] == "  → rappd start"


def test_address_of_another_program_is_told_as_no_rappd(make_machine: Callable[..., Machine]) -> None:
    desk = make_machine("desk")
    with socket.create_server(("127.0.9.1", 0)) as other:
        address = "{}:{}".format(*other.getsockname())
        other.settimeout(100)
        answering = threading.Thread(
            target=lambda: [other.accept()[0].close() for _ in range(2)], daemon=True
        )
        answering.start()
        added = desk.cli("peers", "add", address)
    assert added.stdout.splitlines()[0] == f"! {address} is written down; what answers there is no rappd"
    nobody = desk.cli("peers", "add", address)
    assert "nobody answers there yet" in nobody.stdout


def test_a_typed_address_is_found_listed_and_forgotten(make_machine: Callable[..., Machine]) -> None:
    desk, pi = make_machine("desk"), make_machine("pi")
    added = on_terminal(desk, "peers", "add", pi.address)
    short = pi.fingerprint[:4]
    assert added.lines == [f"✓ pi ({short}) answers at {pi.address}", "  → rappd peers pair pi"]
    assert on_terminal(desk, "peers", "list").lines == [
        "Found, not trusted:", "pi  written down  typed  → rappd peers pair pi",
    ]  # fmt: skip
    [row] = told(desk, "list")["peers"]
    assert set(row) >= ROWS
    assert (row["name"], row["paired"], row["fingerprint"]) == ("pi", False, pi.fingerprint)
    away = desk.cli("peers", "add", f"127.0.0.1:{free_port()}")
    assert away.returncode == 0
    assert "nobody answers there yet" in away.stdout
    plain = desk.cli("peers", "add", "http://127.0.0.1:9")
    assert "plain http" in plain.stdout
    assert "http://127.0.0.1:9" in desk.cli("peers", "list").stdout
    for row in told(desk, "list")["peers"]:
        assert desk.cli("peers", "forget", row["address"]).returncode == 0
    assert told(desk, "list")["peers"] == []
    assert error(desk, "forget", pi.address, exits=4)["code"] == "no_peer"
    assert error(desk, "forget", "no address", exits=4)["code"] == "no_peer"
    assert error(desk, "add", "two words", exits=2)["code"] == "bad_address"


def test_two_of_one_name_are_told_apart_and_either_can_be_meant(
    make_machine: Callable[..., Machine],
) -> None:
    desk = make_machine("desk")
    twins = [make_machine("raspberrypi", folder) for folder in ("one", "two")]
    for one in twins:
        assert desk.cli("peers", "add", one.address).returncode == 0
    handles = {f"raspberrypi_{one.fingerprint[:4]}" for one in twins}
    lines = on_terminal(desk, "peers", "list").lines
    assert {line.split()[0] for line in lines[1:]} == handles
    assert {line.rpartition("pair ")[2] for line in lines[1:]} == handles
    for one in twins:
        handle = f"raspberrypi_{one.fingerprint[:4]}"
        done = desk.cli("peers", "pair", handle, "--fingerprint", one.fingerprint)
        assert done.returncode == 0, done.stderr
    assert len(desk.trusted()) == 2


def test_machines_nearby_are_found_by_themselves(make_machine: Callable[..., Machine]) -> None:
    desk = make_machine("desk", RAPPD_NEARBY="on")
    pi = make_machine("larder", RAPPD_NEARBY="on")
    # Others may announce themselves on this loopback meanwhile: only pi's lines are looked at.
    desk.wait_for(lambda: pi.fingerprint in str(desk.peers()["peers"]), what="the other to be found")
    seen = on_terminal(desk, "peers", "list").lines
    assert seen[0] == "Found, not trusted:"
    row = f"larder {pi.fingerprint[:4]} nearby → rappd peers pair larder"  # on two lines beside a long name
    assert row in " ".join(" ".join(seen).split())
    narrow = on_terminal(desk, "peers", "list", columns=36).lines
    at = next(number for number, line in enumerate(narrow) if pi.fingerprint[:4] in line)
    assert narrow[at + 1] == "  → rappd peers pair larder"
    rows = {row["about"]: row for row in json.loads(desk.cli("doctor", "--json").stdout)["doctor"]}
    assert re.match(r"announced on lo; \d+ machines? seen", rows["Nearby"]["what"])


def test_shell_unsafe_name_is_never_in_a_command(
    make_machine: Callable[..., Machine],
) -> None:
    desk, odd = make_machine("desk"), make_machine("a; rm x", "odd")
    desk.cli("peers", "add", odd.address)
    [line] = [line for line in desk.cli("peers", "list").stdout.splitlines() if "pair" in line]
    assert line.endswith(f"peers pair {odd.fingerprint[:8]}") or re.search(r"peers pair [\w.-]+$", line)


# Paired ones.


def test_the_list_has_the_columns_of_the_design(both: Both) -> None:
    desk = both[0]
    header, row = on_terminal(desk, "peers", "list").lines
    assert header.split("  ") == ["PEER", "PRESENCE", *header.split("  ")[2:]]
    assert header.split() == ["PEER", "PRESENCE", "REACHED", "BY", "AGENTS", "WAITING"]
    assert re.fullmatch(r"pi    here, \d+ ms +last address  \d+ +0", row), row
    for columns in (60, 40, 24):
        lines = on_terminal(desk, "peers", "list", columns=columns).lines
        assert len(lines) == 2
        assert all(cells(line) <= columns for line in lines), lines
    [row] = told(desk, "list")["peers"]
    assert set(row) >= PAIRED
    assert (row["presence"], row["paired"], row["whose"]) == ("here", True, "mine")


def test_show_tells_all_of_one_by_its_name_or_key(both: Both) -> None:
    desk, pi = both
    seen = on_terminal(desk, "peers", "show", "pi")
    assert re.match(r"pi  mine, here, \d+ ms\n\n  Key       [0-9a-f]{64}\n", seen.text)
    assert f"  Address   {pi.address}, last address" in seen.lines
    assert "  May here  use everything approved" in seen.lines
    assert re.search(r"  Agents    .*Clock", seen.text)
    assert told(desk, "show", pi.fingerprint[:6])["peer"]["name"] == "pi"
    assert error(desk, "show", "pie", exits=4) == {
        "error": 'No peer "pie".', "do": "did you mean pi?", "code": "no_peer",
    }  # fmt: skip


def test_a_note_is_kept_shown_and_forgotten(both: Both) -> None:
    desk, _ = both
    kept = desk.cli("peers", "note", "pi", "in", "the\nshed")
    assert kept.stdout == "✓ Kept about pi: in the shed\n"
    assert "Note      in the shed" in desk.cli("peers", "show", "pi").stdout
    assert error(desk, "note", "pi", "x" * 201, exits=2)["error"] == "The note has 201 characters, 200 fit."
    assert told(desk, "show", "pi")["peer"]["note"] == "in the shed"
    assert desk.cli("peers", "note", "pi").stdout == "✓ The note is gone.\n"
    assert told(desk, "show", "pi")["peer"]["note"] == ""


def test_rename_is_only_what_it_is_called_here(both: Both) -> None:
    desk = both[0]
    assert desk.cli("peers", "rename", "pi", "Kitchen").stdout == "✓ It is kitchen here now.\n"
    assert desk.trusted() == {"kitchen"}
    assert "  Called    pi, by itself" in on_terminal(desk, "peers", "show", "kitchen").lines
    assert error(desk, "rename", "kitchen", "no name", exits=9)["code"] == "peer_conflict"
    told(desk, "rename", "kitchen", "pi")


def test_what_a_peer_calls_itself_is_shown_beside_its_name_here(make_machine: Callable[..., Machine]) -> None:
    desk, pi = make_machine("desk"), make_machine("pi")
    acquaint(desk, pi)
    pi.stop()
    pi.environment["RAPPD_NAME"] = "garage"
    pi.start()
    desk.wait_for(lambda: desk.row("pi")["called"] == "garage", what="pi to say its new name")
    assert desk.trusted() == {"pi"}
    assert "  Called    garage, by itself" in on_terminal(desk, "peers", "show", "pi").lines


def test_scopes_are_changed_at_once(both: Both) -> None:
    desk, pi = both
    assert re.match(r"desk may use everything approved\.\n", pi.cli("peers", "scopes", "desk").stdout)
    set_to = told(pi, "scopes", "desk", "HELP.brainstem.HackerNews")["peer"]["scopes"]
    assert set_to == ["HELP.brainstem.HackerNews"]
    refused = desk.cli("call", "pi:Clock").returncode  # 4 once desk has heard that it is not shared any more
    assert refused in (4, 5), "from the next request on"
    added = told(pi, "scopes", "desk", "HELP.brainstem.Clock", "--add")["peer"]["scopes"]
    assert added == ["HELP.brainstem.HackerNews", "HELP.brainstem.Clock"]
    assert desk.cli("call", "pi:Clock").stdout == "noon\n"
    left = told(pi, "scopes", "desk", "HELP.brainstem.HackerNews", "--remove")["peer"]["scopes"]
    assert left == ["HELP.brainstem.Clock"]
    assert told(pi, "scopes", "desk", "friend")["peer"]["scopes"] == ["EGG"]
    assert error(pi, "scopes", "desk", "HELP.x.*", "--remove", exits=2)["code"] == "mistyped"
    assert error(pi, "scopes", "desk", "--add", exits=2)["code"] == "mistyped"
    assert error(pi, "scopes", "desk", "do whatever", exits=2)["error"] == '"do whatever" is no capability.'
    assert told(pi, "scopes", "desk")["peer"]["scopes"] == ["EGG"]
    assert pi.cli("peers", "scopes", "desk", "mine").stdout == "✓ desk may use everything approved.\n  *\n"
    pi.wait_for(lambda: desk.cli("call", "pi:Clock").returncode == 0, what="the trust to be whole again")


def test_snapshots_for_a_friend_say_when_they_count(make_machine: Callable[..., Machine]) -> None:
    desk, pi = make_machine("desk"), make_machine("pi")
    desk.trusts(pi, "friend")
    given = desk.cli("peers", "scopes", "pi", "SNAPSHOT", "--add")
    words = " ".join((given.stdout + given.stderr).split())
    assert "a friend's only where it is named" in words
    assert "rappd neighborhood snapshot --only NAME" in words
    taken = desk.cli("peers", "scopes", "pi", "SNAPSHOT", "--remove")
    assert "friend's" not in taken.stdout + taken.stderr


def test_offer_on_and_off(both: Both) -> None:
    desk = both[0]
    done = desk.cli("peers", "offer", "pi", "on")
    assert done.stdout == "✓ The brainstem here may use pi's agents.\n"
    assert told(desk, "show", "pi")["peer"]["offered"] is True
    assert told(desk, "offer", "pi", "off")["peer"]["offered"] is False
    assert error(desk, "offer", "pi", "perhaps", exits=2)["code"] == "mistyped"


def test_with_the_daemon_down_the_record_is_read(both: Both, tmp_path: Path) -> None:
    desk = both[0]
    desk.stop()
    try:
        _, row, do = on_terminal(desk, "peers", "list").lines
        assert re.fullmatch(r"pi    not known, rappd isn't running  last address +0", row), row
        assert do == "  → rappd start"
        narrow = on_terminal(desk, "peers", "list", columns=40).lines
        assert re.fullmatch(r"pi    not known  last address", narrow[1]), narrow
        shown = on_terminal(desk, "peers", "show", "pi").lines
        assert shown[0] == "pi  mine, not known, rappd isn't running"
        [there] = told(desk, "list")["peers"]
        assert set(there) >= PAIRED
        assert there["presence"] == "not known"
        assert told(desk, "show", "pi")["peer"]["fingerprint"] == there["fingerprint"]
        assert error(desk, "show", "pie", exits=4)["do"] == "did you mean pi?"
        for verb in (("rename", "pi", "x"), ("revoke", "pi", "--yes"), ("offer", "pi", "on"), ("add", "h")):
            assert error(desk, *verb, exits=3)["code"] == "not_running"
    finally:
        desk.start()
        desk.wait_for(lambda: desk.peers()["peers"][0]["presence"] == "here", what="pi to be here")


def test_other_screens_count_the_peers(both: Both) -> None:
    desk = both[0]
    port = desk.peers()["listener"]["port"]
    assert f"  Machines  not announced, :{port}, 1 peer" in on_terminal(desk, "status").lines
    rows = {row["about"]: row["what"] for row in json.loads(desk.cli("doctor", "--json").stdout)["doctor"]}
    assert rows["Listener"] == f"open on port {port}; strangers may only say hello"
    assert rows["Peers"] == "1 paired, 1 here"
    desk.stop()
    started = on_terminal(desk, "start", "--detach", columns=120)
    assert re.search(r"  fake model  \d+ agents  1 peer$", started.lines[0]), started.lines
    assert desk.cli("stop").returncode == 0
    desk.start()
    desk.wait_for(lambda: desk.peers()["peers"][0]["presence"] == "here", what="pi to be here")


def test_a_taken_port_is_a_note_of_the_doctor(make_machine: Callable[..., Machine]) -> None:
    pi = make_machine("pi")
    port = pi.address.rpartition(":")[2]
    desk = make_machine("desk", RAPPD_PEERS_PORT=port)
    rows = {row["about"]: row for row in json.loads(desk.cli("doctor", "--json").stdout)["doctor"]}
    assert rows["Listener"]["verdict"] == "note"
    assert rows["Listener"]["what"].endswith(f"{port} was taken")
    desk.stop()
    rows = {row["about"]: row for row in json.loads(desk.cli("doctor", "--json").stdout)["doctor"]}
    assert rows["Listener"]["what"].startswith(f"port {port} for other machines is held by ")


# The end of trust.


def test_revoke_asks_and_ends_the_trust_at_once(make_machine: Callable[..., Machine]) -> None:
    desk, pi = make_machine("desk"), make_machine("pi")
    acquaint(desk, pi)
    assert error(desk, "revoke", "pi", exits=6) == {
        "error": "The trust in pi would end; nothing was done.", "do": "Add --yes.", "code": "needs_yes",
    }  # fmt: skip
    asked = Terminal(desk, "peers", "revoke", "pi")
    asked.read_until(lambda seen: "[y/N]" in seen.text)
    asked.type("\n")
    assert asked.to_end().code == 6
    assert desk.trusted() == {"pi"}
    done = desk.cli("peers", "revoke", "pi", "--yes")
    assert (done.returncode, done.stdout.startswith("✓ pi is not trusted any more.")) == (0, True)
    assert desk.trusted() == set()
    refused = pi.cli("call", "desk", "hello", "--json")
    assert refused.returncode == 5
    assert "does not trust this machine any more" in json.loads(refused.stderr)["error"]
    pi.wait_for(lambda: pi.peers()["peers"][0]["trouble"], what="pi to notice")
    lines = on_terminal(pi, "peers", "list").lines
    assert "✗ desk does not trust this machine any more" in lines
    assert "  → pair anew: rappd peers pair desk" in lines
    rows = {row["about"]: row for row in json.loads(pi.cli("doctor", "--json").stdout)["doctor"]}
    assert (rows["Peers"]["verdict"], rows["Peers"]["do"]) == ("bad", "pair anew: rappd peers pair desk")


@pytest.mark.own_process
def test_a_changed_key_is_told_wherever_the_peer_is(make_machine: Callable[..., Machine]) -> None:
    desk, pi = make_machine("desk"), make_machine("pi")
    acquaint(desk, pi)
    pi.stop()
    for path in (pi.home / "keys").iterdir():
        path.unlink()
    pi.start()
    desk.wait_for(lambda: desk.peers()["peers"][0]["trouble"], what="desk to notice")
    lines = on_terminal(desk, "peers", "list").lines
    assert "✗ pi's key has changed; nothing was sent" in lines
    assert any("rappd peers revoke pi" in line for line in lines)
    rows = {row["about"]: row for row in json.loads(desk.cli("doctor", "--json").stdout)["doctor"]}
    assert rows["Peers"]["verdict"] == "bad"
    refused = desk.cli("call", "pi", "hello", "--json")
    assert refused.returncode == 5
    assert json.loads(refused.stderr)["code"] == "key_changed"
