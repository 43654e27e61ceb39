"""Errors of workflows."""

from __future__ import annotations

from rappd.errors import ConflictError, NotFoundError, RappdError


class WorkflowError(RappdError):
    """A workflow file that cannot be used; the message names the file and the field."""

    code = "bad_workflow"
    status = 422
    exit_code = 5


class NoSuchWorkflowError(NotFoundError):
    """A name that no workflow has, or a session in which none runs."""

    code = "no_such_workflow"


class WorkflowStateError(ConflictError):
    """The run is not in the state that the request takes for granted."""

    code = "workflow_state"


class ForeignWorkflowError(RappdError):
    """A workflow that came in an egg and was not approved."""

    code = "foreign_workflow"
    status = 403
    exit_code = 5
