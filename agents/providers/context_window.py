"""Messages that fit into a model's context: what is left out when a conversation has grown too long for it."""

from __future__ import annotations

import msgspec

from agents.providers.chat_request import encoded
from agents.providers.provider import Message


class Fitted(msgspec.Struct, frozen=True):
    """Messages that were kept for a context, and the number of those left out."""

    messages: list[Message]
    left_out: int = 0


def fit(messages: list[Message], most: int) -> Fitted:
    """The newest messages whose JSON has at most ``most`` bytes.

    The oldest turns go first, then the oldest calls of this turn, each call together with its results. The question
    and the last calls always stay.
    """
    units, question = _units(messages)
    last = len(units) - 1
    kept = {question, last} if units else set()
    room = most - sum(size(units[at]) for at in kept)
    # Calls of this turn before earlier turns, each from the newest on.
    for at in [*range(last - 1, question, -1), *range(question - 1, -1, -1)]:
        room -= size(units[at])
        if room < 0:
            break
        kept.add(at)
    messages_kept = [message for at, unit in enumerate(units) if at in kept for message in unit]
    return Fitted(messages_kept, len(messages) - len(messages_kept))


def size(value: object) -> int:
    """Bytes of a value as JSON."""
    return len(encoded(value))


def _units(messages: list[Message]) -> tuple[list[list[Message]], int]:
    """Messages that belong together, and which of these units is the question: a past turn, a round of calls."""
    question_at = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=0)
    units: list[list[Message]] = []
    for message in messages[:question_at]:
        if message.get("role") == "user" or not units:
            units.append([])
        units[-1].append(message)
    question = len(units)
    for at, message in enumerate(messages[question_at:]):
        if at == 0 or message.get("role") != "tool":
            units.append([])
        units[-1].append(message)
    return units, question
