"""Nothing is lost over MCP: ``kill -9`` between a call and its answer, for tasks and for programs on stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from envelopes.codecs import mcp
from tests.rappd.programs.test_mcp import TASKS, message, post

SLOW = """import pathlib, time
        told = pathlib.Path(".brainstem_data") / "{name}.txt"
        with told.open("a") as file:
            file.write("begun ")
        time.sleep(0 if "{name}" == "Again" and told.read_text().count("begun") > 1 else 30)
        return "done"
"""


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A daemon with two slow agents that note each beginning; Again may be begun again."""
    found = make_daemon(LLM_FAKE="1")
    for name in ("Once", "Again"):
        source = agent_source(name, SLOW.replace("{name}", name))
        if name == "Again":
            source = source.replace(
                '"description": "A test.",', '"description": "A test.", "idempotent": True,'
            )
        found.drop(f"{name.lower()}_agent.py", source)
    return found.start()


def _begun(daemon: RunningDaemon, name: str) -> int:
    path = daemon.data / f"{name}.txt"
    return path.read_text().count("begun") if path.exists() else 0


def _task(daemon: RunningDaemon, id: str) -> dict[str, Any]:
    found: dict[str, Any] = post(daemon, "tasks/get", taskId=id, capabilities=TASKS, control=True).json()[
        "result"
    ]
    return found


@pytest.mark.own_process
def test_a_task_that_a_kill_cut_off_ends_in_one_honest_error_or_is_done_again_where_that_is_harmless(
    daemon: RunningDaemon,
) -> None:
    ids = {}
    for name in ("Once", "Again"):
        answer = post(daemon, "tools/call", name=name, arguments={}, capabilities=TASKS, control=True)
        ids[name] = answer.json()["result"]["taskId"]
        daemon.wait_for(lambda name=name: _begun(daemon, name) == 1, what=f"{name} to begin")
    daemon.kill()
    daemon.start()
    once = daemon.wait_for(lambda: (found := _task(daemon, ids["Once"]))["status"] != "working" and found)
    assert once["status"] == "failed"
    assert "cut off" in once["error"]["message"]
    again = daemon.wait_for(lambda: (found := _task(daemon, ids["Again"]))["status"] != "working" and found)
    assert again["status"] == "completed"
    assert again["result"]["content"][0]["text"] == "done"
    assert (_begun(daemon, "Once"), _begun(daemon, "Again")) == (1, 2)
    assert _task(daemon, ids["Once"]) == once, "and so it stays"


@contextmanager
def _bridge(daemon: RunningDaemon, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    bridge = subprocess.Popen(
        [sys.executable, "-m", "rappd", *(arguments or ("mcp",))],
        env=daemon.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield bridge
    finally:
        bridge.kill()
        bridge.wait()


def _say(bridge: subprocess.Popen[str], asked: dict[str, Any]) -> None:
    assert bridge.stdin is not None
    bridge.stdin.write(json.dumps(asked) + "\n")
    bridge.stdin.flush()


def _heard(bridge: subprocess.Popen[str]) -> dict[str, Any]:
    assert bridge.stdout is not None
    found: dict[str, Any] = json.loads(bridge.stdout.readline())
    return found


@pytest.mark.own_process
@pytest.mark.timeout(900)
def test_a_program_on_stdio_gets_one_answer_over_a_kill(daemon: RunningDaemon) -> None:
    with _bridge(daemon) as bridge:
        _say(bridge, message("tools/list", id="first"))
        assert "Once" in {one["name"] for one in _heard(bridge)["result"]["tools"]}
        _say(bridge, message("tools/call", id="newer", name="Once", arguments={}))
        daemon.wait_for(lambda: _begun(daemon, "Once") == 1, what="the call to begin")
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "d", "version": "1"},
        }
        _say(bridge, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        assert _heard(bridge)["result"]["protocolVersion"] == "2025-11-25"
        older = {"name": "Again", "arguments": {}}
        _say(bridge, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": older})
        daemon.wait_for(lambda: _begun(daemon, "Again") == 1, what="the other call to begin")
        daemon.kill()
        daemon.start()
        answers = {found["id"]: found["result"] for found in (_heard(bridge), _heard(bridge))}
        assert answers["newer"]["isError"] is True
        assert "cut off" in answers["newer"]["content"][0]["text"]
        assert answers[1]["content"][0]["text"] == "done"
        assert (_begun(daemon, "Once"), _begun(daemon, "Again")) == (1, 2)
        _say(bridge, message("tools/list", id="last"))
        assert _heard(bridge)["id"] == "last"


def test_rappd_mcp_starts_nothing_by_itself(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon()
    ran = daemon.cli("mcp", stdin=json.dumps(message("tools/list")) + "\n")
    assert ran.returncode == 3
    assert ran.stdout == ""
    assert "rappd is not running" in ran.stderr
    assert not (daemon.home / "rappd.db").exists()


def test_lines_on_stdio_are_answered_in_both_eras(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    lines = [
        message("server/discover", id="a"),
        message("tools/call", id="b", name="ask", arguments={"message": "hello"}),
        {"jsonrpc": "2.0", "id": "c", "method": "ping"},
    ]
    text = "\n".join([*map(json.dumps, lines), "[]", "not json"]) + "\n"
    ran = daemon.cli("mcp", stdin=text)
    assert ran.returncode == 0, ran.stderr
    found = {one.get("id"): one for one in map(json.loads, ran.stdout.splitlines())}
    assert mcp.MODERN in found["a"]["result"]["supportedVersions"]
    assert found["b"]["result"]["content"][0]["text"] == "fake-llm: hello"
    assert found["c"]["result"] == {}
    assert found[None]["error"]["code"] in (-32600, -32700)


def test_a_program_on_stdio_is_told_that_the_protocol_is_off(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(RAPPD_MCP="off").start()
    ran = daemon.cli("mcp", stdin=json.dumps(message("tools/list", id="first")) + "\n")
    found = json.loads(ran.stdout)
    assert found["id"] == "first", "a program waits for the answer with its id"
    assert "does not answer over mcp" in found["error"]["message"]


def test_a_program_that_says_all_at_once_is_listed_once(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "desk"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    ran = daemon.cli("mcp", stdin="".join(f"{json.dumps(one)}\n" for one in lines))
    assert [json.loads(one)["id"] for one in ran.stdout.splitlines()] == [1, 2]
    known = daemon.get("/programs", control=True).json()["programs"]
    assert [one["name"] for one in known] == ["desk"]


@pytest.mark.parametrize("client", ["claude-desktop", "claude-code", "cursor", "vscode", "zed", "opencode"])
def test_lines_to_paste_name_a_command_that_serves(
    make_daemon: Callable[..., RunningDaemon], client: str
) -> None:
    daemon = make_daemon()
    ran = daemon.cli("mcp", "config", client)
    assert ran.returncode == 0, ran.stderr
    (entry,) = next(iter(json.loads(ran.stdout).values())).items()
    assert entry[0] == "rappd"
    command = (
        entry[1]["command"]
        if isinstance(entry[1]["command"], list)
        else [entry[1]["command"], *entry[1]["args"]]
    )
    assert command[1:] == ["mcp"]
    assert Path(command[0]).is_file(), "a program that knows no PATH finds it"
    variables = entry[1].get("env") or entry[1].get("environment")
    assert variables == {"RAPP_HOME": str(daemon.home)}
