"""Start, stop, status, open: the screens a newcomer sees, and the processes behind them."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import prefork
from fixtures.free_ports import free_port
from fixtures.operator_page import sign_in
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import AS_ROOT, BIN, Terminal, lives, on_terminal

from agents.runtimes.python.pools.started_processes import descendants

FIRST = """\
✓ desk_{four} is running

  Talk      {url}   or: rappd chat
  Model     none (keyword matching)  rappd models connect
  Agents    15 ready                 drop files into ~/newcomer/brainstem/agents
  Machines  {listener}
  Phones    off                      rappd pair
  Data      ~/newcomer               private

{warning}Ctrl-C stops it. In the background: rappd start --detach"""

JUPYTER = "import socket,sys\ns = socket.socket()\ns.bind(('127.0.0.1', int(sys.argv[1])))\ns.listen()\nprint(flush=True)\ninput()\n"


@pytest.fixture
def newcomer(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A fresh home without any model."""
    return make_daemon("newcomer", RAPPD_NAME="desk")


@pytest.fixture
def jupyter(tmp_path: Path, newcomer: RunningDaemon) -> Iterator[subprocess.Popen[bytes]]:
    """Another program on the newcomer's port."""
    script = tmp_path / "jupyter-lab"
    script.write_text(JUPYTER)
    process = subprocess.Popen(
        [sys.executable, str(script), str(newcomer.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def _running(terminal: Terminal) -> str:
    seen = terminal.read_until(lambda seen: "Ctrl-C stops it" in seen.words)
    assert "Ctrl-C stops it" in seen.text, seen.text
    return seen.text


def test_the_first_start_shows_the_screen_and_ctrl_c_ends_it(newcomer: RunningDaemon) -> None:
    terminal = Terminal(newcomer, "start")
    text = _running(terminal)
    url = re.search(r"http://127\.0\.0\.1:\d+/#k=[\w-]+", text)
    four = re.search(r"desk_([0-9a-f]{4}) is running", text)
    assert url and four
    listener = "not listening            rappd config set peers.listen on"
    warning = "".join(f"{line}\n" for line in AS_ROOT)
    assert text == FIRST.format(url=url[0], four=four[1], listener=listener, warning=warning)
    below = descendants(terminal.process.pid)
    terminal.send(signal.SIGINT)
    ended = terminal.to_end()
    assert ended.code == 0
    assert "Traceback" not in ended.text
    newcomer.wait_for(lambda: not any(map(lives, below)), what="every process to end")


def test_first_start_says_others_may_only_say_hello(newcomer: RunningDaemon) -> None:
    port = str(free_port())
    newcomer.environment |= {
        "RAPPD_PEERS_LISTEN": "on",
        "RAPPD_PEERS_PORT": port,
        "RAPPD_PEERS_ADDRESS": "127.0.0.1",
    }
    for nearby, told in (("off", "not announced"), ("on", "announced nearby")):
        newcomer.environment |= {"RAPPD_NEARBY": nearby, "RAPPD_PEERS_LOOPBACK": "on"}
        terminal = Terminal(newcomer, "start", RAPP_HOME=str(newcomer.home.parent / nearby))
        value = f"{told}, :{port}"
        assert f"  Machines  {value:<23}  strangers may only say hello" in _running(terminal).split("\n")
        terminal.send(signal.SIGTERM)
        assert terminal.to_end().code == 0


def test_narrow_terminal_puts_hints_below_whole_links(newcomer: RunningDaemon) -> None:
    terminal = Terminal(newcomer, "start", columns=60)
    lines = _running(terminal).split("\n")
    assert [line for line in lines if len(line) > 60 and "http://" not in line] == []
    at = next(number for number, line in enumerate(lines) if line.startswith("  Talk"))
    assert lines[at + 1] == "            or: rappd chat"
    assert lines[at + 2] == "  Model     none (keyword matching)  rappd models connect"
    assert lines[at + 4] == "            drop files into ~/newcomer/brainstem/agents"
    terminal.send(signal.SIGTERM)
    assert terminal.to_end().code == 0


def test_a_later_start_is_one_line(newcomer: RunningDaemon) -> None:
    assert newcomer.cli("start", "--detach").returncode == 0
    assert newcomer.cli("stop").returncode == 0
    for columns, words in ((120, "  no model  15 agents"), (80, "  no model"), (40, "")):
        started = on_terminal(newcomer, "start", "--detach", columns=columns)
        assert started.code == 0
        line = started.lines[0]
        assert re.fullmatch(r"✓ desk is running  http://127\.0\.0\.1:\d+/#k=[\w-]+" + words, line), line
        assert " ".join(started.lines[1:]).split() == " ".join([*AS_ROOT, "Stop it: rappd stop"]).split()
        assert newcomer.cli("stop").returncode == 0


def test_program_off_path_is_named_by_full_path(newcomer: RunningDaemon) -> None:
    started = on_terminal(newcomer, "start", "--detach", columns=200, PATH="/usr/bin:/bin")
    stop = started.lines[-1].removeprefix("Stop it: ")
    assert stop == f"{BIN.lstrip('/')}/rappd stop", "relative to where it was started, the root folder"
    done = subprocess.run(f"cd / && {stop}", shell=True, env=newcomer.environment, check=False)
    assert done.returncode == 0


def test_over_ssh_it_tells_how_to_reach_the_page(newcomer: RunningDaemon) -> None:
    way = f"ssh -L {newcomer.port}:127.0.0.1:{newcomer.port} -p 2222 ann@10.0.0.9"
    terminal = Terminal(newcomer, "start", SSH_CONNECTION="10.0.0.1 50000 10.0.0.9 2222", USER="ann")
    seen = terminal.read_until(lambda seen: "It stops when SSH closes" in seen.words)
    assert f"  {way}" in seen.lines
    assert seen.lines[-1] == "It stops when SSH closes; to keep it: rappd service install"
    opened = on_terminal(newcomer, "open", SSH_CONNECTION="10.0.0.1 50000 10.0.0.9 2222", USER="ann")
    assert opened.lines[-1] == f"  {way}"
    assert "ssh" not in on_terminal(newcomer, "open").text
    terminal.send(signal.SIGTERM)
    terminal.to_end()


def test_agent_changes_are_shown_on_the_terminal(newcomer: RunningDaemon) -> None:
    newcomer.drop("old_agent.py", "class Old(:\n")
    terminal = Terminal(newcomer, "start")
    text = terminal.read_until(lambda seen: "has a fault" in seen.words).text
    assert text.endswith("start --detach\n! 1 agent file has a fault: rappd agents list")
    newcomer.drop("weather_agent.py", agent_source("Weather", description="Tells whether it will rain."))
    terminal.read_until(lambda seen: "✓ Weather is ready. Try: " in seen.text)
    newcomer.drop("weather_agent.py", "x = 1\nclass Weather(:\n")
    seen = terminal.read_until(lambda seen: "it reloads by itself" in seen.words)
    assert re.search(
        r"✗ weather_agent\.py line 2: .*\. The \d\d:\d\d version works on\.\n"
        r"  → fix and save; it reloads by itself",
        seen.text,
    )
    terminal.send(signal.SIGTERM)
    terminal.to_end()


@pytest.mark.parametrize("more", [(), ("--detach",)])
def test_a_taken_port_is_told_with_its_holder_and_the_fix(
    newcomer: RunningDaemon, jupyter: subprocess.Popen[bytes], more: tuple[str, ...]
) -> None:
    other = newcomer.port + 100 if newcomer.port + 200 < 65536 else 7171
    seen = on_terminal(newcomer, "start", *more)
    assert seen.code == 9
    assert seen.lines[0] == f"✗ Port {newcomer.port} is taken by jupyter-lab"
    assert re.fullmatch(r"  → stop it, or PORT=(\d+) rappd start", seen.lines[1])
    error = json.loads(newcomer.cli("start", *more, "--json").stderr.splitlines()[-1])
    assert error["code"] == "port_taken"
    proposed = int(re.search(r"PORT=(\d+)", error["do"])[1])  # type: ignore[index]
    assert other <= proposed < other + 100
    doctor = newcomer.cli("doctor")
    assert doctor.returncode == 1
    assert f"held by jupyter-lab ({jupyter.pid})" in doctor.stdout
    assert f"→ PORT={proposed} " in doctor.stdout
    newcomer.environment["PORT"] = str(proposed)
    newcomer.port = proposed
    assert newcomer.cli("start", "--detach").returncode == 0, "the proposed port works"
    assert newcomer.cli("stop").returncode == 0


def test_a_second_start_is_a_conflict_that_changes_nothing(newcomer: RunningDaemon) -> None:
    assert newcomer.cli("start", "--detach").returncode == 0
    process_file = (newcomer.home / "rappd.pid").read_text()
    for more in ((), ("--detach",)):
        second = newcomer.cli("start", *more)
        assert second.returncode == 9
        assert second.stderr.startswith("✗ rappd already runs on this home")
        assert second.stderr.rstrip().endswith("rappd open")
    assert (newcomer.home / "rappd.pid").read_text() == process_file
    assert newcomer.cli("status").returncode == 0
    assert newcomer.cli("stop").returncode == 0


def test_detached_daemon_stops_completely(newcomer: RunningDaemon) -> None:
    started = newcomer.cli("start", "--detach", "--json")
    told = json.loads(started.stdout)["daemon"]
    assert (told["port"], told["name"], told["agents"]) == (newcomer.port, "desk", 15)
    newcomer.chat("what can you do?")
    pid = int((newcomer.home / "rappd.pid").read_text().split()[0])
    all_of_it = [pid, *descendants(pid)]
    assert len(all_of_it) >= 3, "daemon, template, worker"
    stopped = json.loads(newcomer.cli("stop", "--json").stdout)
    assert stopped == {"stopped": {"pid": pid}}
    newcomer.wait_for(lambda: not any(map(lives, all_of_it)), what="every process to end")
    again = newcomer.cli("stop")
    assert again.returncode == 3
    assert again.stderr.startswith("✗ rappd isn't running here\n")


def test_a_home_named_relatively_is_the_same_for_the_background(
    newcomer: RunningDaemon, tmp_path: Path
) -> None:
    environment = {**newcomer.environment, "RAPP_HOME": "newcomer"}
    for verb in (("start", "--detach"), ("status",), ("stop",)):
        done = subprocess.run(
            [sys.executable, "-m", "rappd", *verb],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert not (Path("/") / "newcomer").exists()


def test_readiness_is_told_to_systemd_when_it_really_answers(newcomer: RunningDaemon, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(100)
        newcomer.environment["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        process = subprocess.Popen(
            [sys.executable, "-m", "rappd", "start", "--quiet"], env=newcomer.environment, cwd="/"
        )
        try:
            assert listener.recv(100) == b"READY=1"
            assert newcomer.get("/readyz").status == 200
            process.terminate()
            assert listener.recv(100) == b"STOPPING=1"
        finally:
            process.terminate()
            assert process.wait(100) == 0


def test_status_first_answer_names_the_port_for_machines(newcomer: RunningDaemon) -> None:
    port = free_port()
    peers = {"RAPPD_PEERS_LISTEN": "on", "RAPPD_PEERS_ADDRESS": "127.0.0.1", "RAPPD_PEERS_PORT": str(port)}
    newcomer.environment |= peers
    newcomer.process = prefork.start(["start", "--quiet"], newcomer.environment)

    def first_answer() -> dict[str, Any] | None:
        try:
            return dict(newcomer.get("/operator/status", control=True).json())
        except OSError:
            return None

    assert newcomer.wait_for(first_answer)["machines"]["port"] == port


def test_status_and_open(busy: RunningDaemon) -> None:
    seen = on_terminal(busy, "status")
    assert seen.lines[0] == f"✓ desk_{busy.get('/health').json()['node'][-4:]} is running on port {busy.port}"
    assert "  Model     fake model, fake-llm" in seen.lines
    assert "  Agents    17 ready, 1 file with faults" in seen.lines
    told = json.loads(busy.cli("status", "--json").stdout)["status"]
    assert told["port"] == busy.port
    assert "url" not in told, "a status is no key"
    link = json.loads(busy.cli("open", "--json").stdout)["link"]
    assert busy.cli("open").stdout.startswith(f"http://127.0.0.1:{busy.port}/#k=")
    assert sign_in(busy, link["key"]).status == 200
    assert sign_in(busy, link["key"]).status == 403, "one use"


@pytest.mark.own_process
def test_an_open_page_does_not_hold_up_the_stop(newcomer: RunningDaemon) -> None:
    newcomer.start()
    with socket.socket(socket.AF_UNIX) as page:
        page.connect(str(newcomer.home / "rappd.sock"))
        page.sendall(b"GET /activity/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        seen = b""
        while b": here" not in seen:
            seen += page.recv(4096)
        newcomer.drop("weather_agent.py", agent_source("Weather"))
        while b"Weather is ready" not in seen:
            seen += page.recv(4096)
        assert newcomer.cli("stop").returncode == 0
        rest = b""
        while piece := page.recv(4096):
            rest += piece
    assert rest.endswith(b"0\r\n\r\n"), "the stream ended in order, it was not cut off"
