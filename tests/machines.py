"""Machines for tests: real daemons on loopback with listeners for each other, spoken to as their owners do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from daemon_under_test import RunningDaemon, free_port


class Machine(RunningDaemon):
    """A daemon, not started, that other machines of the test can reach."""

    def __init__(self, home: Path, name: str, **environment: str) -> None:
        self.name = name
        super().__init__(
            home,
            **{
                "RAPPD_NAME": name,
                "RAPPD_PEERS_LISTEN": "on",
                "RAPPD_PEERS_PORT": str(free_port()),
                "RAPPD_PEERS_ADDRESS": "127.0.0.1",
                "RAPPD_PEERS_LOOPBACK": "on",
                **environment,
            },
        )

    def start(self) -> Machine:
        super().start()
        self.wait_for(self._sees_others, 60, "what it holds for other machines")
        return self

    def owner(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.request(method, path, body, control=True)
        assert answer.status == status, (method, path, answer.status, answer.body, self.log[-2000:])
        return answer.json()

    @property
    def address(self) -> str:
        """Where others reach it."""
        return f"127.0.0.1:{self.peers()['door']['port']}"

    @property
    def fingerprint(self) -> str:
        return str(self.peers()["self"]["fingerprint"])

    def peers(self) -> dict[str, Any]:
        """What it tells its owner of others."""
        found: dict[str, Any] = self.owner("GET", "/peers")
        return found

    def trusted(self) -> set[str]:
        """The names of those it trusts."""
        return {row["name"] for row in self.peers()["peers"] if row["paired"]}

    def trusts(self, other: Machine, whose: str = "mine") -> None:
        asked = {"peer": other.address, "fingerprint": other.fingerprint, "whose": whose}
        assert self.owner("POST", "/pairings", asked)["pairing"]["state"] == "paired"

    def row(self, name: str) -> Any:
        return self.owner("GET", f"/peers/{name}")["peer"]

    def knows(self, *names: str) -> None:
        """Waits until these peers are here, answer, and have said what they can do."""
        for name in names:
            self.wait_for(partial(self._knows, name), 30, f"{name} to be here")

    def misses(self, name: str) -> None:
        """Waits until a peer counts as away."""
        self.wait_for(lambda: self.row(name)["presence"] == "away", 60, f"{name} to be away")

    def threads(self) -> list[list[Any]]:
        """The events of every thread."""
        return [self.events(row["id"]) for row in self.owner("GET", "/threads?limit=1000")["threads"]]

    def events(self, thread: str) -> list[Any]:
        found: list[Any] = self.owner("GET", f"/threads/{thread}")["events"]
        return found

    def talk(self, text: str, *, operator: bool = True, **fields: Any) -> dict[str, Any]:
        """One turn, as its owner says it, or whoever uses the machine."""
        answer = self.request("POST", "/chat", {"user_input": text, **fields}, control=operator)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    def call(self, peer: str, **asked: Any) -> Any:
        return self.owner("POST", "/call", {"peer": peer, **asked})["call"]

    def _sees_others(self) -> bool:
        return self.request("GET", "/peers", control=True).status == 200

    def _knows(self, name: str) -> Any:
        row = self.row(name)
        return row["presence"] == "here" and row["ms"] is not None and row["agents"] and not row["trouble"]


def pair(one: Machine, other: Machine, whose: str = "mine", back: str = "") -> None:
    """Both trust each other: ``one`` calls the other ``whose``, which calls it ``back``."""
    one.trusts(other, whose)
    other.trusts(one, back or whose)


def acquaint(one: Machine, other: Machine) -> None:
    """The same for two of one owner's, until each knows what the other can do."""
    pair(one, other)
    for here in (one, other):
        here.knows(*here.trusted())
