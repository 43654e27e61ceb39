"""Errors of floor 1: a record that is not one, a signature that does not hold."""

from __future__ import annotations

from envelopes.problem import Problem


class EnvelopeError(Problem):
    """Root of this package's errors."""

    code = "envelope"
    status = 400
    exit_code = 5


class Malformed(EnvelopeError):
    """Bytes or fields that are not a record; the message names the offending key."""

    code = "malformed"


class BadKey(EnvelopeError):
    """Key material that cannot be read."""

    code = "bad_key"
    status = 500
