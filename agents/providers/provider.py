"""The contract between the brainstem loop and whatever thinks."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

Message = dict[str, Any]  # an OpenAI chat message: role, content, tool_calls?, tool_call_id?, name?
Tool = dict[str, Any]  # an OpenAI tool: {"type": "function", "function": {name, description, parameters}}


ROSTER = "## Agents loaded now"
"""Begins the paragraph of a system text that lists the agents."""


class ToolCall(msgspec.Struct, frozen=True):
    """One tool the model asks for. ``arguments`` is the model's JSON text, unparsed."""

    id: str
    name: str
    arguments: str


class Completion(msgspec.Struct):
    """One answer of a model: text, or tools to run, or both.

    ``model`` is the model that really answered. ``notice`` is a short sentence for the person
    when the answer came about in another way than configured. ``cost_usd`` is None where no price is known.
    ``unconfigured``: it came from a server that the operator did not configure. ``thoughts`` are the model's, kept
    apart from ``text``. ``cut``: the answer was cut off, so its calls must not be performed. ``ending`` is how it
    ended (``answers/reader.py``), "" where that is not known. ``by_model``: a model chose the calls, so they are
    checked before they are performed. ``messages`` is how many were sent to a real model, ``prompt_sha256`` the hash of their
    JSON as it was sent; 0 and "" without one. ``provider`` is the name of the server or part that answered, as screens show it.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    notice: str = ""
    cost_usd: float | None = None
    unconfigured: bool = False
    thoughts: str = ""
    cut: bool = False
    ending: str = ""
    by_model: bool = False
    provider: str = ""
    messages: int = 0
    prompt_sha256: str = ""


class ModelRequest(msgspec.Struct):
    """The input of one model round.

    ``messages`` holds history, the user's turn and tool results, without the system message.
    ``prompt`` builds the system text on demand: a provider that needs none never pays for it.
    ``on_text``, when given, receives text as it streams in, ``on_thought`` the model's thoughts, ``on_wait`` the
    seconds of silence, each time that the person should hear of it. ``written_call`` tells of a text whether it may
    become a call of one of ``tools``, or of a whole one (True) whether it is one. ``everyday`` gives the same request without
    structural tools, for a server that the operator did not configure; None when there are none in it.
    ``summaries`` gives lines for people by tool name, for a provider that lists agents itself. ``pictures``: how many
    go with the sentence that is answered, so that an answer by a model that does not see them is none.
    ``model`` is asked where it is offered, silently the usual one where not. ``chosen`` was picked for this conversation
    or twin: where its server has it no more, the usual one answers, and the person is told, with ``chosen_do``.
    ``clients`` are the names of those ``tools`` that the asking program performs itself; keyword matching chooses none of them.
    ``tool_choice`` and ``parameters`` are as the server takes them, where it does. ``via`` names the machines that the request
    of the asking program came through (HTTP's ``Via``).
    """

    messages: list[Message]
    tools: list[Tool]
    prompt: Callable[[], Awaitable[str]]
    model: str = ""
    on_text: Callable[[str], None] | None = None
    round: int = 0
    extra: dict[str, Any] = msgspec.field(default_factory=dict)
    everyday: Callable[[ModelRequest], ModelRequest] | None = None
    summaries: Callable[[], dict[str, str]] | None = None
    pictures: int = 0
    on_thought: Callable[[str], None] | None = None
    on_wait: Callable[[float], None] | None = None
    chosen: str = ""
    chosen_do: str = ""
    written_call: Callable[[str, bool], bool] | None = None
    clients: frozenset[str] = frozenset()
    tool_choice: str | dict[str, Any] = "auto"
    parameters: dict[str, Any] = {}
    via: str = ""

    @property
    def agents(self) -> list[Tool]:
        """The tools that are performed here."""
        if not self.clients:
            return self.tools
        return [tool for tool in self.tools if tool["function"]["name"] not in self.clients]


class Provider(Protocol):
    """A source of answers to chat-completions with tools (architecture, "Thinking").

    ``complete`` raises ``ModelUnavailableError`` when the model cannot answer, and is cancelled by
    cancelling its task. ``name`` is what screens show ("no model", "ollama", …).
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


_MILLION = 1_000_000
_DIGITS = 12  # after the point, of dollars: less than a thousandth of one token of the cheapest model
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$")


class BadPriceError(ValueError):
    """A text that is no price."""


class Prices(msgspec.Struct, frozen=True):
    """USD for a million tokens, by model; ``""`` is any model that is not named."""

    read: dict[str, float]
    written: dict[str, float]

    @classmethod
    def of(cls, read: str, written: str) -> Prices:
        """From two settings; one that cannot be read counts as not set."""
        return cls(_lenient(read), _lenient(written))

    def cost(self, completion: Completion) -> float | None:
        """Dollars; None unless both prices of that model are known."""
        read, written = _of(self.read, completion.model), _of(self.written, completion.model)
        if read is None or written is None:
            return None
        return (completion.input_tokens * read + completion.output_tokens * written) / _MILLION


def price_list(text: str) -> dict[str, float]:
    """``0.5`` for every model, ``MODEL=0.5`` for one, by commas. Raises ``BadPriceError``."""
    found: dict[str, float] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        model, _, amount = (part.strip() for part in item.rpartition("="))
        try:
            price = float(amount)
        except ValueError:
            raise BadPriceError(amount) from None
        if not (math.isfinite(price) and price >= 0):
            raise BadPriceError(amount)
        found[model] = price
    return found


class Usage(msgspec.Struct):
    """A sum over completions. ``cost_usd`` counts only while every round with tokens had a price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False

    def add(self, completion: Completion) -> None:
        """One more round; one without tokens, as without a model, adds nothing."""
        if not (completion.input_tokens or completion.output_tokens):
            return
        self.input_tokens += completion.input_tokens
        self.output_tokens += completion.output_tokens
        if completion.cost_usd is None:
            self.unpriced = True
        else:
            self.cost_usd += completion.cost_usd

    def include(self, other: Usage) -> None:
        """Another sum into this one."""
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cost_usd += other.cost_usd
        self.unpriced |= other.unpriced

    def stated(self) -> dict[str, Any]:
        """The fields that are reported: none where no tokens were counted, no cost where a price is missing."""
        if not (self.input_tokens or self.output_tokens):
            return {}
        usage: dict[str, Any] = {
            "tokens": self.input_tokens + self.output_tokens,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
        return usage if self.unpriced else {**usage, "cost_usd": round(self.cost_usd, _DIGITS)}


def _lenient(text: str) -> dict[str, float]:
    try:
        return price_list(text)
    except BadPriceError:
        return {}


def _of(prices: dict[str, float], model: str) -> float | None:
    """A model's price; a dated release goes by the name without its date."""
    for name in (model, _DATED.sub("", model), ""):
        if name in prices:
            return prices[name]
    return None


class FakeModel:
    """The model of ``LLM_FAKE=1``: predictable, instant, never on the network.

    Calls the first tool once per turn with ``{}``, then answers ``fake-llm: <last user text>``.

    With ``request.tools`` and no tool result after the last user message the answer is one call
    ``fake-call-0``. The system text is never built.
    """

    name = "fake model"
    model = "fake-llm"

    async def complete(self, request: ModelRequest) -> Completion:
        text = ""
        called = False
        for message in reversed(request.messages):
            role = message.get("role")
            if role == "user":
                text = _text_of(message)
                break
            if role == "tool":
                called = True
        if request.tools and not called:
            name = request.tools[0]["function"]["name"]
            return Completion(tool_calls=(ToolCall("fake-call-0", name, "{}"),), model=self.model)
        answer = f"fake-llm: {text}"
        if request.on_text is not None:
            request.on_text(answer)
        return Completion(answer, model=self.model)

    async def close(self) -> None:
        return None


def _text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""
