"""Snapshots of all machines: one piece of work at a time, which outlives the connection that began it."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, cast

from envelopes.events import Emit
from neighborhoods.errors import SnapshotRunningError
from neighborhoods.snapshot.roster import MemberView
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.eggs.answers import EggsCompared
from rappd.features.eggs.uploaded_eggs import whole_path
from rappd.features.operation import OWNER, Status, Text, operation
from rappd.features.snapshots.answers import (
    MemberProbed,
    RestorePlanned,
    SnapshotDrilled,
    SnapshotOverview,
    SnapshotRestored,
    Snapshots,
    SnapshotTaken,
)
from rappd.features.snapshots.progress import (
    DRILL,
    RESTORE,
    SNAPSHOT,
    SnapshotWork,
    UnaskedToken,
    WorkView,
    ended_line,
)
from rappd.features.snapshots.restoring import OpenRestore, OpenRestores, SnapshotRestorer
from rappd.features.snapshots.schedule import Schedule
from rappd.features.snapshots.taking import SnapshotTaker
from rappd.notices.notices import Notices
from twins.installer.errors import PlanChangedError
from twins.work_progress import WorkCancelledError

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import SnapshotResult
    from neighborhoods.snapshot.manifest import SnapshotOptions
    from neighborhoods.snapshot.plan import RestoreOptions
    from rappd.features.snapshots.members import NeighborhoodMembers

log = logging.getLogger(__name__)

T = TypeVar("T")
_OWNER = Caller("control", operator=True)

Variables = dict[str, str] | None
"""Variables of the caller's environment; the daemon's count where it has none."""


class Roster(Protocol):
    """The machines as they are known now."""

    async def __call__(self, variables: Variables = None) -> NeighborhoodMembers: ...


_CHOICES = ("include_archived", "include_twin_workspaces", "include_stopped_twins", "include_brainstem_core",
            "include_brainstem_data", "include_global_state", "max_twin_bytes")  # fmt: skip
"""Options of a snapshot that a request may set; the lists of files that travel stay as published."""


class SnapshotOperations:
    """``work`` of an operation is an id of its caller's for it; options are those of a manifest, or of a plan."""

    def __init__(
        self,
        taker: SnapshotTaker,
        restorer: SnapshotRestorer,
        folder: SnapshotFolder,
        read_members: Roster,
        dispatcher: Dispatcher,
        notices: Notices,
        *,
        flush: Callable[[], Awaitable[object]],
        open_calls: Callable[[], Awaitable[int]],
        schedule: Callable[[], Schedule],
    ) -> None:
        """``flush`` makes what was said up to now readable, ``open_calls`` counts those that came back with a snapshot.

        ``schedule`` gives the schedule as screens show it.
        """
        self.folder, self.read_members, self.open_restores = folder, read_members, OpenRestores()
        self._taker, self._restorer = taker, restorer
        self._dispatcher, self._notices = dispatcher, notices
        self._flush, self._open_calls, self._schedule = flush, open_calls, schedule
        self._work: SnapshotWork | None = None
        self._watched = False

    async def close(self) -> None:
        """Cancels a snapshot, whose finished parts stay; a restore comes to its end."""
        if self._work is not None and (task := self._work.task) is not None:
            if self._work.can_cancel:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def under_way(self) -> WorkView | None:
        """The state of the work that is under way."""
        return self._work.as_json() if self._work is not None else None

    async def looks(self) -> object:
        """Another value whenever a screen would show other snapshots, other work or another schedule."""
        work = self._work.id if self._work is not None else ""
        return work, await asyncio.to_thread(self.folder.version), repr(self._schedule())

    @operation("snapshots.overview", "GET", "/neighborhood", right=OWNER)
    async def overview(self) -> SnapshotOverview:
        """The machines, the snapshots, the newest first, their `schedule`, and the `work` that is under way. Asks no machine."""
        return {"members": await self.members(), **await self.listing(), "work": self.under_way()}

    @operation("snapshots.members", "GET", "/neighborhood/members", right=OWNER, answers="members")
    async def members(self) -> list[MemberView]:
        """The machines: paired ones, found ones, and those that `peers.json` names. Asks none."""
        return [member.as_json() for member in (await self.read_members()).members]

    @operation(
        "snapshots.list", "GET", "/neighborhood/snapshots", right=OWNER, agents="neighborhood.snapshots"
    )
    async def listing(self) -> Snapshots:
        """Every snapshot that was taken here, the newest first, and their `schedule`."""
        records = await asyncio.to_thread(self.folder.listing)
        rows = await asyncio.to_thread(lambda: [record.as_json() for record in records])
        return {"snapshots": rows, "schedule": self._schedule()["schedule"]}

    @operation(
        "snapshots.work",
        "GET",
        "/neighborhood/work",
        right=OWNER,
        agents="neighborhood.status",
        answers="work",
    )
    async def work(self) -> WorkView | None:
        """The snapshot, drill or restore that is under way, and how far it is; else null."""
        return self.under_way()

    @operation("snapshots.variables", "GET", "/neighborhood/variables", right=OWNER, answers="variables")
    async def variables(self) -> list[str]:
        """The names of the variables that reading the machines looks at: what may be sent as `variables` of a snapshot."""
        return (await self.read_members()).variables()

    @operation(
        "snapshots.unasked_tokens", "POST", "/neighborhood/unasked_tokens", right=OWNER, answers="unasked"
    )
    async def unasked_tokens(
        self, machines: list[str] | None = None, variables: Variables = None
    ) -> list[UnaskedToken]:
        """The variables with tokens that `peers.json` sends to a host for these `machines`, and that nobody allowed yet."""
        members = await self.read_members(variables)
        return await asyncio.to_thread(members.unasked_tokens, machines or ())

    @operation("snapshots.probe", "POST", "/neighborhood/probe", right=OWNER, answers="members")
    async def probe(
        self, machines: list[str] | None = None, variables: Variables = None
    ) -> list[MemberProbed]:
        """Asks these `machines`, every one without any, whether a snapshot can read it now, and which twins live there."""
        return await (await self.read_members(variables)).probe(machines or ())

    @operation("snapshots.diff", "POST", "/neighborhood/diff", right=OWNER)
    async def diff(self, before: Text, after: Text) -> EggsCompared:
        """The differences between two snapshots, `before` and `after`, each by its name or path."""
        from neighborhoods.snapshot.diff import compare_snapshots

        paths = await self._find(before), await self._find(after)
        return cast(EggsCompared, (await asyncio.to_thread(compare_snapshots, *paths)).as_json())

    @operation("snapshots.take", "POST", "/neighborhood/snapshot", right=OWNER)
    async def take(
        self,
        name: str = "",
        options: dict[str, Any] | None = None,
        only: list[str] | None = None,
        into: str = "",
        allow: list[str] | None = None,
        overwrite: bool = False,
        drill: bool = True,
        variables: Variables = None,
        work: str = "",
    ) -> Annotated[Turn, SnapshotTaken]:
        """Takes a snapshot of all machines, called `name`, and drills it. `options` as in its manifest.

        `only`: of the other machines, these. `into` is the path of its file, which `overwrite` replaces; without it,
        it lies among the home's eggs. `allow` lets likely secrets travel, by their ids. `variables` are of the caller's
        environment: they count before the daemon's (SSH agent, access keys). With `Accept: text/event-stream`
        it tells how far each machine is, `{"type": "work", "work": …}`, before it answers. `work` is an id of your own,
        for `/neighborhood/cancel`. It goes on when the caller disconnects.
        """
        chosen = snapshot_options(options or {})
        target = whole_path(into) if into else None

        async def run(work: SnapshotWork) -> dict[str, Any]:
            await self._flush()
            members = await self.read_members(variables)
            done = await self._taker.snapshot(
                members.to_read(only or ()),
                target=target,
                name=name,
                options=chosen,
                allow=allow or (),
                overwrite=overwrite,
                drill=drill,
                tell=work.tell,
            )
            return {**done.as_json(), "no_way": {} if only else members.without_a_way()}

        return self._begin(SNAPSHOT, run, work)

    async def take_scheduled(self) -> SnapshotResult:
        """Takes the snapshot of a schedule; screens show it like one that its owner began.

        Raises ``SnapshotRunningError``, ``WorkCancelledError``, and what makes it fail.
        """
        results: list[SnapshotResult] = []

        async def run(work: SnapshotWork) -> dict[str, Any]:
            await self._flush()
            peers = (await self.read_members()).to_read()
            results.append(await self._taker.snapshot(peers, scheduled=True, tell=work.tell))
            return results[0].as_json()

        await self._begin(SNAPSHOT, run).reply()
        return results[0]

    @operation("snapshots.drill", "POST", "/neighborhood/drill", right=OWNER)
    async def drill(self, snapshot: Text, work: str = "") -> Annotated[Turn, SnapshotDrilled]:
        """Hatches a `snapshot` (name or path) into a scratch folder and compares every file. Events as of a snapshot."""
        path = await self._find(snapshot)

        async def run(_: SnapshotWork) -> dict[str, Any]:
            return {"snapshot": (await self._taker.drill(path)).as_json()}

        return self._begin(DRILL, run, work)

    @operation("snapshots.plan", "POST", "/neighborhood/plan", right=OWNER)
    async def plan(
        self, snapshot: Text, options: dict[str, Any] | None = None, variables: Variables = None, id: str = ""
    ) -> RestorePlanned:
        """The plan for bringing a `snapshot` (name or path) back with these `options`; writes nothing anywhere.

        With an `id` of your own it waits under it for a yes or no, on your screen or on a phone that may approve, until
        it is answered, let go, or a day old; the plan for other options takes its place.
        """
        chosen = restore_options(options or {})
        members = await self.read_members(variables)
        path = await self._find(snapshot)
        found = await self._restorer.plan(path, chosen, members.way_to)
        if id and not found["plan"]["nothing_to_do"]:
            self.open_restores.hold(id[:100], path, options or {}, found["plan"]["digest"])
        elif id:
            self.open_restores.let_go(id[:100])
        return found

    @operation("snapshots.let_go", "DELETE", "/neighborhood/plan/{id}", right=OWNER)
    async def let_go(self, id: str) -> Status:
        """The plan that waits under `id` is not read any more."""
        self.open_restores.let_go(id)
        return {"status": "ok"}

    @operation("snapshots.restore", "POST", "/neighborhood/restore", right=OWNER)
    async def restore(
        self,
        snapshot: Text,
        approved: Text,
        options: dict[str, Any] | None = None,
        variables: Variables = None,
        work: str = "",
        id: str = "",
    ) -> Annotated[Turn, SnapshotRestored]:
        """Brings a `snapshot` back, here and on the other machines. Events as of a snapshot.

        `approved`, which must be there, is the digest of the plan for these `options`; another one by now is
        refused with `plan_changed`, and nothing is written. `id` is that of a plan that waits: one that was answered
        meanwhile is refused with `not_found`.
        """
        chosen, path = restore_options(options or {}), await self._find(snapshot)
        answered = self.open_restores.take(id[:100]) if id else None

        async def run(work: SnapshotWork) -> dict[str, Any]:
            way_to = (await self.read_members(variables)).way_to
            try:
                done = await self._restorer.hatch(path, chosen, way_to, approved=approved, tell=work.tell)
            except (PlanChangedError, SnapshotRunningError):
                self._put_back(answered)
                raise
            return {**done, "open_calls": await self._tell_open_calls()}

        try:
            return self._begin(RESTORE, run, work)
        except SnapshotRunningError:
            self._put_back(answered)
            raise

    def _put_back(self, answered: OpenRestore | None) -> None:
        """Nothing was written: what was answered waits again."""
        if answered is not None:
            self.open_restores.put_back(answered)

    @operation("snapshots.cancel", "POST", "/neighborhood/cancel", right=OWNER, answers="cancelled")
    async def cancel(self, work: Text) -> Literal[True]:
        """Cancels the snapshot that was begun with the id `work`, and answers once it has ended.

        Machines that were read already are not read again by the next one. Once its egg is written it is refused.
        """
        begun = self._work
        if begun is None or begun.id != work or begun.turn is None:
            raise NotFoundError("Nothing of that id is under way.", do="rappd neighborhood snapshots")
        begun.turn.cancel()
        await begun.turn.over_within(None)
        return True

    async def so_far(self, turn: Turn, seconds: float) -> dict[str, Any] | None:
        """The result of a work; None when it still lasts after ``seconds``: then its end becomes a notice.

        Raises what the work raises, ``WorkCancelledError`` when it was cancelled.
        """
        await turn.over_within(seconds)
        if not turn.is_over:
            self._watched = True
            return None
        return turn.result().data

    async def _find(self, snapshot: str) -> Path:
        return await asyncio.to_thread(self.folder.find, snapshot)

    async def _tell_open_calls(self) -> int:
        """Nothing of a snapshot is sent by itself: its owner learns of the calls that it holds."""
        found = await self._open_calls()
        if found:
            calls = "1 open call" if found == 1 else f"{found} open calls"
            self._notices.add(
                f"{calls} came back with a snapshot; nothing was sent.",
                "rappd outbox list",
                kind="call",
                key="open-calls",
            )
        return found

    def _begin(
        self, kind: str, run: Callable[[SnapshotWork], Coroutine[Any, Any, dict[str, Any]]], id: str = ""
    ) -> Turn:
        if self._work is not None:
            raise SnapshotRunningError(
                f"Another {self._work.kind} of this home is under way.",
                do="Wait until it is done, or cancel it.",
            )
        self._work = begun = SnapshotWork(id[:100] or uuid.uuid4().hex, kind)
        self._watched = False
        task = begun.task = asyncio.create_task(run(begun), name=f"neighborhood {kind}")
        task.add_done_callback(partial(self._ended, begun))

        async def to_its_end(_: Emit) -> dict[str, Any]:
            """Ends with the work, which goes on where nobody waits for it any more."""
            await asyncio.wait({task})
            if task.cancelled():
                raise WorkCancelledError
            return task.result()

        def stop() -> None:
            begun.check_cancel()
            task.cancel()

        turn = begun.turn = self._dispatcher.operate(to_its_end, _OWNER, id=begun.id, stop=stop)
        return turn

    def _ended(self, work: SnapshotWork, task: asyncio.Task[dict[str, Any]]) -> None:
        self._work = None
        if task.cancelled():
            log.info("neighborhood %s: cancelled", work.kind)
            return
        error = task.exception()
        if error is not None:
            log.info("neighborhood %s: %s", work.kind, error)
        if self._watched:  # somebody was told to wait, and is not there any more
            what = f"The {work.kind} failed: {error}" if error is not None else ended_line(task.result())
            self._notices.add(what, "rappd neighborhood snapshots", key="neighborhood:work")


def snapshot_options(given: dict[str, Any]) -> SnapshotOptions:
    """The options of a snapshot from a request. Raises ``UsageProblemError``."""
    from neighborhoods.snapshot.manifest import SnapshotOptions

    return _converted({key: given[key] for key in _CHOICES if given.get(key) is not None}, SnapshotOptions)


def restore_options(given: dict[str, Any]) -> RestoreOptions:
    """The options of a restore from a request. Raises ``UsageProblemError``."""
    from neighborhoods.snapshot.plan import RestoreOptions

    return _converted(given, RestoreOptions)


def _converted(given: dict[str, Any], kind: type[T]) -> T:
    import msgspec

    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise UsageProblemError(f"These options cannot be read: {error}.", do="") from error
