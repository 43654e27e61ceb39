"""The sentence for a failure of this machine's own disk while a snapshot is taken or tried."""

from __future__ import annotations

import errno

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def disk_problem(error: OSError) -> str:
    """The cause, and what to do where that is plain."""
    if error.errno in _FULL:
        return "this machine's disk is full. Make room here, rerun."
    return (error.strerror or str(error) or "this machine's disk failed").lower()
