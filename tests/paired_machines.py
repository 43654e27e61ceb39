"""Two or more real daemons on loopback that trust each other, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daemon_under_test import RunningDaemon, free_port


class Machine(RunningDaemon):
    """A daemon with a door for other machines, spoken to as its owner."""

    def __init__(self, folder: Path, name: str, **environment: str) -> None:
        self.name = name
        self.door = free_port()
        super().__init__(
            folder / name,
            RAPPD_NAME=name,
            RAPPD_PEERS_DOOR="on",
            RAPPD_PEERS_PORT=str(self.door),
            RAPPD_PEERS_ADDRESS="127.0.0.1",
            RAPPD_PEERS_LOOPBACK="on",
            **environment,
        )

    def start(self) -> Machine:
        super().start()
        self.wait_for(self.door_is_open, 30, "its door for other machines")
        return self

    def door_is_open(self) -> bool:
        return bool(self.owner("GET", "/peers")["door"]["open"])

    def owner(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.request(method, path, body, control=True)
        assert answer.status == status, (method, path, answer.status, answer.body)
        return answer.json()

    @property
    def fingerprint(self) -> str:
        found: str = self.owner("GET", "/peers")["self"]["fingerprint"]
        return found

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.door}"

    def trusts(self, other: Machine, whose: str = "mine") -> None:
        asked = {"peer": other.address, "fingerprint": other.fingerprint, "whose": whose}
        assert self.owner("POST", "/pairings", asked)["pairing"]["state"] == "paired"

    def call(self, peer: str, **asked: Any) -> Any:
        return self.owner("POST", "/call", {"peer": peer, **asked})["call"]

    def peer(self, name: str) -> Any:
        return self.owner("GET", f"/peers/{name}")["peer"]


def pair(one: Machine, other: Machine, whose: str = "mine") -> None:
    one.trusts(other, whose)
    other.trusts(one, whose)
