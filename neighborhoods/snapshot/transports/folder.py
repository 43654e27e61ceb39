"""A member whose home is a folder here: a USB stick, a mounted disk, a home of another account."""

from __future__ import annotations

import asyncio
import errno
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from agents.storage.safe_walk import LinkFreeFolder
from neighborhoods.errors import (
    MemberDiskFullError,
    MemberError,
    MemberUnreachableError,
    NoSuchMemberError,
    UnstableMemberError,
)
from neighborhoods.snapshot.member_transport import (
    MemberListing,
    MemberProbe,
    MemberTransport,
    WriteOutcome,
    milliseconds_since,
    require_trusted,
    require_twin_hash,
)
from neighborhoods.snapshot.transports.twin_folder import (
    batched,
    lay_out_agents,
    lay_out_twin,
    list_twins,
    tar_of,
)

_AGENTS = "brainstem/agents"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_GONE = frozenset({errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE})


class FolderTransport(MemberTransport):
    """One member as the folder ``home``, which has ``twins`` in it or gets it."""

    def __init__(self, member: str, home: Path) -> None:
        self._member, self._home = member, home

    async def probe(self) -> MemberProbe:
        """Tests whether the folder is there."""
        began = time.monotonic()
        try:
            free = (await asyncio.to_thread(shutil.disk_usage, self._home)).free
            await asyncio.to_thread(LinkFreeFolder(self._home, follow=True).folder, "")
        except OSError as error:
            failed = self._failure(error, "it cannot be read")
            return MemberProbe(False, failed.with_advice(), took_ms=milliseconds_since(began))
        return MemberProbe(True, free_bytes=free, took_ms=milliseconds_since(began))

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        """Lists the twins in the folder. Raises ``MemberError``."""
        try:
            return await asyncio.to_thread(self._list, include_archived)
        except OSError as error:
            raise self._failure(error, "its twins could not be listed") from error

    async def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
        """Streams one pass; raises ``UnstableMemberError`` when a file changed meanwhile: read it again."""
        require_twin_hash(twin)
        async for piece in self._tar(f"twins/{'.archive/' if archived else ''}{twin}", f"twin {twin}"):
            yield piece

    async def read_agents(self) -> AsyncIterator[bytes]:
        """Streams the brainstem's agents, as ``read_twin`` does."""
        async for piece in self._tar(_AGENTS, "its agents"):
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
        """Lays the twin out in the folder, whole or not at all. Raises ``MemberError``."""
        require_twin_hash(twin)
        try:
            return await asyncio.to_thread(
                lay_out_twin, self._home, twin, archive, overwrite=overwrite, archived=archived
            )
        except OSError as error:
            raise self._failure(error, f"twin {twin} is not restored, not even half") from error

    async def write_agents(
        self, archive: Path, *, overwrite: bool = False, is_trusted: bool = True
    ) -> WriteOutcome:
        """Writes agents into the folder, each whole. Raises ``MemberError``."""
        require_trusted(self._member, is_trusted)
        try:
            return await asyncio.to_thread(lay_out_agents, self._home, _AGENTS, archive, overwrite=overwrite)
        except OSError as error:
            raise self._failure(error, "its agents are not all restored") from error

    async def aclose(self) -> None:
        """Nothing is kept open."""

    def _list(self, archived: bool) -> MemberListing:
        with LinkFreeFolder(self._home, follow=True) as files:
            files.folder("")
            return list_twins(files, archived=archived, agents=_AGENTS, host=self._member)

    async def _tar(self, folder: str, what: str) -> AsyncIterator[bytes]:
        with LinkFreeFolder(self._home, follow=True) as files:
            pieces: Iterator[bytes] = batched(tar_of(files, folder))
            try:
                while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                    yield piece
            except UnstableMemberError:
                raise UnstableMemberError(
                    f"{self._member}: {what} could not be read without a change meanwhile.",
                    do="Stop what writes there, rerun.",
                ) from None
            except OSError as error:
                raise self._failure(error, f"{what} could not be read") from error

    def _failure(self, error: OSError, what: str) -> MemberError:
        if error.errno in _FULL:
            return MemberDiskFullError(
                f"{self._member}'s disk is full; {what}.", do="Free space there, rerun."
            )
        if error.errno in _GONE or not self._home.is_dir():
            return MemberUnreachableError(
                f"{self._member}: {self._home} is not there; {what}.", do="Plug it in or mount it, rerun."
            )
        if error.errno in _MISSING:
            return NoSuchMemberError(f"{self._member}: {what}: it is not there.", do="List its twins anew.")
        reason = (error.strerror or str(error)).lower()
        return MemberError(f"{self._member}: {what}: {reason}.", do=f"Look at {self._home}, then rerun.")
