"""Any OpenAI-compatible server, asked over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest
from blockbuster import blockbuster_ctx

from agents.errors import ModelUnavailableError
from agents.providers import openai_server
from agents.providers.answer_request import RequestLimits
from agents.providers.constant_text import TEXT
from agents.providers.openai_server import Azure, OpenAIServer, ServerAddress, ServerWording

KEY = "sk-secret-1234567890abcdef"


@pytest.fixture
async def model(server):
    provider = OpenAIServer(
        ServerAddress(f"{server.url}/v1", "small", KEY), ServerWording("Ollama", do="start Ollama")
    )
    yield provider
    await provider.close()


def delta(index=0, **fields):
    return {"model": "small-1", "choices": [{"index": index, "delta": fields}]}


def piece(index, arguments="", **fields):
    function = {"arguments": arguments, **({"name": fields.pop("name")} if "name" in fields else {})}
    return {"index": index, "function": function, **fields}


async def test_plain_answer_has_tokens_and_model(server, model, ask):
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    server.will(server.says("Hello.", model="small-2024", usage=usage))
    completion = await model.complete(ask("hi"))
    assert (completion.text, completion.model) == ("Hello.", "small-2024")
    assert (completion.input_tokens, completion.output_tokens) == (7, 3)
    (body,) = server.asked
    assert body["messages"] == [
        {"role": "system", "content": f"{TEXT}\n\nYou are a soul."},
        {"role": "user", "content": "hi"},
    ]
    assert body["model"] == "small"
    assert not {"tools", "tool_choice", "stream_options"} & set(body)
    assert body["stream"] is False
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_calls_come_back_in_order_with_their_arguments_unparsed(server, model, ask):
    server.will(
        server.calls(("a", "Weather", '{"city": "Bonn"}'), ("b", "Clock", "not json"), text="Looking.")
    )
    completion = await model.complete(ask(tools=True))
    assert completion.text == "Looking."
    assert [(call.id, call.name, call.arguments) for call in completion.tool_calls] == [
        ("a", "Weather", '{"city": "Bonn"}'),
        ("b", "Clock", "not json"),
    ]
    assert server.asked[0]["tool_choice"] == "auto"
    assert [tool["function"]["name"] for tool in server.asked[0]["tools"]] == ["Weather", "Clock"]


async def test_an_o1_model_gets_tools_without_tool_choice(server, model, ask):
    server.will(server.says("ok"))
    await model.complete(ask(tools=True, model="o1-mini"))
    assert "tools" in server.asked[0]
    assert "tool_choice" not in server.asked[0]


async def test_an_empty_answer_with_agents_on_offer_is_asked_for_once_more_without(server, model, ask):
    server.will(server.says(""), server.says("Hello."), server.says(""))
    completion = await model.complete(ask("hi", tools=True))
    assert completion.text == "Hello."
    assert ["tools" in body for body in server.asked] == [True, False]
    assert (await model.complete(ask("hi"))).text == ""
    assert len(server.asked) == 3


async def test_an_empty_answer_to_the_last_try_is_an_empty_answer(server, model, ask, monkeypatch):
    monkeypatch.setattr(openai_server, "_MOST_ATTEMPTS", 1)
    server.will(server.says(""))
    assert (await model.complete(ask("hi", tools=True))).text == ""


async def test_several_choices_become_one_answer(server, model, ask):
    call = {"id": "a", "type": "function", "function": {"name": "Clock", "arguments": "{}"}}
    server.will(
        server.answers(
            choices=[
                {"index": 0, "message": {"content": "One. "}},
                {"index": 1, "message": {"content": "Two.", "tool_calls": [call]}},
                {"index": 2, "message": {"content": None, "tool_calls": [{**call, "id": "b"}]}},
            ]
        )
    )
    completion = await model.complete(ask(tools=True))
    assert completion.text == "One. Two."
    assert [call.id for call in completion.tool_calls] == ["a", "b"]


async def test_text_streams_with_tokens_at_its_end(server, model, ask):
    usage = {"model": "small-1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    server.will(server.streams(delta(role="assistant", content="It "), delta(content="rains."), usage))
    completion = await model.complete(ask(stream=True))
    assert ask.pieces == ["It ", "rains."]
    assert (completion.text, completion.model) == ("It rains.", "small-1")
    assert (completion.input_tokens, completion.output_tokens) == (5, 2)
    assert server.asked[0]["stream_options"] == {"include_usage": True}


async def test_calls_split_over_many_chunks_are_put_together(server, model, ask):
    server.will(
        server.streams(
            delta(tool_calls=[piece(0, id="a", name="Weather")]),
            delta(tool_calls=[piece(0, '{"ci')]),
            delta(tool_calls=[piece(1, '{"z', id="b", name="Clock")]),
            delta(tool_calls=[piece(0, 'ty": "Bonn"}'), piece(1, '": 1}')]),
        )
    )
    completion = await model.complete(ask(tools=True, stream=True))
    assert [(call.id, call.name, call.arguments) for call in completion.tool_calls] == [
        ("a", "Weather", '{"city": "Bonn"}'),
        ("b", "Clock", '{"z": 1}'),
    ]
    assert ask.pieces == []


async def test_streamed_calls_that_all_carry_number_0_stay_apart(server, model, ask):
    server.will(
        server.streams(
            delta(tool_calls=[piece(0, "{}", id="a", name="Weather")]),
            delta(tool_calls=[piece(0, "{}", id="b", name="Weather")]),
        )
    )
    completion = await model.complete(ask(tools=True, stream=True))
    assert [(call.id, call.arguments) for call in completion.tool_calls] == [("a", "{}"), ("b", "{}")]


async def test_a_server_that_cannot_stream_is_read_whole(server, model, ask):
    server.will(server.says("All at once."))
    completion = await model.complete(ask(stream=True))
    assert completion.text == "All at once."
    assert ask.pieces == ["All at once."]


async def test_parameters_that_a_model_refuses_are_left_out_from_then_on(server, model, ask):
    said = "Unsupported value: 'temperature' does not support 0.2 with this model."
    server.will(
        server.fails(400, f'{{"error": {{"message": "{said}"}}}}'), server.says("a"), server.says("b")
    )
    for _ in range(2):
        request = ask("hi")
        request.parameters = {"temperature": 0.2, "seed": 7}
        await model.complete(request)
    assert ["temperature" in body for body in server.asked] == [True, False, False]
    assert [body["seed"] for body in server.asked] == [7, 7, 7]


async def test_a_limit_of_tokens_is_tried_under_its_newer_name(server, model, ask):
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.will(server.fails(400, f'{{"error": {{"message": "{said}"}}}}'), server.says("a"))
    request = ask("hi")
    request.parameters = {"max_tokens": 9}
    await model.complete(request)
    assert "max_tokens" not in server.asked[1]
    assert server.asked[1]["max_completion_tokens"] == 9


async def test_a_demand_for_a_call_that_a_server_does_not_know_is_left_out(server, model, ask):
    said = "tool_choice: only auto is supported"
    server.will(server.fails(400, f'{{"error": {{"message": "{said}"}}}}'), server.says("a"))
    request = ask("hi", tools=True)
    request.tool_choice = "required"
    await model.complete(request)
    assert [body["tool_choice"] for body in server.asked] == ["required", "auto"]


async def test_server_refusing_stream_usage_is_asked_without(server, model, ask):
    refusal = server.fails(400, '{"error": {"message": "Unknown field: stream_options"}}')
    server.will(refusal, server.streams(delta(content="fine")))
    assert (await model.complete(ask(stream=True))).text == "fine"
    assert (await model.complete(ask(stream=True))).text == "fine"
    assert ["stream_options" in body for body in server.asked] == [True, False, False]


async def test_429_then_an_answer_is_an_answer(server, model, ask):
    server.will(server.fails(429), server.says("Now."))
    assert (await model.complete(ask())).text == "Now."
    assert len(server.asked) == 2


async def test_500_for_ever_ends_after_the_retries(server, model, ask):
    server.will(server.fails(500, "out of memory " * 100))
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    problem = caught.value
    assert str(problem).startswith("Ollama said: “out of memory out of memory")
    assert len(problem.server_sentence) == 240
    assert (problem.upstream_status, problem.model, problem.do) == (500, "small", "choose a smaller model")
    assert problem.detail.startswith("out of memory")
    assert len(problem.detail) == 300
    assert len(server.asked) == 1  # it would not have more memory a second later


async def test_an_error_that_may_pass_is_tried_again_and_then_told(server, model, ask):
    server.will(server.fails(500))
    with pytest.raises(ModelUnavailableError, match="Ollama answered 500 for model 'small'"):
        await model.complete(ask())
    assert len(server.asked) == 3


@pytest.mark.parametrize("header", [{"retry_after": "60"}, {"retry_after_ms": "60000"}])
async def test_a_long_wait_asked_for_by_the_server_is_not_waited_for(server, model, ask, header):
    server.will(server.fails(429, "slow down", **header))
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    assert str(caught.value) == "Ollama said: “slow down”. It asks to wait 60 s."
    assert (caught.value.meaning, caught.value.wait) == ("limit", 60)
    assert len(server.asked) == 1


async def test_a_spent_quota_is_named_whatever_its_status(server, model, ask):
    server.will(server.fails(402, "Monthly quota used up"))
    with pytest.raises(ModelUnavailableError, match="Ollama said: “Monthly quota used up”") as caught:
        await model.complete(ask())
    assert caught.value.meaning == "quota"


@pytest.mark.parametrize(
    ("status", "do"),
    [
        (401, "check the key"),
        (404, "choose another model"),
        (302, "set provider.url to the address where it really is"),
    ],
)
async def test_a_refusal_says_what_to_do(server, model, ask, status, do):
    server.will(server.fails(status))
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    assert caught.value.upstream_status == status
    assert caught.value.do == do


async def test_nobody_there(unused_tcp_port, ask):
    model = OpenAIServer(
        ServerAddress(f"http://127.0.0.1:{unused_tcp_port}/v1", "m"),
        ServerWording("Ollama", do="start Ollama"),
        RequestLimits(max_retries=0),
    )
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    assert (str(caught.value), caught.value.do) == ("Ollama doesn't answer.", "start Ollama")
    assert caught.value.upstream_status == 0
    await model.close()


async def test_too_slow(server, ask):
    server.will(server.hangs())
    model = OpenAIServer(
        ServerAddress(f"{server.url}/v1", "m"), ServerWording("Ollama"), RequestLimits(0, 0.05)
    )
    with pytest.raises(ModelUnavailableError, match=r"Ollama took longer than 0\.05 s"):
        await model.complete(ask())
    await model.close()


async def test_nobody_is_held_longer_than_a_second_for_a_retry(server, ask):
    server.will(server.fails(500, retry_after="9"))
    model = OpenAIServer(ServerAddress(f"{server.url}/v1", "m"), ServerWording("Ollama"))
    with pytest.raises(ModelUnavailableError, match="It asks to wait 9 s"):
        await model.complete(ask())
    assert len(server.asked) == 1
    await model.close()


async def test_no_choices(server, model, ask):
    server.will(server.answers(choices=[]))
    with pytest.raises(ModelUnavailableError, match="Ollama answered, but not in the way of OpenAI"):
        await model.complete(ask())
    server.will(server.streams({"choices": []}))
    with pytest.raises(ModelUnavailableError, match="Ollama answered, but not in the way of OpenAI"):
        await model.complete(ask(stream=True))


@pytest.mark.parametrize(
    ("body", "told"),
    [(b"{nonsense", "no JSON"), (b"<html>hello</html>", "a web page"), (b"\xff\xfe", "no JSON")],
)
async def test_an_unreadable_answer(server, model, ask, body, told):
    server.will(server.raw(body))
    with pytest.raises(ModelUnavailableError, match=f"answered with {told}: that is not a model server"):
        await model.complete(ask())


async def test_an_unreadable_answer_is_kept_for_the_transcript(server, model, ask):
    server.will(server.raw(b"<html>Router login</html>", "text/html"))
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    assert "Router login" in caught.value.detail


async def test_a_piece_of_a_stream_that_cannot_be_read_is_told(server, model, ask):
    server.will(server.streams(delta(content="It "), "{nonsense", delta(content="rains.")))
    completion = await model.complete(ask(stream=True))
    assert completion.text == "It rains."
    assert completion.notice == "A piece of the answer could not be read."


async def test_text_before_an_error_in_the_stream_is_kept_and_marked(server, model, ask):
    server.will(server.streams(delta(content="It "), {"error": {"message": "CUDA out of memory"}}))
    completion = await model.complete(ask(stream=True))
    assert (completion.text, completion.cut) == ("It ", True)
    assert completion.notice == (
        "Ollama said: “CUDA out of memory”; the answer is not whole — choose a smaller model."
    )
    with pytest.raises(ModelUnavailableError, match="CUDA out of memory"):
        await model.complete(ask())  # nobody saw anything of it: another may answer instead


async def test_text_before_a_cut_is_kept_and_marked(server, model, ask):
    server.will(server.streams(delta(content="It "), cut=True))
    completion = await model.complete(ask(stream=True))
    assert (completion.text, completion.cut) == ("It ", True)
    assert completion.notice == "Ollama broke off; the answer is not whole — ask again."


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_answer_cut_in_the_middle(server, ask, streaming):
    server.will(server.breaks_off())
    model = OpenAIServer(ServerAddress(f"{server.url}/v1", "m"), ServerWording("Ollama"), RequestLimits(0))
    with pytest.raises(ModelUnavailableError, match="Ollama broke off before it had answered"):
        await model.complete(ask(stream=streaming))
    await model.close()


@pytest.mark.parametrize("streaming", [False, True])
async def test_cancelling_hangs_up_on_the_server(server, model, ask, streaming):
    server.will(server.hangs(*([delta(content="It ")] if streaming else [])))
    turn = asyncio.create_task(model.complete(ask(stream=streaming)))
    await server.reached.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await server.hung_up.wait()


async def test_cancelling_as_the_answer_begins_hangs_up_on_the_server(server, model, ask, monkeypatch):
    """The cancel comes in the moment in which the head of the answer is there, and nobody has taken it yet."""
    server.will(server.hangs(delta(content="It ")))
    wait = asyncio.wait

    async def cancelled_as_it_comes(tasks, **how):
        await wait(tasks, **how)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError) as kept:
        patched.setattr(asyncio, "wait", cancelled_as_it_comes)
        await model.complete(ask(stream=True))
    await server.hung_up.wait()
    del kept  # its frames hold the answer until here: to be forgotten is no hanging up


async def test_the_models_of_a_server(server, model):
    assert await model.models() == [{"id": "small", "name": "small"}, {"id": "big", "name": "big"}]


async def test_another_address_and_key_from_the_next_answer_on(server, other_server, model, ask):
    server.will(server.says("one"))
    other_server.will(other_server.says("two"))
    assert (await model.complete(ask())).text == "one"
    model.point(f"{other_server.url}/v1", "sk-another-key")
    assert (await model.complete(ask())).text == "two"
    assert other_server.headers[0]["Authorization"] == "Bearer sk-another-key"


async def test_azure_url_has_deployment_and_key_header(server, ask):
    server.will(server.says("From Azure.", model="gpt-4o-2024-08-06"))
    azure = Azure(server.url, "my-gpt", KEY, "2024-10-21")
    model = OpenAIServer(azure, ServerWording("Azure OpenAI"))
    completion = await model.complete(ask())
    assert (completion.text, completion.model) == ("From Azure.", "gpt-4o-2024-08-06")
    assert server.targets == ["/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"]
    assert server.headers[0]["api-key"] == KEY
    assert await model.models() == [{"id": "my-gpt", "name": "my-gpt"}]
    assert KEY not in repr(azure)
    await model.close()


async def test_no_key_sends_nobody_elses(server, ask, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "somebody-elses")
    server.will(server.says("ok"))
    model = OpenAIServer(ServerAddress(f"{server.url}/v1", "m"))
    await model.complete(ask())
    assert "somebody-elses" not in str(server.headers)
    await model.close()


async def test_a_login_in_the_address_is_sent_but_never_shown(server, ask, caplog):
    caplog.set_level(logging.DEBUG)
    server.will(server.fails(403, "no"))
    address = server.url.replace("http://", "http://me:pass-word-1@")
    model = OpenAIServer(ServerAddress(f"{address}/v1", "m"), ServerWording("proxy"))
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    assert server.headers[0]["Authorization"].startswith("Basic ")
    assert "pass-word-1" not in caplog.text + str(caught.value) + caught.value.detail
    await model.close()


@pytest.mark.parametrize("how", ["echo", "stream", "nobody"])
async def test_the_key_is_in_no_error_and_no_log(server, ask, caplog, unused_tcp_port, how):
    caplog.set_level(logging.DEBUG)
    url = f"http://127.0.0.1:{unused_tcp_port}/v1" if how == "nobody" else f"{server.url}/v1"
    echo = f"Incorrect API key provided: {KEY}"
    server.will(server.streams({"error": {"message": echo}}) if how == "stream" else server.fails(401, echo))
    model = OpenAIServer(ServerAddress(url, "m", KEY), limits=RequestLimits(0))
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask(stream=how == "stream"))
    problem = caught.value
    everything = (
        "".join(traceback.format_exception(problem)) + repr(problem) + repr(vars(problem)) + caplog.text
    )
    assert KEY not in everything
    assert problem.__context__ is None
    assert problem.__cause__ is None
    await model.close()


async def test_nothing_blocks_the_loop_on_first_use_or_later(server, ask):
    server.will(server.says("one"), server.streams(delta(content="two")))
    model = OpenAIServer(ServerAddress(f"{server.url}/v1", "m"))
    with blockbuster_ctx():
        assert (await model.complete(ask())).text == "one"
        assert (await model.complete(ask(stream=True))).text == "two"
        await model.close()
