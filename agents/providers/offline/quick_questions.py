"""Questions about time, days, sums and units, told from all others by the shipped agent's own reading of them."""

from __future__ import annotations

from datetime import datetime

from agents.library import quick_answers_agent

ANSWERING = "QuickAnswers"
"""The agent; ``question`` is its parameter."""


def is_quick_question(text: str) -> bool:
    """True when the shipped agent has an answer, or an explanation why there is none."""
    return quick_answers_agent.answer_to(text, datetime.now().astimezone()) is not None
