"""AskPeer by itself: what it asks of the daemon, and how it words what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from agents.errors import AgentError

FILE = "ask_peer_agent.py"
NOTHING = {"text": "", "agent": "", "twin": "", "arguments": {}}


class FakeDaemon:
    """Answers ``peers.*`` as a daemon does."""

    def __init__(self, peers: list[dict[str, Any]], result: Any = "18.4 degrees", refusal: str = "") -> None:
        self.peers, self.result, self.refusal = peers, result, refusal
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def answer(self, operation: str, given: dict[str, Any]) -> Any:
        self.asked.append((operation, given))
        if self.refusal:
            raise AgentError(self.refusal)
        return {"peers": self.peers} if operation == "peers.list" else {"result": self.result}


PI = {"name": "pi", "presence": "here", "agents": ["Clock", "Thermometer"]}
SHED = {"name": "shed", "presence": "away", "agents": []}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"peer": " pi ", "text": " how warm? "}, {"peer": "pi", "text": "how warm?"}),
        ({"action": "ask", "peer": "pi", "agent": "Clock"}, {"peer": "pi", "agent": "Clock"}),
        (
            {"peer": "pi", "agent": "Clock", "arguments": {"zone": "Rome"}},
            {"peer": "pi", "agent": "Clock", "arguments": {"zone": "Rome"}},
        ),
        ({"peer": "pi", "twin": "gardener", "text": "hi"}, {"peer": "pi", "twin": "gardener", "text": "hi"}),
        ({"peer": "pi", "text": 5, "arguments": "none", "url": "http://x"}, {"peer": "pi"}),
    ],
)
async def test_request_to_the_daemon_has_no_extra_fields(
    desk: Any, given: dict[str, Any], asked: dict[str, Any]
) -> None:
    desk.keeper = daemon = FakeDaemon([PI])
    assert await desk.text(FILE, "AskPeer", **given) == "18.4 degrees"
    assert daemon.asked == [("peers.ask", {**NOTHING, **asked})]


@pytest.mark.parametrize("given", [{}, {"action": "list"}, {"action": "list", "peer": "pi"}, {"text": "hi"}])
async def test_without_a_peer_it_lists_them(desk: Any, given: dict[str, str]) -> None:
    desk.keeper = FakeDaemon([PI, SHED])
    told = await desk.text(FILE, "AskPeer", **given)
    assert told.splitlines() == ["pi: here; Clock, Thermometer", "shed: away; no agents known"]


async def test_without_any_peer_it_says_how_to_get_one(desk: Any) -> None:
    desk.keeper = FakeDaemon([])
    assert "rappd peers pair" in await desk.text(FILE, "AskPeer", action="list")


async def test_what_is_no_text_comes_back_as_json(desk: Any) -> None:
    desk.keeper = FakeDaemon([PI], result={"degrees": 18.4, "where": "Küche"})
    found = await desk.text(FILE, "AskPeer", peer="pi", agent="Thermometer")
    assert found == '{"degrees": 18.4, "where": "Küche"}'


async def test_refusal_has_the_daemons_text(desk: Any) -> None:
    desk.keeper = FakeDaemon([PI], refusal='No peer "pie" — did you mean `pi`?')
    told = await desk.text(FILE, "AskPeer", peer="pie", text="hi")
    assert told == 'Error: No peer "pie" — did you mean `pi`?'


def test_elsewhere_it_says_where_it_works(elsewhere: Any) -> None:
    told = elsewhere.perform(FILE, "AskPeerAgent", peer="pi", text="hi")
    assert told == "Error: this works inside a brainstem only."
