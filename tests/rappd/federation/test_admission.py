"""The way in: strangers make room for each other, who has proven something stays; operations for peers have their right."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from neighborhoods.auth.tls import ServerTrust, TlsFiles
from rappd.features.features import all_operations
from rappd.features.operation import Operation
from rappd.listeners import connection_admission
from rappd.listeners.connection_admission import STRANGERS_OF_ONE_ADDRESS, ConnectionAdmission
from rappd.listeners.federation.operation_routes import FEATURES as OF_PEERS
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.federation.test_snapshots_for_peers import share
from tests.rappd.federation.test_tokens import issued


class Echo(asyncio.Protocol):
    """Says back what it hears; ``!`` proves its sender."""

    door: ConnectionAdmission

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if b"!" in data:
            self.door.mark_authenticated(self)
        self.transport.write(data)


async def talks(line: Any, octets: bytes = b"x") -> bool:
    reader, writer = line
    try:
        writer.write(octets)
        async with asyncio.timeout(30):
            return bool(await reader.read(10) == octets)
    except (OSError, TimeoutError):
        return False


def test_unknown_nodes_give_way_to_paired_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_admission, "BURST", 90)
    monkeypatch.setattr(connection_admission, "A_SECOND", 0.0)
    own, peer = PlainMachine(tmp_path, "own"), PlainMachine(tmp_path, "peer")

    async def go() -> None:
        trust = ServerTrust(TlsFiles(own.pem, own.pem), [peer.der])
        door = Echo.door = ConnectionAdmission(trust.context, lambda shown: shown == peer.der)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        host, port = listener.getsockname()
        door.open([listener], Echo)

        async def come(context: ssl.SSLContext) -> Any:
            return await asyncio.open_connection(host, port, ssl=context)

        known = await come(peer.context())
        proven = await come(peer.context(certificate=False))
        assert await talks(known)
        assert await talks(proven, b"!")
        first = await come(peer.context(certificate=False))
        assert await talks(first)
        crowd = [socket.create_connection((host, port)) for _ in range(STRANGERS_OF_ONE_ADDRESS)]
        late = await come(peer.context(certificate=False))
        assert await talks(late)
        assert not await talks(first)
        assert await talks(known)
        assert await talks(proven)
        for one in crowd:
            one.close()
        lines = [known, proven, first, late]
        with suppress(OSError, ssl.SSLError):  # its share for this moment is used up
            for _ in range(90):
                lines.append(await come(peer.context(certificate=False)))
        assert door.turned_away > 0
        assert await talks(known)
        await door.close()
        assert not await talks(late)
        assert await talks(known)
        for _, writer in lines:
            writer.close()

    asyncio.run(go())
    own.close()
    peer.close()


def test_callers_that_are_not_admitted_are_closed_before_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, peer = PlainMachine(tmp_path, "own"), PlainMachine(tmp_path, "peer")

    async def go() -> None:
        trust = ServerTrust(TlsFiles(own.pem, own.pem), [peer.der])
        door = Echo.door = ConnectionAdmission(
            trust.context, lambda shown: shown == peer.der, admits=lambda source: source == "127.0.0.1"
        )
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        host, port = listener.getsockname()
        door.open([listener], Echo)
        for _ in range(20):  # a paired machine, even
            with pytest.raises(OSError):
                await asyncio.open_connection(host, port, ssl=peer.context(), local_addr=("127.0.0.9", 0))
        assert door.turned_away == 20
        line = await asyncio.open_connection(host, port, ssl=peer.context())
        assert await talks(line)
        line[1].close()
        await door.close()

    asyncio.run(go())
    refusals = [one for one in caplog.messages if "a connection from 127.0.0.9 was refused" in one]
    assert len(refusals) == 1, "logged now and then, whatever a flood does"
    own.close()
    peer.close()


def test_machine_whose_trust_ended_is_a_stranger_again(tmp_path: Path) -> None:
    own, kept, gone = (PlainMachine(tmp_path, name) for name in ("own", "kept", "gone"))
    trusted = {kept.der, gone.der}

    async def go() -> None:
        trust = ServerTrust(TlsFiles(own.pem, own.pem), trusted)
        door = Echo.door = ConnectionAdmission(trust.context, trusted.__contains__, seconds=0.5)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        host, port = listener.getsockname()
        door.open([listener], Echo)
        still, deaf, proven = [
            await asyncio.open_connection(host, port, ssl=one.context(), limit=1)
            for one in (kept, gone, gone)
        ]
        with suppress(TimeoutError):  # it reads nothing of what comes back, so that it is held up at last
            async with asyncio.timeout(3):
                while True:
                    deaf[1].write(bytes(1 << 16))
                    await deaf[1].drain()
        assert await talks(still) and await talks(proven)
        trusted.discard(gone.der)
        async with asyncio.timeout(100):
            while not deaf[1].transport.is_closing():
                if not proven[1].transport.is_closing():
                    proven[1].write(b"!")  # by a permission that was passed on, say
                deaf[1].write(b"x")
                await asyncio.sleep(0.2)
        assert not proven[1].transport.is_closing() and await talks(still)
        await door.close()
        for _, writer in (still, deaf, proven):
            writer.close()

    asyncio.run(go())
    for one in (own, kept, gone):
        one.close()


OPERATIONS = all_operations(OF_PEERS)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.name)
def test_operation_is_a_peers_with_its_capability_alone(node: Node, one: Operation) -> None:
    path = re.sub(r"\{\w+\}", "5f0c0d6e-8d0e-4f6c-9a55-3d2b6b8f1a11", one.path)
    assert one.right.kind == "peer" and one.right.scope
    friend = node.peer("friend", whose="friend")
    other = {"EGG": "SNAPSHOT", "SNAPSHOT": "EGG"}[one.right.scope]
    for held in (["HELP.*"], [other], [f"{one.right.scope}.brainstem"]):
        share(node, friend, *held)
        refused = friend.request(one.method, path)
        assert (refused.status, refused.json["code"]) == (403, "refused"), held
    share(node, friend, one.right.scope)
    assert friend.request(one.method, path).status in (200, 400, 404)
    text = issued(node, [one.right.scope])["text"]
    for shown in ({}, {"token": text}):
        refused = node.stranger().request(one.method, path, certificate=False, **shown)
        assert (refused.status, refused.json["code"]) == (401, "not_paired")


def test_no_operation_of_others_is_the_owners_or_twice() -> None:
    for key in (lambda one: one.name, lambda one: (one.method, one.path)):
        assert len({key(one) for one in OPERATIONS}) == len(OPERATIONS)
    here = all_operations()
    assert {one.right.kind for one in here} == {"owner", "anybody"}
    assert not {one.name for one in OPERATIONS} & {one.name for one in here}
