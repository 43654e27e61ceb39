"""A daemon at rest has imported what it was asked for, and nothing else: the rest is memory, and time of each start."""

from __future__ import annotations

from pathlib import Path

from fixtures.logged_imports import LoggingImports
from fixtures.running_daemon import agent_source

OURS = ("rappd.", "neighborhoods.", "twins.", "agents.", "envelopes.")
MOST = 542
"""Modules of the project after a start and a turn. A change that adds one raises the number and says why here.

The parts for other machines, each in a module of its own, are nine more than the two that held them all.
"""

UNASKED = (
    "agents.library.",
    "agents.moments.moments",
    "agents.moments.wishes",
    "agents.providers.offline.route",
    "envelopes.codecs.a2a",
    "envelopes.codecs.acp",
    "envelopes.codecs.mcp",
    "envelopes.codecs.ollama",
    "envelopes.codecs.openai",
    "lxml",
    "rappd.features.features",
    "rappd.listeners.program_requests",
    "rappd.listeners.programs",
    "rappd.tether.phones",
)
_OF_OPENAI = ("envelopes.codecs.openai", "rappd.listeners.program_requests", "rappd.listeners.programs")


def _found(imported: set[str], *beginnings: str) -> list[str]:
    return sorted(name for name in imported if name.startswith(beginnings))


def test_what_nobody_asked_for_is_not_imported(tmp_path: Path) -> None:
    daemon = LoggingImports(tmp_path / "desk", LLM_FAKE="1")
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    daemon.start()
    try:
        daemon.chat("hello")
        at_rest = daemon.imported()
        ours = _found(at_rest, *OURS)
        assert len(ours) <= MOST, "\n".join(ours)
        assert _found(at_rest, *UNASKED) == []

        assert daemon.get("/v1/models").status == 200
        asked = daemon.imported() - at_rest
        assert {"rappd.listeners.programs", "envelopes.codecs.openai_chat"} <= asked
        assert _found(asked, *(one for one in UNASKED if one not in _OF_OPENAI)) == []

        rows = daemon.get("/agents", control=True).json()["files"]
        examples = {card["name"]: card["try"] for row in rows for card in row["cards"]}
        assert (examples["ManageMemory"], examples["AskPeer"]) == ("remember that my car is red", "")
    finally:
        daemon.stop()
