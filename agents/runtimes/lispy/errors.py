"""Errors of a LisPy program, and of a LisPy file."""

from __future__ import annotations

from typing import Any

from agents.errors import AgentError

NO_AGENT = "it is a cartridge that gives no agent"
"""Of a sound cartridge that lies beside agents: it runs by itself."""


class BadImageError(AgentError):
    """A frozen machine that is damaged, made up, or beyond what its reader allows; nothing was run."""

    code = "bad_image"
    status = 400
    exit_code = 5


class BadValueError(AgentError):
    """A value that cannot be handed to a LisPy program, or written down outside of it."""

    code = "bad_value"
    status = 400


class LispyError(Exception):
    """The error a LisPy program ends with. There is nothing in the language that catches one.

    ``category`` is one of CATEGORIES. Limits that were passed also have ``resource``, ``limit`` and
    ``used``; text that cannot be read, the ``line`` of it.
    """

    CATEGORIES = frozenset(
        {
            "syntax",
            "evaluation",
            "unsupported",
            "invalid-data",
            "resource-limit",
            "capability",
            "serialization",
            "validation",
        }
    )

    def __init__(
        self,
        category: str,
        message: str,
        *,
        resource: str | None = None,
        limit: int | None = None,
        used: int | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        self.resource = resource
        self.limit = limit
        self.used = used
        self.line = line

    def as_json(self) -> dict[str, Any]:
        """``{category, message, resource, limit, used}``."""
        return {
            "category": self.category,
            "message": self.message,
            "resource": self.resource,
            "limit": self.limit,
            "used": self.used,
        }


def malformed(message: str) -> LispyError:
    """A form is not written as the language wants it."""
    return LispyError("syntax", message)


def wrong(message: str) -> LispyError:
    """An operation does not go with its arguments."""
    return LispyError("evaluation", message)


def passed(resource: str, limit: int, used: int) -> LispyError:
    """The program used more than it may."""
    message = f"execution limit exceeded: {resource} (limit {limit}, used {used})"
    return LispyError("resource-limit", message, resource=resource, limit=limit, used=used)
