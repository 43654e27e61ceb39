"""Programs that agents are made of run in every sandbox: its filter and its rules are in nobody's way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.chromium import needs_chromium
from fixtures.sandboxed_daemon import (
    LANDLOCK_AS_USER,
    MODES,
    NAMESPACE_AS_USER,
    NO_SANDBOX,
    sandboxed_daemon_in,
)

PROGRAMS = """
import asyncio, concurrent.futures, json, multiprocessing, os, socket, sqlite3, struct, subprocess, sys, tempfile, threading
import http.server, urllib.request
found = {}

def tried(name):
    def run(deed):
        try:
            found[name] = deed()
        except Exception as problem:
            found[name] = repr(problem)
    return run

@tried("threads")
def _():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return sum(pool.map(int, range(100)))

@tried("processes")
def _():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(abs, [-1, -2])

@tried("subprocess")
def _():
    shell = subprocess.run("echo shell | cat", shell=True, capture_output=True, text=True).stdout
    python = subprocess.run([sys.executable, "-c", "print('python')"], capture_output=True, text=True).stdout
    return shell + python

@tried("names")
def _():
    return bool(socket.getaddrinfo("localhost", 80)) and bool(socket.if_nameindex())

@tried("server")
def _():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/soul.md", timeout=100).status
    finally:
        server.shutdown()
        server.server_close()

@tried("listening")
def _():
    with socket.create_server(("", 0)) as server, socket.create_connection(("127.0.0.1", server.getsockname()[1])):
        return server.accept()[1][0]

@tried("daemon")
def _():
    asked = urllib.request.Request("http://127.0.0.1:PORT/chat", b'{"user_input": "hello"}', {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=100) as answer:
        return bool(json.load(answer)["response"])

@tried("multicast")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hearing, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as saying:
        hearing.bind(("", 0))
        group = socket.inet_aton("239.255.77.77") + socket.inet_aton("127.0.0.1")
        hearing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        hearing.settimeout(100)
        saying.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        saying.sendto(b"heard", ("239.255.77.77", hearing.getsockname()[1]))
        return hearing.recv(10).decode()

@tried("loop")
def _():
    async def main():
        process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        return (await process.communicate(b"piped"))[0].decode()
    return asyncio.run(main())

@tried("files")
def _():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, sqlite3.connect(f"{folder}/x.db") as store:
        store.execute("pragma journal_mode=wal")
        return store.execute("select 7").fetchone()[0]

@tried("terminal")
def _():
    import pty
    ours, theirs = pty.openpty()
    os.write(theirs, b"typed")
    return os.read(ours, 10).decode()

return json.dumps(found)
"""


@pytest.mark.parametrize("mode", [*MODES, LANDLOCK_AS_USER, NO_SANDBOX])
def test_ordinary_programs_run(mode: str, nobody_python: Path) -> None:
    with sandboxed_daemon_in(mode, nobody_python, LLM_FAKE="1") as daemon:
        daemon.start()
        answer = daemon.run_code(PROGRAMS.replace("PORT", str(daemon.port)), "Programs")
        assert answer["ok"], answer
        assert json.loads(answer["result"]) == {
            "threads": 4950,
            "processes": [1, 2],
            "subprocess": "shell\npython\n",
            "names": True,
            "server": 200,
            "listening": "127.0.0.1",
            "daemon": True,
            "multicast": "heard",
            "loop": "piped",
            "files": 7,
            "terminal": "typed",
        }


BROWSER = """
import os, subprocess, tempfile
with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
    page = "data:text/html,<p id=x>a</p><script>x.textContent='page '+(6*7)</script>"
    done = subprocess.run(
        ["chromium", "--headless", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom", page],
        capture_output=True, text=True, env={**os.environ, "HOME": folder, "TMPDIR": folder},
    )
return done.stdout[-1000:] or done.stderr[-3000:]
"""


@needs_chromium
@pytest.mark.parametrize("mode", [NAMESPACE_AS_USER, LANDLOCK_AS_USER])
def test_browser_runs_with_its_own_sandbox(mode: str, nobody_python: Path) -> None:
    """The browser shuts itself in with user namespaces and a filter of its own, on top of the worker's."""
    large = {"RAPPD_AGENT_MEMORY_MB": "1000000", "RAPPD_AGENT_TIMEOUT": "100"}
    with sandboxed_daemon_in(mode, nobody_python, LLM_FAKE="1", **large) as daemon:
        daemon.start()
        answer = daemon.run_code(BROWSER, "Browser")
        assert answer["ok"], answer
        assert "page 42" in answer["result"], answer["result"]
