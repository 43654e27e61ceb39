"""An answer of a model server as it goes over the wire, and what rappd must make of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec


class Shape(msgspec.Struct, frozen=True):
    """``source``: where the server's way is documented or was reported. ``octets`` are in our own words.

    ``meaning`` is that of a refusal, "" for an answer. ``calls`` are names and arguments.
    """

    name: str
    source: str
    octets: bytes
    status: int = 200
    text: str = ""
    thoughts: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    ending: str = "finished"
    meaning: str = ""
    said: str = ""
    held: int = 0


def stream(*values: Any, done: bool = True, comment: str = "") -> bytes:
    """Server-sent events; text stands as it is."""
    lines = [f": {comment}\n\n"] if comment else []
    lines += [value if isinstance(value, str) else f"data: {json.dumps(value)}\n\n" for value in values]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])]).encode()


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A piece of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def call(
    name: str | None, arguments: str, index: int | None = 0, id: str | None = "call_1"
) -> dict[str, Any]:
    """A call of a tool, or a piece of one, within a delta."""
    found: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{k: v for k, v in {"index": index, "id": id, **found}.items() if v is not None}]}


def body(value: Any) -> bytes:
    return json.dumps(value).encode()
