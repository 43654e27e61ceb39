"""The interface through which a snapshot reads and restores one member: a machine of the neighborhood.

Each transport carries tar streams; what they hold is checked by the reader of the stream, never believed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from envelopes.errors import ReportableError
from neighborhoods.errors import BadMemberError, BadMemberStreamError, MemberRefusedError
from twins.errors import HostileEggError
from twins.fs.untrusted_names import safe_component

AGENTS = "agents"
"""The root of an archive of a brainstem's agent files, where that of a twin has its hash."""


class EggMaker(Protocol):
    """(checked tar.gz of a twin, its hash) to a new file: the egg that a rappd there hatches. The caller removes it.

    With ``AGENTS`` for the hash it holds agents of a brainstem. The same archive gives the same bytes. ``archived``:
    the egg hatches into the archive. ``is_signed`` False: the rappd there quarantines what is code.
    """

    def __call__(
        self, archive: Path, twin: str, *, archived: bool = False, is_signed: bool = True
    ) -> Path: ...


class MemberProbe(msgspec.Struct, frozen=True):
    """The answer of one member: reachable or not, and why. Sizes are octets; -1 is unknown.

    ``is_away``: it did not answer at all, and may do so in a moment.
    """

    reachable: bool
    detail: str = ""
    rappd_version: str = ""
    free_bytes: int = -1
    took_ms: float = 0.0
    is_away: bool = False


class MemberTwin(msgspec.Struct, frozen=True):
    """One twin as the member lists it. ``fingerprint`` changes with any name, size or mtime below its folder.

    ``has_rappid_json``: False for a repository that a roster names and that is no twin. ``failure`` says why it cannot
    be read, "" when it can: nothing else but ``rappid_json`` is known of it then.
    """

    hash: str
    rappid_json: dict[str, Any]
    lifecycle: str = "active"
    workspace_bytes: int = 0
    workspace_files: int = 0
    has_soul: bool = False
    agents: tuple[str, ...] = ()
    fingerprint: str = ""
    has_rappid_json: bool = True
    failure: str = ""

    @property
    def name(self) -> str:
        """The twin's name, else the beginning of its hash."""
        found = self.rappid_json.get("display_name") or self.rappid_json.get("name")
        return found if found and isinstance(found, str) else self.hash[:8]


class MemberListing(msgspec.Struct, frozen=True):
    """The twins of a member, and the agent files of its brainstem by name."""

    twins: tuple[MemberTwin, ...]
    agent_files: tuple[str, ...] = ()
    host: str = ""


class WriteOutcome(msgspec.Struct, frozen=True):
    """The end of one write. ``staged`` says that the member's owner must still approve it."""

    created: int = 0
    overwritten: int = 0
    skipped: int = 0
    staged: bool = False
    detail: str = ""


class TwinActivity(msgspec.Struct, frozen=True):
    """The rappd there about one twin: ``answering`` a request now; ``mark`` is another one after each request."""

    answering: bool = False
    mark: str = ""


class MemberTransport(Protocol):
    """Reads and writes one member. Errors are ``MemberError`` and name the member, the cause and what to do.

    ``twin`` is the hash that names its folder. A tar stream is uncompressed, its names relative to the twin's folder.
    """

    async def probe(self) -> MemberProbe:
        """Asks whether the member can be read now. Never raises for an unreachable one."""

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        """Lists what can be read."""

    async def activity(self) -> dict[str, TwinActivity]:
        """Active twins by hash, where a rappd tells; empty where ``read_twin`` itself sees to it, or nothing can."""
        return {}

    def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
        """Streams the twin's workspace as tar, in the state of one moment or raises ``UnstableMemberError``."""

    def read_agents(self) -> AsyncIterator[bytes]:
        """Streams the brainstem's agent files as tar."""

    async def write_twin(
        self,
        twin: str,
        archive: Path,
        *,
        overwrite: bool = False,
        archived: bool = False,
        is_trusted: bool = True,
    ) -> WriteOutcome:
        """Restores a twin from a checked tar.gz file. Without ``overwrite`` a twin that exists is skipped.

        ``is_trusted`` False: a rappd there gets it without this machine's signature.
        """

    async def write_agents(
        self, archive: Path, *, overwrite: bool = False, is_trusted: bool = True
    ) -> WriteOutcome:
        """Restores agent files of the brainstem from a checked tar.gz file with the root ``AGENTS``.

        Without ``overwrite`` a file that exists stays. With ``is_trusted`` False they go to a rappd alone, which
        quarantines them; raises ``MemberRefusedError`` where there is none.
        """

    async def aclose(self) -> None:
        """Ends what was opened for this use alone."""


def milliseconds_since(began: float) -> float:
    """The milliseconds since ``began``, a moment of ``time.monotonic``."""
    return round((time.monotonic() - began) * 1000, 3)


def require_trusted(member: str, is_trusted: bool) -> None:
    """Raises ``MemberRefusedError`` for agents of an unknown signer, where no rappd quarantines them."""
    if not is_trusted:
        raise MemberRefusedError(
            f"Nobody trusted signed these agents, and no rappd quarantines them on {member}.",
            do="Read them: rappd egg extract FILE FOLDER",
        )


def require_twin_hash(twin: str) -> None:
    """Raises ``BadMemberError`` for text that names no folder, or one that is reserved."""
    try:
        safe_component(twin)
    except HostileEggError:
        twin = "."
    if twin.startswith((".", "-")):
        raise BadMemberError("That hash names no twin's folder.", do="Look at the list of twins.")


log = logging.getLogger(__name__)


def as_failure(member: str, error: Exception) -> ReportableError:
    """The error to report of a member. One that is no report is logged with its trace first.

    Call it where ``error`` is handled. Cancellation is no ``Exception`` and goes on.
    """
    if isinstance(error, ReportableError):
        return error
    log.error("%s sent what could not be read", member, exc_info=error)
    return BadMemberStreamError(
        f"{member}: what it sent could not be read ({type(error).__name__}).",
        do="The log has more: rappd logs",
    )
