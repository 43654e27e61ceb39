"""Model rounds in which keyword matching chooses the agent, and the model words what it returned (``model_help``)."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from msgspec.structs import replace

from agents.errors import ModelUnavailableError
from agents.providers.chat_request import question as question_of
from agents.providers.lazy_imports import load
from agents.providers.model_help import (
    REMEMBERED_TURNS,
    Help,
    ModelTraits,
    Outcome,
    can_word,
    help_for,
    is_known_small,
    keeps,
    longest_wording,
    offers_tools,
)
from agents.providers.provider import ROSTER, Completion, Message, ModelRequest, ToolCall

AskModel = Callable[[ModelRequest], Coroutine[Any, Any, Completion]]

_CHOSEN = "chosen-"
"""Begins the id of a call that keyword matching made."""
_LONGEST_CHARACTER = 400
"""Characters of the soul that go with a result that is to be worded."""
_SEVERAL = re.compile(r"\d|\b(?:again|both|each|every|once more|times|twice|until)\b", re.IGNORECASE)
"""Words of a sentence that may want the same call more than once ("flip a coin twice")."""
_NOT_PERFORMED = ("not performed", "not found")


class HelpedModels:
    """The help that the models of one machine get, and how their last turns went.

    ``mode`` is the setting ``models.help``.
    """

    def __init__(self, mode: str = "auto") -> None:
        self.mode = mode
        self._outcomes: dict[str, deque[Outcome]] = {}
        self._numbers = itertools.count(1)

    def help_for(self, model: str, traits: ModelTraits) -> Help:
        """The help that ``model`` gets at present."""
        return help_for(self.mode, traits, tuple(self._outcomes.get(model, ())))

    async def complete(
        self, ask: AskModel, request: ModelRequest, model: str, traits: ModelTraits
    ) -> Completion:
        """Runs a round with ``model``, which ``ask`` asks. Raises what ``ask`` raises."""
        if self.mode == "never" or request.pictures:
            return await ask(request)
        offered = request
        if not offers_tools(self.mode, traits):
            offered = replace(request, tools=[], clients=frozenset(), prompt=lambda: _without_roster(request))
        results = _results(request.messages) if request.round else []
        if results and _is_chosen(request.messages):
            return await self._worded(ask, request, offered, results, traits)
        went_wrong = bool(results) and all(_went_wrong(result) for _, result in results)
        if went_wrong:
            self._note(model, Outcome.WRONG)
        if not request.agents or (request.round and not went_wrong):
            completion = await ask(offered)
            # Behind a server that has it choose, a model of 135 M calls the same agent again and again.
            if results and is_known_small(traits) and _is_repeated(completion, request.messages):
                return await self._worded(ask, request, offered, results, traits)
            return completion
        # The outcomes are learnt of every model, so that one that fails is helped from then on.
        matching = await load("agents.providers.offline.next_step")
        summaries = request.summaries() if request.summaries is not None else {}
        asked = _until_question(request.messages)
        choice = await asyncio.to_thread(matching.choose, asked, request.agents, summaries)
        help_given = self.help_for(model, traits)
        if choice is None or _is_answered(request.messages, choice.name):
            return await ask(offered)
        if help_given is Help.NONE:
            completion = await ask(request)
            self._note_own(completion, request, model, choice.name)
            return completion
        if help_given is Help.SECOND and choice.ground != "recall" and not went_wrong:
            own = await _own_call(ask, request)
            meant = own is not None and _may_be_meant(own, choice.name)
            if choice.name:
                self._note(model, Outcome.CALLED if meant else Outcome.MISSED)
            if own is not None and (
                meant or not matching.orders_remembering(question_of(asked), choice.name)
            ):
                return own
        if choice.text:
            if request.on_text is not None:
                request.on_text(choice.text)
            return Completion(choice.text, model=model)
        arguments = orjson.dumps(dict(choice.arguments)).decode()
        return Completion(
            tool_calls=(ToolCall(f"{_CHOSEN}{next(self._numbers)}", choice.name, arguments),), model=model
        )

    def _note(self, model: str, outcome: Outcome) -> None:
        self._outcomes.setdefault(model, deque(maxlen=REMEMBERED_TURNS)).append(outcome)

    def _note_own(self, completion: Completion, request: ModelRequest, model: str, name: str) -> None:
        called = completion.tool_calls or _is_written(request, completion.text)
        if name and not completion.cut:
            self._note(model, Outcome.CALLED if called else Outcome.MISSED)

    async def _worded(
        self,
        ask: AskModel,
        request: ModelRequest,
        offered: ModelRequest,
        results: list[tuple[str, str]],
        traits: ModelTraits,
    ) -> Completion:
        """The answer to what an agent that was chosen returned: in the model's words where they keep it.

        ``offered`` is the request as it is asked where nothing was returned that concerns the question.
        """
        matching = await load("agents.providers.offline.next_step")
        question = question_of(request.messages)
        name, result = results[0]
        looked_up = matching.looks_up(_until_question(request.messages), request.agents, name)
        if looked_up:
            result = matching.found_by_lookup(question, result)
            if not result:  # nothing is remembered of it: the model answers, as if nobody had looked
                return await ask(replace(offered, messages=_until_question(request.messages), round=0))
        plain = f"I remember: {result}" if looked_up else matching.plainly(results)
        worded = None
        if len(results) == 1 and not matching.is_failure(results) and can_word(plain, traits):
            worded = await _wording(
                ask, request, _task(question, name, result if looked_up else plain), plain
            )
        if worded is None or not keeps(plain.removeprefix("I remember: "), worded.text, question):
            worded = replace(
                worded or Completion(), text=plain, tool_calls=(), cut=False, ending="", thoughts=""
            )
        if request.on_text is not None:
            request.on_text(worded.text)
        return worded


async def _own_call(ask: AskModel, request: ModelRequest) -> Completion | None:
    """The model's answer where it calls an agent; it is stopped as soon as it begins to talk instead."""
    talks = asyncio.Event()
    heard: list[str] = []

    def on_text(piece: str) -> None:
        heard.append(piece)
        if request.written_call is None or not request.written_call("".join(heard), False):
            talks.set()

    async with _stopped(ask(replace(request, on_text=on_text))) as asking:
        talking = asyncio.create_task(talks.wait())
        try:
            await asyncio.wait((asking, talking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            talking.cancel()
        if not asking.done():
            return None
        completion = asking.result()
    return completion if completion.tool_calls or _is_written(request, completion.text) else None


async def _wording(ask: AskModel, request: ModelRequest, task: Message, plain: str) -> Completion | None:
    """The wording of a result by the model; None where it does not come to an end."""
    too_long = asyncio.Event()
    letters = 0

    def on_text(piece: str) -> None:
        nonlocal letters
        letters += len(piece)
        if letters > longest_wording(plain):
            too_long.set()

    async def character() -> str:
        return (await request.prompt()).split("\n\n", 1)[0][:_LONGEST_CHARACTER]

    wanted = replace(request, messages=[task], tools=[], prompt=character, on_text=on_text)
    async with _stopped(ask(wanted)) as asking:
        ending = asyncio.create_task(too_long.wait())
        try:
            await asyncio.wait((asking, ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
        return asking.result() if asking.done() else None


@asynccontextmanager
async def _stopped(work: Coroutine[Any, Any, Completion]) -> AsyncIterator[asyncio.Task[Completion]]:
    """A task that is cancelled, and waited for, when the block is left before it ended."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})  # a cancel of this turn meanwhile is its own, and goes on
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, ModelUnavailableError):
                raise error


async def _without_roster(request: ModelRequest) -> str:
    """The system text without the agents, which a small model that cannot use them repeats in its answer."""
    paragraphs = (await request.prompt()).split("\n\n")
    return "\n\n".join(one for one in paragraphs if not one.startswith(ROSTER))


def _task(question: str, name: str, result: str) -> Message:
    # Tried with a model of 135 M: of three forms the one in which it added least.
    content = f"{question}\n\n{name} found: {result}\n\nAnswer in one sentence, only with what {name} found."
    return {"role": "user", "content": content}


def _may_be_meant(own: Completion, name: str) -> bool:
    """True when the agent ``name`` is among those that the model called; one written as text is not looked at."""
    return not own.tool_calls or any(call.name == name for call in own.tool_calls)


def _is_repeated(completion: Completion, messages: Sequence[Message]) -> bool:
    """True when all calls were made in this turn with the same arguments, and nobody asked for several."""
    if _SEVERAL.search(question_of(list(messages))):
        return False
    before = [
        (call.get("function", {}).get("name"), _parsed(call.get("function", {}).get("arguments")))
        for message in messages[len(_until_question(messages)) :]
        for call in message.get("tool_calls") or ()
    ]
    calls = [(call.name, _parsed(call.arguments)) for call in completion.tool_calls]
    return bool(calls) and all(call in before for call in calls)


def _parsed(arguments: Any) -> Any:
    try:
        return orjson.loads(arguments)
    except (orjson.JSONDecodeError, TypeError):
        return arguments


def _is_written(request: ModelRequest, text: str) -> bool:
    return request.written_call is not None and request.written_call(text, True)


def _went_wrong(result: str) -> bool:
    return any(words in result[:400] for words in _NOT_PERFORMED) and result.startswith(
        ("Error: ", "Agent '")
    )


def _results(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Names and results of the agents that were called last."""
    found: list[tuple[str, str]] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        found.append((str(message.get("name") or "The agent"), str(message.get("content") or "")))
    return found[::-1]


def _is_chosen(messages: Sequence[Message]) -> bool:
    """True when the last call was made by keyword matching."""
    for message in reversed(messages):
        if message.get("role") != "tool":
            return any(
                str(call.get("id", "")).startswith(_CHOSEN) for call in message.get("tool_calls") or ()
            )
    return False


def _is_answered(messages: Sequence[Message], name: str) -> bool:
    """True when that agent was performed in this turn already."""
    since = messages[len(_until_question(messages)) :]
    return any(one.get("role") == "tool" and one.get("name") == name for one in since if name) and not all(
        _went_wrong(str(one.get("content") or "")) for one in since if one.get("role") == "tool"
    )


def _until_question(messages: Sequence[Message]) -> list[Message]:
    """The messages up to the question of this turn."""
    last = max((at for at, one in enumerate(messages) if one.get("role") == "user"), default=-1)
    return list(messages[: last + 1])
