"""This home as a paired machine's snapshot reads it: twins between two of their calls, without what may not travel."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypedDict, cast

import msgspec

from agents.storage.safe_walk import LinkFreeFolder
from neighborhoods.errors import (
    BadMemberError,
    MemberBusyError,
    MemberDiskFullError,
    MemberError,
    MemberTooLargeError,
    NoSuchMemberError,
    UnstableMemberError,
)
from neighborhoods.snapshot.member_transport import MemberListing, MemberTwin, require_twin_hash
from neighborhoods.snapshot.tar_guard import TarEntry
from neighborhoods.snapshot.transports.twin_folder import batched, list_twins, tar_of
from twins.eggs.frames import ConversationSource, encoded
from twins.eggs.readers.workspace_paths import decides, is_code, is_workflow
from twins.eggs.writers import exclusions
from twins.eggs.writers.contents import IsHeld

CAPABILITY = "SNAPSHOT"
"""Lets a paired machine read every twin and the brainstem's agents. A machine of the same owner has it."""
MOST_BYTES = 16 << 30
"""Of one twin."""
MOST_SECONDS = 600.0
MOST_READS = 4
"""Streams of one peer at the same time."""
ROOM_LEFT = 256 << 20
"""Octets that stay free on this machine's disk while a twin is copied."""
_AGENTS = "brainstem/agents"
_FRAMES = ".brainstem_data/frames.json"
_PIECE = 1 << 18
_PASSES = 3
_PATIENCE = 15.0
"""Seconds that a twin may go on answering before the reader is told to come again."""
_LOOK_SECONDS = 0.05
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class SharedProbe(TypedDict):
    """The name of a machine and the free octets on its disk."""

    host: str
    free_bytes: int


class SharedTwin(TypedDict):
    """A ``MemberTwin``."""

    hash: str
    rappid_json: dict[str, Any]
    lifecycle: str
    workspace_bytes: int
    workspace_files: int
    has_soul: bool
    agents: list[str]
    fingerprint: str
    has_rappid_json: bool


class SharedTwins(TypedDict):
    """A ``MemberListing``."""

    twins: list[SharedTwin]
    agent_files: list[str]
    host: str


class SharedHome:
    """Copies one twin at a time into an unnamed file, so that a slow reader never sees two states of it.

    A twin is neither stopped nor kept waiting: a copy counts when no call was active at its begin and no file
    changed until its end.
    """

    def __init__(
        self,
        home: Path,
        machine: str,
        *,
        is_held: IsHeld,
        is_answering: Callable[[str], bool],
        conversations: Callable[[str], ConversationSource] | None = None,
    ) -> None:
        """``is_answering``: True while a call to the twin of that key is active. ``conversations`` gives a twin's."""
        self._home, self._machine = home, machine
        self._conversations = conversations
        self._is_held, self._is_answering = is_held, is_answering
        self._reads: Counter[str] = Counter()

    @contextmanager
    def reading(self, peer: str) -> Iterator[None]:
        """Counts one read of a peer. Raises ``MemberBusyError`` when it has too many."""
        if self._reads[peer] >= MOST_READS:
            raise MemberBusyError(f"{self._machine} is being read by you already.", do="Wait, then rerun.")
        self._reads[peer] += 1
        try:
            yield
        finally:
            self._reads[peer] -= 1
            if not self._reads[peer]:
                del self._reads[peer]

    async def probe(self) -> SharedProbe:
        """The name of this machine and the free octets on its disk."""
        free = (await asyncio.to_thread(shutil.disk_usage, self._home)).free
        return {"host": self._machine, "free_bytes": free}

    async def listing(self, *, include_archived: bool = False, for_owner: bool = False) -> SharedTwins:
        """The ``MemberListing`` as JSON. Raises ``MemberError``.

        ``for_owner``: fingerprints change with what was said to a twin, too, for ``copy_twin`` gives that.
        """
        try:
            found = await asyncio.to_thread(self._list, include_archived, for_owner)
        except OSError as error:
            raise self._failure(error, "its twins could not be listed") from error
        answer = msgspec.to_builtins(found)
        for twin in answer["twins"]:
            del twin["failure"]  # it is of ways that reach several places; here all can be read, or nothing
        return cast(SharedTwins, answer)

    async def copy_twin(self, twin: str, *, archived: bool = False, for_owner: bool = False) -> IO[bytes]:
        """The twin's files as tar, in an open file that the caller closes. Raises ``MemberError``.

        ``for_owner``: with its conversations, as the file of them that a packed egg holds, and with the names of
        what stays behind.
        """
        try:
            require_twin_hash(twin)
        except BadMemberError as error:
            raise NoSuchMemberError("No twin goes by that hash.", do="List the twins anew.") from error
        folder = f"twins/{'.archive/' if archived else ''}{twin}"
        until = time.monotonic() + _PATIENCE
        for attempt in range(_PASSES):
            while not archived and self._is_answering(twin):
                if time.monotonic() > until:
                    raise UnstableMemberError(
                        f"{self._machine}: twin {twin} is answering.", do="Rerun when it is done."
                    )
                await asyncio.sleep(_LOOK_SECONDS)
            try:
                return await self._copy(folder, f"twin {twin}", twin if for_owner else "", for_owner)
            except UnstableMemberError:
                if attempt == _PASSES - 1:
                    raise
        raise AssertionError("the last pass returns or raises")

    async def copy_agents(self, *, for_owner: bool = False) -> IO[bytes]:
        """The brainstem's agent files, as ``copy_twin`` does."""
        return await self._copy(_AGENTS, "its agents", "", for_owner)

    async def _copy(self, folder: str, what: str, twin: str, for_owner: bool) -> IO[bytes]:
        try:
            return await asyncio.to_thread(self._copied, folder, twin, for_owner)
        except UnstableMemberError:
            raise UnstableMemberError(
                f"{self._machine}: {what} changed each time while it was read.", do="Rerun when it is quiet."
            ) from None
        except OSError as error:
            raise self._failure(error, f"{what} could not be read") from error

    def _copied(self, folder: str, twin: str, for_owner: bool) -> IO[bytes]:
        """``twin``: the twin whose conversations go with it, "" for none."""
        copy = tempfile.TemporaryFile(dir=self._home)  # noqa: SIM115 - the caller closes it
        until, written, looked_at = time.monotonic() + MOST_SECONDS, 0, -1
        try:
            with (
                LinkFreeFolder(self._home, follow=True) as files,
                self._conversations_of(twin) as conversations,
            ):

                def stays(path: str) -> tuple[str, str] | None:
                    return self._stays(files, folder, path)

                recorded = (_FRAMES,) if conversations else ()  # they come instead of what lies there
                stream = tar_of(
                    files, folder, stays=stays, passed_over=recorded, names_left=for_owner, more=conversations
                )
                for piece in batched(stream):
                    written += len(piece)
                    if written > MOST_BYTES or time.monotonic() > until:
                        raise MemberTooLargeError(
                            f"{self._machine}: it is too large to be read at once.", do="Use SSH for it."
                        )
                    if written >> 26 != looked_at:
                        looked_at = written >> 26
                        self._check_room()
                    copy.write(piece)
            copy.flush()
            copy.seek(0)
        except BaseException:
            copy.close()
            raise
        return copy

    @contextmanager
    def _conversations_of(self, twin: str) -> Iterator[list[tuple[TarEntry, Iterator[bytes]]]]:
        """A twin's conversations as a member of a tar stream; none where nothing was said."""
        if not twin or self._conversations is None:
            yield []
            return
        with tempfile.TemporaryFile(dir=self._home) as kept:  # its size comes first in the stream
            size = 0
            for piece in encoded(self._conversations(twin).frames(twin)):
                size += kept.write(piece)
                if size > MOST_BYTES:
                    raise MemberTooLargeError(
                        f"{self._machine}: its conversations are too large to be read at once.",
                        do=f"There: rappd egg pack {twin}",
                    )
            kept.seek(0)
            pieces = iter(lambda: kept.read(_PIECE), b"")
            yield [(TarEntry(_FRAMES, size), pieces)] if size else []

    def _check_room(self) -> None:
        if shutil.disk_usage(self._home).free < ROOM_LEFT:
            raise OSError(errno.ENOSPC, "no room for a copy")

    def _stays(self, files: LinkFreeFolder, folder: str, path: str) -> tuple[str, str] | None:
        """The name and the reason of what no snapshot holds, and of code that its owner has not read yet."""
        parts = path.split("/")
        for n, part in enumerate(parts, 1):
            if (why := exclusions.by_name(part)) is not None:
                return "/".join(parts[:n]), why.value
        whole = f"{folder}/{path}"
        if (is_code(path) or is_workflow(path) or decides(path)) and self._is_held(
            self._home / whole, files.sha256(whole)
        ):
            return path, exclusions.ExclusionReason.HELD.value
        return None

    def _list(self, archived: bool, with_conversations: bool) -> MemberListing:
        with LinkFreeFolder(self._home, follow=True) as files:
            files.folder("")
            found = list_twins(files, archived=archived, agents=_AGENTS, host=self._machine)
        named = tuple(
            self._with_said(twin) if with_conversations else twin
            for twin in found.twins
            if _is_sendable(twin.hash)
        )
        return msgspec.structs.replace(found, twins=named)

    def _with_said(self, twin: MemberTwin) -> MemberTwin:
        if self._conversations is None:
            return twin
        digest = hashlib.sha256(twin.fingerprint.encode())
        for frame in self._conversations(twin.hash).frames(twin.hash):
            digest.update(frame["hash"].encode())
        return msgspec.structs.replace(twin, fingerprint=digest.hexdigest())

    def _failure(self, error: OSError, what: str) -> MemberError:
        if error.errno in _FULL:
            return MemberDiskFullError(
                f"{self._machine}'s disk is full; {what}.", do="Free space there, rerun."
            )
        if error.errno in _MISSING:
            return NoSuchMemberError(f"{self._machine}: {what}: it is not there.", do="List its twins anew.")
        reason = (error.strerror or "it failed").lower()
        return MemberError(f"{self._machine}: {what}: {reason}.", do="Its log says more, there: rappd logs")


def _is_sendable(twin: str) -> bool:
    try:
        require_twin_hash(twin)
        twin.encode()
    except (BadMemberError, UnicodeEncodeError):
        return False
    return True
