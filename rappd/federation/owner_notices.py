"""Notices for the owner about other machines: answers that came late, and machines that ask to pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from envelopes.envelope import DONE, Envelope
from neighborhoods.discovery.announcement import tame
from neighborhoods.peer_store import PeerStore
from rappd.notices.notices import Notices

if TYPE_CHECKING:
    from neighborhoods.pairing.attempts import PairingAttempt
    from neighborhoods.storage import OutgoingEnvelope


class OwnerNotices:
    """``is_asking`` tells by a pairing session's id if it still waits for the owner."""

    def __init__(self, notices: Notices, peers: PeerStore, is_asking: Callable[[str], bool]) -> None:
        self._notices, self._peers = notices, peers
        notices.applies["pairing"] = is_asking

    def late_answer(self, row: OutgoingEnvelope, reply: Envelope) -> None:
        """A call that its caller did not wait for has come to an end."""
        peer = self._peers.get(row.peer)
        end = "answered" if reply.verb == DONE else "did not answer"
        self._notices.add(
            f"{peer.name if peer else 'a machine'} {end}: {row.what}",
            f"rappd threads show {row.thread[:8]}",
            kind="answer",
            key=f"answer:{row.id}",
            subject=row.thread,
        )

    def asked_to_pair(self, session: PairingAttempt) -> None:
        """Another machine wants to pair, and the owner may not be looking."""
        name = tame(session.peer.name) if session.peer else "A machine"
        self._notices.add(
            f"{name} ({session.host}) wants to pair with this machine.",
            f"rappd peers pair {name}",
            kind="pairing",
            key=f"pairing:{session.id}",
            subject=session.id,
        )
