"""Refusals of envelopes from other machines, beside those of agents and tenants."""

from __future__ import annotations

from rappd.errors import ConflictError, RefusedError


def not_allowed() -> RefusedError:
    """In the same words whether it exists or not."""
    return RefusedError("Not allowed.", do="Ask this machine's owner to share it.")


class SenderMismatchError(RefusedError):
    """An envelope that says it is from somebody else."""

    code = "wrong_sender"


class WrongRecipientError(RefusedError):
    """An envelope for another machine."""

    code = "wrong_recipient"
    status = 404


class UnauthenticatedError(RefusedError):
    """The caller is not paired and has no token that allows the request."""

    code = "not_paired"
    status = 401


class RoutingLoopError(RefusedError):
    """The same question came round again."""

    code = "loop"
    status = 508


class HopLimitError(RefusedError):
    """A question that went through too many machines."""

    code = "too_deep"
    status = 508


class InboundCancelledError(ConflictError):
    """The caller cancelled the request."""

    code = "stopped"
    status = 499


class ShuttingDownError(ConflictError):
    """This machine stops, or starts anew."""

    code = "stopping"
    status = 503
