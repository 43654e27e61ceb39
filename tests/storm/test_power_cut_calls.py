"""The power of a machine is cut while it performs a call of another one: the call is performed once."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.power_cut import CuttableDisk, cuttable_disk
from fixtures.running_daemon import agent_source

from tests.storm.storm import SECONDS, rounds

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.timeout(600 + int(SECONDS)),
    pytest.mark.own_process(zygote=True),
]

_TELLS = """
        import time, urllib.request
        urllib.request.urlopen("http://127.0.0.1:{port}/", timeout=20).read()
        time.sleep(5)
        return "sent"
"""


class Performed:
    """Hears each time that the agent is performed, and then cuts the power once."""

    def __init__(self, disk: CuttableDisk) -> None:
        self.count = 0
        self.cut = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.count += 1
                if not outer.cut.is_set():
                    disk.cut()
                    outer.cut.set()
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[CuttableDisk]:
    with cuttable_disk(tmp_path) as made:
        yield made


def test_call_under_way_at_a_power_cut_is_performed_once(disk: CuttableDisk, tmp_path: Path) -> None:
    performed = Performed(disk)
    desk = Machine(tmp_path / "desk", "desk", LLM_FAKE="1")
    # Sandboxed agents have no /dev/shm, where the disk is.
    pi = Machine(disk.root / "pi", "pi", LLM_FAKE="1", RAPPD_SANDBOX="none")
    pi.drop("mail_agent.py", agent_source("Mail", _TELLS.format(port=performed.server.server_port)))
    desk.start()
    pi.start()
    acquaint(desk, pi)
    try:
        for number in rounds(0.05):
            performed.cut.clear()
            asking = threading.Thread(target=lambda: desk.call("pi", agent="Mail", args={}, wait=60))
            asking.start()
            assert performed.cut.wait(100)
            pi.kill()
            disk.back()
            pi.start()
            asking.join(100)
            desk.wait_for(partial(_answered, desk, number + 1), what="the call to be answered")
            assert performed.count == number + 1
    finally:
        desk.stop()
        pi.stop()
        performed.server.shutdown()


def _answered(desk: Machine, calls: int) -> bool:
    """True once that many calls were answered as cut off: whether they were done is not known; they are not done again."""
    cut_off = sum(
        event["verb"] == "ERROR" and event["data"].get("reason") == "interrupted"
        for thread in desk.threads()
        for event in thread
    )
    return cut_off == calls
