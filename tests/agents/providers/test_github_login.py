"""Signing in to GitHub with a code, and where the token comes from."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import subprocess

import orjson
import pytest
from blockbuster import blockbuster_ctx
from fixtures.refusals import refused

from agents.programs import programs
from agents.providers.github_login import GitHubLogin
from agents.providers.github_token import CLIENT_ID, GitHubToken

TOKEN = "ghu_verysecrettoken123"


@pytest.fixture
def login(github, tmp_path, clock):
    token = GitHubToken("", tmp_path / "token.json", gh=False, web=github.url, clock=clock)
    return GitHubLogin(token, tmp_path / "login.json", web=github.url, clock=clock)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def gh(tmp_path, monkeypatch):
    """A ``gh`` program of the system that runs the given shell lines and counts its runs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(programs, "_found", {"gh": str(folder / "gh")})
    monkeypatch.setattr("agents.providers.github_token._GH_SECONDS", 100.0)

    def script(lines: str):
        program = folder / "gh"
        program.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{lines}\n")
        program.chmod(0o755)
        return lambda: (tmp_path / "runs").read_text().count("run") if (tmp_path / "runs").exists() else 0

    return script


async def test_a_code_that_is_still_good_is_shown_again(login, github, tmp_path, clock):
    first = await login.start()
    assert first == {
        "user_code": "ABCD-0001",
        "verification_uri": "https://github.example/login/device",
    }
    assert mode(tmp_path / "login.json") == 0o600
    clock.now += 899
    assert await login.start() == first
    clock.now += 1
    assert (await login.start())["user_code"] == "ABCD-0002"


async def test_a_code_survives_a_restart(login, github, tmp_path, clock):
    await login.start()
    again = GitHubLogin(GitHubToken(gh=False), tmp_path / "login.json", web=github.url, clock=clock)
    assert (await again.start())["user_code"] == "ABCD-0001"
    assert github.codes == 1


async def test_status_tells_what_is_pending_and_for_how_long(login, clock):
    assert await login.status() == {"pending": False}
    await login.start()
    clock.now += 100
    assert await login.status() == {
        "pending": True,
        "user_code": "ABCD-0001",
        "verification_uri": "https://github.example/login/device",
        "expires_in": 800,
    }
    clock.now += 800
    assert await login.status() == {"pending": False}


async def test_confirmed_at_github(login, github, tmp_path, clock):
    github.on_poll = [
        {"error": "authorization_pending"},
        {"access_token": TOKEN, "refresh_token": "ghr_again", "token_type": "bearer"},
    ]
    await login.start()
    assert await login.poll() == {"status": "pending"}
    clock.now += 5
    assert await login.poll() == {"status": "ok", "message": "Signed in to GitHub."}
    assert github.polls[0] == {
        "client_id": CLIENT_ID,
        "device_code": "device-1",
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
    }
    kept = orjson.loads((tmp_path / "token.json").read_bytes())
    assert kept == {"access_token": TOKEN, "refresh_token": "ghr_again", "saved_at": int(clock.now)}
    assert mode(tmp_path / "token.json") == 0o600
    assert not (tmp_path / "login.json").exists()
    assert await login.status() == {"pending": False}
    restarted = GitHubToken("", tmp_path / "token.json", gh=False)
    assert (await restarted.find(), restarted.source) == (TOKEN, "file")


async def test_github_is_asked_no_more_often_than_it_allows(login, github, clock):
    github.on_poll = [{"error": "slow_down"}, {"error": "authorization_pending"}]
    await login.start()
    for _ in range(3):
        assert await login.poll() == {"status": "pending"}
    assert len(github.polls) == 1
    clock.now += 9
    await login.poll()
    assert len(github.polls) == 1
    clock.now += 1
    await login.poll()
    assert len(github.polls) == 2


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [
        ("expired_token", "expired", "The code has expired. Start again."),
        ("access_denied", "error", "GitHub was told no. Start again to ask anew."),
        ("unsupported_grant_type", "error", "GitHub refused: unsupported_grant_type. Start again."),
    ],
)
async def test_an_end_without_a_token_clears_the_code(login, github, tmp_path, said, status, error):
    github.on_poll = [{"error": said}]
    await login.start()
    assert await login.poll() == {"status": status, "error": error}
    assert not (tmp_path / "login.json").exists()
    assert (await login.start())["user_code"] == "ABCD-0002"


async def test_a_code_expires_by_the_clock(login, github, clock):
    await login.start()
    clock.now += 900
    assert (await login.poll())["status"] == "expired"
    assert github.polls == []


async def test_polling_for_nothing_says_so(login):
    assert await login.poll() == {"status": "error", "error": "No sign-in is under way. Start one first."}


async def test_silent_github_fails_start_and_polls_patiently(tmp_path, clock, github):
    web = github.url
    login = GitHubLogin(GitHubToken(gh=False), tmp_path / "login.json", web=web, clock=clock)
    github.device_status = 503
    with refused("login_failed", match="GitHub answered 503"):
        await login.start()
    github.device_status = 200
    await login.start()
    github.on_poll = [{}]
    assert await login.poll() == {"status": "pending"}


async def test_switching_keeps_the_old_account_meanwhile(login, github, tmp_path):
    github.on_poll = [{"access_token": "ghu_first"}]
    await login.start()
    await login.poll()
    await login.start()
    assert await login.switch() == {
        "status": "ok",
        "user_code": "ABCD-0003",
        "verification_uri": "https://github.example/login/device",
    }
    assert b"ghu_first" in (tmp_path / "token.json").read_bytes()
    github.on_poll = [{"access_token": "ghu_second"}]
    await login.poll()
    assert b"ghu_second" in (tmp_path / "token.json").read_bytes()


async def test_a_given_token_cannot_be_switched_away(github):
    login = GitHubLogin(GitHubToken("ghp_given"), web=github.url)
    with refused("login_fixed") as caught:
        await login.switch()
    assert caught.value.status == 409
    assert github.codes == 0


async def test_a_new_token_is_announced(github):
    announced = []

    async def on_token() -> None:
        announced.append(True)

    github.on_poll = [{"access_token": TOKEN}]
    login = GitHubLogin(GitHubToken(gh=False), web=github.url, on_token=on_token)
    await login.start()
    await login.poll()
    assert announced == [True]


async def test_a_stale_token_is_renewed_once_for_everybody(github, tmp_path):
    path = tmp_path / "token.json"
    path.write_bytes(orjson.dumps({"access_token": "ghu_old", "refresh_token": "ghr_1", "saved_at": 1}))
    token = GitHubToken("", path, gh=False, web=github.url)
    assert await token.find() == "ghu_old"
    github.on_poll = [{"access_token": "ghu_new", "refresh_token": "ghr_2"}]
    assert await asyncio.gather(*(token.renew("ghu_old") for _ in range(3))) == ["ghu_new"] * 3
    assert [form["grant_type"] for form in github.polls] == ["refresh_token"]
    assert github.polls[0]["refresh_token"] == "ghr_1"
    assert orjson.loads(path.read_bytes())["refresh_token"] == "ghr_2"


async def test_a_token_file_may_hold_only_the_token(tmp_path):
    (tmp_path / "token").write_text("ghu_plain\n")
    assert await GitHubToken("", tmp_path / "token", gh=False).find() == "ghu_plain"


async def test_given_comes_before_file_and_file_before_gh(tmp_path, gh):
    runs = gh("echo ghp_from_gh")
    (tmp_path / "token").write_text("ghu_file")
    assert await GitHubToken("ghp_given", tmp_path / "token").find() == "ghp_given"
    assert await GitHubToken("", tmp_path / "token").find() == "ghu_file"
    assert runs() == 0
    last = GitHubToken("", tmp_path / "absent")
    assert not last.known
    assert (await last.find(), last.source) == ("ghp_from_gh", "gh")


@pytest.mark.parametrize(
    "lines", ["echo gho_copilot_refuses_these", "echo not logged in >&2; exit 1", "echo"]
)
async def test_gh_without_token_is_not_asked_again_at_once(gh, clock, lines):
    runs = gh(lines)
    token = GitHubToken(clock=clock)
    assert await token.find() == ""
    assert await token.find() == ""
    assert runs() == 1
    clock.now += 600
    await token.find()
    assert runs() == 2


async def test_no_gh_at_all(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "find", lambda name: None)
    assert await GitHubToken().find() == ""


async def test_gh_that_agents_could_replace_is_not_run(tmp_path, monkeypatch):
    planted = tmp_path / "gh"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho ghp_planted\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(programs, "_found", {})
    assert await GitHubToken().find() != "ghp_planted"
    assert not (tmp_path / "ran").exists()
    subprocess.run(["gh"], check=True, capture_output=True)
    assert (tmp_path / "ran").exists(), "the positive control"


async def test_hanging_gh_is_stopped_without_blocking(gh, monkeypatch, tmp_path):
    monkeypatch.setattr("agents.providers.github_token._GH_SECONDS", 4.0)
    gh(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    with blockbuster_ctx():
        assert await GitHubToken().find() == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_signing_in_blocks_nothing_and_logs_no_token(login, github, caplog):
    caplog.set_level(logging.DEBUG)
    github.on_poll = [{"access_token": TOKEN}]
    with blockbuster_ctx():
        await login.start()
        await login.poll()
        await login.status()
    assert TOKEN not in caplog.text
    assert "device-1" not in caplog.text
