"""One line per turn, for lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rappd.dispatch.rows import headline
from rappd.store.records import Event
from rappd.transcript.exchanges import exchanges


class Summary(NamedTuple):
    """A turn in short. ``state`` is done, failed or open; ``agents`` were called, in that order."""

    n: int
    at: int
    who: str
    asked: str
    answer: str
    state: str
    seconds: float | None
    agents: tuple[str, ...]


def summaries(events: Iterable[Event]) -> list[Summary]:
    """The turns of a thread, and agent calls outside of any turn, in order; texts as headlines."""
    lines: list[Summary] = []
    for exchange in exchanges(events):
        first = exchange.asked or exchange.answered
        assert first is not None
        calls = (exchange, *exchange.calls)
        lines.append(
            Summary(
                first.event.n,
                first.event.at,
                first.event.sender,
                headline(exchange.asked.text) if exchange.asked else "",
                headline(exchange.answered.text) if exchange.answered else "",
                exchange.state,
                exchange.seconds,
                tuple(call.agent for call in calls if call.agent),
            )
        )
    return lines
