"""Requests about other machines while the daemon still starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rappd.daemon.app import Daemon
from rappd.daemon.home import Home
from rappd.daemon.startup import stop
from rappd.errors import ConflictError
from rappd.federation.node_identity import material
from rappd.federation.peer_tools import PeerToolGateway
from rappd.listeners.open_listeners import upper_parts
from rappd.settings.load import Settings


async def test_peer_tools_before_start_offer_no_peer(tmp_path: Path) -> None:
    home, other = Home(tmp_path / "desk"), Home(tmp_path / "pi")
    for one in (home, other):
        one.create()
    card = material(other, other.identity()).introduction(other.identity(), "pi", 7443)
    settings = Settings.load(home)
    daemon = await Daemon.open(home, settings, upper_parts(settings))
    try:
        await daemon.federation.load_peers()
        await daemon.machines.peer_store.pair(card, "mine", "192.0.2.1:7443")
        await daemon.machines.peer_store.offer("pi", True)
        m = daemon.machines
        gateway = PeerToolGateway(
            m.node.id,
            m.availability,
            m.peer_store,
            m.presence,
            m.greetings,
            m.dispatcher,
            daemon.calls,
            m.tasks,
        )
        assert gateway.offered() == []
        told = gateway.ask_peer()
        assert told is not None and told[1]["properties"]["peer"]["enum"] == ["pi"]
        with pytest.raises(ConflictError, match="cannot be reached yet"):
            m.outbox.now()
    finally:
        await stop(daemon)
