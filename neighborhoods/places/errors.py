"""Errors of neighborhoods as places."""

from __future__ import annotations

from neighborhoods.errors import NeighborhoodError


class BadNeighborhoodError(NeighborhoodError):
    """A neighborhood's file that is damaged, or a value that cannot be in one."""

    code = "bad_neighborhood"
    status = 400
    exit_code = 5


class NoSuchNeighborhoodError(NeighborhoodError):
    """No neighborhood goes by that name here."""

    code = "no_neighborhood"
    status = 404
    exit_code = 4


class NeighborhoodConflictError(NeighborhoodError):
    """The name is taken, or means more than one."""

    code = "neighborhood_conflict"
    status = 409
    exit_code = 9


class BadInviteError(NeighborhoodError):
    """A file that invites to no neighborhood."""

    code = "bad_invite"
    status = 400
    exit_code = 5


class InviteExpiredError(NeighborhoodError):
    """An invite after its last moment, or before its first. Nothing was joined."""

    code = "invite_expired"
    status = 410
    exit_code = 8
