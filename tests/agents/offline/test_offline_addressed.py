"""Sentences that name another machine go there, whatever agents are here; all others stay."""

from __future__ import annotations

from typing import Any

import pytest

from agents.providers.offline.next_step import decide
from agents.providers.offline.route import Decision, route

TEXT = {"type": "string"}


def tool(name: str, told: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": []}
    return {"type": "function", "function": {"name": name, "description": told, "parameters": parameters}}


def ask_peer(*names: str) -> dict[str, Any]:
    peer = {**TEXT, "description": "The machine's name", "enum": list(names)}
    told = "Asks another machine of the person, called a peer, to do or answer something, or lists machines."
    action = {**TEXT, "enum": ["ask", "list"]}
    return tool("AskPeer", told, action=action, peer=peer, text={**TEXT, "description": "What to ask it"})


THERMOMETER = tool("Thermometer", "Tells how warm it is.", place=TEXT)
CLOCK = tool("Clock", 'Tells the time. Use it for "what time is it?".', zone=TEXT)
TOOLS = [THERMOMETER, CLOCK, ask_peer("desk", "pi", "raspberrypi_4f2a", "living-room")]


@pytest.mark.parametrize(
    ("text", "peer", "asked"),
    [
        ("ask desk how warm it is", "desk", "how warm it is"),
        ("Ask Desk, how warm is it?", "desk", "how warm is it?"),
        ("Please ask pi: how warm is it?", "pi", "how warm is it?"),
        ("could you please ask desk to read the thermometer", "desk", "read the thermometer"),
        ("let desk tell how warm it is", "desk", "tell how warm it is"),
        ("let pi's Thermometer look", "pi", "Thermometer look"),
        ("tell pi to read the clock", "pi", "read the clock"),
        ("on desk: how warm is it?", "desk", "how warm is it?"),
        ("on desk, what time is it?", "desk", "what time is it?"),
        ("desk: what time is it?", "desk", "what time is it?"),
        ("@pi: what time is it?", "pi", "what time is it?"),
        ("how warm is it on pi?", "pi", "how warm is it"),
        ("use Thermometer on pi", "pi", "use Thermometer"),
        ("ask desk whether it is warm.", "desk", "it is warm?"),
        ('ask desk "what time is it?"', "desk", "what time is it?"),
        ("ask raspberrypi_4f2a how warm it is", "raspberrypi_4f2a", "how warm it is"),
        ("ask living room how warm it is", "living-room", "how warm it is"),
        ("ask desk what can you do?", "desk", "what can you do?"),
        ("ask pi:\nline one\nline two", "pi", "line one\nline two"),
    ],
)
def test_a_sentence_that_names_a_machine_is_asked_there(text: str, peer: str, asked: str) -> None:
    decision = route(text, TOOLS)
    assert (decision.name, decision.arguments) == ("AskPeer", {"peer": peer, "text": asked})
    assert decision.ready


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("how warm is it?", "Thermometer"),
        ("what time is it?", "Clock"),
        ("let me know how warm it is", "Thermometer"),
        ("ask kitchen how warm it is", "Thermometer"),
        ("use Thermometer: ask desk", "Thermometer"),
        ("how warm is it on the desktop?", "Thermometer"),
        ("don't ask desk how warm it is", ""),
        ("my cat sleeps on desk", ""),
        ("thanks", ""),
        ("hello", ""),
    ],
)
def test_what_names_no_machine_stays_here(text: str, name: str) -> None:
    assert route(text, TOOLS).name == name


def test_local_agent_named_like_the_machine_comes_first() -> None:
    tools = [*TOOLS, tool("Desk", "Tidies the desk.", what=TEXT)]
    assert route("ask Desk how warm it is", tools).name == "Desk"
    assert route("ask desk how warm it is", tools).name == "AskPeer"


def test_without_a_known_machine_nothing_is_different() -> None:
    plain = tool("AskPeer", "Asks another machine.", peer=TEXT, text=TEXT)
    for asker in (plain, ask_peer()):
        assert route("ask desk how warm it is", [THERMOMETER, asker]).name == "Thermometer"
    assert route("ask desk how warm it is", [THERMOMETER]).name == "Thermometer"


def test_bare_name_asks_for_purpose_and_completes() -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": "ask desk"}]
    asked = decide(said, TOOLS, 0)
    assert isinstance(asked, str)
    assert "AskPeer needs" in asked
    said += [{"role": "assistant", "content": asked}, {"role": "user", "content": "how warm is it?"}]
    found = decide(said, TOOLS, 0)
    assert isinstance(found, Decision)
    assert (found.name, found.arguments) == ("AskPeer", {"peer": "desk", "text": "how warm is it?"})


def test_an_endless_text_is_asked_whole() -> None:
    long = "why? " * 20_000
    decision = route(f"ask desk {long}", TOOLS)
    assert decision.arguments["text"] == long.strip()
    assert route("ask desk" + "," * 100_000, TOOLS).name == "AskPeer"
    assert route("," * 100_000 + " on desk", TOOLS).name in ("", "AskPeer")
