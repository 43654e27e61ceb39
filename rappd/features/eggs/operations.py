"""The owner's operations on eggs: packing, looking, planning, hatching, taking back, and eggs of other machines."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec.structs import replace

from envelopes import events
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import ConflictError, NotFoundError
from rappd.features.eggs.answers import EggHatched, EggLookedAt, EggPacked, EggPlanned, EggsMerged
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.features.eggs.links import link_to
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.resting_twins import RestingTwins, Tell
from rappd.features.eggs.uploaded_eggs import RECEIVED, receive, unsealed, whole_path
from rappd.features.operation import OWNER, Status, Text, Upload, operation
from rappd.store.store import Store
from rappd.tenants.tenants import Tenants
from twins.installer.rollback import RolledBackRow
from twins.work_progress import Cancellation, Progress, WorkCancelledError

_MOST_BYTES = 8 << 30
_PACE_SECONDS = 0.1
_OWNER = Caller("control", operator=True)


class EggOperations(RestingTwins):
    """``id`` and ``path`` say which egg, see ``WhichEgg``. An egg that is planned or hatched is first copied to ``waiting``."""

    def __init__(
        self,
        home_eggs: HomeEggs,
        tenants: Tenants,
        store: Store,
        dispatcher: Dispatcher,
        refresh_host: Tell,
        pack_for: Callable[[PackRequest, str, Progress], Awaitable[dict[str, Any]]],
    ) -> None:
        """``pack_for`` packs for a peer."""
        super().__init__(tenants, refresh_host)
        self.home_eggs, self.waiting = home_eggs, home_eggs.waiting
        self._store, self._dispatcher, self._pack_for = store, dispatcher, pack_for

    @operation("eggs.lay_down", "POST", "/eggs", right=OWNER)
    async def lay_down(
        self, file: Upload, name: str = "", signature: str = ""
    ) -> Annotated[Turn, EggLookedAt]:
        """Takes an egg in (the body is the file, `?name=` what it is called) and says what it is and would do.

        `?signature=` is the text of the `.sig` that came with it. It waits, unhatched, under `id`, for a day.
        With `Accept: text/event-stream` it tells how far the check is, once the egg is here.
        """
        waiting = self.waiting
        part = await asyncio.to_thread(waiting.part)
        try:
            do = "Hatch it with rappd egg hatch."
            digest = await receive(part, file.pieces, most=_MOST_BYTES, do=do, size=file.size)
            path = await asyncio.to_thread(waiting.keep, part, digest, name, hold=True)
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)

        async def work(progress: Progress, **_: Any) -> dict[str, Any]:
            try:
                await asyncio.to_thread(waiting.keep_signature, path, signature.encode())
                return {"file": name, **await self._look(path, progress)}
            except BaseException:
                await asyncio.to_thread(waiting.discard, path)
                raise

        return self._begun(work)

    @operation("eggs.look", "POST", "/eggs/look", right=OWNER)
    async def look(self, path: Text) -> Annotated[Turn, EggLookedAt]:
        """Looks at an egg on this machine (`path`) as at an uploaded one: `id` of the copy, what it is, and the plan."""
        file = whole_path(path)

        async def work(progress: Progress, **_: Any) -> dict[str, Any]:
            async with self.taken_in(file, "", hold=True) as kept:
                return {"file": file.name, **await self._look(kept, progress)}

        return self._begun(work)

    @operation("eggs.hatch", "POST", "/eggs/hatch", right=OWNER)
    async def hatch(
        self,
        id: str = "",
        path: str = "",
        overwrite: list[str] | None = None,
        approved: str = "",
        source: str = "",
        work: str = "",
    ) -> Annotated[Turn, EggHatched]:
        """Hatches an egg (`id` or `path`). `approved` is the digest of the plan that was said yes to.

        A plan that is another one by now is refused with `plan_changed`. With `Accept: text/event-stream` it tells
        how far each phase is before it answers. `work` is an id of your own, for `/eggs/cancel`.
        """
        how: dict[str, Any] = {"overwrite": overwrite or [], "approved": approved, "source": source[:200]}
        return self._begun(partial(self.hatch_egg, self.home_eggs.which(id, path), **how), work)

    @operation("eggs.cancel", "POST", "/eggs/cancel", right=OWNER, answers="cancelled")
    async def cancel(self, work: Text) -> Literal[True]:
        """Cancels the hatching or packing that was begun with the id `work`, and answers once it has ended.

        Nothing is written then. Once files are moved into place it is refused with `too_late`, and goes on; what was
        done meanwhile is refused with `conflict`.
        """
        if (turn := self._dispatcher.operation(work)) is None:
            raise NotFoundError("Nothing of that id is under way.", do="It may be done: rappd egg hatchings")
        turn.cancel()
        await turn.over_within(None)
        with contextlib.suppress(WorkCancelledError):
            turn.result()
            raise ConflictError(
                "Too late to cancel; it is done.", do="rappd egg hatchings, or look at the file"
            )
        return True

    @operation("eggs.pack", "POST", "/eggs/pack", right=OWNER)
    async def pack(
        self,
        caller: Caller,
        twin: str = "",
        form: str = "",
        item: str = "",
        into: str = "",
        exclude_memory: bool = False,
        allow: list[str] | None = None,
        overwrite: bool = False,
        to: str = "",
        work: str = "",
    ) -> Annotated[Turn, EggPacked]:
        """Packs a `twin`, or the brainstem; `form`, `item`, `into`, `exclude_memory`, `allow` as `rappd egg pack`.

        `to` seals it for that peer, and then there is no link. `work` is an id of your own, for `/eggs/cancel`.

        `link` is where the page that packed it lets the browser fetch the egg, for an hour: what is dragged out
        of the page is asked for without headers, so the page signs that path, and puts the signature into it, once for
        each drag. With `Accept: text/event-stream` it tells how far each phase is before it answers.
        """
        order = PackRequest(twin, form, item, into, exclude_memory, frozenset(allow or ()), overwrite)

        async def packing(progress: Progress, cancellation: Cancellation) -> dict[str, Any]:
            if to:
                return await self._pack_for(order, to, cancellation.watching(progress))
            done = await self.pack_order(order, cancellation.watching(progress))
            if into or not caller.key:
                return done
            return {**done, "link": link_to(Path(done["packed"]["path"]), caller.key)}

        return self._begun(packing, work)

    @operation("eggs.plan", "POST", "/eggs/plan", right=OWNER)
    async def plan(
        self, id: str = "", path: str = "", overwrite: list[str] | None = None, keep: bool = True
    ) -> Annotated[Turn, EggPlanned]:
        """The plan for hatching an egg (`id`, or `path` on this machine), with the given `overwrite`.

        A file given by its path is copied first; the answer's `id` is the copy that was planned. Without `keep` there
        is no copy, and no `id`. With `Accept: text/event-stream` it tells how far the check is.
        """
        egg = self.home_eggs.which(id, path)
        return self._begun(partial(self.plan_egg, egg, overwrite or [], keep=keep))

    @operation("eggs.hatch_text", "POST", "/eggs/hatch-text", right=OWNER)
    async def hatch_text(
        self, text: str, registry: Text, overwrite: list[str] | None = None, work: str = ""
    ) -> Annotated[Turn, EggHatched]:
        """Hatches the agents that a short `text` stands for, out of a clone of their `registry`. Events and `work` as of `/eggs/hatch`."""

        hatch = partial(self.home_eggs.hatch_text, text, registry, overwrite=overwrite or [])

        async def hatching(**how: Any) -> dict[str, Any]:
            return await self.to_the_end(self.alone(asyncio.to_thread(hatch, **how)))

        return self._begun(hatching, work)

    @operation("eggs.merge", "POST", "/eggs/merge", right=OWNER)
    async def merge(
        self,
        ours: Text,
        theirs: Text,
        into: Text,
        base: str = "",
        allow: list[str] | None = None,
        overwrite: bool = False,
        work: str = "",
    ) -> Annotated[Turn, EggsMerged]:
        """Makes one egg, `into`, of two that one being lived apart, `ours` and `theirs`; both came from `base`.

        All are whole paths. Events and `work` as of `/eggs/pack`.
        """

        merge = partial(
            self.home_eggs.merge, base, ours, theirs, into, allow=allow or [], overwrite=overwrite
        )
        return self._begun(partial(asyncio.to_thread, merge), work)

    @operation("eggs.rollback", "POST", "/eggs/rollback", right=OWNER, answers="rolled_back")
    async def rollback(self, receipt: Text, even_if_changed: bool = False) -> RolledBackRow:
        """Undoes a hatching by its `receipt`; `even_if_changed` puts aside what changed since.

        A twin that is running, and still lives here, is started again.
        """

        async def rollback() -> RolledBackRow:
            async with self.resting(await asyncio.to_thread(self.home_eggs.key_of_hatching, receipt)):
                return await asyncio.to_thread(
                    self.home_eggs.rollback, receipt, even_if_changed=even_if_changed
                )

        return await self.to_the_end(self.alone(rollback()))

    @operation("eggs.discard", "DELETE", "/eggs/{id}", right=OWNER)
    async def discard(self, id: str) -> Status:
        """Throws away an egg that waits here unhatched, unless another tab looks at it."""
        path = await asyncio.to_thread(self.waiting.find, id)
        await asyncio.to_thread(self.waiting.let_go, path)
        return {"status": "ok"}

    async def flush(self) -> None:
        """Makes what was said up to now readable for a packing."""
        await self._store.flush()

    async def pack_order(self, order: PackRequest, progress: Progress | None = None) -> dict[str, Any]:
        """Packs an egg that holds what was said up to now; the answer is that of ``EggPacking.pack``."""
        if order.into:
            order = replace(order, into=str(whole_path(order.into)))
        await self._store.flush()
        return await asyncio.to_thread(self.home_eggs.packing.pack, order, progress=progress)

    async def plan_egg(
        self,
        path: Path,
        overwrite: Iterable[str] = (),
        *,
        expect_sha256: str = "",
        keep: bool = True,
        **how: Any,
    ) -> dict[str, Any]:
        """The plan of an egg, as ``HomeEggs.plan``; with ``keep``, a copy of the egg waits here under ``id``."""
        plan = partial(self.home_eggs.plan, overwrite=overwrite, **how)
        if not keep:
            return await asyncio.to_thread(plan, path)
        async with self.taken_in(path, expect_sha256) as kept:
            planned = await asyncio.to_thread(plan, kept)
        return {"id": self.waiting.id_of(kept), **planned}

    async def hatch_egg(
        self,
        path: Path,
        *,
        source: str = "",
        expect_sha256: str = "",
        cancellation: Cancellation | None = None,
        **how: Any,
    ) -> dict[str, Any]:
        """Hatches an egg, as ``HomeEggs.hatch``; a running twin is stopped meanwhile and started again."""
        work = partial(self.home_eggs.hatch, source=source or path.name, cancellation=cancellation, **how)

        async def hatch() -> dict[str, Any]:
            if cancellation is not None:
                cancellation.check()  # others may have been first
            async with (
                self.taken_in(path, expect_sha256) as kept,
                self._all_resting(await asyncio.to_thread(self.home_eggs.keys_of, kept)),
            ):
                done: dict[str, Any] = await asyncio.to_thread(work, kept)
            await asyncio.to_thread(self.waiting.let_go, kept)
            if path.parent.parent == self._tenants.layout.eggs / RECEIVED:  # no list has to name it any more
                await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)
            return done

        return await self.to_the_end(self.alone(hatch()))

    async def _look(self, path: Path, progress: Progress) -> dict[str, Any]:
        """The description of an egg that waits here under its ``id``, as ``HomeEggs.look``."""
        found = await asyncio.to_thread(self.home_eggs.look, path, progress=progress)
        return {"id": self.waiting.id_of(path), **found}

    @asynccontextmanager
    async def taken_in(self, path: Path, expect_sha256: str, *, hold: bool = False) -> AsyncIterator[Path]:
        """A copy of an egg; when the block fails, it is gone again. One that waits already stays."""
        egg = await asyncio.to_thread(unsealed, path, self.home_eggs.home, self.waiting)
        kept = await asyncio.to_thread(self.waiting.take_in, egg, expect_sha256=expect_sha256, hold=hold)
        try:
            yield kept
        except BaseException:
            if kept != path:
                await asyncio.to_thread(self.waiting.let_go, kept)
            raise

    def _begun(self, work: Callable[..., Awaitable[dict[str, Any]]], id: str = "") -> Turn:
        """The turn of something that takes a while: ``work(progress=…, cancellation=…)``. With an ``id`` it can be cancelled."""
        cancellation = Cancellation()
        return self._dispatcher.operate(
            lambda emit: work(progress=_progress_to(emit), cancellation=cancellation),
            _OWNER,
            id=id[:100],
            stop=cancellation.cancel,
        )


def _progress_to(emit: events.Emit) -> Progress:
    """Tells of work on any thread, each phase as often as it is worth it and up to its end. Made on the event loop."""
    loop = asyncio.get_running_loop()
    reported: dict[str, float] = {}

    def moved(phase: str, done: int, whole: int) -> None:
        now = time.monotonic()
        if done >= whole or now - reported.get(phase, -_PACE_SECONDS) >= _PACE_SECONDS:
            reported[phase] = now
            with contextlib.suppress(RuntimeError):  # the daemon stops, and nobody listens any more
                loop.call_soon_threadsafe(emit, events.Progress(phase, done, whole))

    return moved
