"""The owner's operations on neighborhoods while machines are there: rosters show who is here, and they learn of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

from neighborhoods.peer_store import PeerStore
from neighborhoods.places.memberships import Scope
from rappd.dispatch.endpoints import Endpoints
from rappd.errors import NotFoundError, RefusedError, UsageProblemError
from rappd.features.eggs.uploaded_eggs import whole_path
from rappd.features.neighborhoods.answers import (
    Invited,
    Left,
    NeighborhoodChanged,
    Published,
    WholeNeighborhood,
)
from rappd.features.neighborhoods.places import DAYS, PlaceOperations
from rappd.features.operation import OWNER, Text, operation
from rappd.features.peers.operations import PeerOperations
from rappd.federation.greetings import PeerAnnouncements
from rappd.tenants.tenant import HOST

_T = TypeVar("_T")


class NeighborhoodOperations:
    """``neighborhood``: its name, or the beginning of its key."""

    def __init__(
        self,
        places: PlaceOperations,
        paired: PeerStore,
        announcements: PeerAnnouncements,
        peers: PeerOperations,
        to_the_end: Callable[
            [Coroutine[Any, Any, NeighborhoodChanged]], Coroutine[Any, Any, NeighborhoodChanged]
        ],
        endpoints: Endpoints,
    ) -> None:
        self._places, self._peers = places, peers
        self._paired_peers, self._announcements = paired, announcements
        self._to_the_end, self._endpoints = to_the_end, endpoints

    @operation("neighborhoods.join", "POST", "/neighborhoods/join", right=OWNER)
    async def join(self, path: str = "", name: str = "") -> NeighborhoodChanged:
        """Joins by an invite or a neighborhood's egg (`path` on this machine), or one that lies here (`name`)."""
        if not (path or name):
            raise UsageProblemError("Which one?", do='Send {"name": "…"}, or the path of an invite.')
        given = str(whole_path(path)) if path else name
        return await self._changed(self._to_the_end(asyncio.to_thread(self._places.join, given)))

    @operation(
        "neighborhoods.show", "GET", "/neighborhoods/{neighborhood}", right=OWNER, answers="neighborhood"
    )
    async def show(self, neighborhood: str) -> WholeNeighborhood:
        """Shows one neighborhood: its roster with presence, what is shared, what is published."""
        return await asyncio.to_thread(self._places.show, neighborhood, await self._paired())

    @operation("neighborhoods.invite", "POST", "/neighborhoods/{neighborhood}/invite", right=OWNER)
    async def invite(self, neighborhood: str, peer: str = "", days: int = DAYS, into: str = "") -> Invited:
        """Writes an invite, good for `days`, `into` a file; `peer` counts a paired machine among the members."""
        row = None
        if peer:
            row = (await self._paired())[self._paired_peers.find(peer).fingerprint]
        path = str(whole_path(into)) if into else ""
        work = asyncio.to_thread(self._places.invite, neighborhood, into=path, days=days, peer=row)
        return await self._changed(work)

    @operation("neighborhoods.publish", "POST", "/neighborhoods/{neighborhood}/publish", right=OWNER)
    async def publish(
        self,
        neighborhood: str,
        agent: Text,
        scope: Literal["personal", "neighborhood", "public"] = "neighborhood",
    ) -> Published:
        """Publishes `agent` with a `scope`: neighborhood, public, or personal, which takes it back."""
        wanted = Scope(scope)
        name = agent if wanted is Scope.PERSONAL else _publishable(self._endpoints, agent)
        return await self._changed(asyncio.to_thread(self._places.publish, neighborhood, name, wanted))

    @operation("neighborhoods.leave", "POST", "/neighborhoods/{neighborhood}/leave", right=OWNER)
    async def leave(self, neighborhood: str) -> Left:
        """Leaves a neighborhood; its files are set aside."""
        return await self._changed(asyncio.to_thread(self._places.leave, neighborhood))

    async def _changed(self, work: Coroutine[Any, Any, _T]) -> _T:
        found = await work
        self._announcements.agents_changed()
        return found

    async def _paired(self) -> dict[str, Any]:
        rows = (await self._peers.listing())["peers"]
        return {row["fingerprint"]: row for row in rows if row["paired"]}


def _publishable(endpoints: Endpoints, name: str) -> str:
    """The name under which an agent is called from elsewhere. Raises ``NotFoundError``, ``RefusedError``."""
    found = endpoints.named(HOST, name)
    if found is None or found.agent is None:
        raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
    if found.exposure.kind != "peer":
        raise RefusedError(
            f"{found.agent.name} changes this machine and is never published.", do="Publish another agent."
        )
    return found.name
