"""All machines at once: how each of them is, and archiving twins on every one (RAPP v1 §18.13.6).

Each machine answers for itself, within a time limit; one that fails stops no other, and nothing is rolled back.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, TypeVar, cast

import msgspec

from envelopes.errors import ReportableError
from neighborhoods.errors import BadMemberStreamError
from neighborhoods.snapshot.member_transport import as_failure
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder, SnapshotRecord
from rappd.errors import UsageProblemError
from rappd.features.fleet.status import FleetRow, MemberStatus, status_row
from rappd.features.operation import OWNER, agent_operation, operation
from rappd.features.snapshots.operations import Roster, Variables
from rappd.version import __version__
from twins.errors import BadFilterError
from twins.lifecycle.lifecycle import FailedTwin, Mode, NamedTwin
from twins.lifecycle.selection import Selection

if TYPE_CHECKING:
    from neighborhoods.snapshot.roster import Member
    from rappd.features.snapshots.members import NeighborhoodMembers
    from rappd.features.twins.host_api import TwinHostApi
    from rappd.features.twins.operations import TwinOperations

_T = TypeVar("_T")

SELF = "self"
BY = "fleet:archive_estate"
STATUS_SECONDS = 20.0
ARCHIVE_SECONDS = 60.0
MOST_SECONDS = 600.0


class _Twin(msgspec.Struct):
    hash: str = ""
    name: str = ""
    kind: str = ""


class _TwinError(msgspec.Struct):
    name: str = ""
    error: str = ""
    hash: str = ""


class _Archived(msgspec.Struct):
    """One row of ``per_peer``, as another machine's rappd tells it. Other keys are dropped."""

    ok: bool
    archived_count: int = 0
    archived: list[_Twin] = []
    errors: list[_TwinError] = []
    would_archive_count: int = 0
    would_archive: list[_Twin] = []
    put_off: list[_Twin] = []
    error: str = ""


class _Answer(msgspec.Struct):
    per_peer: list[_Archived]


class ArchivedThere(TypedDict):
    """The end of archiving on one machine; ``error`` alone where it did not answer."""

    peer: str
    ok: bool
    archived_count: NotRequired[int]
    archived: NotRequired[list[NamedTwin]]
    errors: NotRequired[list[FailedTwin]]
    would_archive_count: NotRequired[int]
    would_archive: NotRequired[list[NamedTwin]]
    put_off: NotRequired[list[NamedTwin]]
    error: NotRequired[str]


class EstateArchived(TypedDict):
    """Archiving on every machine, this one first; in a dry run what it would be."""

    ok: bool
    action: Literal["archive_estate"]
    mode: Mode
    per_peer: list[ArchivedThere]


class FleetOperations:
    """The machines of one home's roster, and itself. Answers are JSON objects."""

    def __init__(
        self,
        home: Path,
        name: str,
        members: Roster,
        twins: TwinOperations,
        twin_api: TwinHostApi,
        *,
        is_running: bool,
    ) -> None:
        """``is_running``: a daemon runs on this home."""
        self._home = home
        self._name = name
        self._members = members
        self._twins, self._twin_api = twins, twin_api
        self._is_running = is_running
        self._snapshots = SnapshotFolder(home)

    @operation("fleet.status", "GET", "/fleet", right=OWNER, agents="fleet.status", answers="fleet")
    async def status(self, timeout: float = STATUS_SECONDS) -> list[FleetRow]:  # noqa: ASYNC109 - each machine's own
        """Every machine of the roster, asked now, this one first; `?timeout=` seconds for each."""
        return await self.ask(timeout)

    @operation("fleet.ask", "POST", "/fleet", right=OWNER, answers="fleet")
    async def ask(
        self,
        timeout: float = STATUS_SECONDS,  # noqa: ASYNC109 - each machine's own
        variables: Variables = None,
    ) -> list[FleetRow]:
        """Asks every machine of the roster, as `GET /fleet` does. `variables` are of the caller's environment (SSH agent)."""
        seconds = _checked(timeout)
        here = await self._members(variables)
        others = [one for one in here.members if not one.is_self]
        snapshots = await asyncio.to_thread(self._last_snapshots, [self._name, *(one.name for one in others)])
        asked = [MemberStatus(here, one) for one in others]
        work = [_limited(one.row(), one.late, seconds) for one in asked]
        rows = [await self._own_row(), *await asyncio.gather(*work)]
        for row, last in zip(rows, snapshots, strict=True):
            row["last_snapshot"] = (
                {"name": last.name, "taken_at": last.taken_at, "path": last.path}
                if last is not None
                else None
            )
        return rows

    @operation("fleet.archive_estate", "POST", "/fleet/archive_estate", right=OWNER)
    async def archive_estate(
        self,
        filter: dict[str, Any] | None = None,
        confirm: bool = False,
        reason: str = "",
        here: bool = False,
        timeout: float = ARCHIVE_SECONDS,  # noqa: ASYNC109 - each machine's own
        variables: Variables = None,
    ) -> EstateArchived:
        """Archives the twins that `filter` means on every machine; only says which, unless `confirm` is true.

        `reason` is kept. With `here`, on this machine alone. `timeout`: seconds for each of the others. `variables` are
        of the caller's environment: they count before the daemon's (SSH agent).

        Raises ``BadFilterError``.
        """
        selection, seconds = Selection.from_filter(filter), _checked(timeout)
        arguments = _arguments(selection, confirm=confirm, reason=reason)
        work: list[Coroutine[Any, Any, ArchivedThere]] = [self._archive_here(selection, confirm, reason)]
        if not here:
            members = await self._members(variables)
            work += [
                _limited(
                    _archive_there(members, one, arguments, confirm=confirm),
                    partial(_failed, one.name),
                    seconds,
                )
                for one in members.members
                if one.is_mine and not one.is_self
            ]
        rows = await asyncio.gather(*work)
        return {
            "ok": all(row["ok"] for row in rows),
            "action": "archive_estate",
            "mode": "execute" if confirm else "dry-run",
            "per_peer": rows,
        }

    @agent_operation("fleet.archive_estate")
    async def archive_estate_for_agents(
        self, filter: dict[str, Any] | None = None, confirm: bool = False
    ) -> EstateArchived:
        """``archive_estate`` in the time that an agent's call may take."""
        return await self.archive_estate(filter, confirm=confirm, timeout=STATUS_SECONDS)

    async def _own_row(self) -> FleetRow:
        there = next(path for path in (self._home, *self._home.parents) if path.exists())
        usage = await asyncio.to_thread(shutil.disk_usage, there)
        row = status_row(SELF, self._name, mine=True, reachable=True)
        row["health"] = "awake" if self._is_running else "stopped"
        row["rappd_version"], row["free_bytes"] = __version__, usage.free
        row["twins"] = len((await self._twins.listing())["twins"])
        return row

    def _last_snapshots(self, names: Sequence[str]) -> list[SnapshotRecord | None]:
        return [self._snapshots.last_restorable(name) for name in names]

    async def _archive_here(self, selection: Selection, confirm: bool, reason: str) -> ArchivedThere:
        try:
            found = await self._twin_api.archive_matching(selection, confirm=confirm, reason=reason, by=BY)
        except ReportableError as error:
            return _failed(SELF, error.with_advice())
        row: ArchivedThere = {
            "peer": SELF,
            "ok": not found["errors"],
            "archived_count": len(found["archived"]),
            "archived": [_who(one) for one in found["archived"]],
            "errors": found["errors"],
        }
        if not confirm:
            row["would_archive_count"] = len(found["would_archive"])
            row["would_archive"] = [_who(one) for one in found["would_archive"]]
        if found.get("put_off"):
            row["put_off"] = found["put_off"]
        return row


def _checked(seconds: float) -> float:
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageProblemError(
            f"`timeout` must be up to {MOST_SECONDS:g} seconds.", do='Send "timeout": 60.'
        )
    return seconds


async def _archive_there(
    here: NeighborhoodMembers, member: Member, arguments: Sequence[str], *, confirm: bool
) -> ArchivedThere:
    far = here.far_rappd(member)
    if far is None:
        return _failed(member.name, _no_rappd(member))
    try:
        answer = await far.run(arguments, "nothing was archived there")
        found = msgspec.convert(answer.json(), _Answer).per_peer
        if len(found) != 1:
            raise answer.refusal()
    except msgspec.ValidationError:
        wrong = BadMemberStreamError("its rappd gave an answer of another form.", do="Update rappd there.")
        return _failed(member.name, wrong.with_advice())
    except Exception as error:  # noqa: BLE001 - logged there; the other members are asked all the same
        return _failed(member.name, as_failure(member.name, error).with_advice())
    if found[0].error:
        return _failed(member.name, found[0].error)
    row = {"peer": member.name, **msgspec.to_builtins(found[0])}
    unsaid = ["error", *(("would_archive", "would_archive_count") if confirm else ())]
    if not found[0].put_off:
        unsaid.append("put_off")
    return cast(ArchivedThere, {key: value for key, value in row.items() if key not in unsaid})


def _no_rappd(member: Member) -> str:
    from rappd.features.snapshots.members import no_way

    if member.way == "rappd":
        return (
            "A paired machine archives for you over SSH alone; nothing was done there. "
            f'Write {{"name": "{member.name}", "ssh_host": "HOST"}} into peers.json.'
        )
    if member.way in ("folder", "github"):
        return "No rappd runs there, so nothing can be archived. Add ssh_host to its entry in peers.json."
    return f"It cannot be reached: {no_way(member)}."


def _arguments(selection: Selection, *, confirm: bool, reason: str) -> list[str]:
    """The command for the rappd of another machine. Raises ``BadFilterError`` for what no command line can say."""
    texts = [
        f"{clause}={one}"
        for clause, value in selection.as_filter().items()
        for one in (value if isinstance(value, list) else [value])
    ]
    if Selection.from_options(texts) != selection:
        raise BadFilterError(
            "The filter has a kind with commas or outer spaces, which other machines cannot be asked for.",
            do="Leave that kind out.",
        )
    words = ["fleet", "archive_estate", "--here", "--json", *(f"--filter={text}" for text in texts)]
    return [*words, *([f"--reason={reason}"] if reason else []), *(["--confirm"] if confirm else [])]


async def _limited(work: Coroutine[Any, Any, _T], late: Callable[[str], _T], seconds: float) -> _T:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return late(f"no answer within {seconds:g} s")


def _failed(peer: str, error: str) -> ArchivedThere:
    return {"peer": peer, "ok": False, "error": error}


def _who(twin: NamedTwin) -> NamedTwin:
    return {"hash": twin["hash"], "name": twin["name"], "kind": twin["kind"]}
