"""A thread with those below it: how an answer came to be, as nested steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Literal, NotRequired, TypedDict

import orjson

from envelopes.envelope import NOTE, PARTICIPANT
from rappd.dispatch.envelope_rows import headline
from rappd.store.records import Event, ThreadRow
from rappd.transcript.exchanges import Exchange, Message, exchanges, round_summary
from rappd.transcript.thread_rows import ThreadView, thread_row

MOST_EVENTS = 20_000
"""Of a tree that is shown; an export has all."""
_WIDTH = 120


def in_order(events: Iterable[Event]) -> list[Event]:
    """Events of several threads by their moments, those of each thread in its order.

    (Not by ``seq``: threads that hatched were written one after the other.)
    """
    latest: dict[str, int] = {}
    placed: list[tuple[int, int, Event]] = []
    for one in events:
        latest[one.thread] = max(one.at, latest.get(one.thread, one.at))
        placed.append((latest[one.thread], one.seq, one))
    return [one for _, _, one in sorted(placed, key=itemgetter(0, 1))]


StepRow = TypedDict(
    "StepRow",
    {
        "kind": Literal["turn", "call", "round", "note"],
        "id": str,
        "thread": str,
        "path": list[str],
        "at": int,
        "from": str,
        "to": str,
        "name": str,
        "state": str,
        "seconds": float | None,
        "asked": str,
        "answered": str,
        "plan": NotRequired[list[dict[str, str]]],
        "round": NotRequired[dict[str, Any]],
        "steps": "list[StepRow]",
    },
)
"""A step as ``tree`` describes it; ``round``: the numbers of a model's round."""


class ThreadTree(TypedDict):
    """A thread, those below it, and their steps inside one another."""

    thread: ThreadView
    threads: list[ThreadView]
    steps: list[StepRow]


def tree(threads: Sequence[ThreadRow], events: Iterable[Event]) -> ThreadTree:
    """``{"thread", "threads", "steps"}``: the first of ``threads``, all of them, and their steps inside one another.

    A step has its kind (turn, call, round or note), the thread and path that it stands on, the names of who asked and who
    was asked, the steps that it led to, and perhaps the ``plan`` that it made. Rendered paths are for people: a name may have dots.
    """
    paths = {one.id: one.names for one in threads}
    return {
        "thread": thread_row(threads[0]),
        "threads": [thread_row(one) for one in threads],
        "steps": [_step(one, paths) for one in exchanges(in_order(events))],
    }


def _step(exchange: Exchange, paths: dict[str, list[str]]) -> StepRow:
    first = exchange.asked or exchange.answered
    assert first is not None
    asked, answered, event = exchange.asked, exchange.answered, first.event
    kind: Literal["turn", "call", "note"] = (
        "call" if exchange.agent else "note" if event.verb == NOTE else "turn"
    )
    back = asked is None
    step: StepRow = {
        "kind": kind,
        "id": event.id,
        "thread": event.thread,
        "path": [*paths.get(event.thread, [event.thread]), *_players(exchange)],
        "at": event.at,
        "from": event.recipient if back else event.sender,
        "to": event.sender if back else event.recipient,
        "name": exchange.agent,
        "state": exchange.state if kind != "note" else "done",
        "seconds": exchange.seconds,
        "asked": headline(_asked(exchange), _WIDTH),
        "answered": headline(answered.text, _WIDTH) if answered is not None else "",
        "steps": [
            _round(one, paths) if isinstance(one, Message) else _step(one, paths) for one in exchange.steps
        ],
    }
    if plan := exchange.plan:
        step["plan"] = plan
    return step


def _asked(exchange: Exchange) -> str:
    """A question in words: of a call, its arguments as ``name=value``."""
    if exchange.asked is None:
        return ""
    given = exchange.asked.data.get("args")
    if not exchange.agent or not isinstance(given, dict):
        return exchange.asked.text
    return " ".join(
        f"{key}={value if isinstance(value, str) else orjson.dumps(value).decode()}"
        for key, value in given.items()
    )


def _round(message: Message, paths: dict[str, list[str]]) -> StepRow:
    event, data = message.event, message.data
    seconds = data.get("seconds")
    return {
        "kind": "round",
        "id": event.id,
        "thread": event.thread,
        "path": paths.get(event.thread, [event.thread]),
        "at": event.at,
        "from": event.sender,
        "to": event.recipient,
        "name": round_summary(message),
        "state": "done",
        "seconds": seconds if isinstance(seconds, int | float) else None,
        "asked": "",
        "answered": headline(str(data.get("text") or ""), _WIDTH),
        "round": {key: value for key, value in data.items() if key not in ("kind", "text")},
        "steps": [],
    }


def _players(exchange: Exchange) -> list[str]:
    """The names of a workflow's step: who leads, and who was asked."""
    asked = exchange.asked
    if asked is None or "workflow" not in asked.data or not isinstance(asked.data.get("by"), str):
        return []
    played = orjson.loads(asked.event.body).get(PARTICIPANT)
    return [asked.data["by"], played] if isinstance(played, str) else []
