"""A snapshot is taken in one process: the daemon's where one runs, else the command's, as long as it lasts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.ssh_server import SshServer
from fixtures.terminal import Terminal

from tests.neighborhoods.snapshot.machines import Machine


@pytest.fixture
def stick(idle: RunningDaemon, tmp_path: Path) -> Path:
    """A member that is a folder, with a twin of many files: reading it lasts."""
    folder = tmp_path / "stick"
    Machine(folder, "stick").twin("rose", {f"note{number}.md": b"x" for number in range(3000)})
    idle.home.mkdir(mode=0o700, exist_ok=True)
    (idle.home / "peers.json").write_text(json.dumps({"peers": [{"name": "stick", "folder": str(folder)}]}))
    return folder


def _work(daemon: RunningDaemon) -> Any:
    return daemon.get("/neighborhood/work", control=True).json()["work"]


def _eggs(daemon: RunningDaemon) -> list[Path]:
    return list((daemon.home / "eggs/neighborhood").glob("*.egg"))


def test_ctrl_c_cancels_the_snapshot_that_the_daemon_takes(idle: RunningDaemon, stick: Path) -> None:
    idle.start()
    screen = Terminal(idle, "neighborhood", "snapshot")
    idle.wait_for(lambda: _work(idle), what="the snapshot")
    screen.send(signal.SIGINT)
    assert screen.to_end().code == 130
    assert _work(idle) is None
    assert _eggs(idle) == []
    assert idle.cli("neighborhood", "snapshot", "--no-drill").returncode == 0


def test_a_snapshot_goes_on_in_the_daemon_when_its_command_is_killed(
    idle: RunningDaemon, stick: Path
) -> None:
    idle.start()
    screen = Terminal(idle, "neighborhood", "snapshot")
    idle.wait_for(lambda: _work(idle), what="the snapshot")
    screen.process.kill()
    screen.to_end()
    idle.wait_for(lambda: _work(idle) is None, what="its end")
    (row,) = json.loads(idle.cli("neighborhood", "snapshots", "--json").stdout)["snapshots"]
    assert row["restorable"]


def test_snapshot_names_the_model_that_is_set_while_the_daemon_runs(idle: RunningDaemon) -> None:
    idle.start()
    assert idle.cli("config", "set", "provider.model", "larger-model").returncode == 0
    assert idle.cli("neighborhood", "snapshot", "--no-drill").returncode == 0
    with zipfile.ZipFile(_eggs(idle)[0]) as egg:
        assert json.loads(egg.read("members.json"))["local"]["model"] == "larger-model"


def test_without_a_daemon_ctrl_c_cancels_it_and_a_kill_leaves_nothing_in_the_way(
    idle: RunningDaemon, stick: Path
) -> None:
    screen = Terminal(idle, "neighborhood", "snapshot")
    screen.read_until(lambda seen: "stick" in seen.text)
    screen.send(signal.SIGINT)
    assert screen.to_end().code == 130
    assert _eggs(idle) == []
    screen = Terminal(idle, "neighborhood", "snapshot")
    screen.read_until(lambda seen: "stick" in seen.text)
    os.kill(screen.process.pid, signal.SIGKILL)
    screen.to_end()
    done = idle.cli("neighborhood", "snapshot", "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["event"] for one in events if one["event"] != "machine"] == ["drill", "done"]
    last = {one["machine"]: one["state"] for one in events if one["event"] == "machine"}
    assert last == {"desk": "done", "stick": "done"}
    assert [one["path"] for one in events if one["event"] == "drill"] == [events[-1]["snapshot"]["path"]]


def test_a_second_command_shares_the_home_in_which_a_snapshot_is_taken(
    idle: RunningDaemon, stick: Path
) -> None:
    screen = Terminal(idle, "neighborhood", "snapshot", "--no-drill")
    screen.read_until(lambda seen: "stick" in seen.text)
    told = idle.cli("neighborhood", "snapshot", "--json")
    assert (told.returncode, json.loads(told.stderr)["code"]) == (9, "snapshot_running")
    assert screen.to_end().code == 0
    assert len(json.loads(idle.cli("neighborhood", "snapshots", "--json").stdout)["snapshots"]) == 1


def test_a_running_daemon_reads_machines_with_the_ssh_agent_of_the_terminal(
    idle: RunningDaemon, tmp_path: Path
) -> None:
    with SshServer(tmp_path / "pi") as pi:
        known = re.sub("IdentityFile .*|IdentitiesOnly .*", "", pi.config.read_text())
        pi.config.write_text(f"Host pi\n  HostName {pi.address}\n{known}")
        idle.home.mkdir(mode=0o700, exist_ok=True)
        member = {"name": "pi", "ssh_host": "pi", "ssh_user": "root"}
        (idle.home / "peers.json").write_text(json.dumps({"peers": [member]}))
        idle.start()
        idle.cli("config", "set", "neighborhood.ssh_config", str(pi.config))
        commands = [("neighborhood", "probe"), ("fleet", "status"), ("neighborhood", "snapshot")]
        for command in commands[:2]:
            assert "ssh-add" in idle.cli(*command, "--json").stdout
        started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
        agent = dict(re.findall(r"(SSH_\w+)=([^;]+);", started))
        try:
            subprocess.run(["ssh-add", "-q", str(pi.folder / "user")], env=agent, check=True)
            for command in commands:
                done = idle.cli(*command, "--json", SSH_AUTH_SOCK=agent["SSH_AUTH_SOCK"])
                assert "ssh-add" not in done.stdout
                assert done.returncode == 0, done.stdout + done.stderr
                pi.cut()  # no connection is kept for the next
        finally:
            os.kill(int(agent["SSH_AGENT_PID"]), signal.SIGTERM)
