"""Turns of a conversation as rows for pages: the course that is shown, its other versions, and what was said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import orjson

from envelopes.codecs.pictures import Picture, size_of
from envelopes.envelope import HELP, NOTE
from rappd.store.conversation_table import TurnStart
from rappd.transcript.exchanges import Exchange, Message, arguments_of

MOST_OF_A_RESULT = 20_100  # a shortened result of 20,000 characters says so in its middle
"""Characters of an agent's result in a row; the thread has all of it."""


class CallRow(TypedDict):
    """A call of an agent; without ``ok`` and what follows while it is under way. ``whole``: characters of a result that was cut."""

    call: str
    name: str
    args: dict[str, Any]
    ok: NotRequired[bool]
    seconds: NotRequired[float | None]
    result: NotRequired[str]
    cut: NotRequired[bool]
    whole: NotRequired[int]


class PictureRow(TypedDict):
    """A picture without what it shows."""

    type: str
    name: str
    bytes: int


class PlanRow(TypedDict):
    """The plan that an agent made, entry by entry."""

    by: str
    todos: list[dict[str, str]]


class ProblemRow(TypedDict):
    """The error that a turn ended with."""

    error: str
    todo: str
    code: str


TurnRow = TypedDict(
    "TurnRow",
    {
        "kind": Literal["turn", "call", "note"],
        "id": str,
        "n": int,
        "at": int,
        "from": str,
        "to": str,
        "by": str,
        "user": str,
        "state": str,
        "text": str,
        "model": str,
        "provider": str,
        "seconds": float | None,
        "input_tokens": float | None,
        "output_tokens": float | None,
        "voice": str,
        "twin": str,
        "notices": list[str],
        "calls": list[CallRow],
        "rounds": NotRequired[list[dict[str, Any]]],
        "plans": NotRequired[list[PlanRow]],
        "agents_used": NotRequired[list[Any]],
        "timer": NotRequired[dict[str, Any]],
        "pictures": NotRequired[list[PictureRow]],
        "problem": NotRequired[ProblemRow],
        "follows": NotRequired[str],
        "versions": NotRequired[list[str]],
        "running": NotRequired[bool],
    },
)
"""A turn as ``turn_row`` describes it; on the course of a conversation with what it ``follows`` and its ``versions``."""


class PathTurn(NamedTuple):
    """A turn on the course that is shown. ``place`` is its number, from 0, among all turns of the thread.

    ``versions``: the ids of all turns that follow the same one, this one included, the oldest first.
    """

    place: int
    id: str
    follows: str
    versions: tuple[str, ...]


def shown_path(starts: Sequence[TurnStart], at: str = "") -> list[PathTurn]:
    """The turns from the beginning to the newest one, or to the newest one behind the turn ``at``.

    A turn follows the one before it, unless it names another: that is how an edited sentence, or a second answer,
    stands beside the first one. A name that no earlier turn has is not followed.
    """
    known: dict[str, int] = {}
    parents: list[int] = []
    children: dict[int, list[int]] = {}
    for index, start in enumerate(starts):
        parent = _parent(start.follows, known, index)
        parents.append(parent)
        children.setdefault(parent, []).append(index)
        known[start.id] = index
    if not starts:
        return []
    leaf = len(starts) - 1
    if at in known:
        leaf = known[at]
        while leaf in children:
            leaf = children[leaf][-1]
    path: list[PathTurn] = []
    while leaf >= 0:
        parent = parents[leaf]
        versions = tuple(starts[one].id for one in children[parent])
        path.append(PathTurn(leaf, starts[leaf].id, starts[parent].id if parent >= 0 else "", versions))
        leaf = parent
    return path[::-1]


def _parent(follows: str | None, known: dict[str, int], index: int) -> int:
    """The index of the turn that one follows, -1 for none."""
    named = orjson.loads(follows) if follows else None
    if named == "":
        return -1
    return known.get(named, index - 1) if isinstance(named, str) else index - 1


def turn_row(exchange: Exchange) -> TurnRow:
    """A turn as the page draws it, with the calls that it led to.

    ``state`` is done, stopped, failed or open; ``kind`` is "turn", "call" for an agent's call outside of any turn, or
    "note". ``timer`` is there where a timer asked: its id, the moment that it was due in ms, and how many seconds late it was.
    ``agents_used`` are there where a model was offered agents, ``rounds`` where a real
    model said something before its answer, ``plans`` where listeners waited for something, ``pictures`` where some went with the
    sentence: their types, names and sizes.
    """
    first = exchange.asked or exchange.answered
    assert first is not None
    asked, answered = exchange.asked, exchange.answered
    row: TurnRow = {
        "kind": _kind(exchange),
        "id": first.event.id,
        "n": first.event.n,
        "at": first.event.at,
        "from": asked.event.sender if asked else answered.event.recipient if answered else "",
        "to": asked.event.recipient if asked else answered.event.sender if answered else "",
        "by": _text(asked, "by"),
        "user": asked.text if asked else "",
        "state": exchange.state,
        "text": "",
        "model": _text(answered, "model"),
        "provider": _text(answered, "provider"),
        "seconds": _number(answered, "seconds")
        if answered and "seconds" in answered.data
        else exchange.seconds,
        "input_tokens": _number(answered, "input_tokens"),
        "output_tokens": _number(answered, "output_tokens"),
        "voice": _text(answered, "voice_response"),
        "twin": _text(answered, "twin_response"),
        "notices": [notice] if (notice := _text(answered, "notice")) else [],
        "calls": [_call(one) for one in ([exchange] if exchange.agent else exchange.calls)],
    }
    if rounds := _rounds(exchange):
        row["rounds"] = rounds
    if plans := _plans(exchange):
        row["plans"] = plans
    used = answered.data.get("agents_used") if answered is not None else None
    if isinstance(used, list):
        row["agents_used"] = used
    if asked is not None and isinstance(timer := asked.data.get("timer", asked.data.get("delay")), dict):
        row["timer"] = timer
    if asked is not None and asked.pictures:
        row["pictures"] = picture_rows(asked.pictures)
    if answered is not None and not answered.failed:
        row["text"] = answered.text
    elif answered is not None and answered.data.get("reason") == "stopped":
        row |= {"state": "stopped", "text": _text(answered, "response")}
    elif answered is not None:
        row["problem"] = {
            "error": answered.text,
            "todo": _text(answered, "do"),
            "code": _text(answered, "reason") or "failed",
        }
    return row


def _plans(exchange: Exchange) -> list[PlanRow]:
    """The plans of the listeners that were called: ``{by, todos}``."""
    own: list[PlanRow] = [{"by": exchange.agent, "todos": plan}] if (plan := exchange.plan) else []
    return [*own, *(one for call in exchange.calls for one in _plans(call))]


def _rounds(exchange: Exchange) -> list[dict[str, Any]]:
    """Rounds of models meanwhile; ``after``: the number of calls that were made before."""
    found: list[dict[str, Any]] = []
    calls = [exchange] if exchange.agent else exchange.calls
    for after, call in enumerate(calls):
        found += [_round(one, after + 1) for one in call.rounds]
    if not exchange.agent:
        place = 0
        own: list[dict[str, Any]] = []
        for step in exchange.steps:
            if isinstance(step, Message):
                own.append(_round(step, place))
            else:
                place += 1
        found = sorted([*own, *found], key=itemgetter("after"))
    return found


def _round(message: Message, after: int) -> dict[str, Any]:
    fields = {key: value for key, value in message.data.items() if key != "kind"}
    return {**fields, "after": after, "text": _text(message, "text")[:MOST_OF_A_RESULT]}


def picture_rows(pictures: Iterable[Picture]) -> list[PictureRow]:
    """Types, names and sizes of pictures, without what they show."""
    return [{"type": one["type"], "name": one.get("name", ""), "bytes": size_of(one)} for one in pictures]


def _kind(exchange: Exchange) -> Literal["turn", "call", "note"]:
    if exchange.agent:
        return "call"
    return "note" if exchange.asked is not None and exchange.asked.event.verb == NOTE else "turn"


def _call(exchange: Exchange) -> CallRow:
    first = exchange.asked or exchange.answered
    assert first is not None
    row: CallRow = {
        "call": first.event.id,
        "name": exchange.agent,
        "args": arguments_of(exchange.asked.data) if exchange.asked is not None else {},
    }
    if exchange.answered is not None:
        result = exchange.answered.text
        row |= {
            "ok": not exchange.answered.failed,
            "seconds": exchange.seconds,
            "result": result[:MOST_OF_A_RESULT],
        }
        whole = exchange.answered.data.get("whole")
        if isinstance(whole, dict) and isinstance(whole.get("characters"), int):
            row |= {"cut": True, "whole": whole["characters"]}
        elif len(result) > MOST_OF_A_RESULT:
            row |= {"cut": True, "whole": len(result)}
    return row


def _text(message: Message | None, key: str) -> str:
    found = message.data.get(key) if message is not None else None
    return found if isinstance(found, str) else ""


def _number(message: Message | None, key: str) -> float | None:
    """A number of the record; None where it has none. It may come from an egg that others packed."""
    found = message.data.get(key) if message is not None else None
    return found if isinstance(found, int | float) and not isinstance(found, bool) and found >= 0 else None


def is_turn(exchange: Exchange) -> bool:
    """True for a sentence to a brainstem or a twin, with or without an answer."""
    asked = exchange.asked
    return asked is not None and asked.event.verb == HELP and isinstance(asked.data.get("user_input"), str)
