"""``rappd peers pair`` between two real machines: words, fingerprints, codes, and every way it can end."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.machines import Machine
from fixtures.running_daemon import agent_source
from fixtures.terminal import Seen, Terminal

from rappd.features.eggs.signer_view import signed_by

Both = tuple[Machine, Machine]

ASKS = """\
On pi type: rappd peers pair desk

  {words}

Do the words on pi match? [y/N] y
Is pi [m]ine (may use all approved agents) or a [f]riend's (may only send you
eggs)? mine
✓ Paired. Undo: rappd peers revoke pi
  Run code in its eggs without asking: rappd egg signers --trust pi"""
ANSWERS = """\
desk (127.0.0.1) wants to pair.

  {words}

Do the words on desk match? [y/N] y
Is desk [m]ine (may use all approved agents) or a [f]riend's (may only send you
eggs)? friend
✓ Paired. Undo: rappd peers revoke desk"""
DIFFER = "✗ The words differ; nothing was paired\n  → Retry once, then change network"


@pytest.fixture(scope="module")
def _both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("two")
    desk, pi = Machine(folder / "desk", "desk", LLM_FAKE="1"), Machine(folder / "pi", "pi", LLM_FAKE="1")
    desk.start()
    pi.start()
    assert desk.cli("peers", "add", pi.address).returncode == 0
    assert pi.cli("peers", "add", desk.address).returncode == 0
    yield desk, pi
    desk.stop()
    pi.stop()


@pytest.fixture
def both(_both: Both) -> Iterator[Both]:
    """Desk and pi, which know each other's address and trust nobody; afterwards, too."""
    yield _both
    for daemon in _both:
        for name in daemon.trusted():
            daemon.post(f"/peers/{name}/revoke", {}, control=True)
        for one in daemon.peers()["asking"]:
            daemon.request("DELETE", f"/pairings/{one['attempt']}", control=True)


def asked(terminal: Terminal, what: str = "[y/N]") -> Seen:
    seen = terminal.read_until(lambda seen: what in seen.text)
    assert what in seen.text, seen.text
    return seen


def words_of(seen: Seen) -> str:
    found = re.search(r"^  ([a-z]+(?:  [a-z]+){3})$", seen.text, re.MULTILINE)
    assert found, seen.text
    return found[1]


def test_same_command_on_both_sides_pairs(both: Both) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi")
    words = words_of(asked(asks))
    answers = Terminal(pi, "peers", "pair", "desk")
    assert words_of(asked(answers)) == words
    asks.type("y\n")
    asked(asks, "eggs)?")
    asks.type("mine\n")
    asks.read_until(lambda seen: "Waiting for the yes on pi, 1:" in seen.raw)
    assert desk.trusted() == pi.trusted() == set(), "one yes is not enough"
    answers.type("y\n")
    asked(answers, "eggs)?")
    answers.type("friend\n")
    ended, other = answers.to_end(), asks.to_end()
    assert (ended.code, ended.text) == (0, ANSWERS.format(words=words))
    assert (other.code, other.text) == (0, ASKS.format(words=words))
    [row] = [row for row in desk.peers()["peers"] if row["paired"]]
    assert (row["name"], row["whose"], row["scopes"]) == ("pi", "mine", ["*"])
    [row] = [row for row in pi.peers()["peers"] if row["paired"]]
    assert (row["name"], row["whose"], row["scopes"]) == ("desk", "friend", ["EGG"])


def test_on_forty_columns_words_and_commands_are_whole(both: Both) -> None:
    asks = Terminal(both[0], "peers", "pair", "pi", "--friend", columns=40)
    seen = asked(asks)
    assert "On pi type: rappd peers pair desk" in seen.lines
    words_of(seen)
    asks.send(signal.SIGINT)
    asks.to_end()


@pytest.mark.parametrize("said", ["n", "", "no"])
def test_a_no_ends_it_on_both(both: Both, said: str) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi", "--mine")
    asked(asks)
    answers = Terminal(pi, "peers", "pair", "desk", "--mine")
    asked(answers)
    answers.type(f"{said}\n")
    for terminal in (answers, asks):
        ended = terminal.to_end()
        assert ended.code == 5
        assert ended.text.endswith(DIFFER), "an owner who is still being asked learns it, too"
    assert desk.trusted() == pi.trusted() == set()


def test_what_is_no_answer_is_asked_again(both: Both) -> None:
    asks = Terminal(both[0], "peers", "pair", "pi")
    asked(asks)
    asks.type("perhaps\n")
    asks.read_until(lambda seen: seen.text.count("[y/N]") == 2)
    asks.type("y\n")
    asked(asks, "eggs)?")
    asks.type("ours\n")
    asks.read_until(lambda seen: seen.text.count("eggs)?") == 2)
    asks.send(signal.SIGINT)
    assert asks.to_end().code == 130


def test_ctrl_c_stops_it_on_the_daemon_and_on_the_other_side(both: Both) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi")
    asked(asks)
    answers = Terminal(pi, "peers", "pair")
    assert "desk (127.0.0.1) wants to pair." in asked(answers).text, "who alone asks need not be named"
    asks.send(signal.SIGINT)
    ended = asks.to_end()
    assert ended.code == 130
    assert "Stopped; nothing was paired." in ended.lines
    other = answers.to_end()
    assert other.code == 5
    assert "✗ The pairing was stopped; nothing was paired\n  → Start anew on both machines" in other.text
    assert pi.peers()["asking"] == []


def test_ctrl_c_while_waiting_for_the_other_side(both: Both) -> None:
    asks = Terminal(both[0], "peers", "pair", "pi", "--mine")
    asked(asks)
    asks.type("y\n")
    asks.read_until(lambda seen: "Waiting for the yes" in seen.raw)
    asks.send(signal.SIGINT)
    assert asks.to_end().code == 130
    assert "Traceback" not in asks.seen.text
    both[1].wait_for(lambda: both[1].peers()["asking"] == [], what="the other side to hear of it")


@pytest.mark.parametrize(
    "more", [(), ("--yes",), ("--json",), ("--mine", "--yes")], ids=lambda more: " ".join(more) or "nothing"
)
def test_pairing_without_terminal_needs_pin_or_code(both: Both, more: tuple[str, ...]) -> None:
    done = both[0].cli("peers", "pair", "pi", *more)
    assert done.returncode == 5
    assert done.stdout == ""
    assert both[0].cli("peers", "pair", "--code").returncode == 5
    assert both[1].peers()["asking"] == [], "the other machine was not even asked"


def test_yes_never_trusts_on_a_terminal_either(both: Both) -> None:
    seen = Terminal(both[0], "peers", "pair", "pi", "--mine", "--yes").to_end()
    assert (seen.code, seen.lines[0]) == (5, "✗ --yes never trusts a machine")


def test_a_fingerprint_trusts_at_once_on_its_own_side(both: Both) -> None:
    desk, pi = both
    wrong = desk.cli("peers", "pair", "pi", "--fingerprint", desk.fingerprint, "--json")
    assert wrong.returncode == 5
    assert json.loads(wrong.stderr)["code"] == "key_changed"
    assert desk.trusted() == set()
    done = desk.cli("peers", "pair", "pi", "--mine", "--fingerprint", pi.fingerprint.upper())
    assert done.returncode == 0, done.stderr
    first, trust, then = done.stdout.splitlines()
    assert re.fullmatch(r"  Run code in its eggs without asking: \S*rappd egg signers --trust pi", trust)
    assert re.fullmatch(r"✓ Paired\. Undo: \S*rappd peers revoke pi", first)
    assert desk.trusted() == {"pi"}
    assert pi.trusted() == set()
    there = then.partition("rappd ")[2].split()
    assert pi.cli(*there).returncode == 0, "the line that it tells to type there"
    assert pi.trusted() == {"desk"}
    [row] = pi.peers()["peers"]
    assert row["whose"] == "friend", "the smaller trust, when nobody said more"


def shown_code(terminal: Terminal) -> str:
    seen = terminal.read_until(lambda seen: "Ctrl-C stops it" in seen.words)
    found = re.search(r"rappd peers pair desk --code (\d{3}(?:-[a-z]+){3})\n", seen.text)
    assert found, seen.text
    return found[1]


def test_a_code_is_shown_here_and_typed_there(both: Both) -> None:
    desk, pi = both
    shows = Terminal(desk, "peers", "pair", "--code", "--mine")
    done = pi.cli("peers", "pair", "desk", "--code", shown_code(shows), "--json")
    assert done.returncode == 0, done.stderr
    states = [json.loads(line)["pairing"]["state"] for line in done.stdout.splitlines()]
    assert states[-1] == "paired"
    assert len(states) == len(set(states)), "each state once"
    ended = shows.to_end()
    assert (ended.code, ended.lines[-2]) == (0, "✓ Paired. Undo: rappd peers revoke pi")
    assert (desk.trusted(), pi.trusted()) == ({"pi"}, {"desk"})


def test_interrupted_code_is_said_to_be_void(both: Both) -> None:
    desk, pi = both
    shows = Terminal(desk, "peers", "pair", "--code", "--mine")
    code = shown_code(shows)
    shows.send(signal.SIGINT)
    ended = shows.to_end()
    assert ended.code == 130
    assert "The code is void; nothing was paired." in ended.lines
    assert pi.cli("peers", "pair", "desk", "--code", code).returncode == 5


def test_right_code_pairs_after_a_wrong_one(both: Both) -> None:
    desk, pi = both
    shows = Terminal(desk, "peers", "pair", "--code", "--mine")
    code = shown_code(shows)
    other = "111" if code[:3] != "111" else "112"
    done = pi.cli("peers", "pair", "desk", "--code", other + code[3:], "--json")
    assert done.returncode == 5
    error = json.loads(done.stderr)
    assert error["error"] == "The code was wrong; nothing was paired."
    assert error["do"].startswith("Read it again there, and type it again")
    assert desk.trusted() == pi.trusted() == set()
    typed = pi.cli("peers", "pair", "desk", "--code", code)
    assert typed.returncode == 0
    assert "Trying the code that desk shows…" in typed.stderr
    assert "On the other machine type" not in typed.stderr
    assert shows.to_end().code == 0
    assert (desk.trusted(), pi.trusted()) == ({"pi"}, {"desk"})


def test_as_json_each_change_is_one_object(both: Both) -> None:
    desk, pi = both
    asks = Terminal(desk, "peers", "pair", "pi", "--mine", "--json")
    asked(asks)
    answers = Terminal(pi, "peers", "pair", "desk", "--mine")
    asked(answers)
    answers.type("y\n")
    asks.type("y\n")
    assert answers.to_end().code == 0
    ended = asks.to_end()
    assert ended.code == 0
    objects = [json.loads(line)["pairing"] for line in ended.lines if line.startswith("{")]
    states = [row["state"] for row in objects]
    assert (states[0], states[-1]) in (("words", "paired"), ("asking", "paired"))
    assert "words" in states
    assert all(row["peer"] == "pi" and set(row) >= {"attempt", "words", "seconds_left"} for row in objects)


def test_who_is_asked_for_and_who_is_not_there(both: Both) -> None:
    desk = both[0]
    nobody = Terminal(desk, "peers", "pair", "kitchen").to_end()
    assert nobody.code == 4
    assert nobody.lines[-2:] == [
        '✗ No machine "kitchen" answers', "  → rappd peers list, or rappd peers add ADDRESS",
    ]  # fmt: skip
    closed = Terminal(desk, "peers", "pair", "127.0.0.1:9").to_end()
    assert (closed.code, closed.lines[-2]) == (4, '✗ No machine "127.0.0.1:9" answers')
    itself = Terminal(desk, "peers", "pair", desk.address).to_end()
    assert (itself.code, itself.lines[-2]) == (9, "✗ That is this machine itself")
    assert desk.cli("peers", "pair", "pi", "--code", "1-2", "--fingerprint", "x").returncode == 2


def test_phones_have_another_verb(both: Both) -> None:
    done = both[0].cli("pair", "pi")
    assert done.returncode == 2
    what, do = done.stderr.splitlines()
    assert what == "✗ `rappd pair` is for phones"
    assert re.fullmatch(r"  → For machines: \S*rappd peers pair pi", do)


def test_paired_machine_is_named_as_signer_of_its_eggs(both: Both, tmp_path: Path) -> None:
    desk, pi = both
    made = json.loads(pi.cli("twins", "new", "rose", "--kind", "place", "--json").stdout)["twin"]
    agents = pi.home / "twins" / made["key"] / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    (agents / "pump_agent.py").write_text(agent_source("Pump", 'return "on"'))
    egg = tmp_path / "pi.egg"
    assert pi.cli("egg", "pack", "rose", "-o", str(egg)).returncode == 0
    key = pi.fingerprint

    def told() -> tuple[str, str]:
        """The signer's line of the plan, and of inspect."""
        texts = [desk.cli("egg", verb, str(egg)).stdout for verb in ("plan", "inspect")]
        lines = [re.search(r"[!✓] (signed by .*)", text) for text in texts]
        assert all(lines), texts
        return tuple(line[0] for line in lines if line)  # type: ignore[return-value]

    unknown = f'! signed by key {key[:16]} ("pi"), not paired'
    assert told() == (unknown, unknown)
    refused = desk.cli("egg", "signers", "--trust", "pi")
    assert (refused.returncode, 'No peer "pi"' in refused.stderr) == (4, True)

    desk.trusts(pi, "friend")
    assert told() == ("! signed by pi (a friend's)",) * 2
    desk.owner("POST", "/peers/pi/revoke")
    desk.trusts(pi, "mine")
    assert told() == ("! signed by pi (yours)",) * 2
    hint = r"→ to let all code run that pi signs: \S*rappd egg signers --trust pi"
    assert re.search(hint, desk.cli("egg", "plan", str(egg)).stdout)

    assert desk.cli("egg", "signers", "--trust", "pi").stdout == "✓ pi is trusted.\n"
    assert told() == ("✓ signed by pi (yours)",) * 2
    assert json.loads(desk.cli("egg", "signers", "--json").stdout)["signers"][0]["fingerprint"] == key
    desk.owner("POST", "/peers/pi/revoke")
    assert told() == ("✓ signed by pi",) * 2, "revoking a peer leaves its signature as it was trusted"
    assert desk.cli("egg", "signers", "--revoke", "pi").stdout == "✓ pi is not trusted any more.\n"
    assert told() == (unknown, unknown)


@pytest.mark.parametrize("claimed", ['vm" (yours)', "kitchen"])
def test_claimed_name_stays_inside_quotes(claimed: str) -> None:
    said = signed_by("ab" * 32, name="", whose="", claimed=claimed)
    assert said.startswith("signed by key abababababababab (")
    assert said.count('"') == 2
    assert said.endswith('"), not paired')


def test_fingerprint_of_a_machine_installed_anew_says_revoke_first(both: Both, tmp_path: Path) -> None:
    desk, _ = both

    def refused(selector: str, fingerprint: str) -> None:
        done = desk.cli("peers", "pair", selector, "--mine", "--fingerprint", fingerprint)
        assert done.returncode == 5, (selector, done.stdout)
        assert "rappd peers revoke shed" in done.stderr, (selector, done.stderr)

    former = Machine(tmp_path / "former", "shed", LLM_FAKE="1").start()
    address, port = former.address, former.environment["RAPPD_PEERS_PORT"]
    done = desk.cli("peers", "pair", address, "--mine", "--fingerprint", former.fingerprint)
    assert done.returncode == 0, done.stderr
    former.stop()
    anew = Machine(tmp_path / "anew", "shed", LLM_FAKE="1").start()
    elsewhere = anew.address
    try:
        assert desk.cli("peers", "add", elsewhere).returncode == 0
        refused("shed", anew.fingerprint)  # by its name alone: no peer is known at this address
        anew.stop()
        anew.environment["RAPPD_PEERS_PORT"] = port
        anew.start()
        for selector in ("shed", address):
            refused(selector, anew.fingerprint)
        assert desk.trusted() == {"shed"}
        assert desk.cli("peers", "revoke", "shed", "--yes").returncode == 0
        done = desk.cli("peers", "pair", address, "--mine", "--fingerprint", anew.fingerprint)
        assert done.returncode == 0, done.stderr
    finally:
        desk.cli("peers", "forget", elsewhere)
        anew.stop()
