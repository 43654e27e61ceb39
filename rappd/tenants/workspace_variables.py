"""The variables that a workspace's workers get from its ``.env``, and the reasons for those they do not get."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agents.contract.may_run import YOURS, Allowed, Origin, Verdict
from twins.errors import BadFileError
from twins.workspace import workspace_env
from twins.workspace.agent_files import sha256
from twins.workspace.workspace import Workspace

log = logging.getLogger(__name__)

MayRun = Callable[[Origin, Path, str], Verdict]
"""The question to ``Trust`` of ``agents.contract.may_run``."""


class EnvFileState(NamedTuple):
    """One ``.env`` as it is now.

    ``left_out``: names that are never taken. ``waits_because``: the reason for which it waits for approval.
    ``problem``: the reason for which it cannot be used, and what to do about it.
    """

    variables: dict[str, str]
    left_out: tuple[str, ...] = ()
    waits_because: str = ""
    problem: tuple[str, str] | None = None


def env_file_state(workspace: Workspace, may_run: MayRun) -> EnvFileState:
    """Reads the ``.env`` of a workspace; never raises for what is in it. Blocks on the disk."""
    try:
        content = workspace.files.read_if_there(workspace.env_file, workspace_env.MAX_BYTES)
        if not content:
            return EnvFileState({})
        verdict = may_run(YOURS, workspace.env_file, sha256(content))
        found = workspace_env.parse(workspace_env.decode(content))
    except BadFileError as problem:
        return EnvFileState({}, problem=(str(problem), problem.do))
    except OSError as problem:
        reason = problem.strerror or str(problem)
        return EnvFileState(
            {}, problem=(f"{workspace_env.FILE} cannot be read: {reason}", "Put a plain file there.")
        )
    if isinstance(verdict, Allowed):
        return EnvFileState(found.accepted, found.left_out)
    return EnvFileState({}, found.left_out, verdict.why)


def worker_variables(workspace: Workspace, may_run: MayRun) -> dict[str, str]:
    """The variables for workers. Logs what is not taken of the file. Blocks on the disk."""
    state = env_file_state(workspace, may_run)
    path = workspace.env_file
    if state.problem:
        log.warning("%s: %s %s", path, *state.problem)
    elif state.waits_because:
        log.warning("security: %s waits for approval: %s", path, state.waits_because)
    elif state.left_out:
        log.warning("security: %s sets what is never taken from it: %s", path, ", ".join(state.left_out))
    return state.variables
