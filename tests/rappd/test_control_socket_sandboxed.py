"""The control socket is the operator's: a worker gets nothing there, in whatever sandbox it runs, nor does what it started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.sandboxed_daemon import LANDLOCK, MODES, NO_SANDBOX, sandboxed_daemon_in

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
