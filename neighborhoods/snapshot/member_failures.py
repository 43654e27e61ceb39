"""Failures of members: an error that nobody thought of becomes one that names the member whose answer caused it."""

from __future__ import annotations

import logging

from envelopes.errors import ReportableError
from neighborhoods.errors import BadMemberStreamError

log = logging.getLogger(__name__)


def as_failure(member: str, error: Exception) -> ReportableError:
    """The error to report of a member. One that is no report is logged with its trace first.

    Call it where ``error`` is handled. Cancellation is no ``Exception`` and goes on.
    """
    if isinstance(error, ReportableError):
        return error
    log.error("%s sent what could not be read", member, exc_info=error)
    return BadMemberStreamError(
        f"{member}: what it sent could not be read ({type(error).__name__}).",
        do="The log has more: rappd logs",
    )
