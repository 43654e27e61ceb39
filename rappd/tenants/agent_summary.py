"""Summaries of agents in lists and notices, for screens and pages alike."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from agents.contract.agent import Agent, Change, is_structural
from agents.contract.registry import AgentRegistry
from agents.contract.shipped_descriptions import example_of
from agents.runtimes.lispy.errors import NO_AGENT
from agents.runtimes.python.pools.use_log import UseLog
from agents.runtimes.python.sandbox.needs import Needs, in_words, unheld


class _Reach(TypedDict):
    needs: dict[str, list[str]] | None
    reach: list[str]
    unheld: str


class _OfFile(TypedDict):
    file: str
    origin: str
    quarantined: bool
    reason: str
    cartridge: bool
    line: int | None
    held: bool
    waits: bool
    good_since: float | None


_OfAgent = TypedDict(
    "_OfAgent",
    {
        "name": str,
        "description": str,
        "summary": str,
        "parameters": dict[str, Any],
        "tool_name": str,
        "shadowed_by": str,
        "approved": bool,
        "structural": bool,
        "one_worker": bool,
        "listener": dict[str, Any] | None,
        "try": str,
        "offered": bool,
    },
)
_NO_AGENT: _OfAgent = {
    "name": "",
    "description": "",
    "summary": "",
    "parameters": {},
    "tool_name": "",
    "shadowed_by": "",
    "approved": False,
    "structural": False,
    "one_worker": False,
    "listener": None,
    "try": "",
    "offered": False,
}


class AgentRow(_OfAgent, _OfFile, _Reach):
    """An agent, or a file that yields none: its ``name`` is "" then, and ``reason`` says why. See ``listing``."""

    exceeded: int


def listing(
    registry: AgentRegistry, uses: UseLog | None = None, sandbox: Mapping[str, Any] | None = None
) -> list[AgentRow]:
    """One row per agent, and one per file that yields none: ``rappd agents list --json``.

    ``needs`` is what it declares, None for nothing; ``reach`` the same in words; ``unheld`` why this machine, whose
    ``sandbox`` reports that, cannot hold it to that; ``exceeded`` how many calls were refused something, by ``uses``.
    """
    rows: list[AgentRow] = []
    for state in registry.states():
        failure = state.failures[0] if state.failures else None
        common: _OfFile = {
            "file": state.file.rel,
            "origin": state.origin,
            "quarantined": bool(failure) and not state.able,
            "reason": failure.reason if failure else "",
            "cartridge": bool(
                failure
                and failure.reason.startswith(NO_AGENT)
                and not state.agents
                and not state.is_quarantined
            ),
            "line": failure.line if failure else None,
            "held": state.is_quarantined,
            "waits": state.waits,
            "good_since": state.good_since if failure and state.able else None,
        }
        for agent in state.able:  # where the version before serves, its needs count
            reach = _reach(agent.needs, sandbox or {})
            known = uses.of(agent.origin, agent.file.rel, agent.sha256) if uses is not None else None
            exceeded = known.exceeded if known is not None else 0
            shown = _described(agent, offered=registry.offers(agent))
            rows.append({**shown, **common, **reach, "exceeded": exceeded})
        if not state.able:
            nothing = _reach(state.needs, sandbox or {})
            rows.append({**_NO_AGENT, **common, **nothing, "exceeded": 0})
    return rows


def _reach(needs: Needs | None, sandbox: Mapping[str, Any]) -> _Reach:
    return {
        "needs": needs.as_json() if needs is not None else None,
        "reach": in_words(needs),
        "unheld": unheld(needs, sandbox),
    }


def _described(agent: Agent, *, offered: bool) -> _OfAgent:
    return {
        "name": agent.name,
        "description": agent.description,
        "summary": agent.summary,
        "parameters": agent.parameters,
        "tool_name": agent.tool_name,
        "shadowed_by": agent.shadowed_by,
        "approved": agent.trusted,
        "structural": is_structural(agent.name),
        "one_worker": agent.one_worker,
        "listener": msgspec.to_builtins(agent.listener),
        "try": example_for(agent),
        "offered": offered,
    }


def example_for(agent: Agent) -> str:
    """A sentence that reaches the agent even without a model; "" for one that needs what a new home has not."""
    known = example_of(agent)
    if known is None:
        from agents.providers.offline.responses import suggest  # its words and patterns are 2 MB

        known = suggest(agent.tool())
    return known


def ready_text(agents: Sequence[str], example: str) -> str:
    """ "Weather is ready.

    Try: will it rain?"
    """
    who = " and ".join(agents) or "Nothing"
    verb = "is" if len(agents) < 2 else "are"
    return f"{who} {verb} ready." + (f" Try: {example}" if example else "")


def change_text(registry: AgentRegistry, agents: Sequence[str], example: str) -> str:
    """The text of files that serve now, or that the owner's list keeps from it."""
    hidden = [name for name in agents if registry.is_hidden(name)]
    if not hidden:
        return ready_text(agents, example)
    verb = "is" if len(hidden) < 2 else "are"
    do = f"rappd organism add listener {hidden[0]}"
    return f"{' and '.join(hidden)} {verb} not in organism.yaml, so not offered. Offer it: {do}"


def failure_text(change: Change) -> str:
    """ "weather_agent.py line 12: expected ':'.

    The 13:40 version works on." Of a file that waits: "weather_agent.py waits for your approval."
    """
    assert change.failure is not None
    if change.kind == "waits":
        return f"{change.file} waits for your approval. {change.failure.reason}"
    line = f" line {change.failure.line}" if change.failure.line else ""
    text = f"{change.file}{line}: {change.failure.reason}"
    if change.agents and change.good_since:
        at = time.strftime("%H:%M", time.localtime(change.good_since))
        text = f"{text.rstrip('.')}. The {at} version works on."
    return text
