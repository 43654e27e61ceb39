"""Eggs between machines: packed for a peer, sent to it by the outbox, and what arrived from one."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from msgspec.structs import replace

from envelopes.codecs import emergence
from envelopes.envelope import Envelope, brainstem_id, new_id
from neighborhoods.delivery.outbox import Outbox
from neighborhoods.durable_tables import EGG, OutgoingEnvelope
from neighborhoods.errors import PeerFailedError, PeerRefusedError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.errors import NotFoundError
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.received import ReceivedEggs
from rappd.features.eggs.uploaded_eggs import SUFFIX, is_sealed_file, whole_path
from rappd.features.operation import OWNER, Text, operation
from rappd.federation.local_node import LocalNode
from rappd.federation.outgoing_eggs import OutgoingEggs
from rappd.federation.startup_state import Availability, Deferred
from rappd.notices.notices import Notices
from rappd.store.egg_table import EggTable
from rappd.store.outbox_table import OutboxTable
from rappd.tenants.tenants import Tenants
from twins.eggs.encryption import seal_file
from twins.eggs.integrity import SIGNATURE_SUFFIX
from twins.eggs.writers.formats import SESSION_FORM
from twins.errors import TwinConflictError
from twins.work_progress import Progress
from twins.workspace.bonds import record_event

TURN_SECONDS = 20.0
"""So long who sends an egg waits for its turn behind others to the same machine."""


class SentEgg(TypedDict):
    """An egg for a peer: its ``id`` there, or ``why`` it waits, and until when."""

    peer: str
    name: str
    state: Literal["done", "queued"]
    outbox: str
    id: str
    size: NotRequired[int]
    why: NotRequired[str]
    expires: NotRequired[float]


class EggTransferOperations(ReceivedEggs):
    """Both ways. What goes out waits in the outbox, its bytes in ``eggs/.outgoing``, until the peer has it."""

    def __init__(
        self,
        node: LocalNode,
        availability: Availability,
        peers: PeerStore,
        outbox: Deferred[Outbox],
        rows: OutboxTable,
        outgoing_eggs: OutgoingEggs,
        tenants: Tenants,
        eggs: EggOperations,
        received: EggTable,
        notices: Notices,
    ) -> None:
        """``rows`` are those of the outbox, ``outgoing_eggs`` the bytes that wait with them."""
        super().__init__(node.home, eggs, received, notices)
        self._node, self._availability, self._peers = node, availability, peers
        self._outbox, self._outbox_rows, self._outgoing = outbox, rows, outgoing_eggs
        self._tenants = tenants

    async def pack_for(self, order: PackRequest, selector: str, progress: Progress) -> dict[str, Any]:
        """Packs what ``order`` says and seals it for a peer; only that machine can open the result.

        For whom it was packed is written into the life of what is packed (``bonds.json``), and so travels.
        """
        await self._availability.wait()
        peer = self._peers.find(selector)
        _takes_eggs(peer)
        await asyncio.to_thread(self._note_handover, order, peer)
        order, target = await asyncio.to_thread(self._unsealed_order, order)
        done = await self._eggs.pack_order(order, progress)
        plain = Path(done["packed"]["path"])
        sealed = target or plain.with_name(plain.name + SUFFIX)
        try:
            await asyncio.to_thread(seal_file, plain, sealed, peer.sealing_key)
        finally:
            await asyncio.to_thread(plain.unlink)
        size = (await asyncio.to_thread(sealed.stat)).st_size
        signature = done["packed"]["signature"]
        if target and signature:
            beside = target.with_name(target.name.removesuffix(SUFFIX) + SIGNATURE_SUFFIX)
            signature = str(await asyncio.to_thread(shutil.move, signature, beside))
        packed = {
            **done["packed"],
            "path": str(sealed),
            "size": size,
            "for": peer.name,
            "signature": signature,
        }
        return {"packed": packed, "message": f"{packed['name']} is packed for {peer.name}: {sealed}."}

    def _unsealed_order(self, order: PackRequest) -> tuple[PackRequest, Path | None]:
        """The order for the egg before it is sealed, which never leaves the home, and the place of the sealed one.

        A named place may be a stick, or a folder that goes to a cloud at once. Without one both lie among the
        home's eggs. Raises ``TwinConflictError`` for a place that is taken.
        """
        if not order.into:
            return order, None
        target = whole_path(order.into.removesuffix(SUFFIX) + SUFFIX)
        if not order.overwrite and os.path.lexists(target):
            raise TwinConflictError(
                f"{target.name} exists already; nothing was packed.", do="Name another file, or --force."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        return replace(order, into=str(self._eggs.waiting.part())), target

    async def session_egg(self, session: str) -> Path:
        """Packs a session into a new file, which the caller deletes. Raises ``ReportableError``."""
        part = await asyncio.to_thread(self._eggs.waiting.part)
        done = await self._eggs.pack_order(PackRequest(form=SESSION_FORM, item=session, into=str(part)))
        await asyncio.to_thread(Path(done["packed"]["signature"]).unlink)
        return part

    async def copy_for_phone(self, path: Path) -> Path:
        """A copy of an egg, that stays for a day. Raises ``BadEggError`` and its kin for what is none."""
        kept = await asyncio.to_thread(self._eggs.waiting.take_in, path)
        try:
            await asyncio.to_thread(self._eggs.home_eggs.inspect, kept)
        except BaseException:
            if kept != path:
                await asyncio.to_thread(self._eggs.waiting.discard, kept)
            raise
        return kept

    @operation("eggs.send", "POST", "/eggs/send", right=OWNER, answers="sent")
    async def send(self, peer: Text, id: str = "", path: str = "") -> SentEgg:
        """Sends an egg (`id` or `path`) to a `peer`, sealed for it; there it waits for its owner.

        Is the peer away, it waits in the outbox (`state` `queued`); `why` says what it waits for. It is refused,
        and nothing waits, where it is no egg, or the peer does not take it.
        """
        egg = self._eggs.home_eggs.which(id, path)
        outbox = await self._outbox.ready()
        found = self._peers.find(peer)
        _takes_eggs(found)
        if not await asyncio.to_thread(egg.is_file):
            raise NotFoundError(f"There is no file {egg}.", do="Look at the path.")
        sealed = await asyncio.to_thread(is_sealed_file, egg)
        if not sealed:  # what waits for days should not turn out to be no egg then
            await asyncio.to_thread(self._eggs.home_eggs.inspect, egg)
        name = egg.name.removesuffix(SUFFIX)
        note = Envelope(
            new_id(), self._node.id, brainstem_id(found.fingerprint), EGG, {"name": name + SUFFIX}
        )
        row = await self._queue(found, note, egg, name, "" if sealed else found.sealing_key)
        return await self._sent_row(found, name, await outbox.try_now(row, within=TURN_SECONDS))

    async def _queue(
        self, peer: Peer, note: Envelope, path: Path, name: str, recipient: str
    ) -> OutgoingEnvelope:
        """The row of the outbox; its bytes are on the disk before it."""
        try:
            await asyncio.to_thread(self._outgoing.stage, note.id, path, recipient)
            await self._outbox.now().put(peer.fingerprint, note, name[:120], self._node.keep_seconds)
            row = await self._outbox_rows.by_id(peer.fingerprint, note.id)
        except BaseException:
            await asyncio.to_thread(self._outgoing.remove, note.id)
            raise
        assert row is not None
        return row

    async def _sent_row(self, peer: Peer, name: str, row: OutgoingEnvelope) -> SentEgg:
        outbox = self._outbox.now()
        if row.state == "failed":
            raise PeerFailedError(
                row.trouble or f"{peer.name} did not take the egg.", do="Ask its owner; nothing waits."
            )
        if row.state in ("queued", "delivered") and outbox.stopped(peer.fingerprint, eggs=True):
            await outbox.drop(row.id)
            raise PeerRefusedError(row.trouble or f"Nothing goes to {peer.name}.", do="rappd peers list")
        sent: SentEgg = {
            "peer": peer.name,
            "name": name,
            "state": "done" if row.state == "done" else "queued",
            "outbox": row.id,
            "id": "",
        }
        if row.state == "done":
            arrived = emergence.decode(row.answer, max_bytes=len(row.answer)).data["arrived"]
            sent |= {"id": str(arrived.get("id", ""))[:64], "size": arrived.get("size", 0)}
        else:
            sent |= {"why": row.trouble, "expires": row.expires_at / 1e6}
        return sent

    def _note_handover(self, order: PackRequest, peer: Peer) -> None:
        if order.item:
            return  # one agent has no life of its own to write into
        workspace = self._tenants.host.workspace
        if order.twin:
            from twins.lifecycle.lookup import find_active

            workspace = find_active(self._tenants.layout, order.twin).workspace
        note = f"packed by {self._node.name} {self._node.identity.fingerprint} for {peer.name} {peer.fingerprint}"
        record_event(workspace, "launch", note=note)


def _takes_eggs(peer: Peer) -> None:
    """Raises ``PeerRefusedError`` for a peer that introduced itself without a key that eggs are sealed with."""
    if not peer.sealing_key:
        raise PeerRefusedError(
            f"{peer.name} takes no eggs: it has no key that they could be sealed with.",
            do="Send it to a machine with rappd.",
        )
