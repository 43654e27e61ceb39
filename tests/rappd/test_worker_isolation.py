"""Workers reach nothing of other calls, origins and the daemon: attacks from inside a real agent, in each sandbox mode."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.sandboxed_daemon import LANDLOCK, MODES, NO_SANDBOX, SandboxedDaemon, sandboxed_daemon_in

from rappd.errors import UsageProblemError
from rappd.settings.load import Settings
from rappd.tenants.tenant_config import sandbox_wish

_FORGE = """
import os, socket, struct, threading, time
def frames():
    for fd in range(3, 64):
        try:
            stream = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        if stream.family == socket.AF_UNIX:
            yield stream
def say(content):
    data = content.encode()
    for stream in frames():
        try:
            stream.send(struct.pack(">I", len(data)) + data)
        except OSError:
            pass
"""
_OWN = """
from agents.runtimes.python.worker import channel
say('[0, %d, {"result": "forged", "data_slush": null}]' % channel._channel.call_id)
time.sleep(30)
"""
_OTHERS = """
for number in range(1, 200):
    say('[{kind}, %d, {value}]' % number)
    time.sleep(0.001)
time.sleep(5)
return "done"
"""


def _agent(daemon: SandboxedDaemon, name: str, code: str) -> None:
    indented = "\n        ".join(code.strip().splitlines())
    daemon.drop(f"{name.lower()}_agent.py", agent_source(name, indented))
    daemon.wait_for(lambda: name in daemon.agent_names(), what=f"{name} to be loaded")


def _run(daemon: SandboxedDaemon, name: str) -> Any:
    return daemon.post("/agents/run", {"agent": name}, control=True).json()


def test_forged_frames_are_dropped_and_logged(sandboxed_daemon: SandboxedDaemon) -> None:
    daemon = sandboxed_daemon.start()
    own = daemon.run_code(_FORGE + _OWN, "Own")
    assert own["result"] == "forged", "the probe does not reach the daemon"
    _agent(daemon, "Honest", "import time; time.sleep(1.5); return 'right'")
    for name, kind, value in (
        ("Answers", 0, '{"result": "forged", "data_slush": null}'),
        ("Errors", 1, '{"kind": "Forged", "message": "", "line": 0, "trace": ""}'),
        ("Asks", 2, '["llm", {"messages": []}]'),
    ):
        attack = _FORGE + _OTHERS.replace("{kind}", str(kind)).replace("{value}", value)
        _agent(daemon, name, attack)
        before = daemon.log.count("security: worker")
        with ThreadPoolExecutor(2) as both:
            honest = both.submit(_run, daemon, "Honest")
            forger = both.submit(_run, daemon, name)
            assert honest.result()["result"] == "right"
            assert not forger.result()["ok"]
        daemon.wait_for(lambda before=before: daemon.log.count("security: worker") > before)


def test_leftover_thread_neither_asks_nor_stays(sandboxed_daemon: SandboxedDaemon) -> None:
    daemon = sandboxed_daemon.start()
    first = daemon.run_code(
        """
import os, threading, time
from utils.llm import call_llm
def later():
    time.sleep(0.3)
    open('.brainstem_data/asked', 'w').write(call_llm('hello'))
threading.Thread(target=later, daemon=True).start()
return os.readlink('/proc/self') + ' ' + str(time.monotonic())
""",
        "Leaves",
    )
    assert first["ok"], first
    second = daemon.run_code("import threading, time; time.sleep(1); return threading.active_count()", "Next")
    assert second["result"] == "1"
    assert not (daemon.home / "brainstem" / ".brainstem_data" / "asked").exists()


def test_processes_left_behind_end_with_their_call(sandboxed_daemon: SandboxedDaemon) -> None:
    daemon = sandboxed_daemon.start()
    leave = """
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # adopts no orphans
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            with open('.brainstem_data/alive', 'a') as note:
                note.write('.')
            time.sleep(0.05)
    os._exit(0)
os.wait()
time.sleep(0.4)
return os.path.getsize('.brainstem_data/alive')
"""
    told = daemon.run_code(leave, "Daemonises")
    assert int(told["result"]) > 1, "the probe does not run"
    again = daemon.run_code(
        """
import os, time
time.sleep(0.5)
before = os.path.getsize('.brainstem_data/alive')
time.sleep(0.5)
return os.path.getsize('.brainstem_data/alive') - before
""",
        "Watches",
    )
    assert again["result"] == "0"


def test_next_call_finds_the_process_as_it_was(sandboxed_daemon: SandboxedDaemon) -> None:
    """Of the same agent, caller and user: others have another process anyway."""
    daemon = sandboxed_daemon.start()
    look = """
import os, signal, socket, sys
umask = os.umask(0o22)
found = [os.environ.get('LEFT'), os.getcwd() == '/', umask, signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL,
         sys.gettrace() is None, socket.getdefaulttimeout(), os.getpid()]
os.environ['LEFT'] = 'secret'; os.chdir('/'); os.umask(0)
signal.signal(signal.SIGUSR1, lambda *_: None); sys.settrace(lambda *_: None)
socket.setdefaulttimeout(7)
return found
"""
    first = daemon.run_code(look, "Changes")["result"]
    assert _run(daemon, "Changes")["result"] == first, "and it is the same process"
    assert (
        first.replace("'", '"')
        .lower()
        .startswith(("[null, false, 18, true, true, null, ", "[none, false, 18, true, true, none, "))
    )


def test_other_origins_worker_is_out_of_reach(sandboxed_daemon: SandboxedDaemon) -> None:
    """A worker of one origin neither sees, traces nor reads the process of another's."""
    daemon = sandboxed_daemon.start()
    reach = """
import os
own = open('/proc/self/maps').read()
opened = []
for entry in os.listdir('/proc'):
    if not entry.isdigit() or int(entry) == os.getpid():
        continue
    for name in ('mem', 'environ', 'maps'):
        try:
            with open('/proc/' + entry + '/' + name, 'rb') as file:
                file.read(1) if name != 'mem' else None
        except OSError:
            continue
        try:
            line = open('/proc/' + entry + '/cmdline').read()
        except OSError:
            line = ''
        if 'agents.runtimes.python.worker.zygote' in line:
            opened.append(entry + '/' + name)
return [len(own) > 0, opened]
"""
    assert daemon.run_code("return 'ready'", "Other")["ok"]
    assert daemon.run_code(reach, "Reaches")["result"] in ("[true, []]", "[True, []]")


def test_requests_of_another_agent_are_out_of_reach(sandboxed_daemon: SandboxedDaemon) -> None:
    """An agent looks at what waits in its own worker's descriptor, while it and another are called."""
    daemon = sandboxed_daemon.start()
    peek = """
import socket, time
from agents.runtimes.python.worker import channel
end = time.monotonic() + 0.0007
while time.monotonic() < end:
    try:
        return channel._channel._queue.recv(65536, socket.MSG_DONTWAIT | socket.MSG_PEEK).decode('latin-1')
    except BlockingIOError:
        continue
return ''
"""
    _agent(daemon, "Peeks", peek)
    _agent(daemon, "Other", "return 'fine'")

    def call(name: str) -> list[str]:
        return [_run(daemon, name)["result"] for _ in range(60)]

    with ThreadPoolExecutor(12) as many:
        told = list(many.map(call, ["Peeks", "Peeks", "Other"] * 4))
        for _ in range(8):  # on a busy machine calls are not always quick
            if not any('"Peeks"' in packet for answers in told for packet in answers):
                told += many.map(call, ["Peeks"] * 12)
    seen = [packet for answers in told for packet in answers if packet not in ("", "fine")]
    assert any('"Peeks"' in packet for packet in seen), "the probe sees nothing"
    assert not [packet for packet in seen if '"Other"' in packet]


def test_sandbox_mode_is_taken_and_hides_the_keys(sandboxed_daemon: SandboxedDaemon) -> None:
    sandboxed_daemon.start()
    home = sandboxed_daemon.home
    own = sandboxed_daemon.run_code("return open('.brainstem_data/note', 'w').write('mine')")
    assert own["ok"], own
    stolen = sandboxed_daemon.run_code(
        f"return open({str(home / 'keys' / 'identity.pem')!r}).read()", "Thief"
    )
    assert not stolen["ok"]
    assert "PRIVATE KEY" not in str(stolen)


def test_sandbox_setting_of_another_name_is_refused() -> None:
    settings = Settings.without_files({"RAPPD_SANDBOX": "cellar"})
    with pytest.raises(UsageProblemError, match="one of: auto, namespace, landlock, none"):
        sandbox_wish(settings)


def test_egg_and_own_agents_share_no_worker(sandboxed_daemon: SandboxedDaemon) -> None:
    """Each worker tells itself by a mark that one agent leaves in its process."""
    mark = "import sys; sys.marks = getattr(sys, 'marks', []) + ['{}']; return ' '.join(sys.marks)"
    for name in ("Mine", "Too"):
        sandboxed_daemon.drop(f"{name.lower()}_agent.py", agent_source(name, mark.format(name)))
    source = agent_source("Hatched", mark.format("Hatched"))
    sandboxed_daemon.drop("hatched_agent.py", source)
    receipts = sandboxed_daemon.home / "eggs" / "receipts"
    receipts.mkdir(parents=True, exist_ok=True)
    row = {
        "path": "agents/hatched_agent.py",
        "sha256": hashlib.sha256((sandboxed_daemon.agents / "hatched_agent.py").read_bytes()).hexdigest(),
    }
    receipt = {"sha256": "ab" * 32, "workspace": "brainstem", "files": [row]}
    (receipts / "20260101T000000Z-aaaaaa.json").write_bytes(orjson.dumps(receipt))
    daemon = sandboxed_daemon.start()
    told = [
        daemon.post("/agents/run", {"agent": name}, control=True).json()["result"]
        for name in ("Mine", "Hatched", "Too", "Mine")
    ]
    assert told == ["Mine", "Hatched", "Too", "Mine Mine"]


ATTACKS = {
    "read": "open({path!r}, 'rb').read(4)",
    "write": "open({path!r}, 'r+b').write(b'forged')",
    "remove": "__import__('os').unlink({path!r})",
    "replace": "__import__('os').rename('.brainstem_data/forged', {path!r})",
    "link": "__import__('os').link({path!r}, '.brainstem_data/link')",
    "list": "__import__('os').listdir({folder!r}) and open({path!r}, 'ab')",
}


def test_agent_cannot_reach_the_anchors(sandboxed_daemon: SandboxedDaemon) -> None:
    daemon = sandboxed_daemon
    daemon.start()
    path = daemon.home / "anchors.db"
    assert path.read_bytes().startswith(b"SQLite format 3")
    own = str(daemon.home / "brainstem" / ".brainstem_data" / "mine")
    control = daemon.run_code(f"return open({own!r}, 'wb').write(b'forged')", "Control")
    assert control["ok"], control
    daemon.run_code("return open('.brainstem_data/forged', 'wb').write(b'forged')", "Preparing")
    for name, attack in ATTACKS.items():
        code = attack.format(path=str(path), folder=str(daemon.home))
        tried = daemon.run_code(f"return repr({code})", f"Attack{name.capitalize()}")
        assert not tried["ok"], (name, tried)
    assert path.read_bytes().startswith(b"SQLite format 3")
    report = json.loads(daemon.cli("threads", "verify", "--json").stdout)["verify"]
    assert report["found"] == 0


def test_probe_reaches_the_anchors_without_a_sandbox() -> None:
    with sandboxed_daemon_in(NO_SANDBOX, LLM_FAKE="1") as daemon:
        daemon.start()
        path = str(daemon.home / "anchors.db")
        read = daemon.run_code(f"return repr(open({path!r}, 'rb').read(6))", "Reader")
    assert read["ok"], "the probe works where nothing stands against it"
    assert "SQLite" in str(read)


ASK = """
import socket, sys
try:
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(100)
        asked.connect(sys.argv[1])
        asked.sendall(b"GET /settings HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
        answer = b""
        while piece := asked.recv(65536):
            answer += piece
    said = answer.decode()
except OSError as error:
    said = type(error).__name__
print(said)
"""
FROM_WORKER = """
import contextlib, io, sys
sys.argv = ["ask", {socket!r}]
said = io.StringIO()
with contextlib.redirect_stdout(said):
    exec({ask!r}, {{}})
return said.getvalue()
"""
FROM_CHILD = """
import subprocess, sys
asked = [sys.executable, "-c", {ask!r}, {socket!r}]
return subprocess.run(asked, start_new_session=True, capture_output=True, text=True).stdout
"""


@pytest.mark.parametrize("mode", [*MODES, NO_SANDBOX])
@pytest.mark.parametrize("code", [FROM_WORKER, FROM_CHILD], ids=["worker", "child of its own session"])
def test_worker_is_refused_at_the_control_socket(mode: str, code: str, nobody_python: Path) -> None:
    with sandboxed_daemon_in(mode, nobody_python, LLM_FAKE="1") as daemon:
        daemon.start()
        socket = str(daemon.home / "rappd.sock")
        assert _asked_from_outside(daemon).startswith("HTTP/1.1 200 "), "positive control"
        said = daemon.run_code(code.format(ask=ASK, socket=socket))["result"].strip()
        if mode in (LANDLOCK, NO_SANDBOX):  # the path is there, and the daemon looks who asks
            assert said.startswith("HTTP/1.1 403 "), said
            assert "Workers may not use the control socket." in said
            daemon.wait_for_log("tried the control socket")
        else:  # the home is not there for it
            assert said in ("FileNotFoundError", "PermissionError", "ConnectionRefusedError"), said
            assert "tried the control socket" not in daemon.log


def _asked_from_outside(daemon: RunningDaemon) -> str:
    asked = [sys.executable, "-c", ASK, str(daemon.home / "rappd.sock")]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout
