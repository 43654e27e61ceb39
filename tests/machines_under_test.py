"""Machines for tests: daemons on loopback whose doors for each other are open, and trust between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daemon_under_test import RunningDaemon, free_port


def machine(home: Path, name: str, **environment: str) -> RunningDaemon:
    """A daemon, not started, that other machines of the test can reach."""
    return RunningDaemon(
        home,
        **{
            "RAPPD_NAME": name,
            "RAPPD_PEERS_DOOR": "on",
            "RAPPD_PEERS_PORT": str(free_port()),
            "RAPPD_PEERS_ADDRESS": "127.0.0.1",
            "RAPPD_PEERS_LOOPBACK": "on",
            "LLM_FAKE": "1",
            **environment,
        },
    )


def peers_of(daemon: RunningDaemon) -> dict[str, Any]:
    """What the machine tells its owner of others."""
    found: dict[str, Any] = daemon.get("/peers", control=True).json()
    return found


def door_of(daemon: RunningDaemon) -> str:
    """Where others reach it."""
    return f"127.0.0.1:{peers_of(daemon)['door']['port']}"


def key_of(daemon: RunningDaemon) -> str:
    """Its whole fingerprint."""
    return str(peers_of(daemon)["self"]["fingerprint"])


def trust(one: RunningDaemon, other: RunningDaemon, whose: str = "mine") -> None:
    """Pairs both, each by the other's fingerprint."""
    for here, there in ((one, other), (other, one)):
        body = {"peer": door_of(there), "fingerprint": key_of(there), "whose": whose}
        answer = here.post("/pairings", body, control=True)
        assert answer.status == 200, answer.body
    for here in (one, other):
        here.wait_for(lambda here=here: _knows(here), what="the peers to be here")


def names_of(daemon: RunningDaemon) -> set[str]:
    """The names of those it trusts."""
    return {row["name"] for row in peers_of(daemon)["peers"] if row["paired"]}


def _knows(daemon: RunningDaemon) -> bool:
    return all(
        row["presence"] == "here" and row["agents"] for row in peers_of(daemon)["peers"] if row["paired"]
    )
