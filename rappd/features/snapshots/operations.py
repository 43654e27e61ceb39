"""Snapshots while the daemon runs: one piece of work at a time, which outlives the connection that began it."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from envelopes.events import Emit
from neighborhoods.snapshot.errors import SnapshotRunningError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.waiting import whole_path
from rappd.features.operation import OWNER, Text, operation
from rappd.features.snapshots.home_snapshots import NeighborhoodSnapshots
from rappd.features.snapshots.work import DRILL, RESTORE, SNAPSHOT, SnapshotWork
from rappd.notices.notices import Notices
from rappd.tenants.tenants import Tenants
from twins.work_progress import WorkCancelledError

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import SnapshotResult
    from neighborhoods.snapshot.hatch import LocalResult, RestoreHooks
    from neighborhoods.snapshot.manifest import SnapshotOptions
    from neighborhoods.snapshot.plan import RestoreOptions
    from rappd.features.snapshots.members import NeighborhoodMembers

log = logging.getLogger(__name__)

T = TypeVar("T")
_OWNER = Caller("control", operator=True)

Roster = Callable[[], Awaitable["NeighborhoodMembers"]]
"""The machines as they are known now."""

_CHOICES = ("include_archived", "include_twin_workspaces", "include_stopped_twins", "include_brainstem_core",
            "include_brainstem_data", "include_global_state", "max_twin_bytes")  # fmt: skip
"""Options of a snapshot that a request may set; the lists of files that travel stay as published."""


class DaemonSnapshots:
    """``NeighborhoodSnapshots`` for the event loop, around twins that are running."""

    def __init__(
        self,
        verbs: NeighborhoodSnapshots,
        eggs: EggOperations,
        tenants: Tenants,
        roster: Roster,
        dispatcher: Dispatcher,
        notices: Notices,
        open_calls: Callable[[], Awaitable[int]],
        schedule: Callable[[], dict[str, Any]],
    ) -> None:
        """``open_calls`` counts those that came back with a snapshot; ``schedule`` gives it as screens show it."""
        self.verbs = verbs
        self.roster = roster
        self._eggs = eggs
        self._tenants, self._dispatcher = tenants, dispatcher
        self._notices, self._open_calls, self._schedule = notices, open_calls, schedule
        self._work: SnapshotWork | None = None
        self._watched = False

    async def close(self) -> None:
        """Cancels a snapshot, whose finished parts stay; a restore comes to its end."""
        if self._work is not None and (task := self._work.task) is not None:
            if self._work.can_cancel:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def under_way(self) -> dict[str, Any] | None:
        """The state of the work that is under way."""
        return self._work.as_json() if self._work is not None else None

    async def looks(self) -> object:
        """Another value whenever a screen would show other snapshots, other work or another schedule."""
        work = self._work.id if self._work is not None else ""
        return work, await asyncio.to_thread(self.verbs.folder.version), repr(self._schedule())

    @operation("snapshots.work", "GET", "/neighborhood/work", right=OWNER)
    async def work(self) -> dict[str, Any]:
        """The snapshot, drill or restore that is under way, and how far it is; else null."""
        return {"work": self.under_way()}

    @operation("snapshots.diff", "POST", "/neighborhood/diff", right=OWNER)
    async def diff(self, before: Text, after: Text) -> dict[str, Any]:
        """The differences between two snapshots, `before` and `after`, each by its name or path."""
        return (await asyncio.to_thread(self.verbs.diff, before, after)).as_json()

    @operation("snapshots.overview", "GET", "/neighborhood", right=OWNER)
    async def overview(self) -> dict[str, Any]:
        """The machines, the snapshots, the newest first, their `schedule`, and the `work` that is under way. Asks no machine."""
        roster = await self.roster()
        found = await asyncio.to_thread(self.verbs.snapshots)
        rows = [member.as_json() for member in roster.roster]
        return {"members": rows, **found, "work": self.under_way(), **self._schedule()}

    @operation("snapshots.probe", "POST", "/neighborhood/probe", right=OWNER)
    async def probe(self) -> dict[str, Any]:
        """Asks every machine whether a snapshot can read it now, and which twins live there."""
        return await (await self.roster()).probe()

    async def begin_snapshot(self, given: dict[str, Any], *, name: str = "", id: str = "") -> SnapshotWork:
        """Begins a snapshot of all machines. Raises ``SnapshotRunningError``, ``UsageProblemError``."""
        options = snapshot_options(given)

        async def run(work: SnapshotWork) -> dict[str, Any]:
            await self._eggs.flush()
            peers = (await self.roster()).to_read()
            done = await self.verbs.snapshot(peers, name=name, options=options, tell=work.tell)
            return done.as_json()

        return self._begin(SNAPSHOT, run, id=id)

    async def take_scheduled(self) -> SnapshotResult:
        """Takes the snapshot of a schedule; screens show it like one that its owner began.

        Raises ``SnapshotRunningError``, ``WorkCancelledError``, and what makes it fail.
        """
        taken: list[SnapshotResult] = []

        async def run(work: SnapshotWork) -> dict[str, Any]:
            peers = (await self.roster()).to_read()
            taken.append(await self.verbs.snapshot(peers, scheduled=True, tell=work.tell))
            return taken[0].as_json()

        await self.wait(self._begin(SNAPSHOT, run))
        return taken[0]

    async def begin_drill(self, snapshot: str, *, id: str = "") -> SnapshotWork:
        """Begins a drill of a snapshot that is there. Raises ``NoSuchSnapshotError``."""
        await asyncio.to_thread(self.verbs.folder.find, snapshot)

        async def run(work: SnapshotWork) -> dict[str, Any]:
            return {"snapshot": (await self.verbs.drill(snapshot)).as_json()}

        return self._begin(DRILL, run, id=id)

    @operation("snapshots.plan", "POST", "/neighborhood/plan", right=OWNER)
    async def plan(self, snapshot: Text, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """The plan for bringing a `snapshot` (name or path) back with these `options`; writes nothing anywhere."""
        chosen = restore_options(options or {})
        path = await asyncio.to_thread(self.verbs.folder.find, snapshot)
        return await self.verbs.plan(path, chosen, (await self.roster()).way_to)

    async def begin_restore(
        self,
        snapshot: str,
        given: dict[str, Any],
        *,
        approved: str,
        id: str = "",
    ) -> SnapshotWork:
        """Begins to bring a snapshot back, here and elsewhere. ``approved``: digest of the plan that was said yes to."""
        options = restore_options(given)
        path = await asyncio.to_thread(self.verbs.folder.find, snapshot)

        async def run(work: SnapshotWork) -> dict[str, Any]:
            return await self.verbs.hatch(
                path,
                options,
                (await self.roster()).way_to,
                approved=approved,
                local=partial(self._local_part, path, options, work.tell),
                tell=work.tell,
            )

        return self._begin(RESTORE, run, id=id)

    @operation("snapshots.cancel", "POST", "/neighborhood/cancel", right=OWNER)
    async def cancel(self, work: Text) -> dict[str, Any]:
        """Cancels the snapshot that was begun with the id `work`, and answers once it has ended.

        Machines that were read already are not read again by the next one. Once its egg is written it is refused.
        """
        begun = self._work
        if begun is None or begun.id != work or begun.turn is None:
            raise NotFoundError("Nothing of that id is under way.", do="rappd neighborhood snapshots")
        begun.turn.cancel()
        await begun.turn.over_within(None)
        return {"cancelled": True}

    async def wait(self, work: SnapshotWork, seconds: float | None = None) -> dict[str, Any] | None:
        """The result of a work; None when it still lasts after ``seconds``. Then its end becomes a notice.

        Raises what the work raises, ``WorkCancelledError`` when it was cancelled.
        """
        assert work.turn is not None
        await work.turn.over_within(seconds)
        if not work.turn.is_over:
            self._watched = True
            return None
        return work.turn.result().data

    @operation("snapshots.hatch_local", "POST", "/neighborhood/hatch", right=OWNER)
    async def hatch_local(
        self, path: Text, approved: Text, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Hatches this machine's part of the snapshot at `path`; twins that are running rest meanwhile.

        `options` as in its plan. `approved`, which must be there, is the digest of that part of the plan; another
        one by now is refused with `plan_changed`. Goes on to its end when the caller disconnects.
        """
        chosen = restore_options(options or {})
        work = self.verbs.hatch_local(whole_path(path), chosen, self._hooks(), approved=approved)
        done: dict[str, Any] = await self._eggs.to_the_end(self._eggs.alone(work))
        return done | {"open_calls": await self._tell_open_calls()}

    async def _local_part(
        self, path: Path, options: RestoreOptions, tell: Callable[[dict[str, Any]], None], digest: str
    ) -> LocalResult:
        import msgspec

        from neighborhoods.snapshot.hatch import LocalResult

        work = self.verbs.hatch_local(path, options, self._hooks(), approved=digest, tell=tell)
        done = msgspec.convert((await self._eggs.alone(work))["hatched"], LocalResult)
        await self._tell_open_calls()
        return done

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

    def _hooks(self) -> RestoreHooks:
        from neighborhoods.snapshot.hatch import RestoreHooks

        async def boot(key: str, port: int | None) -> None:
            await self._tenants.boot(key)

        return RestoreHooks(self._eggs.resting, boot)

    def _begin(
        self,
        kind: str,
        run: Callable[[SnapshotWork], Coroutine[Any, Any, dict[str, Any]]],
        *,
        id: str = "",
    ) -> SnapshotWork:
        if self._work is not None:
            raise SnapshotRunningError(
                f"A {self._work.kind} is under way.", do="Wait until it is done, or cancel it."
            )
        self._work = begun = SnapshotWork(id or uuid.uuid4().hex, kind)
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

        begun.turn = self._dispatcher.operate(to_its_end, _OWNER, id=begun.id, stop=stop)
        return begun

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


async def _none() -> int:
    return 0


def ended_line(done: dict[str, Any]) -> str:
    """One line about the result of a snapshot, drill or restore."""
    if (restored := done.get("hatched")) is not None:
        failed = f"; {len(restored['failed'])} failed: {restored['failed'][0]}" if restored["failed"] else ""
        where = " as a simulation" if restored["target"] == "local-simulate" else ""
        return f"{restored['egg']['name']} is restored{where}{failed}."
    row = done["snapshot"]
    absent = [*row["missing"], *row["left_behind"]]
    lacks = f", without {', '.join(absent)}" if absent else ""
    if row["drill"] is None:
        state = "not tried"
    else:
        state = "restorable" if row["restorable"] else f"not restorable: {row['drill']['problem']}"
    held = f"{_many(row['machines'], 'machine')} and {_many(row['twins'], 'twin')}"
    return f"The snapshot {row['name']} holds {held}{lacks}; it is {state}."


def _many(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


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
