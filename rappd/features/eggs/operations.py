"""The owner's operations on eggs: packing, looking, planning, hatching, taking back, and eggs of other machines."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from envelopes import events
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError
from rappd.features.eggs.links import link_to
from rappd.features.eggs.packed_eggs import laid_egg, packed_eggs
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.running_twins import DaemonEggOperations, whole_path
from rappd.features.eggs.transfer import EggTransferOperations
from rappd.features.eggs.waiting import receive
from rappd.features.operation import OWNER, Download, MissingArgumentError, Text, Upload, operation
from twins.work_progress import Cancellation, Progress
from twins.workspace.workspace import TwinLayout

_ID = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 8 << 30
_PACE_SECONDS = 0.1
_OWNER = Caller("control", operator=True)


class WhichEgg(TypedDict, total=False):
    """An egg that waits here by its ``id``, or one by its whole ``path`` on this machine."""

    id: str
    path: str


class OwnersEggs:
    """``id`` and ``path`` say which egg, see ``WhichEgg``."""

    def __init__(
        self,
        eggs: DaemonEggOperations,
        transfer: EggTransferOperations,
        layout: TwinLayout,
        dispatcher: Dispatcher,
    ) -> None:
        self._eggs, self._transfer, self._layout = eggs, transfer, layout
        self._dispatcher = dispatcher

    @operation("eggs.lay_down", "POST", "/eggs", right=OWNER)
    async def lay_down(self, file: Upload, name: str = "", signature: str = "") -> Turn:
        """Takes an egg in (the body is the file, `?name=` what it is called) and says what it is and would do.

        `?signature=` is the text of the `.sig` that came with it. It waits, unhatched, under `id`, for a day.
        With `Accept: text/event-stream` it tells how far the check is, once the egg is here.
        """
        waiting = self._eggs.waiting
        part = await asyncio.to_thread(waiting.part)
        try:
            do = "Hatch it with rappd egg hatch."
            digest = await receive(part, file.pieces, most=_MOST_BYTES, do=do, size=file.size)
            path = await asyncio.to_thread(waiting.keep, part, digest, name, hold=True)
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)

        async def work(progress: Progress, _: Cancellation) -> dict[str, Any]:
            try:
                await asyncio.to_thread(waiting.keep_signature, path, signature.encode())
                return {"file": name, **await self._eggs.look(path, progress)}
            except BaseException:
                await asyncio.to_thread(waiting.discard, path)
                raise

        return self._begun(work)

    @operation("eggs.look", "POST", "/eggs/look", right=OWNER)
    async def look(self, path: Text) -> Turn:
        """Looks at an egg on this machine (`path`) as at an uploaded one: `id` of the copy, what it is, and the plan."""
        file = whole_path(path)

        async def work(progress: Progress, _: Cancellation) -> dict[str, Any]:
            return {"file": file.name, **await self._eggs.look_at_copy(file, progress)}

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
    ) -> Turn:
        """Hatches an egg (`id` or `path`). `approved` is the digest of the plan that was said yes to.

        A plan that is another one by now is refused with `plan_changed`. With `Accept: text/event-stream` it tells
        how far each phase is before it answers. `work` is an id of your own, for `/eggs/cancel`.
        """
        hatching = partial(
            self._eggs.hatch,
            self.which(id, path),
            overwrite=overwrite or [],
            approved=approved,
            source=source[:200],
        )
        return self._begun(
            lambda progress, cancellation: hatching(progress=progress, cancellation=cancellation), work
        )

    @operation("eggs.cancel", "POST", "/eggs/cancel", right=OWNER)
    async def cancel(self, work: Text) -> dict[str, Any]:
        """Cancels the hatching or packing that was begun with the id `work`, and answers once it has ended.

        Nothing is written then. Once files are moved into place it is refused with `too_late`, and goes on.
        """
        if (turn := self._dispatcher.operation(work)) is None:
            raise NotFoundError("Nothing of that id is under way.", do="It may be done: rappd egg hatchings")
        turn.cancel()
        await turn.over_within(None)
        return {"cancelled": True}

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
    ) -> Turn:
        """Packs a `twin`, or the brainstem; `form`, `item`, `into`, `exclude_memory`, `allow` as `rappd egg pack`.

        `to` seals it for that peer, and then there is no link. `work` is an id of your own, for `/eggs/cancel`.

        `link` is where the page that packed it lets the browser fetch the egg, for an hour: what is dragged out
        of the page is asked for without headers, so the page signs that path, and puts the signature into it, once for
        each drag. With `Accept: text/event-stream` it tells how far each phase is before it answers.
        """
        order = PackRequest(twin, form, item, into, exclude_memory, frozenset(allow or ()), overwrite)

        async def packing(progress: Progress, cancellation: Cancellation) -> dict[str, Any]:
            if to:
                return await self._transfer.pack_for(order, to)
            done = await self._eggs.pack(order, cancellation.watching(progress))
            if into or not caller.key:
                return done
            return {**done, "link": link_to(Path(done["packed"]["path"]), caller.key)}

        return self._begun(packing, work)

    @operation("eggs.save", "GET", "/eggs/laid/{folder}/{name}", right=OWNER)
    async def save(self, folder: str, name: str) -> Download:
        """An egg that was packed here, as a download."""
        return Download(await asyncio.to_thread(laid_egg, self._layout, folder, name))

    @operation("eggs.plan", "POST", "/eggs/plan", right=OWNER)
    async def plan(self, id: str = "", path: str = "", overwrite: list[str] | None = None) -> dict[str, Any]:
        """The plan for hatching an egg (`id`, or `path` on this machine), with the given `overwrite`.

        A file given by its path is copied first; the answer's `id` is the copy that was planned.
        """
        return await self._eggs.plan(self.which(id, path), overwrite or [])

    @operation("eggs.laid", "GET", "/eggs/laid", right=OWNER)
    async def laid(self) -> dict[str, Any]:
        """Eggs that were packed here and lie on this machine, the latest first; `file` is a name after what is inside."""
        return {"eggs": await asyncio.to_thread(packed_eggs, self._layout)}

    @operation("eggs.diff", "POST", "/eggs/diff", right=OWNER)
    async def diff(self, before: WhichEgg, after: WhichEgg) -> dict[str, Any]:
        """The differences between two eggs: `before` and `after`, each `{id}` or `{path}`."""
        return await asyncio.to_thread(self._eggs.verbs.diff, self.which(**before), self.which(**after))

    @operation("eggs.hatchings", "GET", "/eggs/hatchings", right=OWNER)
    async def hatchings(self) -> dict[str, Any]:
        """Every hatching that has a receipt, the latest first."""
        return await asyncio.to_thread(self._eggs.verbs.receipts)

    @operation("eggs.rollback", "POST", "/eggs/rollback", right=OWNER)
    async def rollback(self, receipt: Text, even_if_changed: bool = False) -> dict[str, Any]:
        """Undoes a hatching by its `receipt`; `even_if_changed` puts aside what changed since."""
        return await self._eggs.rollback(receipt, even_if_changed=even_if_changed)

    @operation("eggs.signers", "GET", "/eggs/signers", right=OWNER)
    async def signers(self) -> dict[str, Any]:
        """The senders whose eggs run their code without asking, and this machine's own key."""
        return await asyncio.to_thread(self._eggs.verbs.list_signers)

    @operation("eggs.trust", "POST", "/eggs/signers", right=OWNER)
    async def trust(self, fingerprint: Text, name: Text) -> dict[str, Any]:
        """Trusts the key with `fingerprint`, called `name`."""
        return await asyncio.to_thread(self._eggs.verbs.trust_signer, fingerprint, name)

    @operation("eggs.revoke", "DELETE", "/eggs/signers/{fingerprint}", right=OWNER)
    async def revoke(self, fingerprint: str) -> dict[str, Any]:
        """Ends the trust in a key."""
        return await asyncio.to_thread(self._eggs.verbs.revoke_signer, fingerprint)

    @operation("eggs.send", "POST", "/eggs/send", right=OWNER)
    async def send(self, peer: Text, id: str = "", path: str = "") -> dict[str, Any]:
        """Sends an egg (`id` or `path`) to a `peer`, sealed for it; there it waits for its owner.

        Is the peer away, it waits in the outbox (`state` `queued`).
        """
        return await self._transfer.send(self.which(id, path), peer)

    @operation("eggs.arrived", "GET", "/eggs/arrived", right=OWNER)
    async def arrived(self) -> dict[str, Any]:
        """Eggs that other machines sent, and nobody hatched yet."""
        return await self._transfer.arrived()

    @operation("eggs.throw_away", "DELETE", "/eggs/arrived/{id}", right=OWNER)
    async def throw_away(self, id: str) -> dict[str, Any]:
        """Throws away an egg that another machine sent."""
        return await self._transfer.discard(id)

    @operation("eggs.discard", "DELETE", "/eggs/{id}", right=OWNER)
    async def discard(self, id: str) -> dict[str, Any]:
        """Throws away an egg that waits here unhatched, unless another tab looks at it."""
        path = await asyncio.to_thread(self._eggs.waiting.find, id)
        await asyncio.to_thread(self._eggs.waiting.let_go, path)
        return {"status": "ok"}

    def which(self, id: object = "", path: object = "") -> Path:
        """The egg that is meant. Raises ``MissingArgumentError``, ``NotFoundError``."""
        if isinstance(id, str) and _ID.fullmatch(id):
            return self._eggs.waiting.find(id)
        if isinstance(path, str) and path:
            return whole_path(path)
        raise MissingArgumentError(
            "Which egg? Its id or whole path is needed.", do='Send {"id": "…"} or {"path": "/…"}.'
        )

    def _begun(
        self, work: Callable[[Progress, Cancellation], Awaitable[dict[str, Any]]], id: str = ""
    ) -> Turn:
        """The turn of something that takes a while; with an ``id`` it can be cancelled."""
        cancellation = Cancellation()
        return self._dispatcher.operate(
            lambda emit: work(_progress_to(emit), cancellation), _OWNER, id=id[:100], stop=cancellation.cancel
        )


def _progress_to(emit: events.Emit) -> Progress:
    """Tells of work on any thread, each phase as often as it is worth it and up to its end. Made on the event loop."""
    loop = asyncio.get_running_loop()
    told: dict[str, float] = {}

    def moved(phase: str, done: int, whole: int) -> None:
        now = time.monotonic()
        if done >= whole or now - told.get(phase, -_PACE_SECONDS) >= _PACE_SECONDS:
            told[phase] = now
            with contextlib.suppress(RuntimeError):  # the daemon stops, and nobody listens any more
                loop.call_soon_threadsafe(emit, events.Progress(phase, done, whole))

    return moved
