"""Runs the ``rappd`` of another machine over SSH, and reads its answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from envelopes.codecs.bounded_json import bounded_json, list_parts, object_parts
from neighborhoods.errors import BadMemberStreamError, MemberError
from neighborhoods.snapshot.member_transport import TwinActivity
from neighborhoods.snapshot.transports import shell_scripts
from neighborhoods.snapshot.transports.same_home import marked
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.snapshot.transports.ssh_failures import last_line
from neighborhoods.snapshot.transports.ssh_run import SshRun, refusal_in

_MOST_ANSWER = 8 << 20
_MOST_TWINS = 10_000
_MOST_ROW = 1 << 16
_SILENT_SECONDS = 600.0
"""Of a command there: an archive of a large twin takes its time."""


class _TwinRow(msgspec.Struct):
    key: str
    answering: bool = False
    activity: str = ""


def activity_of(output: bytes) -> dict[str, TwinActivity]:
    """The output of ``rappd twins list --json`` as activity by key; empty for what is none."""
    try:
        listed = next((value for key, value in object_parts(output) if key == "twins"), b"[]")
        rows = [
            msgspec.convert(bounded_json(part, most_bytes=_MOST_ROW), _TwinRow)
            for part in islice(list_parts(listed), _MOST_TWINS)
        ]
    except ValueError:
        return {}
    return {row.key: TwinActivity(row.answering, row.activity[:80]) for row in rows}


class FarAnswer(msgspec.Struct, frozen=True):
    """The end of a command there: its exit code, its output, and the last lines of its errors."""

    member: str
    code: int
    output: bytes
    errors: str

    def json(self) -> dict[str, Any]:
        """The object that it printed. Raises ``MemberError`` with its refusal, where it printed none."""
        try:
            found = bounded_json(self.output)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        raise self.refusal()

    def refusal(self) -> MemberError:
        """The error that its ``--json`` errors describe."""
        if refusal := refusal_in(self.errors):
            return MemberError(f"{self.member}: {refusal[0]}", do=refusal[1])
        reason = last_line(self.errors)
        last = f": {reason}" if reason else ""
        return BadMemberStreamError(
            f"{self.member}: its rappd gave no answer that can be read{last}.", do="Update rappd there."
        )


class FarRappd:
    """The rappd of one member. ``member`` is the name that messages use."""

    def __init__(
        self,
        member: str,
        destination: SshDestination,
        connections: SshConnections,
        *,
        own_home: Path | None = None,
    ) -> None:
        """A machine whose home is ``own_home`` is this one itself, and is refused."""
        self._member, self._destination, self._connections = member, destination, connections
        self._own_home = own_home

    async def run(self, arguments: Sequence[str], what: str, *, silent: float = _SILENT_SECONDS) -> FarAnswer:
        """Runs ``rappd`` with these arguments there. Raises ``MemberError``; ``what`` says what failing means."""
        run = SshRun(self._member, self._destination)
        answer = bytearray()
        async with marked(self._own_home) as own:
            script = shell_scripts.run_rappd(run.mark, arguments, own_mark=own)
            async with run.started(self._connections, script) as program:
                if await run.begun(program):
                    answer += run.first
                while piece := await run.read(program, silent=silent):
                    answer += piece[: _MOST_ANSWER - len(answer)]
                await run.ended(program, what)
        code, errors = run.finished(what)
        return FarAnswer(self._member, code, bytes(answer), errors)
