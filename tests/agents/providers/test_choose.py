"""The choice of a provider, and the fallback when it fails."""

from __future__ import annotations

import asyncio
import logging

import orjson
import pytest
from aiohttp import web
from blockbuster import blockbuster_ctx

from agents.errors import ModelUnavailableError
from agents.providers.selection import (
    ProviderDescription,
    ProviderSelector,
    ProviderSettings,
    UnknownModelError,
)

KEY = "sk-secret-1234567890abcdef"
NOTICE = "; replied without it"


@pytest.fixture
async def think(offline):
    made: list[ProviderSelector] = []

    def build(**settings) -> ProviderSelector:
        settings = {
            "local_servers": (),
            "use_local": True,
            "github_gh": False,
            "max_retries": 0,
            "probe_timeout": 10.0,
            **settings,
        }
        others = {name: settings.pop(name, None) for name in ("remember", "worker_serves")}
        thinking = ProviderSelector(ProviderSettings(**settings), offline, **others)
        made.append(thinking)
        return thinking

    yield build
    for thinking in made:
        await thinking.close()


def offline_turn(completion, result="no rain"):
    """The messages of a turn after keyword matching's call was run."""
    (call,) = completion.tool_calls
    function = {"name": call.name, "arguments": call.arguments}
    return [
        {"role": "user", "content": "rain?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result},
    ]


# In order


async def test_offline_brain_answers_without_a_notice(think, ask):
    thinking = think()
    completion = await thinking.complete(ask())
    assert (completion.text, completion.notice) == ("(no model) I can: Weather, Clock.", "")
    assert thinking.describe() == ProviderDescription(
        "no model", "", "this machine", "no model", "start Ollama, or rappd models connect"
    )
    assert (thinking.name, thinking.current) == ("no model", "offline")
    assert await thinking.models() == [{"id": "offline", "name": "no model"}]


async def test_what_is_configured_comes_before_everything(think, server, github, ask):
    server.will(server.says("configured"))
    thinking = think(
        provider_url=server.url,
        model="big",
        api_key=KEY,
        fake=True,
        github_token="ghp_x",
        github_api=github.url,
    )
    assert (await thinking.complete(ask())).text == "configured"
    assert server.models == ["big"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    described = thinking.describe()
    assert (described.model, described.where, described.state) == ("big", server.url[7:], "ready")
    assert github.exchanges == []


async def test_azure_can_be_what_is_configured(think, server, ask):
    server.will(server.says("azure"))
    thinking = think(azure_endpoint=server.url, azure_deployment="dep", azure_key=KEY)
    assert (await thinking.complete(ask())).text == "azure"
    assert server.targets == ["/openai/deployments/dep/chat/completions?api-version=2024-10-21"]
    assert (thinking.name, thinking.current) == ("Azure OpenAI", "dep")


async def test_the_fake_model_comes_before_a_local_server(think, server, ask):
    thinking = think(fake=True, local_servers=(server.url,))
    thinking.start()
    await thinking.look()
    assert (await thinking.complete(ask("hi"))).text == "fake-llm: hi"
    assert (await thinking.complete(ask(tools=True))).tool_calls[0].name == "Weather"
    assert server.listings == 0
    assert (thinking.name, thinking.model) == ("fake model", "fake-llm")
    assert thinking.meter.rounds == 2
    assert ask.prompts == 0


async def test_local_server_gets_its_first_chat_model(think, server, ask):
    server.listed = [{"id": "nomic-embed-text"}, {"id": "llama3.2"}, {"id": "qwen3"}]
    server.will(server.says("local"))
    thinking = think(local_servers=("http://127.0.0.1:9", server.url), github_token="ghp_x")
    thinking.start()
    assert (await thinking.complete(ask())).text == "local"
    assert server.models == ["llama3.2"]
    assert thinking.current == "llama3.2"


async def test_local_server_that_is_slow_to_list_is_found(think, unused_tcp_port):
    async def listing(request: web.Request) -> web.Response:
        await asyncio.sleep(0.8)
        return web.json_response({"data": [{"id": "llama3.2"}]})

    app = web.Application()
    app.router.add_get("/v1/models", listing)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    thinking = think(
        local_servers=(f"http://127.0.0.1:{unused_tcp_port}",), probe_timeout=ProviderSettings().probe_timeout
    )
    await thinking.look()
    assert thinking.current == "llama3.2"
    await runner.cleanup()


async def test_the_first_local_server_in_the_list_wins(think, server, other_server, ask):
    server.will(server.says("first"))
    other_server.will(other_server.says("second"))
    thinking = think(local_servers=(server.url, other_server.url))
    await thinking.look()
    assert (await thinking.complete(ask())).text == "first"


@pytest.mark.parametrize("body", [{"data": []}, {"data": None}, {"data": [{"name": "x"}]}, ["x"], "hello", 7])
async def test_something_else_on_a_usual_port_is_no_model_server(think, server, ask, body):
    server.listing_body = body
    thinking = think(local_servers=(server.url,))
    await thinking.look()
    assert (await thinking.complete(ask())).text.startswith("(no model)")


async def test_nothing_is_looked_for_unless_told(think, server, ask):
    thinking = think(local_servers=(server.url,))
    await thinking.complete(ask())
    thinking.describe()
    assert server.listings == 0


async def test_looking_goes_on_until_a_server_answers(think, server, ask):
    listed, server.listed = server.listed, []
    server.will(server.says("local"))
    thinking = think(local_servers=(server.url,), probe_every=0.01)
    thinking.start()
    assert (await thinking.complete(ask())).text.startswith("(no model)")
    server.listed = listed
    async with asyncio.timeout(100):
        while thinking.current != "small":
            await asyncio.sleep(0.005)
    assert (await thinking.complete(ask())).text == "local"


async def test_copilot_is_used_with_a_token(think, github, ask):
    github.will(github.says("copilot"))
    thinking = think(github_token="ghp_x", github_api=github.url)
    assert thinking.copilot_state == "pending"
    assert (await thinking.complete(ask())).text == "copilot"
    assert (thinking.name, thinking.current) == ("GitHub Copilot", "gpt-4o")
    assert thinking.copilot_state == "✓"
    assert github.models == ["gpt-4o"]


async def test_the_pinned_copilot_model_is_asked(think, github, ask):
    github.will(github.says("copilot"))
    thinking = think(github_token="ghp_x", github_api=github.url, github_model="gpt-4.1")
    await thinking.complete(ask())
    assert github.models == ["gpt-4.1"]


async def test_copilot_that_was_not_chosen_is_never_asked(think, server, github, ask, tmp_path):
    github.will(github.says("copilot"))
    thinking = think(
        github_token="ghp_x",
        github_web=github.url,
        github_api=github.url,
        use_copilot=False,
        local_servers=(server.url,),
        state_dir=tmp_path,
    )
    server.listed = []
    await thinking.look()
    await thinking.login.start()
    github.on_poll = [{"access_token": "ghu_x"}]
    await thinking.login.poll()
    assert (await thinking.complete(ask())).text.startswith("(no model)")
    assert (thinking.kind, github.models) == ("", [])


async def test_signing_in_is_enough_to_use_copilot(think, github, ask, tmp_path):
    github.will(github.says("copilot"))
    thinking = think(github_web=github.url, github_api=github.url, state_dir=tmp_path)
    assert thinking.copilot_state == ""
    await thinking.login.start()
    github.on_poll = [{"access_token": "ghu_x"}]
    await thinking.login.poll()
    assert (await thinking.complete(ask())).text == "copilot"
    later = think(github_web=github.url, github_api=github.url, state_dir=tmp_path)
    await later.look()
    assert (await later.complete(ask())).text == "copilot"


async def test_account_without_copilot_is_reported_once(think, github, ask):
    github.on_exchange = [403]
    thinking = think(github_token="ghp_x", github_api=github.url)
    first = await thinking.complete(ask())
    assert first.notice == f"This GitHub account has no Copilot{NOTICE} — sign in with another account."
    assert (await thinking.complete(ask())).notice == ""
    assert len(github.exchanges) == 1
    assert thinking.copilot_state == "no_access"
    described = thinking.describe()
    assert (described.name, described.state, described.do) == (
        "no model", "no model", "sign in with another account"
    )  # fmt: skip


async def test_another_account_is_tried_after_one_without_copilot(think, github, ask, tmp_path):
    github.on_exchange = [403, 200]
    github.will(github.says("copilot"))
    github.on_poll = [{"access_token": "ghu_without"}, {"access_token": "ghu_with"}]
    thinking = think(github_web=github.url, github_api=github.url, state_dir=tmp_path)
    for notice in (f"This GitHub account has no Copilot{NOTICE} — sign in with another account.", ""):
        await thinking.login.switch()
        await thinking.login.poll()
        completion = await thinking.complete(ask())
        assert completion.notice == notice
    assert completion.text == "copilot"


# Only by a model


async def test_turn_uses_any_copilot_model_that_answers(think, github, ask):
    github.listed = [{"id": "gpt-4.1"}, {"id": "gpt-4o"}]
    github.will(github.fails(400), github.says("from another"))
    thinking = think(github_token="ghp_x", github_api=github.url, github_model="gpt-4.1")
    assert thinking.has_model
    completion = await thinking.model_turn(ask())
    assert (completion.text, completion.notice) == ("from another", "gpt-4.1 didn't answer; gpt-4o did.")


async def test_a_model_turn_is_never_answered_by_the_offline_brain(think, server, ask):
    server.will(server.fails(500))
    with pytest.raises(ModelUnavailableError):
        await think(provider_url=server.url, model="m").model_turn(ask())
    nothing = think()
    assert not nothing.has_model
    with pytest.raises(ModelUnavailableError):
        await nothing.model_turn(ask())


# When it fails


async def test_failed_model_is_replaced_offline_with_notice(think, server, ask):
    server.will(server.fails(500, "boom"))
    thinking = think(provider_url=server.url, model="m")
    request = ask()
    completion = await thinking.complete(request)
    assert completion.text == "(no model) I can: Weather, Clock."
    assert completion.model == "offline"
    assert completion.notice.endswith(
        " said: “boom”; replied without it — ask again, or choose another model."
    )
    problem = request.extra["problem"]
    assert isinstance(problem, ModelUnavailableError)
    assert (problem.upstream_status, problem.detail, problem.model) == (500, "boom", "m")
    assert thinking.meter.degraded == 1


async def test_a_stopped_local_server_is_named_by_its_program(think, ask, unused_tcp_port, monkeypatch):
    monkeypatch.setattr("agents.providers.local_servers._NAMES", {unused_tcp_port: "Ollama"})
    thinking = think(provider_url=f"http://127.0.0.1:{unused_tcp_port}", model="m")
    completion = await thinking.complete(ask())
    assert completion.notice == "Ollama doesn't answer; replied without it — start Ollama."
    assert thinking.describe().state == "doesn't answer"
    assert thinking.describe().do == "start Ollama"


@pytest.mark.parametrize("status", [401, 429, 500, 503])
async def test_next_question_reaches_the_server_whatever_the_last_error(think, server, ask, status):
    """No error silences a model: not of another turn either, while one is under way."""
    server.will(server.fails(status, "no", retry_after="50"), server.hangs())
    thinking = think(provider_url=server.url, model="m")
    assert NOTICE in (await thinking.complete(ask())).notice.replace(". Replied", "; replied")
    described = thinking.describe()
    assert (described.state, described.refusal[:20]) == ("refused", f"{described.name} said: “no”"[:20])
    assert described.refused_at > 0
    under_way = asyncio.create_task(thinking.complete(ask()))
    await server.reached.wait()
    server.will(server.says("back"))
    completion = await thinking.complete(ask())
    assert (completion.text, completion.notice) == ("back", "")
    assert (thinking.describe().state, thinking.describe().refusal) == ("ready", "")
    server.release.set()
    await under_way


async def test_refused_request_does_not_block_others(think, server, ask):
    server.will(server.fails(400, "context too long"), server.says("fine"))
    thinking = think(provider_url=server.url, model="m")
    assert (await thinking.complete(ask())).notice.count(NOTICE) == 1
    assert (await thinking.complete(ask())).text == "fine"


async def test_the_offline_brain_keeps_a_turn_it_took_over(think, server, ask, offline):
    server.will(server.fails(500), server.says("the model again"))
    thinking = think(provider_url=server.url, model="m")
    first = await thinking.complete(ask("rain?", tools=True))
    assert first.tool_calls[0].name == "Weather"
    second = await thinking.complete(ask(tools=True, round=1, messages=offline_turn(first)))
    assert second.text.startswith("(no model)")
    assert len(server.asked) == 1
    assert (await thinking.complete(ask("and now?"))).text == "the model again"


async def test_model_failure_after_call_leaves_rest_to_offline(think, server, ask, offline):
    server.will(server.calls(("c9", "Weather", "{}")), server.fails(500))
    thinking = think(provider_url=server.url, model="m")
    first = await thinking.complete(ask("rain?", tools=True))
    assert first.tool_calls[0].id == "c9"
    second = await thinking.complete(ask(tools=True, round=1, messages=offline_turn(first)))
    assert second.notice.count(NOTICE) == 1
    assert offline.asked[-1].messages[-1]["content"] == "no rain"


async def test_a_local_server_that_stops_is_dropped_for_copilot(think, server, github, ask):
    server.will(server.says("local"))
    github.will(github.says("copilot"))
    thinking = think(local_servers=(server.url,), github_token="ghp_x", github_api=github.url)
    thinking.start()
    assert (await thinking.complete(ask())).text == "local"
    server.listed = []
    server.will(server.raw(b"{nonsense"))
    assert (await thinking.complete(ask())).notice.count(NOTICE) == 1
    async with asyncio.timeout(100):
        while thinking.name != "GitHub Copilot":
            await asyncio.sleep(0.005)
    assert (await thinking.complete(ask())).text == "copilot"


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelled_turn_ends_the_model_request(think, server, ask, offline, stream):
    server.will(server.hangs(*([{"choices": [{"delta": {"content": "It "}}]}] if stream else [])))
    thinking = think(provider_url=server.url, model="m")
    turn = asyncio.create_task(thinking.complete(ask(stream=stream)))
    await server.reached.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await server.hung_up.wait()
    assert offline.asked == []


# Models


async def test_the_models_of_the_provider_in_use(think, server):
    thinking = think(provider_url=server.url, model="small")
    assert await thinking.models() == [{"id": "small", "name": "small"}, {"id": "big", "name": "big"}]


async def test_choosing_a_model_is_remembered_and_asked_for(think, server, ask):
    kept = []

    async def remember(model: str) -> None:
        kept.append(model)

    server.will(server.says("ok", model="big-2024"))
    thinking = think(provider_url=server.url, model="small", remember=remember)
    assert await thinking.set_model("big") == {"model": "big"}
    assert thinking.current == "big"
    completion = await thinking.complete(ask())
    assert (server.models, completion.model) == (["big"], "big-2024")
    assert await thinking.set_model("auto") == {"model": "small", "auto": True}
    await thinking.complete(ask())
    assert server.models == ["big", "small"]
    assert kept == ["big", ""]


async def test_an_unknown_model_is_refused_with_those_there_are(think, server):
    thinking = think(provider_url=server.url, model="small")
    with pytest.raises(UnknownModelError) as caught:
        await thinking.set_model("huge")
    assert str(caught.value) == "Unknown model. Available: ['small', 'big']"
    assert caught.value.status == 400
    assert thinking.current == "small"


async def test_foreign_providers_model_is_not_requested(think, server, ask):
    server.will(server.says("ok"))
    thinking = think(provider_url=server.url, model="small", chosen_model="claude-haiku-4.5")
    await thinking.complete(ask())
    assert server.models == ["small"]
    assert thinking.current == "small"


async def test_a_turn_may_ask_for_its_own_model(think, server, ask):
    server.will(server.says("ok"))
    thinking = think(provider_url=server.url, model="small", chosen_model="small")
    await thinking.complete(ask(model="big"))
    await thinking.complete(ask(model="unheard-of"))
    assert server.models == ["big", "small"]


async def test_unnamed_model_asks_the_configured_server(think, server, ask):
    server.listed = [{"id": "text-embedding-3"}, {"id": "mistral"}]
    server.will(server.says("ok"))
    thinking = think(provider_url=server.url)
    thinking.start()
    await thinking.complete(ask())
    assert server.models == ["mistral"]
    assert thinking.current == "mistral"


# Prices


async def test_the_cost_is_that_of_the_model_that_answered(think, server, ask):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    server.will(server.says("a", usage=usage, model="small"), server.says("b", usage=usage, model="big"))
    thinking = think(provider_url=server.url, model="small", price_in="small=2", price_out="small=10")
    first, second = [await thinking.complete(ask()) for _ in range(2)]
    assert first.cost_usd == pytest.approx(0.003)
    assert second.cost_usd is None


async def test_the_offline_brain_states_no_cost(think, ask):
    assert (await think(price_in="2", price_out="10").complete(ask())).cost_usd is None


# Configuration


async def test_changed_settings_count_for_the_next_turn(think, server, other_server, ask):
    first_half = {"choices": [{"delta": {"content": "slow"}}]}
    server.will(server.hangs(first_half))
    other_server.will(other_server.says("new"))
    thinking = think(provider_url=server.url, model="m")
    active_requests = asyncio.create_task(thinking.complete(ask(stream=True)))
    await server.reached.wait()
    await thinking.configure(
        ProviderSettings(provider_url=other_server.url, model="n", local_servers=(), github_gh=False)
    )
    assert (await thinking.complete(ask())).text == "new"
    server.release.set()
    assert (await active_requests).text == "slow"


async def test_a_sign_in_under_way_survives_other_settings(think, github, ask, tmp_path):
    thinking = think(github_web=github.url, github_api=github.url)
    await thinking.login.start()
    await thinking.configure(
        ProviderSettings(
            github_web=github.url, github_api=github.url, local_servers=(), github_gh=False, timeout=30
        )
    )
    assert (await thinking.login.status())["pending"] is True


async def test_switching_the_fake_model_on_and_off(think, ask):
    thinking = think()
    await thinking.configure(ProviderSettings(fake=True))
    assert (await thinking.complete(ask("hi"))).text == "fake-llm: hi"
    await thinking.configure(ProviderSettings(local_servers=(), github_gh=False))
    assert (await thinking.complete(ask("hi"))).text.startswith("(no model)")


async def test_closing_stops_the_search_and_closes_the_offline_brain(think, server, ask, offline):
    thinking = think(local_servers=(server.url,), probe_every=0.001)
    server.listed = []
    thinking.start()
    await thinking.complete(ask())
    await thinking.close()
    assert offline.closed
    seen = server.listings
    server.will(server.says("ok"))
    other = think(provider_url=server.url, model="m")
    for _ in range(5):
        await other.complete(ask())
    assert server.listings == seen + 1  # asked once what it is, and looked for no more


async def test_the_meter_counts_rounds_and_tokens(think, server, ask):
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    server.will(server.says("a", usage=usage), server.says("b", usage=usage))
    thinking = think(provider_url=server.url, model="m")
    await thinking.complete(ask())
    await thinking.complete(ask())
    meter = thinking.meter
    assert (meter.rounds, meter.degraded, meter.input_tokens, meter.output_tokens) == (2, 0, 14, 6)


async def test_no_secret_in_any_representation(think, server, ask, caplog):
    caplog.set_level(logging.DEBUG)
    server.will(server.fails(401, f"bad key {KEY}"))
    settings = ProviderSettings(
        provider_url=server.url, api_key=KEY, azure_key=KEY, github_token="ghp_verysecret99", local_servers=()
    )
    thinking = think(provider_url=server.url, api_key=KEY, model="m")
    request = ask()
    completion = await thinking.complete(request)
    shown = f"{settings!r}{thinking.describe()}{completion}{request.extra['problem'].as_json()}{caplog.text}"
    assert KEY not in shown
    assert "ghp_verysecret99" not in shown


async def test_nothing_blocks_the_loop(think, server, github, ask, tmp_path):
    server.will(server.says("local"))
    github.will(github.says("copilot"))
    with blockbuster_ctx():
        thinking = think(
            local_servers=(server.url,), github_web=github.url, github_api=github.url, state_dir=tmp_path
        )
        thinking.start()
        assert (await thinking.complete(ask())).text == "local"
        (await thinking.login.start())["user_code"]
        github.on_poll = [{"access_token": "ghu_x"}]
        await thinking.login.poll()
        await thinking.configure(
            ProviderSettings(
                local_servers=(),
                github_web=github.url,
                github_api=github.url,
                state_dir=tmp_path,
                github_gh=False,
            )
        )
        await thinking.look()
        assert (await thinking.complete(ask())).text == "copilot"
    assert orjson.loads((tmp_path / "copilot_session.json").read_bytes())["token"].startswith("tid=")


# Servers that the operator did not configure


async def test_local_server_waits_for_a_yes(think, server, ask):
    server.will(server.says("local"))
    thinking = think(local_servers=(server.url,), use_local=False)
    thinking.start()
    assert (await thinking.complete(ask())).text.startswith("(no model)")
    assert server.asked == []
    assert thinking.offered.label == f"local model {server.url}"
    assert thinking.describe().do == "rappd models use local"


async def test_local_server_is_used_after_a_yes(think, server, other_server, ask):
    server.will(server.says("first"))
    other_server.will(other_server.says("accepted"))
    thinking = think(
        local_servers=(server.url, other_server.url),
        use_local=False,
        accepted_local=f"local model {other_server.url}",
    )
    await thinking.look()
    assert (await thinking.complete(ask())).text == "accepted"
    assert thinking.offered is None
    assert server.asked == []


async def test_yes_to_one_kind_of_server_is_none_to_another(think, server, ask):
    thinking = think(local_servers=(server.url,), use_local=False, accepted_local=f"Ollama {server.url}")
    await thinking.look()
    assert (await thinking.complete(ask())).text.startswith("(no model)")
    assert thinking.offered is not None


async def test_found_server_gets_the_request_without_structural_tools(think, server, ask):
    server.will(server.says("local"))
    thinking = think(local_servers=(server.url,))
    await thinking.look()
    request = ask(tools=True)
    request.everyday = lambda _: ask()
    completion = await thinking.complete(request)
    assert completion.unconfigured
    assert "tools" not in server.asked[0]


async def test_configured_server_gets_the_whole_request(think, server, ask):
    server.will(server.says("configured"))
    thinking = think(provider_url=server.url, model="m")
    request = ask(tools=True)
    request.everyday = lambda _: ask()
    completion = await thinking.complete(request)
    assert not completion.unconfigured
    assert server.asked[0]["tools"]


async def test_found_server_of_a_worker_is_refused(think, server, ask):
    thinking = think(local_servers=(server.url,), worker_serves=lambda server, client: True)
    await thinking.look()
    assert (await thinking.complete(ask())).text.startswith("(no model)")
    assert thinking.refused == (f"local model {server.url}",)
    assert thinking.offered is None


async def test_new_connection_to_a_worker_carries_nothing(think, server, ask):
    seen = []

    def worker_serves(address, client):
        seen.append((address, client))
        return client is not None

    thinking = think(provider_url=server.url, model="m", api_key=KEY, worker_serves=worker_serves)
    request = ask()
    completion = await thinking.complete(request)
    assert completion.notice.count(NOTICE) == 1
    assert "An agent listens at 127.0.0.1:" in str(request.extra["problem"])
    assert (server.asked, server.headers) == ([], [])
    (address, client) = seen[-1]
    assert address == ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    assert client[0] == "127.0.0.1"


async def test_connection_that_is_kept_open_is_checked_once(think, server, ask):
    seen = []
    server.will(server.says("a"), server.says("b"))
    thinking = think(
        provider_url=server.url, model="m", worker_serves=lambda address, client: bool(seen.append(client))
    )
    assert (await thinking.complete(ask())).text == "a"
    assert (await thinking.complete(ask())).text == "b"
    assert len([client for client in seen if client]) == 1
