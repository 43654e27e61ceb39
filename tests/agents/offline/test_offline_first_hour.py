"""A newcomer's sentences without a model: sums and days, things to remember, and what is offered first."""

from __future__ import annotations

from typing import Any

import pytest

from agents.library.context_memory_agent import ContextMemoryAgent
from agents.library.fleet_agent import FleetAgent
from agents.library.manage_memory_agent import ManageMemoryAgent
from agents.library.neighborhood_snapshot_agent import NeighborhoodSnapshotAgent
from agents.library.quick_answers_agent import QuickAnswersAgent
from agents.library.swarm_factory_agent import SwarmFactoryAgent
from agents.library.twin_agent import TwinAgent
from agents.providers.offline.responses import connecting, listing, nothing_fits
from agents.providers.offline.route import route
from agents.providers.offline_provider import OfflineBrain
from agents.providers.provider import ModelRequest


def _tool(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": metadata}


SHIPPED = [
    _tool(agent().metadata)
    for agent in (
        ContextMemoryAgent, FleetAgent, ManageMemoryAgent, NeighborhoodSnapshotAgent, QuickAnswersAgent,
        SwarmFactoryAgent, TwinAgent,
    )
]  # fmt: skip
CLOCK = _tool({"name": "Clock", "description": "Tells what time it is.", "parameters": {"type": "object"}})
NOTES = _tool(
    {
        "name": "Notes",
        "description": "Keeps notes.",
        "parameters": {
            "type": "object",
            "properties": {"note": {"type": "string", "description": "The text of the note."}},
            "required": ["note"],
        },
    }
)


@pytest.mark.parametrize(
    "text", ["what time is it", "what day is it in 10 days", "17% of 80", "12*(3+4)", "5 miles in km", "70 F in C",
     "what's the time in Twin Falls"],
)  # fmt: skip
def test_quick_question_goes_whole_to_the_shipped_agent(text: str) -> None:
    decision = route(text, SHIPPED)
    assert (decision.name, decision.arguments, decision.ready) == ("QuickAnswers", {"question": text}, True)


@pytest.mark.parametrize(
    "text", ["convert 50 USD to EUR", "what time does the train leave?", "write me a poem"]
)
def test_other_questions_do_not(text: str) -> None:
    assert route(text, SHIPPED).name == ""


def test_agent_of_the_owner_comes_before_a_shipped_one() -> None:
    assert route("what time is it?", [*SHIPPED, CLOCK]).name == "Clock"
    assert route("note: buy stamps", [*SHIPPED, NOTES]).name == "Notes"


@pytest.mark.parametrize(
    "text",
    ["remember that {}", "please remember: {}", "Remember, that {}", "remember this: {}", "can you remember that {}?",
     "could you please remember that {}", "you should remember that {}", "I want you to remember that {}",
     "don't forget that {}", "Don’t forget: {}", "never forget that {}", "memorize that {}",
     "note that {}", "please note: {}", "keep in mind that {}", "make a note that {}", "for the record, {}"],
)  # fmt: skip
@pytest.mark.parametrize("fact", ["the boiler is serviced in May", "I must learn what the task needs"])
def test_what_one_asks_to_remember_is_a_fact(text: str, fact: str) -> None:
    decision = route(text.format(fact), SHIPPED)
    assert (decision.name, decision.arguments) == ("ManageMemory", {"memory_type": "fact", "content": fact})


def test_newcomer_is_offered_what_is_of_use_first() -> None:
    lines = listing(SHIPPED).splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("- ")] == [
        "- QuickAnswers", "- ManageMemory", "- ContextMemory", "- Twin", "- NeighborhoodSnapshot", "- Fleet",
        "- SwarmFactory",
    ]  # fmt: skip
    assert lines[-2] == "Try: what day is it in 10 days?; 17% of 80; remember that my car is red"
    assert lines[-1] == "For open questions connect a model: rappd models connect"


async def test_last_line_names_the_step_that_is_left() -> None:
    async def said(**extra: str) -> str:
        async def prompt() -> str:
            return ""

        messages = [{"role": "user", "content": "write me a poem"}]
        return (await OfflineBrain().complete(ModelRequest(messages, SHIPPED, prompt, extra=extra))).text

    assert (await said()).endswith("connect a model: rappd models connect")
    assert (await said(connect="rappd models use local")).endswith("connect a model: rappd models use local")
    assert "connect a model" not in await said(connect="")
    assert connecting("an answer", "x") == "an answer"
    assert nothing_fits(SHIPPED).endswith("rappd models connect")
