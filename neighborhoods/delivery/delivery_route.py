"""A way to a peer, as delivery sees it. What fulfils it knows a transport; nothing here does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from envelopes.envelope import Envelope
from neighborhoods.peer import Peer

RETRIABLE: frozenset[int] = frozenset({408, 425, 429, 502, 503, 504})
"""HTTP statuses after which the same envelope may be sent again."""


class BatchTransport(Protocol):
    """The part of a carrier that a queue needs; raises like ``PeerClient``."""

    async def send_batch(self, peer: Peer, envelopes: list[bytes]) -> Sequence[Envelope | None]:
        """Up to 100 envelopes at once. The replies in the same order, None for what was left without one."""
        ...

    async def fetch(self, peer: Peer, id: str, envelope: bytes = b"") -> Envelope | None:
        """The reply recorded for one of this node's envelopes; None when the peer knows of no such envelope.

        ``DONE``, ``ERROR``, or an ``ACK`` while it is under way. ``envelope`` may be sent again to ask.
        """
        ...


class EggTransport(Protocol):
    """Brings files to a peer; raises like ``PeerClient``."""

    async def send_egg(self, peer: Peer, id: str, name: str, file: Path) -> dict[str, Any]:
        """Uploads an egg, whole or not at all: ``{"id", "name", "size"}`` of what is kept there."""
        ...

    async def egg(self, peer: Peer, id: str) -> dict[str, Any] | None:
        """Returns the peer's result for an egg that was sent under that id before; None when it has to be sent.

        Raises what sending it would raise, where that is known before.
        """
        ...


class EnvelopeTransport(BatchTransport, Protocol):
    """Sends encoded envelopes to a peer whose key is the pinned one, and brings back the replies.

    Every method raises

    * ``PeerOfflineError`` when no answer came; ``maybe_sent`` unless nothing can have arrived;
    * ``RetriableError`` for the statuses in ``RETRIABLE``, with ``Retry-After`` if there was one;
    * ``KeyChangedError`` when another key answers (nothing was sent), ``NotPairedError`` when the peer does not, or no
      longer, trust this machine;
    * ``PeerRefusedError`` (better ``DeclinedError``) for any other refusal of the request as a whole.

    An ``ERROR`` envelope is a reply, not an exception, unless its status is one of the above.
    Connections are kept and shared; several calls may be under way at once.
    """

    async def send(self, peer: Peer, envelope: bytes, *, wait: float) -> Envelope:
        """One envelope, past any queue. Waits up to ``wait`` seconds; the reply may be an ``ACK``."""
        ...
