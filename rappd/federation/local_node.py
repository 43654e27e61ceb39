"""This machine, as the parts that serve other machines know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.settings.load import Settings


@dataclass(frozen=True, slots=True)
class LocalNode:
    """This machine: its home, its settings, its key and what it is called. ``id`` is the sender of its envelopes.

    ``settings`` are those of the start. Of settings that change meanwhile, ``speaks_a2a`` tells if it answers over A2A
    now, and ``keep_hours`` how long the outbox keeps what waits for a peer.
    """

    home: Home
    settings: Settings
    identity: IdentityKey
    name: str
    id: str
    speaks_a2a: Callable[[], bool]
    keep_hours: Callable[[], int]

    @property
    def keep_seconds(self) -> float:
        """The seconds that the outbox keeps what waits for a peer, as the owner wants it now."""
        return self.keep_hours() * 3600.0
