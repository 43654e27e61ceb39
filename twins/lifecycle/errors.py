"""Errors in a request to archive."""

from __future__ import annotations

from twins.errors import TwinError


class BadFilterError(TwinError):
    """A filter that does not say clearly which twins are meant; nothing was touched."""

    code = "bad_filter"
    status = 400
    exit_code = 2
