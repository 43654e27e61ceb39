"""A recorded conversation as messages for a model, with what programs' own tools returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rappd.store.conversation_table import TurnStart, turns_query
from rappd.store.store import Store
from rappd.transcript.exchanges import Exchange, exchanges
from rappd.transcript.turns import is_turn, shown_path

MOST_TURNS = 100
"""The newest turns that a model gets of a conversation."""


async def history_of(
    store: Store, thread: str, at: str = "", *, most: int = MOST_TURNS, results_follow: bool = False
) -> list[dict[str, Any]]:
    """The course of a conversation up to the turn ``at``, else to its newest. [] for one that is not there.

    ``most``: the newest turns of it that count. ``results_follow``: the next message has the results of the last turn's calls.
    """
    await store.flush()
    starts = [TurnStart(*row) for row in await store.rows(*turns_query(thread))]
    path = shown_path(starts, at)
    if at:
        path = path[: next((place for place, turn in enumerate(path) if turn.id == at), -1) + 1]
    path = path[-most:]
    if not path:
        return []
    first = min(starts[turn.place].n for turn in path)
    events = await store.thread_events(thread, after=first - 1)
    found = {one.asked.event.id: one for one in exchanges(events) if is_turn(one) and one.asked is not None}
    return messages_of([found[turn.id] for turn in path if turn.id in found], results_follow=results_follow)


def messages_of(turns: Sequence[Exchange], *, results_follow: bool) -> list[dict[str, Any]]:
    """Turns that were answered as messages.

    Calls whose results never came are left out, since a model server would refuse them.
    """
    found: list[dict[str, Any]] = []
    answered = [one for one in turns if _says_something(one)]
    for place, turn in enumerate(answered):
        assert turn.asked is not None
        results = turn.asked.data.get("tool_results")
        if isinstance(results, list):
            found += [_result(one) for one in results if isinstance(one, dict)]
        if not isinstance(results, list) or turn.asked.data.get("user_input"):
            pictures = {"pictures": list(turn.asked.pictures)} if turn.asked.pictures else {}
            text = turn.asked.data["user_input"] if isinstance(results, list) else turn.asked.text
            found.append({"role": "user", "content": text, **pictures})
        has_results = results_follow
        if place + 1 < len(answered):
            following = answered[place + 1].asked
            has_results = following is not None and "tool_results" in following.data
        found += _answer(turn, with_calls=has_results)
    return found


def _says_something(turn: Exchange) -> bool:
    data = turn.answered.data if turn.answered is not None else {}
    return bool(data.get("response") or data.get("tool_calls"))


def _answer(turn: Exchange, *, with_calls: bool) -> list[dict[str, Any]]:
    data = turn.answered.data if turn.answered is not None else {}
    text, calls = data.get("response"), data.get("tool_calls")
    message: dict[str, Any] = {"role": "assistant", "content": text if isinstance(text, str) else ""}
    if isinstance(calls, list) and with_calls:
        message["tool_calls"] = [_call(one) for one in calls]
    return [message] if message["content"] or "tool_calls" in message else []


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call.get("name"), "arguments": call.get("arguments")}
    return {"id": call.get("id"), "type": "function", "function": function}


def _result(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": one.get("call"),
        "name": one.get("name"),
        "content": one.get("content"),
    }
