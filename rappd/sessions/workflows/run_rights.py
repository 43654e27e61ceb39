"""The rights of a run: those that its starter has at each step, and who plays a participant."""

from __future__ import annotations

from collections.abc import Callable

from envelopes.errors import ReportableError
from rappd.dispatch.rights import Caller
from rappd.errors import RefusedError
from rappd.sessions.participants import Participants
from rappd.sessions.speakers import WORKFLOWS, Owner, Speaker, caller_of
from rappd.sessions.workflows.definition import Participant
from rappd.sessions.workflows.errors import WorkflowError
from rappd.sessions.workflows.run_record import OPERATOR
from rappd.tenants.tenant import Tenant


class RunRights:
    """A starter is a device id, or ``OPERATOR``. Asked anew for each step: rights change."""

    def __init__(self, participants: Participants, device: Callable[[str], Speaker | None]) -> None:
        """``device`` gives a registered device by its id."""
        self._participants, self._device = participants, device

    def caller(self, starter: str) -> Caller:
        """The starter's rights as they are now, never structural agents. Raises ``RefusedError``."""
        if starter == OPERATOR:
            return caller_of(Owner())
        device = self._device(starter)
        if device is None or not WORKFLOWS.admits(caller_of(device)):
            raise RefusedError(
                "The phone that started it may not run workflows any more.", do="Abort it, or start it anew."
            )
        return caller_of(device)

    def behalf(self, starter: str) -> tuple[str, str]:
        """Name and user of the starter."""
        device = self._device(starter) if starter != OPERATOR else None
        one = device or Owner()
        return one.name, one.user_guid

    async def player(self, played: Participant, caller: Caller) -> Tenant:
        """The tenant that plays a participant. Raises ``WorkflowError``, ``RefusedError`` where it may not be asked."""
        try:
            tenant = await self._participants.named(played.plays)
        except ReportableError as problem:
            raise WorkflowError(f"Nobody plays {played.name}: {problem}", do=problem.do) from problem
        if not caller.may(f"HELP.{tenant.name}"):
            raise RefusedError(f"This phone may not ask {tenant.title}.", do="rappd devices scopes")
        return tenant
