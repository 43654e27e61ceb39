"""Signing in to GitHub, the model that comes with it, and which model is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.loopback_server import FakeGitHub, FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon

Make = Callable[..., RunningDaemon]


@pytest.fixture
def daemon(make_daemon: Make, fake_github: FakeGitHub) -> RunningDaemon:
    return make_daemon(**fake_github.environment).start()


def _sign_in(daemon: RunningDaemon, github: FakeGitHub) -> dict[str, Any]:
    github.signed_in = True
    found: dict[str, Any] = daemon.post("/login/poll").json()
    github.signed_in = False
    return found


def test_from_a_code_to_an_answer_by_copilot(daemon: RunningDaemon, fake_github: FakeGitHub) -> None:
    health = daemon.get("/health").json()
    assert (health["token"], health["copilot"]) == ("none", "")
    assert daemon.get("/login/status").json() == {"pending": False}
    begun = daemon.post("/login").json()
    assert begun == {"user_code": "ABCD-0001", "verification_uri": f"{fake_github.url}/login/device"}
    waiting = daemon.get("/login/status").json()
    assert waiting.pop("expires_in") > 800
    assert waiting == {"pending": True, **begun}
    assert daemon.post("/login/poll").json() == {"status": "pending"}

    assert _sign_in(daemon, fake_github) == {"status": "ok", "message": "Signed in to GitHub."}
    assert daemon.get("/login/status").json() == {"pending": False}
    health = daemon.get("/health").json()
    assert (health["token"], health["copilot"]) == ("present", "pending")
    assert health["provider"]["name"] == "GitHub Copilot"

    fake_github.will(calls(("ContextMemory", {})), says("from Copilot"))
    answer = daemon.chat("what do you know?")
    assert answer["response"] == "from Copilot"
    assert answer["agent_logs"].startswith("[ContextMemory] ")
    assert answer["model"] == answer["requested_model"] == "gpt-4o"
    assert fake_github.accounts == ["token ghu_person1"]
    assert set(fake_github.keys) == {"Bearer tid=session"}
    assert daemon.get("/health").json()["copilot"] == "✓"


def test_the_code_under_way_is_given_again_also_after_a_restart(
    daemon: RunningDaemon, fake_github: FakeGitHub
) -> None:
    begun = daemon.post("/login").json()
    assert daemon.post("/login").json() == begun
    daemon.stop()
    daemon.start()
    assert daemon.post("/login").json() == begun
    assert fake_github.codes == 1
    assert _sign_in(daemon, fake_github)["status"] == "ok"


def test_the_sign_in_outlives_the_daemon_in_a_private_file(
    daemon: RunningDaemon, fake_github: FakeGitHub
) -> None:
    daemon.post("/login")
    _sign_in(daemon, fake_github)
    files = [path for path in (daemon.home / "keys").iterdir() if b"ghu_person1" in path.read_bytes()]
    assert len(files) == 1
    assert files[0].stat().st_mode & 0o077 == 0
    daemon.stop()
    daemon.start()
    daemon.wait_for(lambda: daemon.get("/health").json()["token"] == "present")
    fake_github.will(says("again"))
    assert daemon.chat("hello")["response"] == "again"
    assert "ghu_person1" not in daemon.log + daemon.get("/health").body.decode()


def test_switching_keeps_account_until_confirmed(daemon: RunningDaemon, fake_github: FakeGitHub) -> None:
    daemon.post("/login")
    _sign_in(daemon, fake_github)
    daemon.chat("hello")
    switched = daemon.post("/login/switch").json()
    assert switched["status"] == "ok"
    assert switched["user_code"] == "ABCD-0002"
    daemon.chat("hello")
    assert fake_github.accounts == ["token ghu_person1"]
    assert _sign_in(daemon, fake_github)["status"] == "ok"
    daemon.chat("hello")
    assert fake_github.accounts[-1] == "token ghu_person2"


def test_polling_without_a_sign_in_says_so(daemon: RunningDaemon) -> None:
    answer = daemon.post("/login/poll")
    assert answer.status == 200
    assert answer.json()["status"] == "error"


def test_an_account_without_copilot_leaves_the_offline_brain(
    daemon: RunningDaemon, fake_github: FakeGitHub
) -> None:
    fake_github.token_status = 403
    daemon.post("/login")
    _sign_in(daemon, fake_github)
    first = daemon.chat("what can you do?")
    assert first["response"].startswith("(no model)")
    assert "sign in with another account" in first["notice"]
    health = daemon.get("/health").json()
    assert (health["token"], health["copilot"]) == ("present", "no_access")
    assert health["provider"]["state"] == "no model"


def test_a_given_token_cannot_be_switched(make_daemon: Make, fake_github: FakeGitHub) -> None:
    daemon = make_daemon(GITHUB_TOKEN="ghu_given", **fake_github.environment).start()
    answer = daemon.post("/login/switch")
    assert answer.status == 409
    assert answer.json()["code"] == "login_fixed"
    assert "GITHUB_TOKEN" in answer.json()["do"]
    fake_github.will(says("hello"))
    assert daemon.chat("hello")["response"] == "hello"
    assert fake_github.accounts == ["token ghu_given"]


def test_when_github_does_not_answer_the_sign_in_says_what_to_do(make_daemon: Make) -> None:
    daemon = make_daemon(RAPPD_GITHUB_URL="http://127.0.0.1:9", RAPPD_GITHUB_API="http://127.0.0.1:9").start()
    for path in ("/login", "/login/switch"):
        answer = daemon.post(path)
        assert answer.status == 502
        assert answer.json() == {
            "error": "GitHub doesn't answer.",
            "do": "check the connection, then try again",
            "code": "login_failed",
        }


def test_signing_in_too_often_is_slowed_down(daemon: RunningDaemon) -> None:
    seen = {daemon.post("/login").status for _ in range(25)}
    assert seen == {200, 429}
    assert daemon.chat("hello")["response"]


def test_copilot_models_are_listed_for_the_account(daemon: RunningDaemon, fake_github: FakeGitHub) -> None:
    fake_github.listed = [
        {"id": "gpt-4o", "name": "GPT-4o", "policy": {"state": "enabled"}},
        {"id": "paid", "name": "Paid", "policy": {"state": "disabled"}},
        {"id": "vectors", "name": "Vectors", "capabilities": {"type": "embeddings"}},
    ]
    daemon.post("/login")
    _sign_in(daemon, fake_github)
    assert daemon.get("/models").json() == {
        "models": [
            {"id": "gpt-4o", "name": "GPT-4o", "available": True},
            {"id": "paid", "name": "Paid", "available": False},
        ],
        "current": "gpt-4o",
    }
    refused = daemon.post("/models/set", {"model": "paid"})
    assert refused.status == 400
    assert refused.json()["error"] == "Unknown model. Available: ['gpt-4o']"


def test_chosen_model_is_used_also_after_restart(make_daemon: Make, fake_model: FakeModel) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url).start()
    assert daemon.get("/models").json() == {
        "models": [{"id": "small", "name": "small"}, {"id": "big", "name": "big"}],
        "current": "small",
    }
    assert daemon.post("/models/set", {"model": "big"}).json() == {"model": "big"}
    assert daemon.chat("hello")["requested_model"] == "big"
    assert fake_model.asked[-1]["model"] == "big"
    daemon.stop()
    daemon.start()
    assert daemon.get("/models").json()["current"] == "big"
    assert daemon.chat("hello")["model"] == "big"
    assert daemon.post("/models/set", {"model": "auto"}).json() == {"model": "small", "auto": True}
    assert daemon.chat("hello")["model"] == "small"
    daemon.stop()
    daemon.start()
    assert daemon.get("/models").json()["current"] == "small"


def test_an_unknown_model_is_refused(make_daemon: Make, fake_model: FakeModel) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url).start()
    for body, status, error in (
        ({"model": "none such"}, 400, "Unknown model. Available: ['small', 'big']"),
        ({}, 400, "model is required"),
        ({"model": 5}, 422, "model must be a string"),
    ):
        answer = daemon.post("/models/set", body)
        assert (answer.status, answer.json()["error"]) == (status, error)
    assert daemon.get("/models").json()["current"] == "small"
