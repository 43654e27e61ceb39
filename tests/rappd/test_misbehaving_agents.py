"""An agent that harms itself: one tool result says so, and the next turn works."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

MISDEEDS = {
    "sleeps": ("import time\n        time.sleep(3600)", "was stopped after 2 s"),
    "loops": ("while True: pass", "was stopped after 2 s"),
    "exits": ("import os\n        os._exit(3)", "exit"),
    "raises": ("raise ValueError('too warm')", "too warm"),
    "crashes": ("import ctypes\n        ctypes.string_at(0)", "crash"),
    "allocates": ("x = bytearray(1 << 40)", "MemoryError"),
    "leaves": ("import sys\n        sys.exit(4)", ""),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> object:
    daemon = RunningDaemon(tmp_path_factory.mktemp("bad") / "home", LLM_FAKE="1")
    for name, (body, _) in MISDEEDS.items():
        daemon.drop(f"{name}_agent.py", agent_source(name.title(), body))
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("name", MISDEEDS)
def test_a_misdeed_costs_one_result_that_says_so(daemon: RunningDaemon, name: str) -> None:
    limit = {"name": "agents.timeout", "value": "2" if "2 s" in MISDEEDS[name][1] else "100"}
    assert daemon.post("/settings", limit, control=True).status == 200
    found = daemon.post("/agents/run", {"agent": name.title()}, control=True).json()
    assert found["ok"] is False
    assert MISDEEDS[name][1].lower() in found["result"].lower()
    assert daemon.chat("go on")["response"] == "fake-llm: go on"


def test_a_fork_bomb_is_stopped(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_AGENT_TIMEOUT="5")
    body = "import os\n        while True:\n            try:\n                os.fork()\n            except OSError:\n                pass"
    daemon.drop("aaa_agent.py", agent_source("Aaa", body))
    daemon.start()
    logs = daemon.chat("go")["agent_logs"]
    assert logs.startswith("[Aaa] ERROR: ")
    (daemon.agents / "aaa_agent.py").unlink()
    daemon.wait_for(lambda: "Aaa" not in daemon.agent_names())
    assert daemon.chat("go")["response"] == "fake-llm: go"


def test_printing_lands_in_the_log(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("aaa_agent.py", agent_source("Aaa", "print('a word from the agent')\n        return 'x'"))
    daemon.start()
    assert daemon.chat("go")["agent_logs"] == "[Aaa] x"
    daemon.wait_for_log("a word from the agent")


def test_agents_see_own_variables_and_no_secrets(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1", GITHUB_TOKEN="ghu_secret", OPENAI_API_KEY="sk-secret", MY_OWN="host")
    (daemon.home / "brainstem").mkdir(parents=True)
    (daemon.home / "brainstem" / ".env").write_text("WEATHER_KEY=sunny\n")
    (daemon.home / ".env").write_text("AZURE_OPENAI_API_KEY=azure-secret\n")
    body = (
        "import os, json, pathlib\n"
        "        home = pathlib.Path(os.environ['RAPP_HOME'])\n"
        "        seen = {}\n"
        "        for name in ('keys/identity.pem', '.env', 'rappd.toml', 'rappd.db', 'brainstem/soul.md'):\n"
        "            try:\n"
        "                seen[name] = len((home / name).read_bytes()) > 0\n"
        "            except OSError:\n"
        "                seen[name] = None\n"
        "        names = ('GITHUB_TOKEN', 'OPENAI_API_KEY', 'AZURE_OPENAI_API_KEY', 'MY_OWN', 'WEATHER_KEY')\n"
        "        return json.dumps([seen, [os.environ.get(name) for name in names]])"
    )
    daemon.drop("aaa_agent.py", agent_source("Aaa", body))
    daemon.start()
    seen, values = json.loads(daemon.post("/agents/run", {"agent": "Aaa"}, control=True).json()["result"])
    assert seen["brainstem/soul.md"] is True
    assert [seen[name] for name in ("keys/identity.pem", ".env", "rappd.toml", "rappd.db")] == [None] * 4
    assert values == [None, None, None, "host", "sunny"]
