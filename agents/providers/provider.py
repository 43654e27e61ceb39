"""The contract between the brainstem loop and whatever thinks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

Message = dict[str, Any]  # an OpenAI chat message: role, content, tool_calls?, tool_call_id?, name?
Tool = dict[str, Any]  # an OpenAI tool: {"type": "function", "function": {name, description, parameters}}


class ToolCall(msgspec.Struct, frozen=True):
    """One tool the model asks for. ``arguments`` is the model's JSON text, unparsed."""

    id: str
    name: str
    arguments: str


class Completion(msgspec.Struct):
    """One answer of a model: text, or tools to run, or both.

    ``model`` is the model that really answered. ``notice`` is a short sentence for the person
    when the answer came about in another way than configured. ``cost_usd`` is None where no price is known.
    ``unconfigured``: it came from a server that the operator did not configure.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    notice: str = ""
    cost_usd: float | None = None
    unconfigured: bool = False


class ModelRequest(msgspec.Struct):
    """The input of one model round.

    ``messages`` holds history, the user's turn and tool results, without the system message.
    ``prompt`` builds the system text on demand: a provider that needs none never pays for it.
    ``on_text``, when given, receives text as it streams in. ``everyday`` gives the same request without
    structural tools, for a server that the operator did not configure; None when there are none in it.
    ``summaries`` gives lines for people by tool name, for a provider that lists agents itself.
    """

    messages: list[Message]
    tools: list[Tool]
    prompt: Callable[[], Awaitable[str]]
    model: str = ""
    on_text: Callable[[str], None] | None = None
    round: int = 0
    extra: dict[str, Any] = msgspec.field(default_factory=dict)
    everyday: Callable[[], ModelRequest] | None = None
    summaries: Callable[[], dict[str, str]] | None = None


class Provider(Protocol):
    """Something that answers chat-completions with tools (architecture, "Thinking").

    ``complete`` raises ``ModelUnavailableError`` when the model cannot answer, and is cancelled by
    cancelling its task. ``name`` is what screens show ("offline brain", "ollama", …).
    """

    @property
    def name(self) -> str:
        """The name on screens."""
        ...

    @property
    def model(self) -> str:
        """The model asked for by default, as ``/health`` reports it."""
        ...

    async def complete(self, request: ModelRequest) -> Completion: ...

    async def close(self) -> None: ...
