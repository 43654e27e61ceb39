"""The rights of a run: those that its starter has at each step, and who plays a participant, here or on another machine."""

from __future__ import annotations

from collections.abc import Callable

from envelopes.errors import ReportableError
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError, RefusedError
from rappd.sessions.errors import WorkflowError
from rappd.sessions.guests import Guest, GuestList
from rappd.sessions.participants import WORKFLOWS, Owner, Participants, Speaker, caller_of
from rappd.sessions.workflows.definition import Participant
from rappd.sessions.workflows.run_record import OPERATOR
from rappd.tenants.tenant import Tenant
from twins.errors import NoSuchTwinError


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

    async def player(self, played: Participant, who: str, caller: Caller) -> Tenant | Guest:
        """The one called ``who`` that plays a participant: a tenant, or a guest such as ``Ink@pi``.

        Raises ``WorkflowError``, ``RefusedError`` where it may not be asked.
        """
        gateway = self._participants.gateway
        try:
            found = await self._found(who)
        except ReportableError as problem:
            raise WorkflowError(f"Nobody plays {played.name}: {problem}", do=problem.do) from problem
        if isinstance(found, Guest):
            needed, name = gateway.capability(found), who
        else:
            needed, name = f"HELP.{found.name}", found.title
        if not caller.may(needed):
            raise RefusedError(f"This phone may not ask {name}.", do="rappd devices scopes")
        return found

    async def players(self, *, plain: bool) -> list[str]:
        """The names of all that can play: the brainstem, twins, paired machines with what they offer.

        ``plain``: published brainstems that are written down, too, which are asked over plain http.
        """
        here = [str(row["name"]) for row in await self._participants.listing(GuestList())]
        possible = await self._participants.gateway.possible()
        return [*here, *(str(row["name"]) for row in possible if plain or not row["plain"])]

    async def _found(self, who: str) -> Tenant | Guest:
        if "@" not in who:
            try:
                return await self._participants.named(who)
            except NoSuchTwinError as problem:
                try:
                    return await self._participants.gateway.find(who)
                except NotFoundError:
                    raise problem from None
        return await self._participants.gateway.find(who)
