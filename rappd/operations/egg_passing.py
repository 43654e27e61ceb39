"""Eggs between machines: packed for a peer, sent to it, and what arrived from one, staged until its owner says."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from neighborhoods.errors import PeerAway
from neighborhoods.peer import Peer
from rappd.errors import Conflict, Mistyped, NotFound, Refused
from rappd.machines.machines import Machines
from rappd.operations.eggs import Order
from rappd.operations.living_eggs import LivingEggs
from rappd.operations.sealed_eggs import SUFFIX, sealed_for, unsealed
from rappd.operations.waiting_eggs import WaitingEggs, new_file
from twins.bonds import record_event
from twins.importer.errors import from_disk
from twins.workspace import write_atomically

log = logging.getLogger(__name__)

MOST_OF_ONE_PEER = 20
MOST_BYTES = 8 << 30
KEEP_SECONDS = 30 * 86_400.0
_NOTE = ".arrived.json"  # no egg is called so: names that come begin with no dot


class EggPassing:
    """Nothing that arrives is opened into a workspace: it lies in ``eggs/.arrived`` until it is hatched."""

    def __init__(self, machines: Machines, eggs: LivingEggs) -> None:
        self._machines = machines
        self._eggs = eggs
        self._folder = machines.home.root / "eggs" / ".arrived"
        self._waiting = WaitingEggs(self._folder, keep_seconds=KEEP_SECONDS)

    async def pack_for(self, order: Order, selector: str) -> dict[str, Any]:
        """Packs what ``order`` says and seals it for a peer; only that machine can open the result.

        For whom it was packed is written into the life of what is packed (``bonds.json``), and so travels.
        """
        await self._machines.available()
        peer = self._machines.book.find(selector)
        await asyncio.to_thread(self._note_handover, order, peer)
        wanted = order.into
        done = await self._eggs.pack(replace(order, into=wanted.removesuffix(SUFFIX)))
        plain = Path(done["packed"]["path"])
        sealed = await asyncio.to_thread(sealed_for, plain, peer.sealing_key)
        await asyncio.to_thread(plain.unlink)
        size = (await asyncio.to_thread(sealed.stat)).st_size
        packed = {**done["packed"], "path": str(sealed), "size": size, "for": peer.name}
        return {"packed": packed, "message": f"{packed['name']} is packed for {peer.name}: {sealed}."}

    async def send(self, path: Path, selector: str) -> dict[str, Any]:
        """Sends an egg to a peer, sealed for it; there it waits until its owner hatches it.

        Raises ``PeerAway``: eggs are not kept in the outbox.
        """
        m = self._machines
        await m.available()
        peer = m.book.find(selector)
        if not await asyncio.to_thread(path.is_file):
            raise NotFound(f"There is no file {path}.", do="Look at the path.")
        if path.name.endswith(SUFFIX):
            return await self._post(peer, path, path.name)
        part = await asyncio.to_thread(self._eggs.waiting.part)
        try:
            from twins.eggs.sealing import seal_file

            await asyncio.to_thread(seal_file, path, part, peer.sealing_key)
            return await self._post(peer, part, path.name + SUFFIX)
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)

    async def take_in(self, peer: Peer, name: str, body: AsyncIterator[bytes]) -> dict[str, Any]:
        """What a peer sends: received whole, opened if it is sealed, looked at, and kept for the owner.

        Raises ``Refused`` when too much of that peer waits, ``BadEgg`` and its kin for what is none.
        """
        rows = await asyncio.to_thread(self._rows)
        if sum(row["peer"] == peer.fingerprint for row in rows) >= MOST_OF_ONE_PEER:
            raise Refused("Too many eggs wait there already.", do="Its owner has to look at them first.")
        part = await asyncio.to_thread(self._waiting.part)
        try:
            digest = await _receive(part, body)
            kept = await asyncio.to_thread(self._waiting.keep, part, digest, name or "an egg")
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)
        try:
            return await asyncio.to_thread(self._look_at, kept, peer)
        except BaseException:
            await asyncio.to_thread(self._waiting.discard, kept)
            raise

    async def arrived(self) -> dict[str, Any]:
        """Eggs that peers sent and nobody hatched or threw away yet, the latest first."""
        return {"arrived": await asyncio.to_thread(self._rows)}

    async def discard(self, ident: str) -> dict[str, Any]:
        """Throws one away."""
        row = next((one for one in await asyncio.to_thread(self._rows) if one["id"].startswith(ident)), None)
        if row is None or len(ident) < 4:
            raise NotFound("No such egg arrived.", do="rappd egg arrived")
        await asyncio.to_thread(shutil.rmtree, Path(row["path"]).parent, ignore_errors=True)
        return {"discarded": row}

    async def _post(self, peer: Peer, path: Path, name: str) -> dict[str, Any]:
        try:
            found = await self._machines.carrier.post_file(
                peer, "/eggs", path, {"Content-Type": "application/octet-stream", "X-Rappd-Name": quote(name)}
            )
        except PeerAway as problem:
            raise PeerAway(
                f"{peer.name} is away; nothing was sent.", do="Send it when it is back."
            ) from problem
        return {"sent": {"peer": peer.name, "name": name.removesuffix(SUFFIX), **_told(found)}}

    def _look_at(self, kept: Path, peer: Peer) -> dict[str, Any]:
        egg = unsealed(kept, self._machines.home, self._waiting)
        if egg != kept:
            self._waiting.discard(kept)
        try:
            found = self._eggs.verbs.inspect(egg)
        except BaseException:
            self._waiting.discard(egg)
            raise
        row = {
            "id": egg.parent.name,
            "name": egg.name,
            "path": str(egg),
            "size": egg.stat().st_size,
            "peer": peer.fingerprint,
            "from": peer.name,
            "at": time.time(),
            "egg": found.get("egg", {}),
        }
        write_atomically(egg.parent / _NOTE, orjson.dumps(row, default=str))
        log.info("%s sent %s; it waits to be hatched", peer.name, egg.name)
        return {"arrived": {"id": row["id"], "name": row["name"], "size": row["size"]}}

    def _rows(self) -> list[dict[str, Any]]:
        found = []
        for note in self._folder.glob(f"*/{_NOTE}"):
            try:
                row = orjson.loads(note.read_bytes())
            except (OSError, orjson.JSONDecodeError):
                continue
            if Path(row["path"]).is_file():
                found.append(row)
        return sorted(found, key=lambda row: -row["at"])

    def _note_handover(self, order: Order, peer: Peer) -> None:
        m = self._machines
        if order.item:
            return  # one agent has no life of its own to write into
        workspace = m.tenants.host.workspace
        if order.twin:
            from twins.lifecycle.finding import active_one

            workspace = active_one(m.tenants.places, order.twin).workspace
        note = f"packed by {m.name} {m.identity.fingerprint} for {peer.name} {peer.fingerprint}"
        record_event(workspace, "launch", note=note)


def _told(found: dict[str, Any]) -> dict[str, Any]:
    arrived = found.get("arrived")
    if not isinstance(arrived, dict):
        raise Conflict("The other machine did not say that it arrived.", do="Look there: rappd egg arrived")
    return {"id": str(arrived.get("id", ""))[:64], "size": arrived.get("size", 0)}


async def _receive(part: Path, body: AsyncIterator[bytes]) -> str:
    digest, size = hashlib.sha256(), 0
    try:
        with await asyncio.to_thread(new_file, part) as file:
            async for chunk in body:
                size += len(chunk)
                if size > MOST_BYTES:
                    raise Mistyped(f"The egg has more than {MOST_BYTES >> 30} GB.", do="Carry it by hand.")
                digest.update(chunk)
                await asyncio.to_thread(file.write, chunk)
    except OSError as error:
        raise from_disk(error, "The egg", needs=size) from error
    if not size:
        raise Mistyped("No file was sent.", do="The body is the egg.")
    return digest.hexdigest()
