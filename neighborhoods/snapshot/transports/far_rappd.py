"""Runs the ``rappd`` of another machine over SSH, and reads its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from neighborhoods.errors import BadMemberStreamError, MemberError
from neighborhoods.snapshot.member_transport import TwinActivity
from neighborhoods.snapshot.transports import shell_scripts
from neighborhoods.snapshot.transports.own_place import own_place
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.snapshot.transports.ssh_run import SshRun
from twins.fs.untrusted_names import shown

_MOST_ANSWER = 8 << 20


class _TwinRow(msgspec.Struct):
    key: str
    answering: bool = False
    activity: str = ""


class _TwinRows(msgspec.Struct):
    twins: list[_TwinRow] = []


def activity_of(output: bytes) -> dict[str, TwinActivity]:
    """The output of ``rappd twins list --json`` as activity by key; empty for what is none."""
    try:
        rows = msgspec.json.decode(output, type=_TwinRows).twins
    except msgspec.DecodeError:
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
            found = orjson.loads(self.output)
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, dict):
            return found
        raise self.refusal()

    def refusal(self) -> MemberError:
        """The error that its ``--json`` errors describe."""
        start = self.errors.find('{"')
        try:
            said = orjson.loads(self.errors[start:].splitlines()[0]) if start >= 0 else {}
        except orjson.JSONDecodeError:
            said = {}
        if isinstance(said, dict) and isinstance(said.get("error"), str):
            return MemberError(f"{self.member}: {shown(said['error'])}", do=shown(str(said.get("do", ""))))
        lines = self.errors.strip().splitlines()
        last = f": {shown(lines[-1].strip()).rstrip('.')}" if lines else ""
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

    async def run(self, arguments: Sequence[str], what: str) -> FarAnswer:
        """Runs ``rappd`` with these arguments there. Raises ``MemberError``; ``what`` says what failing means."""
        own = await asyncio.to_thread(own_place, self._own_home) if self._own_home else ""
        run = SshRun(self._member, self._destination)
        script = shell_scripts.run_rappd(run.mark, arguments, own_place=own)
        answer = bytearray()
        async with run.started(self._connections, script) as program:
            if await run.begun(program):
                answer += run.first
            while piece := await program.read():
                answer += piece[: _MOST_ANSWER - len(answer)]
            await run.ended(program, what)
        code, errors = run.finished(what)
        return FarAnswer(self._member, code, bytes(answer), errors)
