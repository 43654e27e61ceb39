"""Loaded into the process that forks workers: it then runs as where user namespaces are switched off."""

from __future__ import annotations

import errno

from agents.runtimes.python.sandbox import namespace_fork
from agents.runtimes.python.sandbox.syscalls import CLONE_NEWUSER

_clone = namespace_fork._clone


def _refuse_user_namespaces(flags: int) -> int:
    if flags & CLONE_NEWUSER:
        raise OSError(errno.ENOSPC, "user namespaces are off")
    return _clone(flags)


namespace_fork._clone = _refuse_user_namespaces
