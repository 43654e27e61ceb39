"""Errors of the estate."""

from __future__ import annotations

from neighborhoods.errors import NeighborhoodError


class BadEstateError(NeighborhoodError):
    """An ``estate.json`` that is damaged, or an entry that cannot be in one."""

    code = "bad_estate"
    status = 400
    exit_code = 5


class NotInEstateError(NeighborhoodError):
    """The estate has no such entry."""

    code = "not_in_estate"
    status = 404
    exit_code = 4
