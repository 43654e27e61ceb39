"""Events put together again: what was asked, what came back, and the agent calls in between."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import orjson

from envelopes.codecs.pictures import Picture, recorded
from envelopes.envelope import DONE, ERROR, HELP, NOTE, ROUND, TODO
from rappd.store.records import Event


class Message(msgspec.Struct, frozen=True):
    """One event with its envelope's data, which is empty when the body cannot be read.

    ``pictures`` went with a sentence.
    """

    event: Event
    data: dict[str, Any]
    pictures: Sequence[Picture] = ()

    @property
    def failed(self) -> bool:
        """True for an ERROR."""
        return self.event.verb == ERROR

    @property
    def text(self) -> str:
        """The text for a person; of data in no known form, the JSON."""
        data = self.data
        if self.failed:
            return _shown(data.get("msg", data))
        if payload := payload_text(data):
            return payload
        if self.event.verb == DONE:
            return calls_in_words(data) or _shown(data.get("response", data.get("result", data)))
        if self.event.verb == NOTE:
            return note_in_words(data) or _shown(data)
        if results := results_in_words(data):
            return results
        return _shown(data.get("user_input", data.get("args", data)))


_NAMESPACE = re.compile(r' xmlns="[^"]*"')


def payload_text(data: dict[str, Any]) -> str:
    """A payload in XML as a person reads it, without its namespace; "" for other data."""
    body = data.get("body")
    return _NAMESPACE.sub("", body, count=1) if isinstance(body, str) and "root" in data else ""


def arguments_of(data: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their names; of a payload in XML, its text under its root."""
    given = data.get("args")
    if isinstance(given, dict):
        return given
    payload = payload_text(data)
    return {str(data["root"]): payload} if payload else {}


class Exchange(msgspec.Struct):
    """A HELP with its DONE or ERROR; either may be missing.

    ``calls`` are the calls it led to, ``rounds`` what models said meanwhile, ``todos`` what they waited for.
    """

    asked: Message | None
    answered: Message | None = None
    calls: list[Exchange] = msgspec.field(default_factory=list)
    rounds: list[Message] = msgspec.field(default_factory=list)
    todos: list[Message] = msgspec.field(default_factory=list)

    @property
    def plan(self) -> list[dict[str, str]]:
        """Entries of the plan that it made, ``{id, text, state}``, each as it was in the end."""
        found: dict[str, dict[str, str]] = {}
        for one in self.todos:
            todo = one.data.get("todo")
            if isinstance(todo, dict) and isinstance(id := todo.get("id"), str):
                state = str(todo.get("state", ""))
                text = str(one.data.get("text", "")).removesuffix(f": {state}")
                found[id] = {"id": id, "text": text, "state": state}
        return list(found.values())

    @property
    def steps(self) -> list[Exchange | Message]:
        """Rounds and calls in their order."""
        if not self.rounds:
            return list(self.calls)
        return sorted([*self.calls, *self.rounds], key=_place)

    @property
    def agent(self) -> str:
        """The agent's name when this is an agent call, else ""."""
        for message in (self.asked, self.answered):
            if message is not None and isinstance(message.data.get("agent"), str):
                return str(message.data["agent"])
        return ""

    @property
    def seconds(self) -> float | None:
        """From question to answer."""
        if self.asked is None or self.answered is None:
            return None
        return max(0, self.answered.event.at - self.asked.event.at) / 1e6

    @property
    def state(self) -> str:
        """``done``, ``failed`` or, without an answer, ``open``."""
        if self.answered is None:
            return "open"
        return "failed" if self.answered.failed else "done"


def round_summary(message: Message) -> str:
    """A round of a model in a few words: who asked, which model, what it chose, tokens and cost."""
    data = message.data
    number, agent, model = data.get("round"), data.get("agent"), data.get("model")
    tokens = sum(n for key in ("input_tokens", "output_tokens") if isinstance(n := data.get(key), int))
    cost, calls = data.get("cost_usd"), data.get("calls")
    parts = [
        f"{agent} asked the model" if agent else f"Round {number}",
        model if isinstance(model, str) else "",
        f"chose {', '.join(map(str, calls))}" if isinstance(calls, list) and calls else "",
        f"{tokens:,} tokens" if tokens else "",
        f"${cost:.6f}".rstrip("0") if isinstance(cost, int | float) and cost else "",
    ]
    return ", ".join(filter(None, parts))


def exchanges(events: Iterable[Event]) -> list[Exchange]:
    """The events of a thread, or of a tree of threads, in their order, as exchanges.

    A reply belongs to the last HELP of its id; a call to the open HELP on whose behalf it was sent, or, in older
    records, to the open turn of its caller. Other records stand alone as questions without an answer.
    """
    found: list[Exchange] = []
    waiting: dict[str, Exchange] = {}
    for event in events:
        message = Message(event, *_content(event.body))
        if event.verb in (DONE, ERROR):
            exchange = waiting.pop(event.id, None)
            if exchange is None:
                found.append(Exchange(None, message))
            else:
                exchange.answered = message
            continue
        exchange = Exchange(message)
        turn = waiting.get(event.parent or "")
        if event.verb == NOTE and message.data.get("kind") == ROUND and turn is not None:
            turn.rounds.append(message)
            continue
        if event.verb == NOTE and message.data.get("kind") == TODO and turn is not None:
            turn.todos.append(message)
            continue
        if turn is None and exchange.agent:
            turn = _turn_of(event.sender, waiting)
        (found if turn is None else turn.calls).append(exchange)
        if event.verb == HELP:
            waiting.pop(event.id, None)  # asked again: the newest question counts as the latest, too
            waiting[event.id] = exchange
    return found


def _place(step: Exchange | Message) -> tuple[int, int]:
    first = step if isinstance(step, Message) else step.asked or step.answered
    assert first is not None
    return first.event.at, first.event.seq


def note_in_words(data: dict[str, Any]) -> str:
    """The text of a note, else its kind in words: ``session start``."""
    return _shown(data.get("text") or str(data.get("kind", "")).replace("_", " "))


def calls_in_words(data: dict[str, Any]) -> str:
    """The answer of a turn with which calls of a program's own tools began: its text, and a line for each; else ""."""
    calls = data.get("tool_calls")
    if not isinstance(calls, list):
        return ""
    lines = [f"→ {one.get('name')} {one.get('arguments')}" for one in calls if isinstance(one, dict)]
    return "\n".join(filter(None, (_shown(data.get("response", "")), *lines)))


def results_in_words(data: dict[str, Any]) -> str:
    """The beginning of a turn with which a program gives results of its own tools; else "".

    A paragraph for each, and one for the sentence behind them.
    """
    results = data.get("tool_results")
    if not isinstance(results, list):
        return ""
    paragraphs = [f"{one.get('name')}: {one.get('content')}" for one in results if isinstance(one, dict)]
    return "\n\n".join(filter(None, (*paragraphs, data.get("user_input"))))


def _turn_of(sender: str, waiting: dict[str, Exchange]) -> Exchange | None:
    for exchange in reversed(waiting.values()):
        if exchange.asked is not None and exchange.asked.event.recipient == sender:
            return exchange
    return None


def _content(body: bytes) -> tuple[dict[str, Any], Sequence[Picture]]:
    try:
        envelope = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}, ()
    data = envelope.get("data") if isinstance(envelope, dict) else None
    return (data, recorded(envelope)) if isinstance(data, dict) else ({}, ())


def _shown(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
