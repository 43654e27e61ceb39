"""The root of every error that a person may read."""

from __future__ import annotations

from typing import Any, ClassVar


class ReportableError(Exception):
    """An error for its reader: what happened, and what to do next.

    Each package derives one root from this, and each leaf names its ``code`` (a slug that is
    never renamed), its HTTP ``status`` and its process ``exit_code``. ``str(problem)`` is the
    sentence shown outward; details belong in the transcript or the log, never here.
    """

    code: ClassVar[str] = "failed"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, do: str = "") -> None:
        super().__init__(message)
        self.do = do

    def as_json(self) -> dict[str, Any]:
        """The one JSON error shape: ``{"error": what, "do": next, "code": slug}``."""
        return {"error": str(self), "do": self.do, "code": self.code}
