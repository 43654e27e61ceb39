"""Errors between an egg and its place. Nothing is half-written, whatever it was."""

from __future__ import annotations

import errno

from twins.byte_sizes import format_bytes
from twins.errors import TwinConflictError, TwinError


class PlanChangedError(TwinConflictError):
    """The plan differs from the approved one; nothing was written."""

    code = "plan_changed"


class DiskFullError(TwinError):
    """No room for what was to be written; everything is as it was."""

    code = "disk_full"
    status = 507


class BadFingerprintError(TwinError):
    """Text that is not the fingerprint of a key."""

    code = "bad_fingerprint"
    status = 400
    exit_code = 2


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def from_disk(error: OSError, name: str, *, needs: int = 0) -> TwinError:
    """The outward error for a failure of the disk. ``needs``: bytes that were to be written."""
    if error.errno in _FULL:
        return DiskFullError(
            f"The disk is full; {name} is not hatched, not even half.",
            do=f"Free {format_bytes(needs) if needs else 'some space'}, rerun.",
        )
    where = error.filename if isinstance(error.filename, str) else ""
    reason = (error.strerror or str(error) or "it failed").lower()
    return TwinError(
        f"{where.rsplit('/', 1)[-1] or 'The disk'}: {reason}; {name} is as it was.",
        do="Look at the folder's permissions, rerun.",
        code="not_writable",
    )
