"""The ``.env`` of a workspace as agents in real workers see it, in each sandbox mode."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.sandboxed_daemon import MODES, NO_SANDBOX, sandboxed_daemon_in

from rappd.settings.load import worker_environment
from rappd.settings.registry import OTHER_SECRETS, SETTINGS
from rappd.tenants.workspace_variables import env_file_state
from twins.trust.trust import Trust
from twins.workspace.workspace import Workspace
from twins.workspace.workspace_env import is_reserved

ENV = (
    "WEATHER=sunny\nBASE=http://x\nURL=${BASE}/v1\n"
    "LEAK=<${OPENAI_API_KEY}${GITHUB_TOKEN}>\nOTHER=<${MY_OWN}>\n"
    "LD_PRELOAD=/evil.so\nPATH=/evil\nhttps_proxy=http://evil\nPYTHONPATH=/evil\nOPENAI_API_KEY=of the file\n"
)
NAMES = (
    "WEATHER",
    "URL",
    "LEAK",
    "OTHER",
    "LD_PRELOAD",
    "https_proxy",
    "PYTHONPATH",
    "OPENAI_API_KEY",
    "MY_OWN",
)
CODE = (
    f"import os, json\nreturn json.dumps([[os.environ.get(name) for name in {NAMES!r}], os.environ['PATH']])"
)


@pytest.mark.parametrize("mode", [*MODES, NO_SANDBOX])
def test_worker_gets_own_variables_and_none_of_the_daemons(mode: str, nobody_python: Path) -> None:
    secrets = {"OPENAI_API_KEY": "sk-of-the-daemon", "GITHUB_TOKEN": "ghu_of_the_daemon", "MY_OWN": "host"}
    with sandboxed_daemon_in(mode, nobody_python, LLM_FAKE="1", **secrets) as daemon:
        (daemon.home / "brainstem").mkdir(parents=True)
        (daemon.home / "brainstem" / ".env").write_text(ENV)
        daemon.start()
        answer = daemon.run_code(CODE)
        assert answer["ok"], answer
        values, path = json.loads(answer["result"])
        assert "/evil" not in path.split(":")
        assert dict(zip(NAMES, values, strict=True)) == {
            "WEATHER": "sunny",
            "URL": "http://x/v1",
            "LEAK": "<>",
            "OTHER": "<>",
            "LD_PRELOAD": None,
            "https_proxy": None,
            "PYTHONPATH": None,
            "OPENAI_API_KEY": None,
            "MY_OWN": "host",
        }


def test_worker_gets_no_way_to_programs_that_sign() -> None:
    names = "SSH_AUTH_SOCK SSH_AGENT_PID DBUS_SESSION_BUS_ADDRESS DBUS_STARTER_ADDRESS GPG_AGENT_INFO GNOME_KEYRING_CONTROL"
    given = dict.fromkeys((*names.split(), "SSH_CONNECTION", "LANG"), "/run/user/1000/x")
    assert set(worker_environment(given, {})) == {"SSH_CONNECTION", "LANG"}


def test_names_left_out_are_logged_once_and_shown_by_doctor(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    (daemon.home / "brainstem").mkdir(parents=True)
    (daemon.home / "brainstem" / ".env").write_text(ENV)
    daemon.start()
    daemon.chat("one")
    daemon.chat("two")
    daemon.stop()
    left_out = "LD_PRELOAD, OPENAI_API_KEY, PATH, PYTHONPATH, https_proxy"
    assert daemon.log.count(f"never taken from it: {left_out}") == 1
    rows = json.loads(daemon.cli("doctor", "--json").stdout)["doctor"]
    (row,) = [row for row in rows if row["about"] == "Variables"]
    assert row["verdict"] == "note" and left_out in row["what"] and "/evil" not in str(row)


@pytest.mark.parametrize("content", [b"WEATHER=\xff\xfe\n", b"WEATHER=x\0y\n", b"W=" + b"x" * 70_000])
def test_env_file_that_cannot_be_read_stops_no_start(
    make_daemon: Callable[..., RunningDaemon], content: bytes
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    (daemon.home / "brainstem").mkdir(parents=True)
    (daemon.home / "brainstem" / ".env").write_bytes(content)
    daemon.start()
    assert daemon.chat("go")["response"] == "fake-llm: go"
    rows = json.loads(daemon.cli("doctor", "--json").stdout)["doctor"]
    (row,) = [row for row in rows if row["about"] == "Variables"]
    assert row["verdict"] == "bad" and ".env" in row["what"] and row["do"]


def test_each_secret_setting_is_reserved() -> None:
    secrets = {setting.variable for setting in SETTINGS if setting.secret} | set(OTHER_SECRETS)
    assert [name for name in sorted(secrets) if not is_reserved(name)] == []
    assert not is_reserved("WEATHER_KEY"), "the probe works"


def test_env_file_as_link_or_pipe_is_a_problem(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path / "twin")
    workspace.create()
    may_run = Trust(tmp_path).may_run
    workspace.env_file.write_text("A=1\n")
    assert env_file_state(workspace, may_run).variables == {"A": "1"}, "the probe works"
    workspace.env_file.unlink()
    (tmp_path / "env").write_text("A=2\n")
    workspace.env_file.symlink_to(tmp_path / "env")
    linked = env_file_state(workspace, may_run)
    workspace.env_file.unlink()
    os.mkfifo(workspace.env_file)
    for state in (linked, env_file_state(workspace, may_run)):
        assert state.variables == {}
        assert state.problem is not None
