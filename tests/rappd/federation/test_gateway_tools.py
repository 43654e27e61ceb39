"""Tools of gateways: one machine, all of them, or the fastest; each answer is that machine's."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from envelopes.envelope import DONE, ERROR, HELP, Envelope, brainstem_id, new_id
from neighborhoods.errors import KeyChangedError, PeerOfflineError
from neighborhoods.peer import Peer
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.federation.gateway_tools import GatewayTools
from rappd.organism.organism import RemoteTool

LAB, SHED, ATTIC = (Peer(one * 64, name, "mine", b"", b"", "", (), 0) for one, name in zip("abc", ("lab", "shed", "attic"), strict=True))  # fmt: skip
BY_NAME = {one.name: one for one in (LAB, SHED, ATTIC)}
OWNER = Caller("control", operator=True)


def _greeting(fingerprint: str) -> Any:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    told = f"Searches {fingerprint[:2]}."
    return SimpleNamespace(agents=[{"name": "search", "description": told, "parameters": schema}])


class Network:
    """Machines that answer as ``says`` tells: a text, an error, or seconds to wait before a text."""

    def __init__(self, **says: Any) -> None:
        self.says, self.asked, self.cancelled = says, [], []  # type: ignore[var-annotated]
        greetings: Any = SimpleNamespace(of=_greeting)
        peers: Any = SimpleNamespace(get={one.fingerprint: one for one in BY_NAME.values()}.get)
        tools: Any = SimpleNamespace(ask_recorded=self._ask)
        gateways: Any = SimpleNamespace(
            names=lambda: list(self.says),
            fingerprint=lambda name: BY_NAME[name].fingerprint if name in self.says else None,
            peer=self._peer,
        )
        self.tools = GatewayTools(peers, greetings, tools, gateways)

    async def ask(self, tool: RemoteTool, caller: Caller = OWNER) -> Any:
        [endpoint] = self.tools.endpoints([tool])
        context = RequestContext(Envelope(new_id(), "me", "brainstem", HELP, {}), caller, "brainstem")
        return await endpoint.handler(context, {"q": "x"}, None, None)

    def _peer(self, name: str) -> Peer:
        raise KeyChangedError(f"The gateway {name} has another key.", do="rappd organism show")

    async def _ask(self, context: Any, peer: Peer, data: dict[str, Any], *, keep: bool) -> Envelope:
        self.asked.append(peer.name)
        assert data == {"agent": "search", "args": {"q": "x"}} and not keep
        said = self.says[peer.name]
        asked = Envelope(new_id(), "me", brainstem_id(peer.fingerprint), HELP, data)
        try:
            if isinstance(said, float):
                await asyncio.sleep(said)
        except asyncio.CancelledError:
            self.cancelled.append(peer.name)
            raise
        if isinstance(said, Exception):
            raise said
        if said == "error":
            return asked.reply(ERROR, {"code": 500, "msg": "it broke"})
        return asked.reply(DONE, {"result": f"found by {peer.name}"})


AWAY = PeerOfflineError("lab is away.")


@pytest.mark.parametrize(
    ("gateways", "says", "answer", "asked"),
    [
        ((), {"lab": "x", "shed": "x"}, "found by lab", ["lab"]),
        (("shed",), {"lab": "x", "shed": "x"}, "found by shed", ["shed"]),
        ((), {"lab": AWAY, "shed": "x"}, "found by shed", ["lab", "shed"]),
        ((), {"lab": AWAY}, "lab is away.", ["lab"]),
        ((), {"lab": "error", "shed": "x"}, "it broke", ["lab"]),
    ],
    ids=["the first", "the one named", "the first that is here", "nobody here", "an error is an answer"],
)
async def test_a_single_machine_is_asked(
    gateways: tuple[str, ...], says: dict[str, Any], answer: str, asked: list[str]
) -> None:
    network = Network(**says)
    ran = await network.ask(RemoteTool(name="search", gateways=gateways))
    assert ran.result == answer and network.asked == asked
    assert ran.ok == answer.startswith("found")


async def test_all_answer_each_under_its_own_id() -> None:
    network = Network(lab="x", shed="error", attic=AWAY)
    ran = await network.ask(RemoteTool(name="search", mode="all"))
    assert ran.ok
    assert json.loads(ran.result) == [
        {"from": f"search_{'a' * 16}", "result": "found by lab"},
        {"from": f"search_{'b' * 16}", "error": "it broke"},
        {"from": f"search_{'c' * 16}", "error": "lab is away."},
    ]


async def test_the_first_answer_wins_and_the_others_are_stopped() -> None:
    network = Network(lab=30.0, shed="error", attic=0.01)
    ran = await network.ask(RemoteTool(name="search", mode="first-answer-wins"))
    assert ran.ok and ran.result == "found by attic" and network.cancelled == ["lab"]


async def test_nobody_else_uses_what_peers_gave_this_machine() -> None:
    friend = Caller("federation", peer="dd", caps=("HELP.*",))
    network = Network(lab="x")
    ran = await network.ask(RemoteTool(name="search"), friend)
    assert not ran.ok and not network.asked


def test_a_tool_is_described_by_the_machine_and_not_offered_without_a_gateway() -> None:
    network = Network(lab="x")
    [one] = network.tools.endpoints([RemoteTool(name="search", gateways=("lab",))])
    assert one.name == "search" and "By lab: Searches aa." in one.description
    assert "q" in one.input["properties"]
    assert network.tools.endpoints([RemoteTool(name="search", gateways=("shed",))]) == []
