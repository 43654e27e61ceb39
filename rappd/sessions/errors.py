"""Errors of sessions."""

from __future__ import annotations

from rappd.errors import ConflictError, RappdError


class SessionClosedError(RappdError):
    """A sentence for a session that was closed."""

    code = "session_closed"
    status = 409
    exit_code = 9

    def __init__(self) -> None:
        super().__init__("This session is closed.", do="To go on in a new one: rappd sessions open")


class AskedElsewhereError(RappdError):
    """A sentence that was asked in another session already."""

    code = "asked_elsewhere"
    status = 409
    exit_code = 9

    def __init__(self) -> None:
        super().__init__("That was asked in the session before.", do="Ask again.")


class NoSuchEventError(RappdError):
    """A number that is no event of a session egg."""

    code = "no_such_event"
    status = 404
    exit_code = 4

    def __init__(self, first: int, last: int) -> None:
        if last < first:
            super().__init__(
                "This session egg holds no events.", do="Export a session in which somebody spoke."
            )
        else:
            super().__init__(
                "There is no such event in this egg.", do=f"Its events go from {first} to {last}."
            )


class WorkflowError(RappdError):
    """A workflow file that cannot be used; the message names the file and the field."""

    code = "bad_workflow"
    status = 422
    exit_code = 5


class WorkflowStateError(ConflictError):
    """The run is not in the state that the request takes for granted."""

    code = "workflow_state"
