"""Delivery of waiting envelopes over a line that is open: the way to a peer that has no listener."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from envelopes.codecs import emergence
from envelopes.envelope import DEADLINE, HELP, SIG, Envelope
from neighborhoods.errors import PeerFailedError, PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.transport.peer_connection import PeerConnection
from neighborhoods.transport.replies import check_sender

ACCEPTED_WITHIN = 1.0
"""Seconds that the peer gets for a HELP before it says ACK: the queue does not wait for work that takes long."""
ANSWERED_WITHIN = 5.0
"""Seconds after which an envelope counts as left without a reply; it goes again, with the same id."""


async def bring(peer: Peer, connection: PeerConnection, envelopes: list[bytes]) -> list[Envelope | None]:
    """The replies in the order of the envelopes, None for what was left without one.

    Raises ``PeerOfflineError`` when nothing was answered. A reply that cannot be read is an ERROR 502 on its id.
    """
    replies = await asyncio.gather(*(_one(peer, connection, octets) for octets in envelopes))
    if not any(replies):
        raise PeerOfflineError(f"{peer.name} says nothing on its line.", maybe_sent=True)
    return list(replies)


async def _one(peer: Peer, connection: PeerConnection, octets: bytes) -> Envelope | None:
    envelope = emergence.decode(octets, max_bytes=len(octets))
    if envelope.verb == HELP and SIG not in envelope.extensions:  # a signature covers the deadline, too
        extensions = {**envelope.extensions, DEADLINE: ACCEPTED_WITHIN}
        octets = emergence.encode(replace(envelope, extensions=extensions))
    try:
        return check_sender(peer, await connection.ask(octets, envelope.id, wait=ANSWERED_WITHIN))
    except PeerOfflineError:
        return None
    except PeerFailedError as problem:
        return envelope.refusal(problem.status, str(problem), problem.code)
