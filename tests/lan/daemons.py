"""Whole daemons, each on a machine of its own in the network; their owner talks to them as the command line does.

The control socket is a file, so that it is reached from outside the machine's namespace. Each daemon has the
agents ``Count`` and, fit to be done twice, ``Again``: both write a line when they begin and one when they end,
which tells how often each call was begun.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from fixtures.running_daemon import Answer, RunningDaemon
from fixtures.time_report import started

from lan.network import Lan, Machine
from neighborhoods.discovery.address_text import join

COUNTING = '''
import time

from agents.basic_agent import BasicAgent


class {name}Agent(BasicAgent):
    """Writes down that it began, takes its time (the first time alone), writes down that it ended."""

    def __init__(self):
        self.name = "{name}"
        self.metadata = {{
            "name": self.name,
            "description": "Counts.",
            "idempotent": {idempotent},
            "parameters": {{
                "type": "object",
                "properties": {{"key": {{"type": "string"}}, "seconds": {{"type": "number"}}}},
                "required": ["key"],
            }},
        }}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        if self._write("begun " + kwargs["key"]):
            time.sleep(float(kwargs.get("seconds", 0)))
        self._write("ended " + kwargs["key"])
        return "counted " + kwargs["key"]

    def _write(self, line):
        with open({file!r}, "ab+", buffering=0) as file:
            file.write(line.encode() + b"\\n")
            file.seek(0)
            return file.read().splitlines().count(line.encode()) == 1
'''

SHIFTED = """
import runpy, sys, time
ahead, now, now_ns = float(sys.argv[1]), time.time, time.time_ns
time.time, time.time_ns = lambda: now() + ahead, lambda: now_ns() + int(ahead * 1e9)
sys.argv = ["rappd", *sys.argv[2:]]
runpy.run_module("rappd", run_name="__main__")
"""
"""A daemon whose clock is wrong: the kernel lets no namespace have a time of day of its own."""


class Daemon(RunningDaemon):
    """A daemon on one machine. ``ahead``: by how many seconds its clock is fast."""

    def __init__(
        self, machine: Machine, folder: Path, name: str = "", *, ahead: float = 0.0, **environment: str
    ) -> None:
        self.name, self.machine, self._ahead = name or machine.name, machine, ahead
        self.fingerprint, self.port_for_peers = "", 0
        super().__init__(
            folder / self.name,
            RAPPD_PEERS_LISTEN="on",
            RAPPD_NEARBY="on",
            RAPPD_NAME=self.name,
            LLM_FAKE="1",
            **environment,
        )
        self._performed = self.data / "performed"
        for agent, idempotent in (("Count", False), ("Again", True)):
            source = COUNTING.format(name=agent, idempotent=idempotent, file=str(self._performed))
            self.drop(f"{agent.lower()}_agent.py", source)

    def launch(self) -> Self:
        """Begins to start it."""
        started["daemons"] += 1
        if not self._ahead:
            self.process = self.machine.start_rappd(
                ["start", "--quiet"], self.environment, own_zygote=self._own_zygote
            )
            return self
        scrubbed = ["env", "-i", *(f"{key}={value}" for key, value in self.environment.items())]
        self.process = self.machine.start(
            [*scrubbed, sys.executable, "-c", SHIFTED, str(self._ahead), "start", "--quiet"],
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return self

    def wait_ready(self) -> Self:
        """Waits until its owner and other machines can talk to it."""
        self.wait_for(self.is_ready, what=f"{self.name} to be ready")
        listed = self.ask("GET", "/peers")
        self.fingerprint, self.port_for_peers = listed["self"]["fingerprint"], listed["listener"]["port"]
        return self

    def start(self) -> Self:
        return self.launch().wait_ready()

    def crash(self) -> None:
        """Ends it as a power cut would."""
        self.kill()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        *,
        control: bool = True,
    ) -> Answer:
        return super().request(method, path, body, headers, control=control)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, *, status: int = 200) -> Any:
        """Asks as its owner; the answer's JSON."""
        answer = self.request(method, path, body)
        assert answer.status == status, f"{self.name} {method} {path}: {answer.status} {answer.body[:500]!r}"
        return answer.json()

    @property
    def address(self) -> str:
        return join(self.machine.address, self.port_for_peers)

    def peers(self) -> dict[str, dict[str, Any]]:
        """The rows of its list of machines, by name. A paired one hides what else was announced by that name."""
        rows = self.ask("GET", "/peers")["peers"]
        return {row["name"]: row for row in sorted(rows, key=lambda row: row["paired"])}

    def presence(self, name: str) -> str:
        """The presence of another machine: here, away, found, or "" when it is not known."""
        return str(self.peers().get(name, {}).get("presence", ""))

    def call(self, peer: str, key: str, *, agent: str = "Count", wait: float = 30, **args: Any) -> Any:
        """A call of an agent that counts: its row."""
        body = {"peer": peer, "agent": agent, "args": {"key": key, **args}, "wait": wait}
        return self.ask("POST", "/call", body)["call"]

    def waiting(self) -> list[dict[str, Any]]:
        """The rows that wait in its outbox."""
        rows: list[dict[str, Any]] = self.ask("GET", "/outbox?waiting=1")["outbox"]
        return rows

    def ends(self, thread: str) -> list[dict[str, Any]]:
        """The data of every answer that its record has on a thread."""
        events = self.ask("GET", f"/threads/{thread}")["events"]
        return [event["data"] for event in events if event["verb"] in ("DONE", "ERROR")]

    def threads(self) -> list[str]:
        """Every thread of its record."""
        return [row["id"] for row in self.ask("GET", "/threads?limit=10000")["threads"]]

    def begun(self) -> Counter[str]:
        """The number of times each call was begun here."""
        return self._counted("begun")

    def ended(self) -> Counter[str]:
        """The number of times each call was done to its end here."""
        return self._counted("ended")

    def verified(self) -> str:
        """The output of ``rappd threads verify``; fails unless the record is whole."""
        done = self.cli("threads", "verify")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _counted(self, word: str) -> Counter[str]:
        text = self._performed.read_text() if self._performed.exists() else ""
        return Counter(line[6:] for line in text.splitlines() if line.startswith(word))


def measured(what: str, seconds: float) -> None:
    """Prints a figure (shown by ``-s``). Figures are told, not asserted."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition("::")[2].removesuffix(" (call)")
    print(f"\n  {test}: {what} {seconds:.2f} s", end="")


def daemons(lan: Lan, folder: Path, *names: str, **environment: str) -> list[Daemon]:
    """Daemons on new machines, started side by side."""
    every = [Daemon(lan.machine(name), folder, name, **environment).launch() for name in names]
    return [one.wait_ready() for one in every]


def pair(one: Daemon, other: Daemon, whose: str = "mine") -> None:
    """Both owners type the other's fingerprint."""
    for here, there in ((one, other), (other, one)):
        body = {"peer": there.address, "fingerprint": there.fingerprint, "whose": whose}
        assert here.ask("POST", "/pairings", body)["pairing"]["state"] == "paired"


@contextmanager
def at_once(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads to call from at the same time."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def results(futures: Iterable[Future[Any]]) -> list[Any]:
    """The outcomes of calls; the error where a daemon was killed meanwhile."""
    return [future.exception() or future.result() for future in futures]


def new_key() -> str:
    """A key no other call has."""
    return uuid4().hex


def signal_all(daemon: Daemon, number: int, *, but_itself: bool = False) -> list[int]:
    """Sends a signal to the processes that a daemon started: its workers. Returns their pids."""
    assert daemon.process is not None
    found = _below(daemon.process.pid)
    assert found, "the zygote is no child of it: the test needs own_process(zygote=True)"
    if not but_itself:
        found.append(daemon.process.pid)
    for pid in found:
        os.kill(pid, number)
    return found


def _below(pid: int) -> list[int]:
    children = [
        int(word)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for word in (task / "children").read_text().split()
    ]
    return [found for child in children for found in (*_below(child), child)]
