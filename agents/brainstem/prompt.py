"""The system text of a turn: soul, what agents add, the roster, and how to fill the slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agents.brainstem.senses import SenseOutput
from agents.brainstem.slots import TWIN, VOICE
from agents.contract.agent import Agent

_VOICE_TEXT = f"""\
## Spoken form
After your full answer write {VOICE} and then one or two short sentences to be read aloud:
plain words, no Markdown, no lists, no links."""

_TWIN_TEXT = f"""\
## Twin
After everything else write {TWIN} and then a short first-person aside of the owner's twin:
what it notices, hints or questions, in a few lines."""


def build(
    soul: str,
    contexts: Iterable[str],
    agents: Sequence[Agent],
    unavailable: Sequence[str],
    *,
    voice: bool,
    twin: bool,
    sensed: SenseOutput,
) -> str:
    """The whole text; parts that are empty leave no trace. Each sense has a paragraph of its own."""
    parts = [soul.strip(), *(context.strip() for context in contexts), _roster(agents, unavailable)]
    if voice:
        parts.append(sensed.prompts.get(VOICE, _VOICE_TEXT))
    if twin:
        parts.append(sensed.prompts.get(TWIN, _TWIN_TEXT))
    parts.extend(slot.prompt for slot in sensed.slots)
    return "\n\n".join(part for part in parts if part)


def _roster(agents: Sequence[Agent], unavailable: Sequence[str]) -> str:
    if not agents and not unavailable:
        return ""
    lines = [f"## Agents loaded now: {len(agents)}"]
    lines += [f"- {agent.tool_name}: {_first_sentence(agent.description)}" for agent in agents]
    if unavailable:
        lines.append(f"Not running, because their files have faults: {', '.join(unavailable)}.")
    return "\n".join(lines)


def _first_sentence(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line.split(". ", 1)[0].rstrip(".")[:200]
