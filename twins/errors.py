"""Errors of floor 3: a workspace, a twin, an egg."""

from __future__ import annotations

from envelopes.problem import Problem


class TwinError(Problem):
    """Root of this package's errors."""

    code = "twin"


class NoSuchFile(TwinError):
    """A file that the workspace does not hold."""

    code = "no_such_file"
    status = 404
    exit_code = 4


class BadFile(TwinError):
    """A file that cannot be taken in: wrong kind, wrong name, damaged, or not what it claims."""

    code = "bad_file"
    status = 400
    exit_code = 5
