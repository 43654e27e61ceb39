"""Other machines within a turn: AskPeer, and peers' agents as tools where the owner offers them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

import orjson

from agents.brainstem.nesting import too_deep
from agents.contract import Quarantined, check_metadata, distinct, safe_tool_name
from agents.library.ask_peer_agent import AskPeerAgent
from agents.running import Ran
from envelopes.problem import Problem
from envelopes.record import ACK, DONE, ERROR, PATH, TRACEPARENT, Envelope
from neighborhoods.delivery.errors import Declined
from neighborhoods.errors import PeerAway
from neighborhoods.peer import Peer
from rappd.errors import NotFound
from rappd.gate import Passage
from rappd.machines.machines import Machines
from rappd.operations.calls import CallVerbs, call_data, wire_address

WAIT = 25.0
"""Shorter than what one agent call may take."""
LONGEST_DESCRIPTION = 400
MOST_PARAMETERS = 8_192
MOST_NAMED = 50

_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]+")


class Reaching:
    """What a turn here may want of other machines; every call stands on the turn's own thread."""

    def __init__(self, machines: Machines, calls: CallVerbs) -> None:
        self._machines = machines
        self._calls = calls
        self._tool: dict[str, Any] = {}
        self._tool_of = -1

    async def perform(self, passage: Passage, operation: str, arguments: dict[str, Any]) -> Any:
        """``peers.list`` and ``peers.ask``, for the shipped AskPeer."""
        if operation == "peers.list":
            return {"peers": [self._row(peer) for peer in self._machines.book.all()]}
        if operation != "peers.ask":
            raise NotFound(f'There is no operation "{operation[:40]}".')
        text = {key: value for key, value in arguments.items() if isinstance(value, str)}
        peer = self._machines.book.find(text.get("peer", ""))
        given = arguments.get("arguments")
        data = call_data(
            text.get("text", ""), text.get("agent", ""), given if isinstance(given, dict) else {}
        )
        to = wire_address(peer, text.get("twin", ""))
        reply = await self._ask(passage, peer, to, data)
        if reply.verb == ACK:
            return {
                "result": f"{peer.name} works on it; its answer will stand in this conversation's record."
            }
        if reply.verb == ERROR:
            raise Declined(str(reply.data.get("msg", ""))[:500], answered=int(reply.data.get("code", 500)))
        return {"result": reply.data.get("result", reply.data.get("response", reply.data))}

    def guests(self, passage: Passage) -> PeerAgents | None:
        """The agents of peers that the owner offers to the brainstem here; None when there are none."""
        if not len(self._machines.book):
            return None  # most turns of most machines: nothing is built for them
        return PeerAgents(self, passage, self._machines)

    def ask_peer_tool(self) -> dict[str, Any]:
        """AskPeer as a tool that knows the peers' names, so that a model, or none, can tell who is meant."""
        if self._tool_of != self._machines.book.version:
            names = [peer.name for peer in self._machines.book.all()][:MOST_NAMED]
            self._tool_of = self._machines.book.version
            self._tool = _sharpened(names)
        return self._tool

    async def ask_agent(self, passage: Passage, peer: Peer, agent: str, arguments: dict[str, Any]) -> Ran:
        """One call of a peer's agent; what goes wrong is its result."""
        started = time.monotonic()
        to = wire_address(peer, "")
        try:
            reply = await self._ask(passage, peer, to, {"agent": agent, "args": arguments}, keep=False)
        except Problem as problem:
            return Ran(False, str(problem), None, time.monotonic() - started)
        text = (
            reply.data.get("result")
            if reply.verb == DONE
            else reply.data.get("msg", f"{peer.name} is at it.")
        )
        slush = reply.data.get("data_slush")
        return Ran(
            reply.verb == DONE,
            text if isinstance(text, str) else str(text),
            slush if isinstance(slush, dict) and not too_deep(slush) else None,
            time.monotonic() - started,
        )

    async def _ask(
        self, passage: Passage, peer: Peer, to: str, data: dict[str, Any], *, keep: bool = True
    ) -> Envelope:
        m = self._machines
        outer = passage.envelope.extensions
        asked = m.gate.ask(passage, sender=m.id, recipient=to, data=data)
        path = outer.get(PATH)
        try:
            reply = await self._calls.ask(
                peer,
                asked,
                wait=WAIT,
                path=tuple(path) if isinstance(path, list) else (),
                trace=str(outer.get(TRACEPARENT) or ""),
            )
        except PeerAway as problem:
            m.gate.answer(passage, asked, ERROR, {"code": 504, "msg": str(problem), "reason": problem.code})
            if not keep:
                raise
            await self._calls.keep(peer, asked)
            raise PeerAway(
                f"{peer.name} is away; the question waits and goes by itself.", do="rappd outbox list"
            ) from problem
        except Problem as problem:
            told = {"code": problem.status, "msg": str(problem), "reason": problem.code}
            m.gate.answer(passage, asked, ERROR, told)
            raise
        m.gate.answer(passage, asked, reply.verb, reply.data)
        return reply

    def _row(self, peer: Peer) -> dict[str, Any]:
        m = self._machines
        said = m.announced.get(peer.fingerprint, {}).get("capabilities", [])
        return {
            "name": peer.name,
            "presence": m.presence.presence(peer.fingerprint).state,
            "agents": [tame(str(name), 64) for name in said[:100]],
        }


class PeerAgents:
    """Tools of one turn: ``Clock_on_pi`` for pi's Clock. See ``agents.brainstem.turn.Guests``."""

    def __init__(self, reaching: Reaching, passage: Passage, machines: Machines) -> None:
        self._reaching = reaching
        self._passage = passage
        self._tools: dict[str, tuple[Peer, dict[str, Any], str]] = {}
        for peer, row in _offered(machines):
            name = distinct(safe_tool_name(f"{row['name']}_on_{peer.name}"), self._tools)
            self._tools[name] = (peer, row, row["name"])

    def tools(self) -> list[dict[str, Any]]:
        """Tool definitions as peers announced them, tamed; and AskPeer's, which now names the peers."""
        return [
            self._reaching.ask_peer_tool(),
            *self._announced(),
        ]

    def _announced(self) -> list[dict[str, Any]]:
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": f"On the machine {peer.name}: {row['description']}",
                    "parameters": row["parameters"],
                },
            }
            for name, (peer, row, _) in self._tools.items()
        ]

    def holds(self, tool_name: str) -> bool:
        """Whether that is one of them."""
        return tool_name in self._tools

    async def call(self, tool_name: str, arguments: dict[str, Any]) -> Ran:
        """Asks the peer."""
        peer, _, agent = self._tools[tool_name]
        return await self._reaching.ask_agent(self._passage, peer, agent, arguments)


def _sharpened(names: list[str]) -> dict[str, Any]:
    tool = AskPeerAgent()
    parameters = tool.metadata["parameters"]
    peer = {**parameters["properties"]["peer"], "enum": names}
    properties = {**parameters["properties"], "peer": peer}
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": f"{tool.metadata['description']} Peers: {', '.join(names)}.",
            "parameters": {**parameters, "properties": properties},
        },
    }


def _offered(machines: Machines) -> Iterable[tuple[Peer, dict[str, Any]]]:
    """Agents of offered peers that are here. What a peer says of them is a stranger's text: it is checked."""
    for peer in machines.book.all():
        if not peer.offered or machines.presence.presence(peer.fingerprint).state != "here":
            continue
        rows = machines.announced.get(peer.fingerprint, {}).get("agents", [])
        for row in rows[:100] if isinstance(rows, list) else ():
            if (proper := _proper(row)) is not None:
                yield peer, proper


def _proper(row: object) -> dict[str, Any] | None:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not row["name"]:
        return None
    name = tame(row["name"], 64)
    try:
        parameters = check_metadata(name, {"parameters": row.get("parameters")})
    except Quarantined:
        return None
    if too_deep(parameters) or len(orjson.dumps(parameters)) > MOST_PARAMETERS:
        return None
    description = tame(str(row.get("description", "")), LONGEST_DESCRIPTION)
    return {"name": row["name"], "description": description, "parameters": parameters}


def tame(text: str, most: int) -> str:
    """A stranger's text without what steers screens, and not too long."""
    return _STEERING.sub(" ", text)[:most]
