"""Replies of machines: in pieces where they are sent, parsed and validated where they arrive."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec.structs import replace

from envelopes.codecs import wire
from envelopes.codecs.bounded_json import bounded_json, bounded_object
from envelopes.codecs.emergence import MAX_BYTES, encode
from envelopes.envelope import ERROR, Envelope, agent_id
from envelopes.errors import MalformedError
from neighborhoods.delivery.delivery_route import RETRIABLE
from neighborhoods.errors import (
    DeclinedError,
    NotPairedError,
    PeerFailedError,
    PeerOfflineError,
    RetriableError,
)
from neighborhoods.peer import Peer

Pieces = Callable[[], AsyncIterator[tuple[int, Envelope]]]


class StreamedReply(Envelope, frozen=True, kw_only=True):
    """A reply in pieces: itself it says that work began; ``pieces()`` gives numbered STREAMs, then the end."""

    pieces: Pieces


def fitting(reply: Envelope) -> bytes:
    """The encoded reply, or, where it is too large or cannot be written, an ERROR on its id that says so."""
    try:
        octets = encode(reply)
    except MalformedError as problem:
        return encode(_instead(reply, f"The answer cannot be sent: {problem}"))
    if len(octets) <= MAX_BYTES:
        return octets
    return encode(
        _instead(reply, f"The answer has {len(octets)} bytes; {MAX_BYTES} can be sent. It is in the record.")
    )


def _instead(reply: Envelope, message: str) -> Envelope:
    data = {"code": 500, "msg": message, "reason": "answer_too_large", "do": "Ask for less at once."}
    return Envelope(reply.id, reply.sender, reply.recipient, ERROR, data)


log = logging.getLogger(__name__)


def arrived(peer: Peer, status: int, raw: bytes) -> dict[str, Any]:
    """Returns the peer's answer about an egg that it has. Raises the transport's error for another status."""
    if status == 401:
        raise unwelcome(peer, raw, "takes no egg of this machine")
    found = _json(peer, raw)
    message = str(found.get("error", "")) if isinstance(found, dict) else ""
    if status in RETRIABLE:
        raise RetriableError(message[:200] or f"{peer.name} is busy ({status}).", answered=status)
    kept = found.get("arrived") if status == 200 and isinstance(found, dict) else None
    if not isinstance(kept, dict):
        reason = str(found.get("code", "")) if isinstance(found, dict) else ""
        raise DeclinedError(
            f"{peer.name} did not take the egg: {message[:200] or status}",
            answered=status,
            reason=reason[:60],
        )
    size = kept.get("size")
    texts = {key: text[:300] for key in ("id", "name") if isinstance(text := kept.get(key), str)}
    return {"id": "", "name": "", **texts, "size": size if type(size) is int and size >= 0 else 0}


def _json(peer: Peer, raw: bytes) -> Any:
    try:
        return bounded_json(raw)
    except ValueError as error:
        raise PeerOfflineError(
            f"{peer.name} does not answer in JSON.", do="Is another program on its port?"
        ) from error


def envelope_of(peer: Peer, found: Envelope | MalformedError) -> Envelope:
    """One of a batch. Raises ``PeerFailedError`` when it is none."""
    if isinstance(found, MalformedError):
        raise no_envelope(peer, found) from found
    return found


def check_sender(peer: Peer, reply: Envelope) -> Envelope:
    """The reply, ``readable``; one in the name of another machine than the one asked raises ``PeerFailedError``."""
    unread = reply.verb == ERROR and reply.sender == wire.NOBODY
    if not unread and not is_of(peer, reply):
        log.warning("security: %s answered as %s", peer.name, reply.sender)
        raise PeerFailedError(f"{peer.name} answered in the name of another machine.")
    return readable(reply)


def readable(reply: Envelope) -> Envelope:
    """An ERROR of another machine in its documented shape, so that nothing that shows it meets another one."""
    if reply.verb != ERROR:
        return reply
    data = dict(reply.data)
    code = data.get("code")
    data["code"] = code if type(code) is int and 400 <= code <= 599 else 500
    for key, otherwise in (("msg", "It failed, and did not say why."), ("reason", "failed")):
        if not isinstance(data.get(key), str):
            data[key] = otherwise
    if not isinstance(data.get("do", ""), str):
        del data["do"]
    return replace(reply, data=data)


def is_of(peer: Peer, reply: Envelope) -> bool:
    """True for a reply of that machine."""
    return reply.sender.endswith(agent_id("", peer.fingerprint))


def no_envelope(peer: Peer, problem: MalformedError) -> PeerFailedError:
    """The error for an answer that cannot be read."""
    return PeerFailedError(f"{peer.name} answered with something that is no envelope: {problem}")


def unwelcome(peer: Peer, raw: bytes, what: str) -> NotPairedError | DeclinedError:
    """The error for an answer 401 with this body: the end of the trust where the peer says so, else ``what`` it does not do, and its words."""
    refusal = bounded_object(raw)
    if isinstance(data := refusal.get("data"), dict):  # an ERROR
        refusal = {"code": data.get("reason"), "error": data.get("msg")}
    if refusal.get("code") == NotPairedError.code:
        return not_trusted(peer)
    reason = str(refusal.get("error") or "without a reason")[:200].rstrip(".")
    return DeclinedError(
        f"{peer.name} {what} (401): {reason}.",
        answered=401,
        do=f"Ask its owner. If it forgot this machine: rappd peers pair {peer.name}",
    )


def not_trusted(peer: Peer) -> NotPairedError:
    """The error for a peer that ended the trust."""
    return NotPairedError(
        f"{peer.name} does not trust this machine any more.",
        do=f"pair anew: rappd peers pair {peer.name}",
        code="not_paired",
    )
