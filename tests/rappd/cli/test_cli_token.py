"""``rappd token``: what lets a program in is made, shown once, listed, used, and ended."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from fixtures.machines import Machine
from fixtures.running_daemon import agent_source
from fixtures.terminal import Terminal, on_terminal


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with one agent of its own, and a listener for programs on other ones."""
    daemon = Machine(tmp_path_factory.mktemp("desk") / "home", "desk", LLM_FAKE="1")
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"'))
    daemon.start()
    yield daemon
    daemon.stop()


def told(daemon: Machine, *arguments: str) -> Any:
    done = daemon.cli("token", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def error(daemon: Machine, *arguments: str, exits: int) -> dict[str, str]:
    done = daemon.cli("token", *arguments, "--json")
    assert done.returncode == exits, done.stdout + done.stderr
    found: dict[str, str] = json.loads(done.stderr)
    return found


def asks(daemon: Machine, text: str, agent: str) -> tuple[int, Any]:
    """The answer of the listener for other machines to a program with that text."""
    body = {
        "id": str(uuid4()), "from": "ci_token", "verb": "HELP",
        "to": f"brainstem_{daemon.fingerprint[:16]}", "data": {"agent": agent, "args": {}},
    }  # fmt: skip
    asking = urllib.request.Request(
        f"https://{daemon.address}/envelopes",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {text}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the program of this test knows where it calls
    try:
        with urllib.request.urlopen(asking, timeout=100, context=context) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def test_token_lets_a_program_call_one_agent(desk: Machine) -> None:
    assert re.fullmatch(
        r"Nothing was issued yet\.\n  → \S*rappd token issue NAME\n", desk.cli("token", "list").stdout
    )
    done = desk.cli("token", "issue", "ci", "--may", "HELP.brainstem.Clock", "--days", "7")
    assert done.returncode == 0, done.stderr
    [text] = done.stdout.splitlines()
    assert re.match(r"✓ ci may HELP\.brainstem\.Clock until \d+ \w{3} \d{4}\.\n", done.stderr)
    status, answer = asks(desk, text, "Clock")
    assert (status, answer["data"].get("result")) == (200, "noon"), answer["data"]
    assert asks(desk, text, "HackerNews")[0] == 403
    [row] = told(desk, "list")["tokens"]
    assert text not in json.dumps(row), "it is shown once"
    assert (row["name"], row["caps"]) == ("ci", ["HELP.brainstem.Clock"])
    header, line = on_terminal(desk, "token", "list").lines
    assert header.split() == ["ID", "NAME", "MAY", "STATE", "LAST", "USED"]
    assert re.match(rf"{row['jti'][:8]}  ci    HELP\.brainstem\.Clock  until \d+ \w+ \d{{4}}  ", line), line
    assert error(desk, "revoke", "ci", exits=6)["code"] == "needs_yes"
    assert asks(desk, text, "Clock")[0] == 200
    asked = Terminal(desk, "token", "revoke", row["jti"][:4])
    asked.read_until(lambda seen: "End the access of ci" in seen.words)
    asked.type("y\n")
    ended = asked.to_end()
    assert (ended.code, ended.lines[-1]) == (0, "✓ token ci is revoked.")
    assert asks(desk, text, "Clock")[0] == 401
    assert "revoked" in on_terminal(desk, "token", "list").lines[1]


def test_several_of_one_name_are_named_by_their_id(desk: Machine) -> None:
    first, second = (told(desk, "issue", "twice")["token"] for _ in range(2))
    assert first["caps"] == second["caps"] == ["HELP.brainstem"]
    assert error(desk, "revoke", "twice", "--yes", exits=2)["code"] == "ambiguous"
    assert told(desk, "revoke", first["jti"], "--yes")
    assert told(desk, "revoke", "twice", "--yes"), "the one that is left"
    assert error(desk, "revoke", "nobody", "--yes", exits=4)["code"] == "not_found"
    assert error(desk, "issue", "odd", "--may", "all of it", exits=2)["do"]
    assert error(desk, "issue", "odd", "--days", "0", exits=2)["code"] == "mistyped"


def test_with_the_daemon_down_the_list_is_read_from_the_record(desk: Machine) -> None:
    told(desk, "issue", "kept", "--may", "HELP.brainstem.*", "--may", "EGG")
    up = told(desk, "list")["tokens"]
    desk.stop()
    try:
        down = told(desk, "list")["tokens"]
        assert [(row["jti"], row["name"], row["caps"]) for row in down] == [
            (row["jti"], row["name"], row["caps"]) for row in up
        ]
        assert all(set(row) >= set(up[0]) for row in down)
        for columns in (80, 40):
            lines = on_terminal(desk, "token", "list", columns=columns).lines
            assert all(len(line) <= columns for line in lines)
        assert error(desk, "issue", "x", exits=3)["code"] == "not_running"
    finally:
        desk.start()
