"""A paired machine, read by its own rappd over the federation listener; writing waits there for its owner's yes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import orjson

from neighborhoods.errors import (
    BadMemberError,
    BadMemberStreamError,
    MemberError,
    MemberRefusedError,
)
from neighborhoods.snapshot.member_transport import (
    AGENTS,
    EggMaker,
    MemberListing,
    MemberProbe,
    MemberTwin,
    TwinActivity,
    WriteOutcome,
)
from neighborhoods.snapshot.transports.listing_parser import is_agent_file, rappid_fields
from neighborhoods.snapshot.transports.twin_hash import require_twin_hash

_MOST_TWINS = 10_000
_MOST_AGENTS = 10_000


class PeerSource(Protocol):
    """Requests to one peer. Paths are those below ``/snapshot`` of its listener. Raises ``MemberError``."""

    async def answer(self, path: str) -> dict[str, Any]:
        """A JSON object."""
        ...

    def stream(self, path: str) -> AsyncIterator[bytes]:
        """A tar stream, whole or an error at its end."""
        ...

    async def send_egg(self, egg: Path) -> bool:
        """Sends an egg; True when it has arrived, False while it waits in the outbox."""
        ...

    async def aclose(self) -> None:
        """Ends connections that are kept open."""
        ...


class RappdTransport:
    """One paired machine. Reading needs the capability SNAPSHOT there, writing EGG."""

    def __init__(self, member: str, source: PeerSource, *, make_egg: EggMaker | None = None) -> None:
        """``member`` is the name that messages use."""
        self._member, self._source, self._make_egg = member, source, make_egg

    async def probe(self) -> MemberProbe:
        """Asks it for its state."""
        began = time.monotonic()
        try:
            found = await self._source.answer("")
        except MemberError as error:
            return MemberProbe(False, error.with_advice(), took_ms=_since(began))
        free = found.get("free_bytes")
        return MemberProbe(
            True,
            rappd_version=str(found.get("version", ""))[:60],
            free_bytes=free if isinstance(free, int) else -1,
            took_ms=_since(began),
        )

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        """Lists what can be read. Raises ``MemberError``."""
        found = await self._source.answer(f"/twins{'?archived=1' if include_archived else ''}")
        try:
            said = msgspec.convert(found, MemberListing)
        except msgspec.ValidationError as error:
            raise BadMemberStreamError(
                f"{self._member}'s list of twins cannot be read.", do="Update rappd on both machines."
            ) from error
        if len(said.twins) > _MOST_TWINS:
            raise BadMemberStreamError("The list of twins has no end.", do="Look what answers there.")
        twins = tuple(_checked(twin) for twin in said.twins if _is_named(twin.hash))
        agents = [name for name in said.agent_files[:_MOST_AGENTS] if is_agent_file(name.encode())]
        return MemberListing(twins, tuple(sorted(agents)), said.host[:255])

    async def activity(self) -> dict[str, TwinActivity]:
        """Empty: the rappd there reads between two calls."""
        return {}

    async def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
        """Streams the twin in the state between two of its calls; raises ``UnstableMemberError`` while it is busy."""
        require_twin_hash(twin)
        async for piece in self._source.stream(f"/twins/{twin}{'?archived=1' if archived else ''}"):
            yield piece

    async def read_agents(self) -> AsyncIterator[bytes]:
        """Streams the brainstem's agents."""
        async for piece in self._source.stream("/agents"):
            yield piece

    async def write_twin(
        self,
        twin: str,
        archive: Path,
        *,
        overwrite: bool = False,
        archived: bool = False,
        is_trusted: bool = True,
    ) -> WriteOutcome:
        """Sends the twin as an egg. Nothing changes there until the owner of that machine hatches it."""
        require_twin_hash(twin)
        if self._make_egg is None:
            raise MemberRefusedError(f"{self._member} is only read here.", do="Restore it with the command.")
        if not overwrite and any(
            (one.hash, one.lifecycle == "archived") == (twin, archived)
            for one in (await self.list(include_archived=archived)).twins
        ):
            return WriteOutcome(skipped=1, detail="it is there already")
        egg = await asyncio.to_thread(self._make_egg, archive, twin, archived=archived, is_signed=is_trusted)
        return await self._staged(egg, f"twin-{twin[:16]}.egg")

    async def write_agents(
        self, archive: Path, *, overwrite: bool = False, is_trusted: bool = True
    ) -> WriteOutcome:
        """Sends the agents as an egg, which its owner hatches there; what is replaced is chosen then."""
        if self._make_egg is None:
            raise MemberRefusedError(f"{self._member} is only read here.", do="Restore it with the command.")
        egg = await asyncio.to_thread(self._make_egg, archive, AGENTS, is_signed=is_trusted)
        return await self._staged(egg, "agents.egg")

    async def _staged(self, egg: Path, name: str) -> WriteOutcome:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=egg.parent))
        try:
            named = await asyncio.to_thread(egg.rename, folder / name)
            has_arrived = await self._source.send_egg(named)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        there = "waits there for its owner: rappd egg arrived"
        return WriteOutcome(
            staged=True,
            detail=there if has_arrived else f"goes out when {self._member} is here, then {there}",
        )

    async def aclose(self) -> None:
        """Ends connections that are kept open."""
        await self._source.aclose()


def _checked(twin: MemberTwin) -> MemberTwin:
    """The twin as a peer lists it, within bounds."""
    return msgspec.structs.replace(
        twin,
        rappid_json=rappid_fields(orjson.dumps(twin.rappid_json)),
        lifecycle="archived" if twin.lifecycle == "archived" else "active",
        workspace_bytes=max(0, twin.workspace_bytes),
        workspace_files=max(0, twin.workspace_files),
        agents=twin.agents[:_MOST_AGENTS],
        fingerprint=twin.fingerprint[:200],
        failure="",
    )


def _is_named(twin: str) -> bool:
    try:
        require_twin_hash(twin)
    except BadMemberError:
        return False
    return True


def _since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)
