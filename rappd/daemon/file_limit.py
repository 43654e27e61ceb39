"""The limit of open files: raised to what a daemon needs, or named before anything fails for it."""

from __future__ import annotations

import resource

from rappd.errors import ConflictError

LEAST = 128
"""A daemon with its listeners, store and one worker has some 40 files open; each connection adds one."""
_WANTED = 4096


def require_open_files() -> None:
    """Raises the soft limit where the hard one allows it. Raises ``ConflictError`` below ``LEAST``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < LEAST:
        raise ConflictError(
            f"A program may open only {soft} files here, and rappd needs {LEAST} or more.",
            do="`ulimit -n 1024`, then `rappd start`",
        )
