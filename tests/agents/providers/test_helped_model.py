"""Rounds of a helped model: the agent is chosen by the words, the model only words what it returned."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.errors import ModelUnavailableError
from agents.providers.helped_model import HelpedModels
from agents.providers.model_help import Help, ModelTraits
from agents.providers.provider import Completion, Message, ModelRequest, ToolCall

SMALL = ModelTraits(billions=0.135, here=True)
UNTAUGHT = ModelTraits(tools=False, billions=0.135, here=True)


def tool(name: str, description: str, /, **properties: Any) -> dict[str, Any]:
    required = [key for key, one in properties.items() if one.pop("required", False)]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    tool("ManageMemory", "Stores a fact to remember.", content={"type": "string", "required": True}),
    tool("ContextMemory", "Recalls what was remembered.",
         keywords={"type": "array", "items": {"type": "string"}}, max_messages={"type": "integer"}),
    tool("HackerNews", "Shows the top stories of Hacker News.", count={"type": "integer"}),
    tool("Weather", "Gets the weather for a city.", city={"type": "string", "required": True}),
    tool("LearnNew", "Creates an agent from a description.", description={"type": "string", "required": True}),
]  # fmt: skip


class Model:
    """A scripted model: what it says, and what it was asked."""

    def __init__(self, *answers: Completion | str) -> None:
        self.answers = [Completion(one, by_model=True) if isinstance(one, str) else one for one in answers]
        self.asked: list[ModelRequest] = []
        self.stopped = 0

    async def ask(self, request: ModelRequest) -> Completion:
        self.asked.append(request)
        answer = self.answers.pop(0)
        try:
            for word in answer.text.split(" "):
                if request.on_text is not None:
                    request.on_text(f"{word} ")
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return answer


class Turn:
    """A turn of a helped model over ``results`` of its agents."""

    def __init__(self, model: Model, traits: ModelTraits = SMALL, mode: str = "auto") -> None:
        self.model, self.traits, self.helped = model, traits, HelpedModels(mode)
        self.called: list[tuple[str, str]] = []
        self.shown = ""

    async def ask(
        self, sentence: str, results: dict[str, str] | None = None, before: tuple[str, ...] = ()
    ) -> str:
        roles = ("user", "assistant")
        messages: list[Message] = [
            {"role": roles[at % 2], "content": text} for at, text in enumerate((*before, sentence))
        ]
        self.shown = ""

        def show(piece: str) -> None:
            self.shown += piece

        async def prompt() -> str:
            return "You are kind.\n\n## Agents loaded now: 5"

        for number in range(4):
            request = ModelRequest(
                messages, TOOLS, prompt, on_text=show, round=number,
                written_call=lambda text, whole: text.startswith("<tool_call>"),
            )  # fmt: skip
            completion = await self.helped.complete(self.model.ask, request, "m", self.traits)
            if not completion.tool_calls:
                return completion.text
            calls = [
                {"id": one.id, "function": {"name": one.name, "arguments": one.arguments}}
                for one in completion.tool_calls
            ]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            for one in completion.tool_calls:
                self.called.append((one.name, one.arguments))
                content = (results or {}).get(one.name, "done")
                messages.append(
                    {"role": "tool", "name": one.name, "tool_call_id": one.id, "content": content}
                )
        raise AssertionError("no answer")


MEMORY = "1 memory:\n- the boiler is serviced in May (Theme: fact, Recorded: 2026-01-15)"


async def test_remember_is_remembered_though_the_model_only_talks() -> None:
    turn = Turn(
        Model("Boilers are wonderful and need much care", "I remember that the boiler is serviced in May.")
    )
    said = await turn.ask(
        "remember that the boiler is serviced in May",
        {"ManageMemory": "Remembered: the boiler is serviced in May"},
    )
    assert [name for name, _ in turn.called] == ["ManageMemory"]
    assert '"the boiler is serviced in May"' in turn.called[0][1]
    assert said == turn.shown == "I remember that the boiler is serviced in May."
    assert turn.model.stopped == 1  # it was not heard out
    assert turn.model.asked[1].tools == []


async def test_turn_is_cancelled_while_its_model_is_being_stopped() -> None:
    stopping, goes = asyncio.Event(), asyncio.Event()

    class Slow(Model):
        async def ask(self, request: ModelRequest) -> Completion:
            try:
                return await super().ask(request)
            except asyncio.CancelledError:
                stopping.set()
                await goes.wait()
                raise

    turn = Turn(Slow("Boilers are wonderful and need much care", "never asked for"))
    asked = asyncio.create_task(turn.ask("remember that the boiler is serviced in May"))
    await stopping.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    goes.set()
    assert turn.called == []


@pytest.mark.parametrize(
    ("wording", "shown"),
    [
        ("The boiler is serviced in May.", "The boiler is serviced in May."),
        ("The boiler is serviced every 12 months.", "I remember: the boiler is serviced in May"),
        ("The boiler, the boiler, " * 100, "I remember: the boiler is serviced in May"),
    ],
)
async def test_recalled_facts_reach_the_person_whatever_the_model_makes_of_them(
    wording: str, shown: str
) -> None:
    turn = Turn(Model(wording))
    assert await turn.ask("when is the boiler serviced?", {"ContextMemory": MEMORY}) == turn.shown == shown


async def test_a_question_that_nothing_is_remembered_of_is_the_models() -> None:
    turn = Turn(Model("Paris."))
    assert await turn.ask("what is the capital of France?", {"ContextMemory": "Nothing."}) == "Paris."
    assert [one["role"] for one in turn.model.asked[0].messages] == ["user"]
    assert turn.model.asked[0].tools == TOOLS


async def test_a_call_of_the_models_own_comes_first() -> None:
    own = Completion(tool_calls=(ToolCall("c1", "HackerNews", '{"count": 3}'),), by_model=True)
    turn = Turn(Model(own, "Three stories."))
    await turn.ask("use HackerNews")
    assert turn.called == [("HackerNews", '{"count": 3}')]


async def test_a_model_that_repeats_its_call_words_the_result_that_it_has() -> None:
    called = [
        Completion(tool_calls=(ToolCall(f"c{at}", "HackerNews", text),), by_model=True)
        for at, text in enumerate(('{"count": 3}', '{"count":3}'))
    ]
    turn = Turn(Model(*called, "A tiny database leads."))
    await turn.ask("use HackerNews", {"HackerNews": "1. A tiny database"})
    assert turn.called == [("HackerNews", '{"count": 3}')]
    assert [bool(one.tools) for one in turn.model.asked] == [True, True, False]


async def test_a_call_is_repeated_where_the_sentence_wants_it_twice() -> None:
    called = [
        Completion(tool_calls=(ToolCall(f"c{at}", "HackerNews", "{}"),), by_model=True) for at in range(2)
    ]
    turn = Turn(Model(*called, "Done."))
    assert await turn.ask("use HackerNews twice") == "Done."
    assert [name for name, _ in turn.called] == ["HackerNews", "HackerNews"]


async def test_a_fact_is_remembered_though_the_model_calls_another_agent() -> None:
    own = Completion(tool_calls=(ToolCall("c1", "HackerNews", '{"count": 3}'),), by_model=True)
    turn = Turn(Model(own, "I remember that the boiler is serviced in May."))
    await turn.ask("remember that the boiler is serviced in May")
    assert [name for name, _ in turn.called] == ["ManageMemory"]


async def test_a_call_that_could_not_be_performed_is_made_up_for() -> None:
    own = Completion(tool_calls=(ToolCall("c1", "Wether", "{}"),), by_model=True)
    turn = Turn(Model(own, "It is sunny in Berlin."))
    said = await turn.ask(
        "weather in Berlin", {"Wether": "Agent 'Wether' not found.", "Weather": "Berlin: sunny"}
    )
    assert [name for name, _ in turn.called] == ["Wether", "Weather"]
    assert said == "It is sunny in Berlin."


async def test_an_untaught_model_is_not_asked_before_the_choice() -> None:
    turn = Turn(Model("Stories."), UNTAUGHT)
    await turn.ask("hacker news?", {"HackerNews": "1. A tiny database"})
    assert [name for name, _ in turn.called] == ["HackerNews"]
    assert len(turn.model.asked) == 1


async def test_what_is_missing_is_asked_for_and_its_answer_completes_it() -> None:
    turn = Turn(Model(), UNTAUGHT)
    asked = await turn.ask("use Weather")
    assert asked.startswith("Weather needs a city.")
    turn = Turn(Model("It is sunny in Berlin."), UNTAUGHT)
    await turn.ask("Berlin", {"Weather": "Berlin: sunny"}, before=("use Weather", asked))
    assert turn.called == [("Weather", '{"city":"Berlin"}')]


async def test_a_failed_agent_is_told_plainly() -> None:
    turn = Turn(Model(), UNTAUGHT)
    assert (
        await turn.ask("hacker news?", {"HackerNews": "Error: no network"}) == "HackerNews failed: no network"
    )


async def test_what_changes_the_machine_is_not_chosen_by_likeness() -> None:
    turn = Turn(Model("I cannot."), UNTAUGHT)
    await turn.ask("please could you create something new that learns a description of agents for me")
    assert not turn.called


async def test_never_leaves_everything_to_the_model() -> None:
    turn = Turn(Model("Sure!"), UNTAUGHT, mode="never")
    assert await turn.ask("remember that the boiler is serviced in May") == "Sure!"
    assert not turn.called


async def test_a_large_model_is_helped_once_it_missed_two_calls() -> None:
    turn = Turn(
        Model("Sure!", "Sure!", "Sure!", "I remember that the boiler is serviced in May."),
        ModelTraits(billions=8),
    )
    sentence = "remember that the boiler is serviced in May"
    for _ in range(2):
        assert await turn.ask(sentence) == "Sure!"
    assert turn.helped.help_for("m", turn.traits) is Help.SECOND
    await turn.ask(sentence)
    assert [name for name, _ in turn.called] == ["ManageMemory"]


async def test_an_error_of_the_model_is_raised() -> None:
    async def ask(request: ModelRequest) -> Completion:
        raise ModelUnavailableError("gone", do="start it")

    async def prompt() -> str:
        return ""

    request = ModelRequest([{"role": "user", "content": "hacker news?"}], TOOLS, prompt)
    with pytest.raises(ModelUnavailableError):
        await HelpedModels().complete(ask, request, "m", SMALL)
