"""Events of a turn, in the order in which they happen (docs/wire.md, ``POST /chat/stream``).

They are a closed union. Listeners show what they can of it, and number it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Delta(msgspec.Struct, tag="delta", frozen=True, gc=False):
    """A piece of the answer's main part, never of a slot."""

    text: str


class Thought(msgspec.Struct, tag="thought", frozen=True, gc=False):
    """A piece of what the model thought."""

    text: str


class Waiting(msgspec.Struct, tag="waiting", frozen=True, gc=False, rename={"model": "for"}):
    """Nothing came from the model of that name for so many seconds."""

    model: str
    seconds: int


class Call(msgspec.Struct, tag="call", frozen=True):
    """An agent was called. ``call`` is the name of this call within its turn."""

    call: str
    name: str
    args: dict[str, Any]


class Piece(msgspec.Struct, tag="piece", frozen=True, gc=False):
    """A part of a call's result that the agent has yielded by now."""

    call: str
    name: str
    text: str


class Result(msgspec.Struct, tag="result", frozen=True):
    """The end of a call."""

    call: str
    name: str
    ok: bool
    result: str
    seconds: float


class Round(msgspec.Struct, tag="round", frozen=True, omit_defaults=True):
    """A round of a real model that is not the answer: what it said and chose.

    ``round`` counts from 1 within the turn, or within the call of ``agent``, which asked the model itself.
    ``messages`` and ``prompt_sha256`` name what was sent to it, whose text is kept nowhere.
    """

    round: int
    model: str
    provider: str
    text: str = ""
    calls: list[str] = []
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    messages: int = 0
    prompt_sha256: str = ""
    agent: str = ""


class Notice(msgspec.Struct, tag="notice", frozen=True, gc=False):
    """A sentence for the person, beside the answer."""

    text: str


class Progress(msgspec.Struct, tag="progress", frozen=True, gc=False):
    """The state of a phase of long work. A later one of the same phase takes its place."""

    phase: str
    done: int
    whole: int


class Work(msgspec.Struct, tag="work", frozen=True):
    """The state of work with many parts, as screens show it. A later one takes its place."""

    work: Mapping[str, Any]


Event = Delta | Thought | Waiting | Round | Call | Piece | Result | Notice | Progress | Work
Emit = Callable[[Event], None]

encode = msgspec.json.Encoder(enc_hook=str).encode
"""An event as JSON, with its ``type``."""


def replaces(event: Event, before: Event) -> bool:
    """True for a state that makes the event before it worthless."""
    if isinstance(event, Progress) and isinstance(before, Progress):
        return event.phase == before.phase
    return isinstance(event, Work) and isinstance(before, Work)


def read(document: object) -> Event | None:
    """The event that another machine told, as decoded JSON; None for anything else."""
    try:
        found: Event = msgspec.convert(document, Event)
    except msgspec.ValidationError:
        return None
    return found
