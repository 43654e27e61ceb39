"""Copilot: the exchange, the session's life, and other models when the asked one is refused."""

from __future__ import annotations

import asyncio
import logging
import stat
import traceback

import orjson
import pytest
from blockbuster import blockbuster_ctx

from agents.errors import ModelUnavailableError
from agents.providers.copilot import Copilot
from agents.providers.copilot_session import CopilotSessions
from agents.providers.github_token import GitHubToken

CATALOGUE = [
    {"id": "gpt-4.1", "name": "GPT-4.1", "capabilities": {"type": "chat"}, "policy": {"state": "enabled"}},
    {"id": "gpt-4o", "name": "GPT-4o", "capabilities": {"type": "chat"}},
    {"id": "claude", "name": "Claude", "capabilities": {"type": "chat"}, "policy": {"state": "disabled"}},
    {"id": "text-embedding-3", "name": "Embedding", "capabilities": {"type": "embeddings"}},
    {"id": "mini", "name": "Mini", "capabilities": {"type": "chat"}},
]


@pytest.fixture
def make(github, tmp_path, clock):
    github.now = clock

    def build(token="ghp_given", model="", **options):
        tokens = GitHubToken(token, tmp_path / "token.json", gh=False, web=github.url)
        sessions = CopilotSessions(tokens, tmp_path / "copilot_session.json", api=github.url, clock=clock)
        return Copilot(sessions, model=model, max_retries=0, **options)

    github.will(github.says("hello", model="gpt-4o-2024-11-20"))
    github.listed = CATALOGUE
    return build


@pytest.mark.parametrize(("token", "scheme"), [("ghu_abc", "token"), ("ghp_abc", "Bearer")])
async def test_the_token_is_exchanged_and_the_session_answers(make, github, ask, token, scheme):
    copilot = make(token)
    assert copilot.sessions.state == "pending"
    completion = await copilot.complete(ask())
    assert (completion.text, completion.model, completion.notice) == ("hello", "gpt-4o-2024-11-20", "")
    assert github.exchanges == [f"{scheme} {token}"]
    assert github.targets == ["/copilot/chat/completions"]
    assert github.headers[0]["Authorization"] == "Bearer tid=session1;exp=1"
    assert github.headers[0]["Copilot-Integration-Id"] == "vscode-chat"
    assert copilot.sessions.state == "✓"


async def test_one_session_serves_many_turns_and_the_next_process(make, github, ask, tmp_path):
    copilot = make()
    await asyncio.gather(*(copilot.complete(ask()) for _ in range(5)))
    await make().complete(ask())
    assert len(github.exchanges) == 1
    path = tmp_path / "copilot_session.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {"token", "endpoint", "expires_at"} <= set(orjson.loads(path.read_bytes()))


async def test_a_session_is_renewed_a_minute_before_its_end(make, github, ask, clock):
    copilot = make()
    await copilot.complete(ask())
    clock.now += github.session_lasts - 62
    await copilot.complete(ask())
    assert len(github.exchanges) == 1
    clock.now += 3
    await copilot.complete(ask())
    assert len(github.exchanges) == 2


async def test_another_accounts_session_is_not_used(make, github, ask):
    await make("ghp_one").complete(ask())
    await make("ghp_two").complete(ask())
    assert github.exchanges == ["Bearer ghp_one", "Bearer ghp_two"]


async def test_a_session_file_written_by_another_program_is_used(make, github, ask, tmp_path, clock):
    session = {"token": "tid=elsewhere", "endpoint": f"{github.url}/copilot", "expires_at": clock.now + 900}
    (tmp_path / "copilot_session.json").write_bytes(orjson.dumps(session))
    await make().complete(ask())
    assert github.exchanges == []
    assert github.headers[0]["Authorization"] == "Bearer tid=elsewhere"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"token": "t", "endpoint": "e", "expires_at": "soon"}']
)
async def test_a_damaged_session_file_is_passed_over(make, github, ask, tmp_path, content):
    (tmp_path / "copilot_session.json").write_bytes(content)
    assert (await make().complete(ask())).text == "hello"


async def test_a_401_is_answered_with_a_new_session_once(make, github, ask):
    copilot = make()
    await copilot.complete(ask())
    github.refuse_sessions = {"tid=session1;exp=1"}
    assert (await copilot.complete(ask())).text == "hello"
    assert len(github.exchanges) == 2
    github.refuse_sessions = {f"tid=session{number};exp=1" for number in range(1, 9)}
    with pytest.raises(ModelUnavailableError) as caught:
        await copilot.complete(ask())
    assert caught.value.upstream_status == 401
    assert len(github.exchanges) == 3


async def test_turns_that_meet_the_same_dead_session_share_the_new_one(make, github, ask):
    copilot = make()
    dead = await copilot.sessions.get()
    await copilot.sessions.end(dead)
    fresh = await copilot.sessions.get()
    await copilot.sessions.end(dead)
    assert await copilot.sessions.get() == fresh
    assert len(github.exchanges) == 2


async def test_a_stale_github_token_is_renewed_for_the_exchange(make, github, ask, tmp_path):
    (tmp_path / "token.json").write_bytes(orjson.dumps({"access_token": "ghu_old", "refresh_token": "ghr_1"}))
    github.on_exchange = [401, 200]
    github.on_poll = [{"access_token": "ghu_new"}]
    assert (await make("").complete(ask())).text == "hello"
    assert github.exchanges == ["token ghu_old", "token ghu_new"]


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_refused_model_falls_back_to_gpt_4o_with_notice(make, github, ask, status):
    github.will(github.fails(status), github.says("from another", model="gpt-4o-2024"))
    completion = await make(model="gpt-4.1").complete(ask(tools=True))
    assert (completion.text, completion.model) == ("from another", "gpt-4o-2024")
    assert completion.notice == "gpt-4.1 didn't answer; gpt-4o did."
    assert github.models == ["gpt-4.1", "gpt-4o"]
    assert ask.prompts == 1


async def test_refused_gpt_4o_tries_every_available_model(make, github, ask):
    github.will(github.fails(429), github.fails(400), github.says("at last"))
    assert (await make(model="gpt-4.1").complete(ask())).text == "at last"
    assert github.models == ["gpt-4.1", "gpt-4o", "mini"]


async def test_when_all_are_refused_the_first_refusal_is_the_reason(make, github, ask):
    github.will(github.fails(429, "quota exceeded"), github.fails(500))
    with pytest.raises(ModelUnavailableError) as caught:
        await make(model="gpt-4.1").complete(ask())
    assert str(caught.value).startswith("Copilot said: “quota exceeded”")
    assert (caught.value.upstream_status, caught.value.model) == (429, "gpt-4.1")
    assert github.models == ["gpt-4.1", "gpt-4o", "mini"]


async def test_a_refusal_of_the_request_itself_tries_no_other_model(make, github, ask):
    github.will(github.fails(413, "too long"))
    with pytest.raises(ModelUnavailableError, match="Copilot said: “too long”"):
        await make().complete(ask())
    assert len(github.asked) == 1


async def test_the_catalogue_names_what_is_available(make, github):
    copilot = make()
    assert await copilot.models() == [
        {"id": "gpt-4.1", "name": "GPT-4.1", "available": True},
        {"id": "gpt-4o", "name": "GPT-4o", "available": True},
        {"id": "claude", "name": "Claude", "available": False},
        {"id": "mini", "name": "Mini", "available": True},
    ]
    await copilot.models()
    assert github.listings == 1


async def test_without_a_catalogue_there_are_six_built_in_models(make, github):
    github.on_exchange = [503]
    models = await make().models()
    assert len(models) == 6
    assert models[0] == {"id": "gpt-4o", "name": "GPT-4o"}


@pytest.mark.parametrize(
    ("status", "message", "state"),
    [
        (401, "GitHub no longer accepts the sign-in.", "pending"),
        (403, "This GitHub account has no Copilot.", "no_access"),
        (404, "This GitHub account has no Copilot.", "no_access"),
        (503, "GitHub answered 503 instead of a Copilot session.", "pending"),
    ],
)
async def test_an_exchange_that_fails_says_why(make, github, ask, status, message, state):
    github.on_exchange = [status]
    copilot = make("ghp_verysecret99")
    with pytest.raises(ModelUnavailableError) as caught:
        await copilot.complete(ask())
    assert str(caught.value) == message
    assert copilot.sessions.state == state
    assert copilot.sessions.refused is (status != 503)
    assert "ghp_verysecret99" not in caught.value.detail


async def test_nobody_signed_in(make, ask):
    with pytest.raises(ModelUnavailableError, match="Nobody is signed in to GitHub"):
        await make("").complete(ask())


async def test_no_token_in_errors_or_logs_and_nothing_blocks(make, github, ask, caplog):
    caplog.set_level(logging.DEBUG)
    github.will(github.fails(422, "tid=session1;exp=1 is bad"))
    copilot = make("ghp_verysecret99")
    with blockbuster_ctx(), pytest.raises(ModelUnavailableError) as caught:
        await copilot.complete(ask())
    everything = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value)) + caplog.text
    assert "ghp_verysecret99" not in everything
    assert "session1" not in everything
    assert "session1" not in repr(await copilot.sessions.get())
    await copilot.close()


async def test_cancelling_hangs_up(make, github, ask):
    github.will(github.hangs())
    turn = asyncio.create_task(make().complete(ask()))
    await github.reached.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await github.hung_up.wait()
