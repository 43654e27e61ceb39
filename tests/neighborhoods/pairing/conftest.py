"""Machines that can pair, on a network of their own in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pyrage
import pytest

from envelopes.errors import ReportableError
from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard, introduce
from neighborhoods.errors import PeerOfflineError
from neighborhoods.pairing.pairing_states import PairingAttempt
from neighborhoods.pairing.service import PairingService

Deliver = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Network:
    """The machines that can be reached, by address. ``between`` may stand in the middle of every exchange."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.machines: dict[str, Machine] = {}
        self.between: Callable[[Machine, str, dict[str, Any], Deliver], Awaitable[dict[str, Any]]] | None = (
            None
        )

    async def post(self, sender: Machine, address: str, body: dict[str, Any]) -> dict[str, Any]:
        async def deliver(to: str, what: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0)
            machine = self.machines.get(to)
            if machine is None:
                raise PeerOfflineError("away")
            return await machine.hears(json.loads(json.dumps(what)), sender.host)

        return await (
            self.between(sender, address, body, deliver) if self.between else deliver(address, body)
        )


class Machine:
    """A name, a key, and what came of its pairings."""

    def __init__(self, network: Network, name: str, host: str, key: IdentityKey | None = None) -> None:
        self.network = network
        self.host = host
        self.address = f"{host}:7443"
        self.key = key or IdentityKey.generate()
        tls = make_certificate(self.key, now=datetime.now(UTC))
        recipient = str(pyrage.x25519.Identity.generate().to_public())
        self.introduction: NodeCard = introduce(self.key, tls.certificate_der, recipient, name, 7443)
        self.paired: list[tuple[str, str, str]] = []
        self.peers: dict[str, str] = {}
        self.disk_full = False
        self.pairings = PairingService(
            self.key,
            lambda: self.introduction,
            lambda address, body: network.post(self, address, body),
            self._pinned,
            known=self.peers.get,
            now=network.clock,
            poll=0.02,
        )
        network.machines[self.address] = self

    async def hears(self, body: object, host: str) -> dict[str, Any]:
        """The answer of its listener, refusals too."""
        try:
            return json.loads(json.dumps(await self.pairings.answer(body, host)))  # type: ignore[no-any-return]
        except ReportableError as problem:
            return problem.as_json()

    async def ask(self, other: Machine, whose: Any = "mine", address: str = "") -> PairingAttempt:
        return await self.pairings.ask(other.introduction, address or other.address, whose)

    async def until(self, attempt: str, *states: str) -> PairingAttempt:
        """The attempt, once it is in one of the states."""
        async with asyncio.timeout(100):
            while (one := self.pairings.get(attempt)).state not in states:
                await self.pairings.wait(attempt, one.state, 0.2)
        return one

    async def asked_by(self, other: Machine) -> PairingAttempt:
        """The attempt of another machine, once its words are here."""
        async with asyncio.timeout(100):
            while True:
                for one in self.pairings.asking():
                    if one.fingerprint == other.key.fingerprint and one.words:
                        return one
                await asyncio.sleep(0.01)

    async def _pinned(self, introduction: NodeCard, whose: str, address: str) -> None:
        await asyncio.sleep(0)
        if self.disk_full:
            raise ReportableError("The disk is full.", do="Free some.")
        self.peers[introduction.name] = introduction.fingerprint
        self.paired.append((introduction.fingerprint, whose, address))


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    """An empty one."""
    made = Network()
    yield made
    for machine in list(made.machines.values()):
        await machine.pairings.close()


@pytest.fixture
def make_machine(network: Network) -> Callable[..., Machine]:
    """Machines on that network: ``make("pi")``, or with a key of the test's choice."""
    hosts = iter(range(1, 250))

    def make(name: str, key: IdentityKey | None = None) -> Machine:
        return Machine(network, name, f"10.0.0.{next(hosts)}", key)

    return make


@pytest.fixture
def desk(make_machine: Callable[..., Machine]) -> Machine:
    return make_machine("desk", _ordered()[0])


@pytest.fixture
def pi(make_machine: Callable[..., Machine]) -> Machine:
    return make_machine("pi", _ordered()[1])


def _ordered(made: list[IdentityKey] = []) -> list[IdentityKey]:  # noqa: B006 - made once
    """Two keys, the lower fingerprint first."""
    if not made:
        made += sorted((IdentityKey.generate() for _ in range(2)), key=lambda key: key.fingerprint)
    return made
