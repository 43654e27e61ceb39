"""The input and the result of a turn, and the tools that it may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from agents.contract.agent import Agent
from agents.providers.provider import Message, Usage
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.codecs.pictures import Picture
from envelopes.events import Emit, Round
from envelopes.program_input import ProgramInput


class TurnTool(Protocol):
    """An agent that a turn may call: one of this machine, or of another one, whose ``agent`` is None.

    ``kind`` is ``look`` for a structural agent that may only look, ``spare`` for one that is not offered, and yet
    answers a model that calls it. ``operators``: no model server may call it that
    the operator did not configure. ``definition`` is the OpenAI tool definition.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def operators(self) -> bool: ...
    @property
    def definition(self) -> dict[str, Any]: ...
    @property
    def agent(self) -> Agent | None: ...
    @property
    def handler(self) -> CallTool: ...


CallTool = Callable[[Any, dict[str, Any], dict[str, Any] | None, OnPiece | None], Awaitable[AgentResult]]
"""(``Ask.context``, arguments, upstream slush, on_piece) -> the result; the daemon's dispatcher stands behind it."""


class Modes(Protocol):
    """The switches a turn obeys, read when the turn starts."""

    voice: bool
    twin: bool
    rounds: int
    result_characters: int


NextRound = Callable[[], Awaitable[str]]
"""Performs what an answer asks for; returns the text that the model gets of it in its next round."""


class Ask(msgspec.Struct):
    """The input of a turn. ``emit`` receives progress events while it runs, if anybody listens.

    ``caller``: who asks; agents serve others in other processes.
    ``tools`` lists what it may call, as it is at each moment; calls are given ``context``.
    ``pictures`` go with the sentence, to the model alone. ``remote``: asked from elsewhere, where faulty files
    are not named. ``on_round`` gets each round of a real model but the last.
    ``at_computer``: definitions of what only a person at the computer may do; None for that person.
    """

    user_input: str
    history: Sequence[Message]
    user_guid: str
    tools: Callable[[], Sequence[TurnTool]]
    context: Any
    caller: Hashable
    remote: bool
    emit: Emit | None = None
    without_model: str = ""
    """The answer of keyword matching, where it is the one that answers."""
    pictures: Sequence[Picture] = ()
    model: str = ""
    """The model chosen for this turn, "" for the usual one; ``model_do`` helps where it is gone."""
    model_do: str = ""
    at_computer: Sequence[dict[str, Any]] | None = None
    on_round: Callable[[Round], None] | None = None
    program: ProgramInput | None = None
    """Of a foreign program: its own tools, which it performs itself, its instructions, settings for the model."""
    id: str = ""
    """The turn's; calls of the program's tools lead back to it."""
    rounds: Mapping[str, Sequence[Message]] = {}
    """Of earlier turns, by their ids: rounds of agents that the program, whose history this is, never saw."""
    model_call: Callable[[], Awaitable[None]] | None = None
    """Awaited before each model round; it may refuse it."""
    go_on: Callable[[str], Awaitable[NextRound | None]] | None = None
    """Gets an answer without calls; None where it is the last one."""


class Answer(msgspec.Struct):
    """The result of a turn. ``senses``: the contents of the workspace's own slots, by their keys.

    ``provider`` is who answered last, as screens show it; ``seconds`` is how long the turn took.
    ``agents_used``: names of the agents that were performed, where a model answered that was offered some; else None.
    ``failure``: the reason why the text answers nothing: the model failed, keyword matching found no agent, or every
    agent that was called failed; else "".
    ``tool_calls``: the program that asked has to make them, ``{"id", "name", "arguments"}``, and to come back with the results; ``rounds``
    are what led to them, where agents were performed. ``ending``: "length" or "filter" where the model did not end by itself.
    """

    text: str
    voice: str
    twin: str
    senses: dict[str, str]
    logs: list[str]
    model: str
    requested_model: str
    notice: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    provider: str = ""
    seconds: float = 0.0
    agents_used: list[str] | None = None
    failure: str = ""
    tool_calls: list[dict[str, Any]] = []
    rounds: list[Message] = []
    ending: str = ""
    unfinished: bool = False
    """True where there was no round left for what the model wanted next."""
