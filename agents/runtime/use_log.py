"""Notes of what agents with declared needs asked for and were refused, since the daemon was started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.contract.agent import Agent, Key
from agents.workers.needs import Use

_MOST = 100
"""Different things that are kept of one file; of further ones the number alone."""

VERBS = {"read": "reading", "write": "changing", "hosts": "talking to", "programs": "starting"}


class FileUses:
    """The uses of one version of a file: how often each thing was given, and refused."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256
        self.exceeded = 0
        self._times: dict[Use, int] = {}

    def note(self, uses: Sequence[Use]) -> None:
        """Takes in the uses of one call."""
        self.exceeded += any(not given for _, _, given in uses)
        for use in uses:
            if use in self._times or len(self._times) < _MOST:
                self._times[use] = self._times.get(use, 0) + 1

    def rows(self) -> list[dict[str, Any]]:
        """``{kind, what, given, times}``, what was refused first."""
        found = sorted(self._times.items(), key=lambda one: (one[0][2], one[0]))
        return [
            {"kind": kind, "what": what, "given": given, "times": times}
            for (kind, what, given), times in found
        ]


class UseLog:
    """The uses of one workspace's files."""

    def __init__(self) -> None:
        self._files: dict[Key, FileUses] = {}

    def of(self, agent: Agent) -> FileUses:
        """The uses of the present version of an agent's file."""
        key = (agent.origin, agent.file.rel)
        found = self._files.get(key)
        if found is None or found.sha256 != agent.sha256:
            found = self._files[key] = FileUses(agent.sha256)
        return found


def refusal(agent: Agent, uses: Sequence[Use]) -> str:
    """The sentence of a call that exceeded its agent's needs; "" for one that did not."""
    refused = [f"{VERBS[kind]} {what}" for kind, what, given in uses if not given]
    if not refused:
        return ""
    return f"{agent.name} was refused what its needs do not name: {', '.join(refused[:5])}. rappd agents needs {agent.name}"
