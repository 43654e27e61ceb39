"""One run of a workflow as a state table without I/O: what happened, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rappd.sessions.errors import WorkflowStateError


class Status(StrEnum):
    """The state that the record tells of."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the participant of this step, counted from 1."""

    step: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the turn under way; its HELP gets an ERROR with this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write the status down; ``why`` is a sentence, or "". ``again``: the step failed, and is asked once more."""

    status: Status
    why: str = ""
    preempted: bool = False
    again: bool = False


Action = Ask | Stop | Write


class RunState:
    """The states: asking or not, running or paused, interjections that are being answered; done or aborted.

    A turn that was stopped or cut off is asked again. ``answered`` may come late: after ``interject`` or ``pause``.
    A step that failed is asked once more, then the run pauses.
    """

    def __init__(self, steps: int, *, step: int = 1, status: Status = Status.RUNNING) -> None:
        self.steps, self.step, self.status = steps, step, status
        self.asking = False
        self.interjections = 0
        self.tried = False
        """The present step failed once."""

    @property
    def is_over(self) -> bool:
        """True once nothing more happens."""
        return self.status in (Status.DONE, Status.ABORTED)

    def start(self) -> list[Action]:
        """Begins, or goes on after a restart."""
        if self.status is Status.PAUSED:
            return []
        if self.step > self.steps:
            return self._end()
        found: list[Action] = [Write(Status.RUNNING)]
        return [*found, self._ask()] if self._may_ask else found

    def answered(self) -> list[Action]:
        """The step was answered."""
        if self.is_over:
            return []
        self.asking = self.tried = False
        self.step += 1
        if self.step > self.steps:
            return self._end()
        return [self._ask()] if self._may_ask else []

    def failed(self, why: str, *, final: bool = False) -> list[Action]:
        """The step was refused or failed: it is asked once more, unless that is ``final``; then the operator decides."""
        if self.is_over:
            return []
        self.asking = False
        if self.status is Status.RUNNING and not self.tried and not final:
            self.tried = True
            found: list[Action] = [Write(Status.RUNNING, why, again=True)]
            return [*found, self._ask()] if self._may_ask else found
        self.tried = False
        self.status = Status.PAUSED
        return [Write(Status.PAUSED, why)]

    def pause(self) -> list[Action]:
        """Asks no further step; the turn under way ends by itself. Raises ``WorkflowStateError``."""
        self._must_be(Status.RUNNING, "paused")
        self.status = Status.PAUSED
        return [Write(Status.PAUSED)]

    def resume(self) -> list[Action]:
        """Goes on with the step that is not answered. Raises ``WorkflowStateError``."""
        self._must_be(Status.PAUSED, "resumed")
        self.status = Status.RUNNING
        found: list[Action] = [Write(Status.RUNNING)]
        return [*found, self._ask()] if self._may_ask else found

    def abort(self, why: str = "") -> list[Action]:
        """Ends it. Raises ``WorkflowStateError``."""
        if self.is_over:
            raise WorkflowStateError(f"The workflow is {self.status}.", do="rappd workflows list")
        stop: list[Action] = [Stop("stopped")] if self.asking else []
        self.asking = False
        self.status = Status.ABORTED
        return [*stop, Write(Status.ABORTED, why)]

    def interject(self) -> list[Action]:
        """The operator speaks: the turn under way is interrupted, and asked again afterwards."""
        if self.is_over:
            return []
        self.interjections += 1
        if not self.asking:
            return []
        self.asking = False
        return [Stop("preempted"), Write(self.status, preempted=True)]

    def interjection_over(self) -> list[Action]:
        """The operator was answered, or refused."""
        self.interjections = max(0, self.interjections - 1)
        return [Write(Status.RUNNING), self._ask()] if self._may_ask else []

    @property
    def _may_ask(self) -> bool:
        return self.status is Status.RUNNING and not self.asking and not self.interjections

    def _ask(self) -> Ask:
        self.asking = True
        return Ask(self.step)

    def _end(self) -> list[Action]:
        self.status = Status.DONE
        return [Write(Status.DONE)]

    def _must_be(self, status: Status, wanted: str) -> None:
        if self.status is not status:
            raise WorkflowStateError(
                f"The workflow is {self.status}; it cannot be {wanted}.", do="rappd workflows list"
            )
