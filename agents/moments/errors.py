"""The error of words for a time."""

from __future__ import annotations

from agents.errors import AgentError

EXAMPLES = "Say it like “tomorrow at 9”, “in 20 minutes” or “every weekday at 7”."


class NoMomentError(AgentError):
    """Words for a time that there is not, that is over, or that is not understood."""

    code = "no_moment"
    status = 400
    exit_code = 2

    def __init__(self, message: str, *, do: str = EXAMPLES) -> None:
        super().__init__(message, do=do)
