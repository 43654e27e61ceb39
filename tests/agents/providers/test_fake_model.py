from __future__ import annotations

from agents.providers.provider import FakeModel


async def test_with_tools_it_calls_the_first_one_and_builds_no_prompt(ask):
    completion = await FakeModel().complete(ask(tools=True))
    (call,) = completion.tool_calls
    assert (call.id, call.name, call.arguments) == ("fake-call-0", "Weather", "{}")
    assert completion.text == ""
    assert ask.prompts == 0


async def test_after_the_tool_answered_it_repeats_the_users_words(ask):
    messages = [
        {"role": "user", "content": "rain?"},
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "tool_call_id": "fake-call-0", "name": "Weather", "content": "no"},
    ]
    completion = await FakeModel().complete(ask(tools=True, round=1, messages=messages))
    assert completion.text == "fake-llm: rain?"
    assert not completion.tool_calls


async def test_a_tool_result_of_an_earlier_turn_does_not_count(ask):
    history = [
        {"role": "user", "content": "rain?"},
        {"role": "tool", "tool_call_id": "x", "name": "Weather", "content": "no"},
        {"role": "assistant", "content": "no rain"},
    ]
    completion = await FakeModel().complete(ask("and now?", tools=True, messages=history))
    assert completion.tool_calls


async def test_without_tools_it_answers_and_streams_the_same_text(ask):
    completion = await FakeModel().complete(ask("hi", stream=True))
    assert completion.text == "fake-llm: hi"
    assert ask.pieces == ["fake-llm: hi"]


async def test_text_given_in_parts_is_joined(ask):
    request = ask()
    request.messages[-1]["content"] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (await FakeModel().complete(request)).text == "fake-llm: ab"
