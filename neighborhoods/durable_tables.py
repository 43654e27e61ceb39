"""The durable tables that this package needs of the daemon. Every write is on the disk when it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

import msgspec

from neighborhoods.peer import Peer

OutboxState = Literal["queued", "delivered", "accepted", "done", "failed", "expired", "dropped"]
"""queued: here; delivered: on its way, no word yet; accepted: kept by the peer; done, failed: answered."""

OutboxEvent = Literal[
    "sent", "no reply", "kept", "forgotten", "retried", "answered", "refused", "expired", "dropped"
]
"""kept: the peer has it and works on it; forgotten: it knows nothing of it any more; retried: by the owner."""

_ENDS: Final[Mapping[OutboxEvent, OutboxState]] = {
    "answered": "done",  # also before it is sent: by an answer to an earlier try
    "refused": "failed",
    "expired": "expired",
    "dropped": "dropped",
}
OUTBOX_TRANSITIONS: Final[Mapping[OutboxState, Mapping[OutboxEvent, OutboxState]]] = {
    "queued": {"sent": "delivered", "retried": "queued", **_ENDS},
    "delivered": {
        "sent": "delivered",  # after a crash, with the same id
        "no reply": "queued",
        "kept": "accepted",
        "retried": "queued",
        **_ENDS,
    },
    "accepted": {"forgotten": "queued", **_ENDS},
}
"""The states that are no end: for each event that changes a row there, the next state."""

WAITING: tuple[OutboxState, ...] = tuple(OUTBOX_TRANSITIONS)
"""States in which somebody still waits."""

EGG = "EGG"
"""The verb of a row that stands for an egg: its body is a note, which stays here; its bytes are a file."""


class OutgoingEnvelope(msgspec.Struct, frozen=True):
    """One envelope that waits for a peer. ``number`` counts up and keeps the order.

    ``body`` is the encoded envelope, ``what`` a short text for screens, ``answer`` the encoded DONE or
    ERROR once there is one. Moments are microseconds since 1970; ``next_at`` is the earliest next try.
    """

    number: int
    peer: str
    id: str
    verb: str
    thread: str
    what: str
    body: bytes
    state: OutboxState
    tries: int
    created_at: int
    next_at: int
    expires_at: int
    answer: bytes = b""
    trouble: str = ""


class IssuedToken(msgspec.Struct, frozen=True):
    """A long-lived token that was issued here; its text is shown once and never kept."""

    jti: str
    name: str
    caps: tuple[str, ...]
    issued_at: int
    expires_at: int
    revoked_at: int = 0
    used_at: int = 0


class PeerStorage(Protocol):
    """The table of peers."""

    async def peers(self) -> list[Peer]:
        """Every peer."""
        ...

    async def save_peer(self, peer: Peer) -> None:
        """Writes a peer down, in the place of one with that fingerprint."""
        ...

    async def remove_peer(self, fingerprint: str, at: int) -> None:
        """Ends the trust and remembers that it was ended."""
        ...

    async def seen_peer(self, fingerprint: str, address: str, at: int) -> None:
        """Notes where a peer was last reached. May be lost by a power cut."""
        ...

    async def revoked_peers(self) -> dict[str, int]:
        """Fingerprints whose trust was ended, and when."""
        ...


class OutboxStorage(Protocol):
    """The table of what waits for peers."""

    async def put(self, item: OutgoingEnvelope) -> int:
        """Adds one (its ``number`` is ignored) and returns its number.

        The same (peer, id, verb) is kept as it is, and its number returned.
        """
        ...

    async def move(
        self,
        numbers: list[int],
        state: OutboxState,
        *,
        tries: int | None = None,
        next_at: int | None = None,
        answer: bytes = b"",
        trouble: str = "",
    ) -> None:
        """Changes rows together. Rows that are done, failed, expired or dropped stay as they are."""
        ...

    async def due(self, peer: str, at: int, most: int, *, eggs: bool = False) -> list[OutgoingEnvelope]:
        """Returns rows that may be sent to a peer now, in order: queued, and delivered without a reply since.

        Either eggs, or everything else.
        """
        ...

    async def outgoing(
        self, *, waiting: bool = False, peer: str = "", most: int = 1000, eggs: bool | None = None
    ) -> list[OutgoingEnvelope]:
        """Rows without their bodies' fate changed, the oldest first. ``eggs``: only these, or none of them."""
        ...

    async def find_outgoing(self, prefix: str) -> list[OutgoingEnvelope]:
        """Rows whose envelope's id begins so."""
        ...

    async def by_id(self, peer: str, id: str) -> OutgoingEnvelope | None:
        """The row of an envelope."""
        ...

    async def expire(self, at: int) -> list[OutgoingEnvelope]:
        """Marks what ran out of time as expired and returns those rows."""
        ...

    async def peers_waiting(self) -> dict[str, int]:
        """Returns the number of waiting rows, by peer."""
        ...
