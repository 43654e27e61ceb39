"""``RAPPD_OPEN_SURFACE``: the structural routes as published servers have them, said aloud at the start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import RunningDaemon, agent_source

WARNING = "Every program on this machine may change agents"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    home = tmp_path_factory.mktemp("open") / "home"
    daemon = RunningDaemon(home, LLM_FAKE="1", RAPPD_OPEN_SURFACE="1").start()
    yield daemon
    daemon.stop()


def test_agents_come_and_go_without_an_operator(daemon: RunningDaemon) -> None:
    assert daemon.upload("aaa_agent.py", agent_source("Aaa").encode()).json()["agents"] == ["Aaa"]
    assert "Aaa" in daemon.agent_names()
    assert daemon.request("DELETE", "/agents/aaa_agent.py").status == 200
    assert "Aaa" not in daemon.agent_names()


@pytest.mark.parametrize("path", ["/settings", "/threads", "/activity", "/log", "/operator/status"])
def test_what_was_said_is_readable_too(daemon: RunningDaemon, path: str) -> None:
    assert daemon.get(path).status == 200


def test_a_page_of_another_site_still_gets_nothing(daemon: RunningDaemon) -> None:
    answer = daemon.post("/rapps/install", {"id": "kanban"}, headers={"Origin": "https://evil.example"})
    assert answer.status == 403
    assert daemon.get("/settings", headers={"Host": "evil.example"}).status == 403
    assert "Kanban" not in daemon.agent_names()


def test_a_turn_is_offered_structural_agents(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small", RAPPD_OPEN_SURFACE="1").start()
    daemon.chat("hello")
    assert {"LearnNew", "SwarmFactory"} <= set(fake_model.tools())


@pytest.mark.parametrize("switch", ["1", "0"])
def test_the_start_warns_when_it_is_open(make_daemon: Callable[..., RunningDaemon], switch: str) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_OPEN_SURFACE=switch)
    process = subprocess.Popen(
        [sys.executable, "-m", "rappd", "start"],
        env=daemon.environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    daemon.process = process  # type: ignore[assignment]  # text mode; only its life is looked at
    try:
        daemon.wait_for(lambda: daemon.is_ready(), what="the daemon to be ready")
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=100)
        daemon.process = None
    assert (WARNING in errors) == (switch == "1")


def test_switching_it_on_takes_a_restart(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    switched = daemon.post("/settings", {"name": "http.open_surface", "value": "on"}, control=True)
    assert switched.json()["setting"]["live"] is False
    assert daemon.get("/settings").status == 403
    daemon.stop()
    daemon.start()
    assert daemon.get("/settings").status == 200
