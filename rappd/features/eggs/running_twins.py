"""Eggs while the daemon runs: what is packed or hatched sleeps or is told, and other turns go on."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from envelopes.errors import ReportableError
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.eggs.download import fetch_egg
from rappd.features.eggs.home_eggs import EggOperations
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.waiting import UploadedEggs, unsealed
from rappd.store.store import Store
from rappd.tenants.tenants import Tenants
from twins.eggs.parsed_egg import Destination
from twins.work_progress import Cancellation, Progress

log = logging.getLogger(__name__)

RECEIVED = ".arrived"
"""The folder, among the home's eggs, of those that came from elsewhere and wait."""

_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # bytes; PATH_MAX and NAME_MAX of limits.h

Tell = Callable[[], Awaitable[None]]
"""Reads the host's agent files again and notifies watchers."""


class DaemonEggOperations:
    """``EggOperations`` for the event loop: each verb runs in a thread, around twins that are running.

    An egg that is planned or hatched is first copied to ``waiting``. A hatching goes on to its end when
    its caller disconnects: it may be an agent of the very twin that has to stop for it.
    """

    def __init__(self, verbs: EggOperations, tenants: Tenants, store: Store, refresh_host: Tell) -> None:
        self.verbs = verbs
        self.waiting = UploadedEggs(tenants.layout.eggs / ".waiting")
        self._received = tenants.layout.eggs / RECEIVED
        self._tenants = tenants
        self._store = store
        self._refresh_host = refresh_host
        self._hatching = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Returns when what is under way has come to its end."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def flush(self) -> None:
        """Makes what was said up to now readable for a packing."""
        await self._store.flush()

    async def pack(self, order: PackRequest, progress: Progress | None = None) -> dict[str, Any]:
        """See ``EggOperations.pack``; what was said up to now is in it."""
        if order.into:
            order = replace(order, into=str(whole_path(order.into)))
        await self._store.flush()
        return await asyncio.to_thread(self.verbs.pack, order, progress=progress)

    async def look(self, path: Path, progress: Progress | None = None) -> dict[str, Any]:
        """See ``EggOperations.look``, of an egg that waits here under its ``id``."""
        found = await asyncio.to_thread(self.verbs.look, path, progress=progress)
        return {"id": self.waiting.id_of(path), **found}

    async def look_at_copy(self, path: Path, progress: Progress | None = None) -> dict[str, Any]:
        """``look`` at a copy of any egg on this machine; ``id`` names the copy, which waits."""
        async with self._taken_in(path, "", hold=True) as kept:
            return await self.look(kept, progress)

    async def plan(
        self, path: Path, overwrite: Iterable[str] = (), *, expect_sha256: str = ""
    ) -> dict[str, Any]:
        """See ``EggOperations.plan``; ``id`` names the copy that was planned, and waits."""
        async with self._taken_in(path, expect_sha256) as kept:
            planned = await asyncio.to_thread(self.verbs.plan, kept, overwrite=overwrite)
        return {"id": self.waiting.id_of(kept), **planned}

    async def hatch(
        self,
        path: Path,
        *,
        overwrite: Iterable[str] = (),
        approved: str = "",
        source: str = "",
        expect_sha256: str = "",
        progress: Progress | None = None,
        cancellation: Cancellation | None = None,
    ) -> dict[str, Any]:
        """See ``EggOperations.hatch``; a twin that is running is stopped meanwhile and started again."""

        async def hatch() -> dict[str, Any]:
            if cancellation is not None:
                cancellation.check()  # others may have been first
            async with (
                self._taken_in(path, expect_sha256) as kept,
                self._all_resting(await asyncio.to_thread(self.verbs.keys_of, kept)),
            ):
                done = await asyncio.to_thread(
                    self.verbs.hatch,
                    kept,
                    overwrite=overwrite,
                    approved=approved,
                    source=source or path.name,
                    progress=progress,
                    cancellation=cancellation,
                )
            await asyncio.to_thread(self.waiting.let_go, kept)
            if path.parent.parent == self._received:  # no list has to name it any more
                await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)
            return done

        return await self.to_the_end(self.alone(hatch()))

    async def rollback(self, receipt: str, *, even_if_changed: bool = False) -> dict[str, Any]:
        """See ``EggOperations.rollback``; a twin that is running, and still lives here, is started again."""

        async def rollback() -> dict[str, Any]:
            async with self.resting(await asyncio.to_thread(self.verbs.key_of_hatching, receipt)):
                return await asyncio.to_thread(self.verbs.rollback, receipt, even_if_changed=even_if_changed)

        return await self.to_the_end(self.alone(rollback()))

    async def perform(self, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A verb by its name, for agents: ``eggs.<verb>`` of ``utils.host``."""
        text = {key: value for key, value in given.items() if isinstance(value, str)}
        match verb:
            case "pack":
                return await self.pack(
                    PackRequest(
                        twin=text.get("twin", ""),
                        form=text.get("form", ""),
                        item=text.get("item", ""),
                        into=text.get("into", ""),
                        exclude_memory=given.get("exclude_memory") is True,
                    )
                )
            case "receipts":
                return await asyncio.to_thread(self.verbs.receipts)
            case "rollback":
                return await self._rollback_once_answered(text.get("receipt", ""))
            case "inspect" | "plan" | "hatch":
                return await self._with_egg(verb, text, given.get("overwrite"))
        raise NotFoundError(f'There is no operation "eggs.{verb[:40]}".')

    async def _with_egg(self, verb: str, text: Mapping[str, str], overwrite: Any) -> dict[str, Any]:
        expected = text.get("expect_sha256", "")
        url = text.get("url", "")
        chosen = [one for one in overwrite if isinstance(one, str)] if isinstance(overwrite, list) else []
        if url:
            path = await fetch_egg(url, self.waiting, expect_sha256=expected)
        else:
            path = whole_path(text.get("path", ""))
        try:
            if verb == "inspect":
                return await asyncio.to_thread(self.verbs.inspect, path)
            if verb == "plan":
                return await self.plan(path, chosen, expect_sha256=expected)
            return await self._hatch_once_answered(
                path,
                overwrite=chosen,
                approved=text.get("approved", ""),
                source=text.get("source") or url or path.name,
                expect_sha256=expected,
            )
        except ReportableError:
            if url:
                await asyncio.to_thread(self.waiting.let_go, path)
            raise

    async def _hatch_once_answered(self, path: Path, *, expect_sha256: str, **how: Any) -> dict[str, Any]:
        """``hatch``; but it may be an agent of the very twin that asks, and a twin that is talking answers first.

        Then nothing is known of a receipt yet.
        """
        async with self._taken_in(path, expect_sha256) as kept:
            keys = await asyncio.to_thread(self.verbs.keys_of, kept)
            key = next(filter(self._tenants.is_answering, keys), "")
            if not key:
                return await self.hatch(kept, **how)
            planned = await asyncio.to_thread(self.verbs.plan, kept, overwrite=how["overwrite"])
        name = planned["plan"]["egg"]["name"]
        what = f"the hatching of {name} ({self.waiting.id_of(kept)[:12]})"
        self._tenants.once_answered(key, what, partial(self.hatch, kept, **how))
        return {
            "hatched": {"key": key, "name": name, "receipt": ""},
            "message": f"{name} hatches as soon as it has answered. Then: rappd egg hatchings",
        }

    async def _rollback_once_answered(self, receipt: str) -> dict[str, Any]:
        key = await asyncio.to_thread(self.verbs.key_of_hatching, receipt)
        if not key or not self._tenants.is_answering(key):
            return await self.rollback(receipt)
        self._tenants.once_answered(key, f"the rollback of {receipt}", partial(self.rollback, receipt))
        return {"message": f"{receipt} is taken back as soon as the twin has answered."}

    async def to_the_end(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Awaits ``work``, which goes on to its end when the caller disconnects."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()):  # the caller may have disconnected
            log.info("an egg: %s", error)

    async def alone(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Runs ``work`` with no other hatching under way.

        The host's agent files are read again after it, unless it was one twin that hatched: the host's stayed.
        """
        async with self._hatching:
            done = await work
        if done.get("hatched", {}).get("destination") != Destination.TWIN:
            await self._refresh_host()
        return done

    @asynccontextmanager
    async def _taken_in(self, path: Path, expect_sha256: str, *, hold: bool = False) -> AsyncIterator[Path]:
        """A copy of an egg; when the block fails, it is gone again. One that waits already stays."""
        egg = await asyncio.to_thread(unsealed, path, self.verbs.home, self.waiting)
        kept = await asyncio.to_thread(self.waiting.take_in, egg, expect_sha256=expect_sha256, hold=hold)
        try:
            yield kept
        except BaseException:
            if kept != path:
                await asyncio.to_thread(self.waiting.let_go, kept)
            raise

    @asynccontextmanager
    async def resting(self, key: str) -> AsyncIterator[None]:
        """Nothing of a twin runs meanwhile. ``key`` "" is nobody."""
        if not key:
            yield
            return
        was_running = self._tenants.presence(key).running
        try:
            async with self._tenants.apart(key):
                await self._tenants.stop(key, hold_port=was_running)
                yield
        finally:
            if was_running:
                await self._wake_again(key)

    @asynccontextmanager
    async def _all_resting(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """The same for several twins, one after the other."""
        async with AsyncExitStack() as stack:
            for key in sorted(keys):
                await stack.enter_async_context(self.resting(key))
            yield

    async def _wake_again(self, key: str) -> None:
        """Wakes a twin on the port that was held for it, if it still lives here."""
        try:
            if (self._tenants.layout.active(key) / "rappid.json").exists():
                await self._tenants.boot(key)
        except ReportableError as problem:  # hatched is hatched; that it sleeps is seen in the list
            log.warning("%s stays stopped: %s", key, problem)
        finally:
            self._tenants.let_go_port(key)


def whole_path(text: str) -> Path:
    """A path on this machine that does not depend on where one stands. Raises ``UsageProblemError``."""
    path = Path.home() / text[2:] if text.startswith("~/") else Path(text)
    if "\0" in text or not path.is_absolute():
        raise UsageProblemError(
            "Which egg? Its whole path is needed.", do="Give a path like /home/ada/rose.egg."
        )
    if len(str(path).encode(errors="replace")) >= _LONGEST_PATH or any(
        len(part.encode(errors="replace")) > _LONGEST_NAME for part in path.parts
    ):
        raise UsageProblemError("That path is longer than a disk can hold.", do="Give a shorter one.")
    return path
