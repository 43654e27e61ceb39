"""Errors of envelopes and identities, and the root of every package's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple


class Refusal(NamedTuple):
    """A kind of error that nobody catches by name, under its code in ``refusals`` of its package's root."""

    status: int
    exit_code: int
    meaning: str
    """For the table of errors in the documentation."""


class ReportableError(Exception):
    """An error for its reader: what happened, and what to do next.

    Each package derives one root from this. A kind that somebody catches, or that many places raise, is a class; any
    other is a row of ``refusals`` of its package's root, raised as ``TwinError("…", do="…", code="no_such_hatching")`` and
    named by its code. Each has a ``code`` (a slug that is never renamed), its HTTP ``status`` and its process
    ``exit_code``. ``str(problem)`` is the sentence shown outward; details belong in the transcript or the log, never here.
    """

    code: str = "failed"
    status: int = 500
    exit_code: int = 1
    refusals: ClassVar[Mapping[str, Refusal]] = {}

    def __init__(self, message: str, *, do: str = "", code: str = "") -> None:
        """``code`` is one of ``refusals``; without one the class says it. Raises ``KeyError`` for an unknown one."""
        super().__init__(message)
        self.do = do
        if code:
            self.code = code
            self.status, self.exit_code, _ = self.refusals[code]

    def with_advice(self) -> str:
        """Returns both on one line: ``pi is away — rappd peers list``, ``pi does not answer. Wake it, rerun.``."""
        what = str(self).rstrip(".")
        if not self.do:
            return str(self)
        return f"{what}. {self.do}" if self.do[0].isupper() else f"{what} — {self.do}"

    def as_json(self) -> dict[str, Any]:
        """The one JSON error shape: ``{"error": what, "do": next, "code": slug}``."""
        return {"error": str(self), "do": self.do, "code": self.code}


class EnvelopeError(ReportableError):
    """Root of this package's errors."""

    code = "envelope"
    status = 400
    exit_code = 5
    refusals: ClassVar = {
        "bad_code": Refusal(400, 2, "The typed text is no code; nothing was sent."),
        "bad_pairing": Refusal(400, 5, "The other side's message for a code is not one of this exchange."),
        "xml_refused": Refusal(
            400,
            5,
            "XML with a document type, an entity or a processing instruction, which nobody expands here.",
        ),
    }


class MalformedError(EnvelopeError):
    """Bytes or fields that are not a record; the message names the offending key."""

    code = "malformed"

    def __init__(self, message: str, *, do: str = "", key: str = "", code: str = "") -> None:
        """``key`` is the offending key, "" when it is the whole.

        ``id`` and ``sender`` are what could be read of the record, so that the refusal finds its way; ""
        otherwise.
        """
        super().__init__(message, do=do, code=code)
        self.key = key
        self.id = ""
        self.sender = ""


class BadSignatureError(EnvelopeError):
    """A record whose signature is missing, too old, of another key, or not over this record."""

    code = "bad_signature"
    status = 401


class BadKeyError(EnvelopeError):
    """Key material that cannot be read."""

    code = "bad_key"
    status = 500


class BadCertificateError(EnvelopeError):
    """A certificate that no machine vouches for, or that cannot be read."""

    code = "bad_certificate"


class BadNodeCardError(EnvelopeError):
    """A node card has another shape, or is not signed by its key."""

    code = "bad_introduction"


class BadCapabilityError(EnvelopeError):
    """A text that names no capability, or more than its issuer has."""

    code = "bad_capability"
    exit_code = 2


class BadTokenError(EnvelopeError):
    """A caller's token is not valid; ``reason`` is a slug that is never renamed.

    ``malformed algorithm signature issuer audience expired not_yet revoked binding disagree`` for any,
    ``chain widened holder`` for capabilities that were delegated. ``what`` names the claim that is at fault.
    """

    code = "bad_token"
    status = 401

    def __init__(self, reason: str, what: str = "") -> None:
        why = _WHY_NO_TOKEN[reason]
        super().__init__(
            f"{why.rstrip('.')}: {what}." if what else why,
            do="Ask the owner who gave the permission for a new one.",
        )
        self.reason = reason
        self.what = what


_WHY_NO_TOKEN = {
    "malformed": "The permission cannot be read.",
    "algorithm": "The permission is not signed with EdDSA.",
    "signature": "The permission's signature does not hold.",
    "issuer": "The permission was given by somebody who is not known here.",
    "audience": "The permission is for another machine.",
    "expired": "The permission has run out.",
    "not_yet": "The permission begins in the future; one of the clocks is wrong.",
    "revoked": "The permission was taken back.",
    "binding": "The permission belongs to another connection or another name.",
    "disagree": "The permission and the connection name two different callers.",
    "chain": "The permission does not follow from the one that it was made from.",
    "widened": "The permission allows more than the one that it was made from.",
    "holder": "The permission was given to another machine than the one that shows it.",
}
