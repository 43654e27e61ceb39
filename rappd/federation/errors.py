"""Refusals of envelopes from other machines, beside those of agents and tenants."""

from __future__ import annotations

from rappd.errors import ConflictError, RefusedError


def not_allowed() -> RefusedError:
    """In the same words whether it exists or not."""
    return RefusedError("Not allowed.", do="Ask this machine's owner to share it.")


class ShuttingDownError(ConflictError):
    """This machine stops, or starts anew."""

    code = "stopping"
    status = 503
