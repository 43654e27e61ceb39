"""Errors of delivery: how far an envelope got, and what the outbox cannot do."""

from __future__ import annotations

from neighborhoods.errors import NeighborhoodError, NoSuchPeerError, PeerConflictError, PeerRefusedError


class RetriableError(NeighborhoodError):
    """The peer, or something before it, said "not now".

    ``answered`` is the HTTP status, ``retry_after`` the seconds it asked for, if any.
    """

    code = "not_now"
    status = 503
    exit_code = 8

    def __init__(
        self, message: str, *, answered: int, retry_after: float | None = None, do: str = ""
    ) -> None:
        super().__init__(message, do=do)
        self.answered = answered
        self.retry_after = retry_after


class DeclinedError(PeerRefusedError):
    """The peer said no to the request as a whole. ``answered`` is the HTTP status, ``reason`` its slug."""

    def __init__(self, message: str, *, answered: int, reason: str = "", do: str = "") -> None:
        super().__init__(message, do=do)
        self.answered = answered
        self.reason = reason


class NotInOutboxError(NoSuchPeerError):
    """Nothing in the outbox goes by that id."""

    code = "not_in_outbox"


class OutboxConflictError(PeerConflictError):
    """An id that means more than one, or something that is over already."""

    code = "outbox_conflict"
