"""The error of agent code that raised: an answer like any other, with its place."""

from __future__ import annotations

from agents.errors import AgentError


class AgentRaisedError(AgentError):
    """Agent code raised an exception.

    ``kind``: its type's name. ``message``: its own text. ``line``: the innermost line in the
    workspace, 0 when unknown. ``trace``: the traceback, for the transcript.
    """

    code = "agent_raised"

    def __init__(self, kind: str, message: str, line: int = 0, trace: str = "") -> None:
        place = f" (line {line})" if line else ""
        super().__init__(f"{kind}: {message}{place}" if message else f"{kind}{place}")
        self.kind = kind
        self.message = message
        self.line = line
        self.trace = trace
