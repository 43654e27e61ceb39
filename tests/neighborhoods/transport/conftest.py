"""Machines with real certificates, and listeners of theirs on loopback that behave as a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from envelopes.envelope import HELP, Envelope, new_id
from envelopes.errors import ReportableError
from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.tls import ServerTrust, TlsFiles
from neighborhoods.peer import MINE, Peer
from neighborhoods.transport.connector import Connector
from neighborhoods.transport.peer_client import PeerClient
from neighborhoods.transport.peer_connection import Answer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Machine:
    """A key, its certificate, and who it trusts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.key = IdentityKey.generate()
        made = make_certificate(self.key, now=datetime.now(UTC))
        self.files = TlsFiles(folder / f"{name}.pem", folder / f"{name}-key.pem")
        self.files.certificate.write_bytes(made.certificate_pem)
        self.files.key.write_bytes(made.key_pem)
        self.certificate = made.certificate_der
        self.trust = ServerTrust(self.files)
        self.address = ""
        self.prefix = self.key.fingerprint[:16]
        self.id = f"brainstem_{self.prefix}"
        self.runner: web.AppRunner | None = None

    def peer(self) -> Peer:
        return Peer(
            fingerprint=self.key.fingerprint,
            name=self.name,
            whose="mine",
            public_key=self.key.public,
            certificate=self.certificate,
            sealing_key="",
            scopes=MINE,
            paired_at=1,
        )

    def help(self, other: Machine, **data: Any) -> Envelope:
        return Envelope(new_id(), self.id, other.id, HELP, data)

    async def serve(self, **handlers: Handler) -> None:
        """Handlers by what they are for: ``line``, ``batch``, ``fetch``."""
        app = web.Application()
        for path, method, name in (
            ("/line", "GET", "line"),
            ("/envelopes/batch", "POST", "batch"),
            ("/envelopes/{id}", "GET", "fetch"),
            ("/elsewhere", "POST", "elsewhere"),
            ("/eggs", "POST", "eggs"),
        ):
            if name in handlers:
                app.router.add_route(method, path, handlers[name])
        await self.close()
        self.runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=self.trust.context)
        await site.start()
        self.address = f"127.0.0.1:{self.runner.addresses[0][1]}"

    async def close(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()


class Told:
    """Keeps what a carrier reports, by kind."""

    def __init__(self) -> None:
        self.doubted: list[str] = []
        self.lost: list[str] = []
        self.left: list[str] = []
        self.failed: list[tuple[str, str]] = []

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        pass

    def on_doubt(self, fingerprint: str) -> None:
        self.doubted.append(fingerprint)

    def on_loss(self, fingerprint: str) -> None:
        self.lost.append(fingerprint)

    def on_goodbye(self, fingerprint: str) -> None:
        self.left.append(fingerprint)

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        self.failed.append((fingerprint, problem.code))


class Place:
    def __init__(self, address: str) -> None:
        self.address = address


async def nothing(envelope: Envelope) -> Envelope | None:
    return None


@pytest.fixture
async def desk_and_pi(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    """Two machines; pi trusts desk."""
    desk, pi = Machine(tmp_path, "desk"), Machine(tmp_path, "pi")
    pi.trust.pin(desk.certificate)
    yield desk, pi
    await desk.close()
    await pi.close()


@pytest.fixture
async def carrier_of() -> AsyncIterator[Callable[..., PeerClient]]:
    """Makes a machine's carrier, which finds every machine where it now is."""
    made: list[PeerClient] = []

    def make(own: Machine, *others: Machine, answer: Answer = nothing) -> PeerClient:
        places = {one.key.fingerprint: one for one in others}

        async def candidates(peer: Peer) -> list[Place]:
            return [Place(places[peer.fingerprint].address)]

        made.append(PeerClient(Connector(candidates, own.files), own.files, lambda peer: answer, Told()))
        return made[-1]

    yield make
    for carrier in made:
        await carrier.close()
