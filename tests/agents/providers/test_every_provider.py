"""The suite that each provider passes: it answers, calls, streams, is cancelled and is closed."""

import asyncio
import copy
import json

import pytest

from agents.errors import ModelUnavailableError
from agents.providers.copilot import Copilot
from agents.providers.copilot_session import CopilotSessions
from agents.providers.github_token import GitHubToken
from agents.providers.offline_provider import OfflineBrain
from agents.providers.openai_server import OpenAIServer, ServerAddress, ServerWording
from agents.providers.provider import FakeModel
from agents.providers.selection import ProviderSelector
from agents.providers.settings import ProviderSettings

SENTENCE = "weather in Rome"
CALL = ("c1", "Weather", '{"city": "Rome"}')


@pytest.fixture(params=["fake", "offline", "server", "copilot", "selector"])
async def provider(request, github, tmp_path):
    """Each provider; the scripted server stands behind those that ask one."""
    made = {
        "fake": FakeModel,
        "offline": OfflineBrain,
        "server": lambda: OpenAIServer(
            ServerAddress(f"{github.url}/v1", "small", "key"), ServerWording("Ollama")
        ),
        "copilot": lambda: Copilot(
            CopilotSessions(
                GitHubToken("ghp_given", tmp_path / "token.json", gh=False, web=github.url),
                tmp_path / "copilot_session.json",
                api=github.url,
            ),
            max_retries=0,
        ),
        "selector": lambda: ProviderSelector(
            ProviderSettings(
                provider_url=github.url, api_key="key", model="small", help="never", max_retries=0
            ),
            OfflineBrain(),
        ),
    }[request.param]()
    yield made
    await made.close()


async def check_provider(provider, server, ask):
    """Asserts what the brainstem relies on; ``server`` stands behind the providers that ask one."""
    assert provider.name
    assert provider.model or not isinstance(provider, FakeModel | OpenAIServer)

    server.will(server.calls(CALL))
    request = ask(SENTENCE, tools=True)
    before = copy.deepcopy((request.messages, request.tools))
    asked = await provider.complete(request)
    assert (request.messages, request.tools) == before, "the history is the caller's"
    assert [call.name for call in asked.tool_calls] == ["Weather"]
    assert asked.tool_calls[0].id
    assert isinstance(json.loads(asked.tool_calls[0].arguments), dict)

    server.will(server.streams(*[{"choices": [{"index": 0, "delta": {"content": word}}]} for word in "ab"]))
    call = asked.tool_calls[0]
    function = {"name": call.name, "arguments": call.arguments}
    messages = [
        {"role": "user", "content": SENTENCE},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "Sunny."},
    ]
    worded = await provider.complete(ask(tools=True, stream=True, round=1, messages=messages))
    assert worded.text
    assert not worded.tool_calls
    assert worded.model
    assert "".join(ask.pieces) in (worded.text, ""), "what is shown while it comes is the answer"

    server.will(server.hangs())
    task = asyncio.ensure_future(provider.complete(ask("hello")))
    await asyncio.wait({task, asyncio.ensure_future(server.reached.wait())}, return_when="FIRST_COMPLETED")
    task.cancel()
    await asyncio.wait({task}, timeout=100)
    assert task.done(), "a person who stops is not kept waiting"
    server.release.set()

    server.will(server.says("Still here."))
    assert (await provider.complete(ask("hello"))).text, "one that was cancelled answers the next"
    await provider.close()
    await provider.close()


async def test_provider_answers_calls_streams_and_is_cancelled(provider, github, ask):
    await check_provider(provider, github, ask)


@pytest.mark.parametrize("provider", ["server", "copilot"], indirect=True)
async def test_server_that_fails_is_told_as_that(provider, github, ask):
    github.will(github.fails(500, "out of memory"))
    with pytest.raises(ModelUnavailableError, match="out of memory"):
        await provider.complete(ask("hello"))


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
