"""Summaries of agents in lists and notices, for screens and pages alike."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agents.contract.agent import Agent, Change, is_structural
from agents.contract.may_run import SHIPPED
from agents.lispy.errors import NO_AGENT
from agents.runtime.registry import AgentRegistry
from agents.runtime.use_log import UseLog
from agents.workers.needs import Needs, in_words, unheld


def listing(
    roster: AgentRegistry, uses: UseLog | None = None, sandbox: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One row per agent, and one per file that yields none: ``rappd agents list --json``.

    ``needs`` is what it declares, None for nothing; ``reach`` the same in words; ``unheld`` why this machine, whose
    ``sandbox`` reports that, cannot hold it to that; ``exceeded`` how many calls were refused something, by ``uses``.
    """
    rows: list[dict[str, Any]] = []
    for state in roster.states():
        failure = state.failures[0] if state.failures else None
        common = {
            "file": state.file.rel,
            "origin": state.origin,
            "quarantined": bool(failure) and not state.able,
            "reason": failure.reason if failure else "",
            "cartridge": bool(
                failure and failure.reason.startswith(NO_AGENT) and not state.agents and not state.held
            ),
            "line": failure.line if failure else None,
            "held": state.held,
            "waits": state.waits,
            "good_since": state.good_since if failure and state.able else None,
            **_reach(state.needs, sandbox or {}),
            "exceeded": 0,
        }
        for agent in state.able:
            row = {**_described(agent), "offered": roster.offers(agent), **common}
            if state.needs != agent.needs:  # the version before serves
                row |= _reach(agent.needs, sandbox or {})
            if uses is not None:
                row["exceeded"] = uses.of(agent).exceeded
            rows.append(row)
        if not state.able:
            rows.append(
                {
                    "name": "",
                    "description": "",
                    "summary": "",
                    "parameters": {},
                    "shadowed_by": "",
                    "structural": False,
                    **common,
                }
            )
    return rows


def _reach(needs: Needs | None, sandbox: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "needs": needs.as_json() if needs is not None else None,
        "reach": in_words(needs),
        "unheld": unheld(needs, sandbox),
    }


def _described(agent: Agent) -> dict[str, Any]:
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
    }


def example_for(agent: Agent) -> str:
    """A sentence that reaches the agent even without a model; "" for one that needs what a new home has not."""
    from agents.providers.offline.responses import suggest
    from agents.providers.offline.route import NOT_AT_ONCE  # after the listener listens

    if agent.origin == SHIPPED and agent.name in NOT_AT_ONCE:
        return ""
    return suggest(agent.tool())


def ready_text(agents: Sequence[str], example: str) -> str:
    """ "Weather is ready.

    Try: will it rain?"
    """
    who = " and ".join(agents) or "Nothing"
    verb = "is" if len(agents) < 2 else "are"
    return f"{who} {verb} ready." + (f" Try: {example}" if example else "")


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
