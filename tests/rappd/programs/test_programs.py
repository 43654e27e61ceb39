"""The record of foreign programs: who connected, what each asked and was refused, in lists, terminal and doctor."""

from __future__ import annotations

from typing import Any

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.programs.conftest import ask, setting, token

CHAT = "/ollama/api/chat"


def say(node: Node, text: str, name: str, *before: tuple[str, str], **headers: str) -> str:
    """A request of a program that calls itself ``name`` and repeats what was said before."""
    said = [{"role": role, "content": content} for role, content in before]
    body = {"model": "brainstem", "messages": [*said, {"role": "user", "content": text}], "stream": False}
    answer = node.daemon.post(CHAT, body, headers={"User-Agent": f"{name}/1.2 (x86)", **headers})
    assert answer.status == 200, answer.body
    found: str = answer.json()["message"]["content"]
    return found


def program(node: Node, name: str) -> dict[str, Any]:
    rows = node.owner("GET", "/programs")[1]["programs"]
    return next(one for one in rows if one["name"] == name or one["by"] == name)


def conversations(node: Node) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.owner("GET", "/programs/conversations")[1]["conversations"]
    return found


def test_who_connected_is_told_with_its_turns_and_its_last_refusal(node: Node) -> None:
    say(node, "hi", "kettle")
    node.daemon.post(CHAT, {"model": "llama3", "messages": []}, headers={"User-Agent": "kettle/1.3"})
    row = program(node, "kettle")
    assert (row["protocol"], row["where"], row["turns"]) == ("ollama", "here", 1)
    assert "llama3" in row["error"]
    assert row["first"] <= row["last"] == row["error_at"]
    listed = node.daemon.cli("programs", "list").stdout
    assert "kettle" in listed
    assert "llama3" in listed
    doctor = node.daemon.cli("doctor").stdout
    assert "kettle over Ollama" in doctor
    assert "llama3" in doctor


def test_a_program_with_a_token_is_called_as_the_owner_called_it(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem", name="attic")
    body = {"model": "brainstem", "messages": [{"role": "user", "content": "hello from the attic"}]}
    assert ask(elsewhere, CHAT, body, issued["text"]).status == 200
    row = program(node, "attic")
    assert (row["where"], row["may"], row["turns"]) == ("elsewhere", ["HELP.brainstem"], 1)
    assert conversations(node)[0]["by"] == "attic"


def test_those_who_are_not_let_in_are_one_row(node: Node, elsewhere: PlainMachine) -> None:
    for name in ("one", "two"):
        assert ask(elsewhere, CHAT, {}, headers={"User-Agent": name}).status == 401
    rows = node.owner("GET", "/programs")[1]["programs"]
    assert [one["error"] != "" for one in rows if one["where"] == "refused"] == [True]


def test_names_are_bounded_and_printable(node: Node) -> None:
    say(node, "hi", "hid\xad\x85den" + "x" * 500)
    assert program(node, f"hidden{'x' * 74}")


def test_a_programs_conversations_stand_apart_and_are_found(node: Node) -> None:
    first = say(node, "tell me of aubergines", "kettle")
    second = say(node, "and zucchini?", "kettle", ("user", "tell me of aubergines"), ("assistant", first))
    say(node, "tell me of aubergines", "kettle", ("user", "other"), ("assistant", "words"))
    mine = [one["title"] for one in node.owner("GET", "/conversations")[1]["conversations"]]
    assert "tell me of aubergines" not in mine
    theirs = [one for one in conversations(node) if one["title"] == "tell me of aubergines"]
    assert [one["program"] for one in theirs] == ["ollama", "ollama"], "one went on, the other is another"
    shown = node.owner("GET", f"/conversations/{theirs[1]['id']}")[1]
    assert [turn["text"] for turn in shown["turns"]] == [first, second]
    found = node.owner("GET", "/conversations/search?words=zucchini")[1]["found"]
    assert found[0]["conversation"]["program"] == "ollama"
    assert any(one.get("program") for one in node.owner("GET", "/search?words=zucchini")[1]["found"])


def test_a_switch_shows_in_the_list(node: Node) -> None:
    setting(node, "programs.a2a", "off")
    setting(node, "programs.mcp_agents", "Clock")
    try:
        told = {one["name"]: one for one in node.owner("GET", "/programs")[1]["protocols"]}
        assert (told["a2a"]["on"], told["mcp"]["on"], told["mcp"]["agents"]) == (False, True, ["Clock"])
        listed = node.daemon.cli("programs", "list").stdout
        assert "Switched off: A2A." in listed
        assert "MCP may use here: Clock." in listed
    finally:
        setting(node, "programs.a2a", "on")
        setting(node, "programs.mcp_agents", "")
