"""Parses and validates a peer's responses: JSON, envelopes in its own name, and refusals as errors."""

from __future__ import annotations

import logging
from typing import Any

import orjson

from envelopes.codecs import wire
from envelopes.envelope import ERROR, Envelope
from envelopes.errors import MalformedError
from neighborhoods.delivery.errors import DeclinedError, RetriableError
from neighborhoods.delivery.protocols import RETRIABLE
from neighborhoods.errors import NotTrustedThereError, PeerFailedError, PeerOfflineError
from neighborhoods.peer import Peer

log = logging.getLogger(__name__)


def arrived(peer: Peer, status: int, raw: bytes) -> dict[str, Any]:
    """Returns the peer's answer about an egg that it has. Raises the transport's error for another status."""
    if status == 401:
        raise not_trusted(peer)
    found = _json(peer, raw)
    told = str(found.get("error", "")) if isinstance(found, dict) else ""
    if status in RETRIABLE:
        raise RetriableError(told[:200] or f"{peer.name} is busy ({status}).", answered=status)
    kept = found.get("arrived") if status == 200 and isinstance(found, dict) else None
    if not isinstance(kept, dict):
        reason = str(found.get("code", "")) if isinstance(found, dict) else ""
        raise DeclinedError(
            f"{peer.name} did not take the egg: {told[:200] or status}", answered=status, reason=reason[:60]
        )
    return kept


def _json(peer: Peer, raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise PeerOfflineError(
            f"{peer.name} does not answer in JSON.", do="Is another program on its port?"
        ) from error


def envelope_of(peer: Peer, found: Envelope | MalformedError) -> Envelope:
    """One of a batch. Raises ``PeerFailedError`` when it is none."""
    if isinstance(found, MalformedError):
        raise no_envelope(peer, found) from found
    return found


def check_sender(peer: Peer, reply: Envelope) -> Envelope:
    """A reply is of the machine that was asked; in the name of another it is none. Raises ``PeerFailedError``."""
    unread = reply.verb == ERROR and reply.sender == wire.NOBODY
    if not unread and not is_of(peer, reply):
        log.warning("security: %s answered as %s", peer.name, reply.sender)
        raise PeerFailedError(f"{peer.name} answered in the name of another machine.")
    return reply


def is_of(peer: Peer, reply: Envelope) -> bool:
    """True for a reply of that machine."""
    return reply.sender.rpartition("_")[2] == peer.prefix


def no_envelope(peer: Peer, problem: MalformedError) -> PeerFailedError:
    """The error for an answer that cannot be read."""
    return PeerFailedError(f"{peer.name} answered with something that is no envelope: {problem}")


def not_trusted(peer: Peer) -> NotTrustedThereError:
    """The error for a peer that ended the trust."""
    return NotTrustedThereError(
        f"{peer.name} does not trust this machine any more.", do=f"pair anew: rappd peers pair {peer.name}"
    )
