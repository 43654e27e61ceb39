"""Calls cannot be answered, read or paid for by other calls: attacks from inside a real agent, in each mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fixtures.running_daemon import agent_source
from fixtures.sandboxed_daemon import SandboxedDaemon

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
