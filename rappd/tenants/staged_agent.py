"""An agent file that is staged: loaded in a worker before it counts, its faults and the disk's as clear errors."""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents.errors import AgentError
from agents.storage.safe_fs import SafeTree, in_file_pool
from envelopes.errors import ReportableError
from rappd.errors import RefusedError
from rappd.tenants.tenant_context import TenantContext
from twins.errors import BadFileError

log = logging.getLogger(__name__)

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EXDEV})
"""A folder that is mounted read-only answers a move with EXDEV."""


async def checked(
    tenant: TenantContext, name: str, staged: Path, *, keep_faulty: bool = False
) -> dict[str, Any]:
    """The description of a staged file, made in a worker. Raises ``BadFileError`` for one that gives no agent.

    With ``keep_faulty`` such a file passes; so does one that ends its worker.
    """
    try:
        outcome = await tenant.describe(await in_file_pool(reference, tenant.workspace.files, name, staged))
    except AgentError as error:
        if not keep_faulty:
            raise
        log.info("%s is kept although it could not be loaded: %s", name, error)
        return {"agents": []}
    if not keep_faulty:
        _refuse_unloadable(name, outcome)
    return outcome


def reference(files: SafeTree, name: str, staged: Path) -> dict[str, Any]:
    """A worker's reference to a staged file."""
    found = files.stat_file(staged)
    return {"rel": name, "path": str(staged), "stamp": [found.st_mtime_ns, found.st_size, found.st_ino]}


@asynccontextmanager
async def clear_disk_errors(filename: str) -> AsyncIterator[None]:
    """Turns a disk's refusal to write into ``RefusedError`` that says so."""
    try:
        yield
    except ReportableError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _READ_ONLY:
            raise RefusedError(
                f"{filename} was not written: agent files are read-only here ({reason}).",
                do="Change the file where it comes from, or make the agents folder writable.",
            ) from error
        raise RefusedError(
            f"{filename} was not written: {reason}. The version before is untouched.", do="rappd doctor"
        ) from error


def _refuse_unloadable(name: str, outcome: dict[str, Any]) -> None:
    failure = outcome.get("failure")
    if failure and failure.get("missing_module"):
        return
    if not failure and outcome.get("agents"):
        return
    do = "Fix it and import it again."
    if not failure:
        failure = (outcome.get("quarantined") or [{"reason": "it holds no agent"}])[0]
        do = "An agent is a class with name, metadata and perform."
    line = failure.get("line")
    where = f"{name} line {line}" if line else name
    reason = failure["reason"]
    raise BadFileError(f"{where}: {reason}", do=do, file=name, line=line, reason=reason)
