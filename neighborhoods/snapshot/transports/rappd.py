"""A paired machine, read by its own rappd over the federation listener; writing waits there for its owner's yes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec

from envelopes.codecs.bounded_json import bounded_json, list_parts, object_parts
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
    MemberTransport,
    MemberTwin,
    WriteOutcome,
    milliseconds_since,
    require_twin_hash,
)
from neighborhoods.snapshot.transports.listing_parser import MOST_RAPPID_BYTES, is_agent_file, text_fields

_MOST_TWINS = 10_000
_MOST_AGENTS = 10_000
_MOST_TWIN_BYTES = 4 * MOST_RAPPID_BYTES
"""Of one twin in a list: its ``rappid.json`` and the names of its agents."""
_MOST_KEPT = 64 << 20
_MOST_COUNT = 1 << 53
_MOST_PROBE = 1 << 16
_MOST_NAME = 4096
_MOST_AGENTS_OF_TWIN = 1000
_Count = Annotated[int, msgspec.Meta(ge=0, lt=_MOST_COUNT)]


class PeerSource(Protocol):
    """Requests to one peer. Paths are those below ``/snapshot`` of its listener. Raises ``MemberError``."""

    async def answer(self, path: str) -> bytes:
        """The answer as it came, within bytes; JSON, if the peer is honest."""
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


class RappdTransport(MemberTransport):
    """One paired machine. Reading needs the capability SNAPSHOT there, writing EGG."""

    def __init__(self, member: str, source: PeerSource, *, make_egg: EggMaker | None = None) -> None:
        """``member`` is the name that messages use."""
        self._member, self._source, self._make_egg = member, source, make_egg

    async def probe(self) -> MemberProbe:
        """Asks it for its state."""
        began = time.monotonic()
        try:
            found = _probed(self._member, await self._source.answer(""))
        except MemberError as error:
            return MemberProbe(False, error.with_advice(), took_ms=milliseconds_since(began))
        free, version = found.get("free_bytes"), found.get("version")
        return MemberProbe(
            True,
            rappd_version=version[:60] if isinstance(version, str) else "",
            free_bytes=free if type(free) is int and 0 <= free < _MOST_COUNT else -1,
            took_ms=milliseconds_since(began),
        )

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        """Lists what can be read. Raises ``MemberError``."""
        octets = await self._source.answer(f"/twins{'?archived=1' if include_archived else ''}")
        try:
            return await asyncio.to_thread(read_listing, octets)
        except ValueError as error:
            raise BadMemberStreamError(
                f"{self._member}'s list of twins cannot be read: {str(error)[:200]}.",
                do="Update rappd on both machines.",
            ) from error

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


class _ListedTwin(msgspec.Struct, frozen=True):
    """A twin as a peer lists it."""

    hash: str
    rappid_json: dict[str, Any]
    lifecycle: str = "active"
    workspace_bytes: _Count = 0
    workspace_files: _Count = 0
    has_soul: bool = False
    agents: tuple[str, ...] = ()
    fingerprint: str = ""
    has_rappid_json: bool = True


def read_listing(octets: bytes) -> MemberListing:
    """The list of a peer, twin by twin, each within bounds. Raises ``ValueError``, with a clause.

    A list of many twins takes a second: call it in a thread.
    """
    twins: list[MemberTwin] = []
    agents: list[str] = []
    host, kept = "", 0
    for key, value in object_parts(octets):
        if key == "twins":
            for place, part in enumerate(list_parts(value)):
                if place == _MOST_TWINS:
                    raise ValueError(f"it lists more than {_MOST_TWINS} twins")
                twin = msgspec.convert(bounded_json(part, most_bytes=_MOST_TWIN_BYTES), _ListedTwin)
                if _is_named(twin.hash):
                    twins.append(_checked(twin))
                    kept += len(part)
        elif key == "agent_files":
            for place, part in enumerate(list_parts(value)):
                if place == _MOST_AGENTS:
                    break
                name = msgspec.convert(bounded_json(part, most_bytes=_MOST_NAME), str)
                if is_agent_file(name.encode()):
                    agents.append(name)
                    kept += len(part)
        elif key == "host":
            host = msgspec.convert(bounded_json(value, most_bytes=_MOST_NAME), str)[:255]
        if kept > _MOST_KEPT:
            raise ValueError("its names have no end")
    return MemberListing(tuple(twins), tuple(sorted(agents)), host)


def _probed(member: str, octets: bytes) -> dict[str, Any]:
    try:
        found = bounded_json(octets, most_bytes=_MOST_PROBE)
    except ValueError as error:
        raise BadMemberStreamError(
            f"{member} does not answer in JSON.", do="Look what runs there."
        ) from error
    if not isinstance(found, dict):
        raise BadMemberStreamError(f"{member} answers no object.", do="Look what runs there.")
    return found


def _checked(twin: _ListedTwin) -> MemberTwin:
    """The twin within bounds."""
    return MemberTwin(
        twin.hash,
        text_fields(twin.rappid_json),
        lifecycle="archived" if twin.lifecycle == "archived" else "active",
        workspace_bytes=twin.workspace_bytes,
        workspace_files=twin.workspace_files,
        has_soul=twin.has_soul,
        agents=twin.agents[:_MOST_AGENTS_OF_TWIN],
        fingerprint=twin.fingerprint[:200],
        has_rappid_json=twin.has_rappid_json,
    )


def _is_named(twin: str) -> bool:
    try:
        require_twin_hash(twin)
    except BadMemberError:
        return False
    return True
