"""A daemon with its listener for other machines open on loopback, and machines that are no rappd to call it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.running_daemon import RunningDaemon, agent_source

from rappd.store.reader import Reader
from tests.rappd.federation.plain_machine import PlainMachine

COUNTED = """
import pathlib, time
folder = pathlib.Path(".brainstem_data")
told = str(kwargs.get("tell", "x"))
with open(folder / "counted.txt", "a") as file:
    file.write(told + chr(10))
time.sleep(float(kwargs.get("seconds", 0)))
with open(folder / "ended.txt", "a") as file:
    file.write(told + chr(10))
return "counted " + told
"""


class Node:
    """A daemon, what its owner does there, and its callers."""

    def __init__(self, daemon: RunningDaemon, folder: Path) -> None:
        self.daemon = daemon
        self.folder = folder
        self.machines: list[PlainMachine] = []
        self.fingerprint = ""
        self.address = ""

    def start(self) -> Node:
        self.daemon.start()
        found = self.daemon.wait_for(self._door, what="the listener for other machines")
        self.fingerprint = found["self"]["fingerprint"]
        self.address = f"127.0.0.1:{found['listener']['port']}"
        for machine in self.machines:
            machine.daemon_address, machine.daemon_fingerprint = self.address, self.fingerprint
        return self

    def _door(self) -> Any:
        found = self.owner("GET", "/peers")[1]
        return found if found["listener"]["open"] and "is open on port" in self.daemon.log else None

    def owner(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.daemon.request(method, path, body, control=True)
        return answer.status, answer.json()

    def stranger(self, name: str = "stranger") -> PlainMachine:
        machine = PlainMachine(self.folder / f"{name}-{len(self.machines)}", name)
        machine.daemon_address, machine.daemon_fingerprint = self.address, self.fingerprint
        self.machines.append(machine)
        return machine

    def pair(self, machine: PlainMachine, whose: str = "mine", scopes: list[str] | None = None) -> None:
        body = {"peer": machine.address, "fingerprint": machine.fingerprint, "whose": whose}
        status, found = self.owner("POST", "/pairings", body)
        assert status == 200, found
        assert found["pairing"]["state"] == "paired"
        if scopes is not None:
            name = found["pairing"]["peer"]
            status, found = self.owner("POST", f"/peers/{name}/scopes", {"scopes": scopes})
            assert status == 200, found

    def peer(self, name: str = "peer", whose: str = "mine", scopes: list[str] | None = None) -> PlainMachine:
        machine = self.stranger(f"{name}{len(self.machines)}")
        self.pair(machine, whose, scopes)
        return machine

    def counted(self, what: str = "counted") -> list[str]:
        path = self.daemon.data / f"{what}.txt"
        return path.read_text().split() if path.exists() else []

    def records(self, id: str) -> list[dict[str, Any]]:
        """Every recorded envelope of that id."""
        with Reader(self.daemon.home / "rappd.db") as record:
            rows = record.rows("SELECT body FROM events WHERE id = ? ORDER BY seq", (id,))
        return [json.loads(row[0]) for row in rows]

    def close(self) -> None:
        for machine in self.machines:
            machine.close()
        self.daemon.stop()


def make_node(folder: Path, **environment: str) -> Node:
    daemon = RunningDaemon(
        folder / "home",
        RAPPD_NAME="pi",
        RAPPD_PEERS_LISTEN="on",
        RAPPD_PEERS_PORT=str(free_port()),
        RAPPD_PEERS_ADDRESS="127.0.0.1",
        RAPPD_PEERS_LOOPBACK="on",
        **environment,
    )
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "it is " + str(kwargs.get("zone", "now"))'))
    daemon.drop("secret_agent.py", agent_source("Secret", 'return "the secret"'))
    daemon.drop("big_agent.py", agent_source("Big", 'return "x" * int(kwargs.get("size", 1))'))
    counting = COUNTED.strip().replace("\n", "\n        ")
    daemon.drop("counted_agent.py", agent_source("Counted", counting))
    return Node(daemon, folder / "machines")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A house with the scripted model, shared by the tests of a module."""
    folder = tmp_path_factory.mktemp("house")
    found = make_node(folder, LLM_FAKE="1").start()
    yield found
    found.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """A factory of houses (not started)."""
    made: list[Node] = []

    def one(name: str = "house", **environment: str) -> Node:
        made.append(make_node(tmp_path / name, **{"LLM_FAKE": "1", **environment}))
        return made[-1]

    yield one
    for node in made:
        node.close()
