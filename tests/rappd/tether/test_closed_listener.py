"""A daemon whose listener for phones is closed carries nothing of it."""

from __future__ import annotations

import re
from pathlib import Path

from fixtures.logged_imports import LoggingImports
from fixtures.running_daemon import RunningDaemon

from tests.rappd.tether.conftest import reachable

ALWAYS = {"devices", "errors", "proofs", "service", "session_screen", "webrtc"}
"""Modules of the list of devices."""
_TETHER = re.compile(r"rappd\.tether\.(\w+)")


def _rtc_workers(daemon: RunningDaemon) -> int:
    assert daemon.process is not None
    pid = daemon.process.pid
    children = [
        child
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return sum(b"rappd.tether.rtc_worker" in Path(f"/proc/{one}/cmdline").read_bytes() for one in children)


def test_closed_listener_is_not_imported_and_runs_no_process(tmp_path: Path) -> None:
    daemon = LoggingImports(tmp_path / "desk", **reachable())
    daemon.start()
    try:
        for path in ("/operator/status", "/devices", "/devices/window", "/sessions"):
            assert daemon.request("GET", path, control=True).status == 200
        found = daemon.imported()
        assert "rappd.tether.service" in found
        assert {match[1] for name in found if (match := _TETHER.fullmatch(name))} <= ALWAYS
        assert not {"aiortc", "aioice", "av", "qrcode", "rappd.listeners.tether_listener"} & found
        assert _rtc_workers(daemon) == 0

        assert daemon.request("POST", "/devices/window", {}, control=True).status == 200
        assert _rtc_workers(daemon) == 1
        assert {"rappd.tether.phones", "rappd.listeners.tether_listener"} <= daemon.imported()
        assert not {"aiortc", "av"} & daemon.imported()
        assert daemon.request("DELETE", "/devices/window", control=True).status == 200
        assert _rtc_workers(daemon) == 0
    finally:
        daemon.stop()
