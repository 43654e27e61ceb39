"""Tools of the program that asks, offered to the model beside the agents: told apart, and never performed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from agents.brainstem.tool_call_checks import ReadCall
from agents.contract.agent_contract import distinct
from agents.providers.provider import Message, Tool
from envelopes.program_input import NONE, REQUIRED, ProgramInput, call_id, has_rounds, turn_of_call


class ClientTools(msgspec.Struct, frozen=True):
    """``offered`` maps the names that a model sees to the program's own; an agent of that name keeps it.

    ``demanded``: the model has to call one, so that nothing else is offered.
    """

    definitions: list[Tool] = []
    offered: dict[str, str] = {}
    choice: str | dict[str, Any] = "auto"
    demanded: bool = False

    def history(
        self, messages: Iterable[Message], rounds: Mapping[str, Sequence[Message]] = {}
    ) -> list[Message]:
        """The program's messages with the names as the model sees them, and the rounds of agents that it never saw.

        ``rounds``, by the id of their turn, end with the message that has the program's calls.
        """
        renamed = {own: name for name, own in self.offered.items() if own != name}
        found: list[Message] = []
        for message in messages:
            turn = hidden_turn(message)
            if turn in rounds:
                found += rounds[turn]
            else:
                found.append(_renamed(message, renamed) if renamed else message)
        return found


NO_TOOLS = ClientTools()


def beside(agents: Sequence[Tool], program: ProgramInput | None) -> ClientTools:
    """The program's tools beside the definitions of agents; names that clash, and doubles, get a number."""
    if program is None or not program.tools or program.choice == NONE:
        return NO_TOOLS
    used_names = set() if program.demanded else {tool["function"]["name"] for tool in agents}
    definitions, offered = [], {}
    for tool in program.tools:
        own = tool["function"]["name"]
        name = distinct(own, used_names)
        used_names.add(name)
        offered[name] = own
        definitions.append(tool if name == own else {**tool, "function": {**tool["function"], "name": name}})
    choice: str | dict[str, Any] = REQUIRED if program.choice == REQUIRED else "auto"
    if program.choice not in ("", REQUIRED):
        choice = {"type": "function", "function": {"name": program.choice}}
    return ClientTools(definitions, offered, choice, program.demanded)


def handed_out(
    tools: ClientTools, calls: Sequence[ReadCall], turn: str, *, earlier: bool
) -> tuple[list[ReadCall], list[dict[str, Any]]]:
    """A round's calls, those of the program's tools under ids that lead back to the turn; and these as the program gets them.

    ``earlier``: there were rounds before this one that the program does not see.
    """
    own = [not read.problem and read.call.name in tools.offered for read in calls]
    rounds = earlier or not all(own)
    found: list[ReadCall] = []
    given: list[dict[str, Any]] = []
    for read, is_own in zip(calls, own, strict=True):
        if is_own:
            id = call_id(turn, len(given), rounds=rounds)
            read = replace(read, call=replace(read.call, id=id))
            name = tools.offered[read.call.name]
            given.append({"id": id, "name": name, "arguments": read.call.arguments})
        found.append(read)
    return found, given


def hidden_turn(message: Message) -> str:
    """The id of the turn of a message with calls before which agents were performed, "" for any other."""
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls else None
    id = first.get("id") if isinstance(first, dict) else None
    return turn_of_call(id) if has_rounds(id) else ""


def _renamed(message: Message, names: dict[str, str]) -> Message:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return {**message, "tool_calls": [_renamed_call(call, names) for call in calls]}
    if message.get("role") == "tool" and message.get("name") in names:
        return {**message, "name": names[message["name"]]}
    return message


def _renamed_call(call: Any, names: dict[str, str]) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or function.get("name") not in names:
        return call
    return {**call, "function": {**function, "name": names[function["name"]]}}
