"""The variables that a workspace's workers get from its ``.env``, and the reasons for those they do not get."""

from __future__ import annotations

import logging
from typing import NamedTuple

from twins.errors import BadFileError
from twins.trust.quarantined_files import Quarantine
from twins.workspace import workspace_env
from twins.workspace.agent_files import sha256
from twins.workspace.workspace import Workspace

log = logging.getLogger(__name__)


class EnvFileState(NamedTuple):
    """One ``.env`` as it is now.

    ``left_out``: names that are never taken. ``held``: the reason for which it waits for approval.
    ``problem``: the reason for which it cannot be used, and what to do about it.
    """

    variables: dict[str, str]
    left_out: tuple[str, ...] = ()
    held: str = ""
    problem: tuple[str, str] | None = None


def env_file_state(workspace: Workspace, quarantine: Quarantine) -> EnvFileState:
    """Reads the ``.env`` of a workspace; never raises for what is in it. Blocks on the disk."""
    try:
        content = workspace.files.read_if_there(workspace.env_file, workspace_env.MAX_BYTES)
        if not content:
            return EnvFileState({})
        held = quarantine.reason(workspace.env_file, sha256(content))
        found = workspace_env.parse(workspace_env.decode(content))
    except BadFileError as problem:
        return EnvFileState({}, problem=(str(problem), problem.do))
    except OSError as problem:
        reason = problem.strerror or str(problem)
        return EnvFileState(
            {}, problem=(f"{workspace_env.FILE} cannot be read: {reason}", "Put a plain file there.")
        )
    return EnvFileState({} if held else found.taken, found.left_out, held)


def worker_variables(workspace: Workspace, quarantine: Quarantine) -> dict[str, str]:
    """The variables for workers. Logs what is not taken of the file. Blocks on the disk."""
    state = env_file_state(workspace, quarantine)
    path = workspace.env_file
    if state.problem:
        log.warning("%s: %s %s", path, *state.problem)
    elif state.held:
        log.warning("security: %s waits for approval: %s", path, state.held)
    elif state.left_out:
        log.warning("security: %s sets what is never taken from it: %s", path, ", ".join(state.left_out))
    return state.variables
