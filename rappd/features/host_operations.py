"""Structural operations that approved agents call: those of twins, eggs, buddies, the neighborhood and the fleet, by name."""

from __future__ import annotations

from typing import Any

from envelopes.envelope import ERROR, HELP, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError, RefusedError
from rappd.features.eggs.host_api import EggHostApi
from rappd.features.fleet.operations import STATUS_SECONDS, FleetOperations
from rappd.features.snapshots.host_api import NeighborhoodHostApi
from rappd.features.twins.host_api import TwinHostApi
from rappd.features.twins.operations import TwinOperations
from rappd.tenants.tenants import Tenants


class HostOperations:
    """Routes an operation by its name to the operations of twins, eggs, the neighborhood and buddies."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        tenants: Tenants,
        twins: TwinOperations,
        twin_api: TwinHostApi,
        eggs: EggHostApi,
        neighborhood: NeighborhoodHostApi,
        fleet: FleetOperations,
    ) -> None:
        self._dispatcher = dispatcher
        self._tenants = tenants
        self._twins = twins
        self._eggs = eggs
        self._neighborhood = neighborhood
        self._twin_api = twin_api
        self._fleet = fleet

    async def perform(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Returns the operation's result. Raises ``ReportableError``, ``NotFoundError`` for an unknown name."""
        kind, _, verb = operation.partition(".")
        if operation == "twins.chat":
            return await self._ask_twin(str(arguments.get("twin", "")), str(arguments.get("text", "")))
        if kind == "twins":
            return await self._twin_api.perform(verb, arguments)
        if kind == "buddy":
            return await self._twins.buddies.perform(verb, arguments)
        if operation == "fleet.status":
            return await self._fleet.status()
        if operation == "fleet.archive_estate":
            return await self._fleet.archive_estate(
                arguments.get("filter"), confirm=arguments.get("confirm") is True, timeout=STATUS_SECONDS
            )
        if kind == "eggs":
            return await self._eggs.perform(verb, arguments)
        if kind == "neighborhood":
            return await self._neighborhood.perform(verb, arguments)
        raise NotFoundError(f'There is no operation "{operation[:40]}".')

    async def _ask_twin(self, selector: str, text: str) -> dict[str, Any]:
        """One turn of a twin, asked by the brainstem; a twin that is asked so may change no structure."""
        tenant = await self._tenants.twin(selector)
        asked = Envelope(new_id(), self._tenants.host.id, tenant.id, HELP, {"user_input": text})
        turn = self._dispatcher.submit(asked, Caller("brainstem"), session="asked by the brainstem")
        reply = await turn.reply()
        if reply.verb == ERROR:
            raise RefusedError(str(reply.data.get("msg", "")), do=str(reply.data.get("do", "")))
        return {"twin": tenant.title, "response": reply.data.get("response", "")}
