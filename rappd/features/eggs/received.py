"""Eggs that peers and phones sent: received whole or not at all, looked at, and kept until their owner hatches them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol, TypedDict
from weakref import WeakValueDictionary

import orjson

from agents.storage.atomic_write import sync_folder, write_atomically
from envelopes.envelope import brainstem_id
from rappd.daemon.home import Home
from rappd.daemon.rate_limit import RateLimitedError
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.uploaded_eggs import RECEIVED, UploadedEggs, receive, unsealed
from rappd.features.operation import OWNER, operation
from rappd.federation.outgoing_eggs import MOST_BYTES
from rappd.notices.notices import Notices
from rappd.store.egg_table import EggKept, EggTable, KeptEgg
from twins.installer.errors import from_disk

log = logging.getLogger(__name__)

MOST_OF_ONE_PEER = 20
"""Eggs that wait, and that come in."""
KEEP_SECONDS = 30 * 86_400.0
SILENT_SECONDS = 60.0
"""An egg of which nothing comes for so long comes no more."""
_NOTE = ".arrived.json"  # no egg is called so: names that come begin with no dot


ArrivedEgg = TypedDict(
    "ArrivedEgg",
    {
        "id": str,
        "name": str,
        "path": str,
        "size": int,
        "peer": str,
        "from": str,
        "at": float,
        "egg": dict[str, Any],
    },
)
"""An egg that a machine or a phone sent; ``egg`` is what it says of itself, ``at`` seconds since 1970."""


class EggSender(Protocol):
    """A peer, or a phone."""

    @property
    def fingerprint(self) -> str:
        """The sender's id, that nobody else has."""
        ...

    @property
    def name(self) -> str:
        """The sender's name here."""
        ...


class ReceivedEggs:
    """Nothing that arrives is opened into a workspace: it lies in ``eggs/.arrived`` until it is hatched."""

    def __init__(self, home: Home, eggs: EggOperations, rows: EggTable, notices: Notices) -> None:
        self._home = home
        self._eggs = eggs
        self._answers = rows
        self._notices = notices
        notices.keep_while("egg", lambda path: Path(path).is_file())
        self._folder = home.root / "eggs" / RECEIVED
        self._kept = UploadedEggs(self._folder, keep_seconds=KEEP_SECONDS)
        self._coming: dict[tuple[str, str], _IncomingTransfer] = {}
        self._counting = asyncio.Lock()
        self._same = WeakValueDictionary[str, asyncio.Lock]()
        """By content: the same egg twice at once is looked at one after the other, since both lie in one folder."""

    async def clear_up(self) -> None:
        """Throws away what was half here when the daemon ended. Before anything comes in."""
        await asyncio.to_thread(self._clear_up)

    async def remove_old(self) -> None:
        """Removes eggs that waited too long, received ones and those that were looked at, though no other comes."""
        for eggs in (self._kept, self._eggs.waiting):
            try:
                await asyncio.to_thread(eggs.remove_old)
            except OSError as error:
                log.warning("old eggs could not be removed: %s", error)

    async def received(self, peer: EggSender, id: str) -> EggKept:
        """Returns the result for an egg that a peer sent under that id.

        Raises ``NotFoundError`` when it has to send it, ``RateLimitedError`` when there is no room for it.
        """
        if (known := await self._answer(peer, id)) is not None:
            return known
        async with self._counting:
            await self._make_sure_of_room(peer)
        raise NotFoundError("No such egg of yours arrived.", do="Send it.")

    async def take_in(self, peer: EggSender, name: str, body: AsyncIterator[bytes], id: str = "") -> EggKept:
        """Receives an egg from a peer: opened if it is sealed, inspected, and kept for the owner.

        The same ``id`` brings the same egg: its earlier result is returned, and an earlier transfer of it that is
        unfinished ends, for its connection is dead. Raises ``RateLimitedError`` when too many eggs of that peer
        wait or arrive, ``BadEggError`` and its kin for anything else than an egg.
        """
        coming = _IncomingTransfer()
        key = (peer.fingerprint, id or coming.name)
        while self._coming.get(key) is not coming:
            while (other := self._coming.get(key)) is not None:
                other.give_up()
                await other.ended.wait()
            if (known := await self._answer(peer, id)) is not None:
                return known
            async with self._counting:
                if key not in self._coming:  # a third may have been faster
                    await self._make_sure_of_room(peer)
                    self._coming[key] = coming
        try:
            answer = await self._keep(peer, name, body, coming)
            self._tell_owner(peer.name, answer["arrived"])
            if id:
                await self._answers.keep(brainstem_id(peer.fingerprint), id, orjson.dumps(answer))
            return answer
        finally:
            del self._coming[key]
            coming.ended.set()

    def _tell_owner(self, sender: str, egg: KeptEgg) -> None:
        path = self._folder / egg["id"] / egg["name"]
        do = f"rappd egg plan {shlex.quote(str(path))}"
        self._notices.add(
            f"{sender} sent {egg['name']}; it waits to be hatched.",
            do,
            kind="egg",
            key=f"egg:{egg['id']}",
            subject=str(path),
        )

    @operation("eggs.arrived", "GET", "/eggs/arrived", right=OWNER, answers="arrived")
    async def arrived(self) -> list[ArrivedEgg]:
        """Eggs that other machines and phones sent, and nobody hatched or threw away yet, the latest first."""
        return await asyncio.to_thread(self._rows)

    @operation("eggs.throw_away", "DELETE", "/eggs/arrived/{id}", right=OWNER, answers="discarded")
    async def discard(self, id: str) -> ArrivedEgg:
        """Throws away an egg that another machine sent."""
        row = next((one for one in await asyncio.to_thread(self._rows) if one["id"].startswith(id)), None)
        if row is None or len(id) < 4:
            raise NotFoundError("No such egg arrived.", do="rappd egg arrived")
        await asyncio.to_thread(shutil.rmtree, Path(row["path"]).parent, ignore_errors=True)
        return row

    async def _answer(self, peer: EggSender, id: str) -> EggKept | None:
        found = await self._answers.answer(brainstem_id(peer.fingerprint), id) if id else None
        return orjson.loads(found) if found else None

    async def _make_sure_of_room(self, peer: EggSender) -> None:
        rows = await asyncio.to_thread(self._rows)
        waiting = sum(row["peer"] == peer.fingerprint for row in rows)
        coming = sum(fingerprint == peer.fingerprint for fingerprint, _ in self._coming)
        if waiting + coming >= MOST_OF_ONE_PEER:
            raise RateLimitedError(
                "Too many eggs wait there already.", do="Its owner has to look at them first."
            )

    async def _keep(
        self, peer: EggSender, name: str, body: AsyncIterator[bytes], coming: _IncomingTransfer
    ) -> EggKept:
        try:
            part = await asyncio.to_thread(self._kept.part)
            try:
                digest = await coming.receive(part, body)
                async with self._same.setdefault(digest, asyncio.Lock()):
                    return await self._keep_whole(part, digest, name or "an egg", peer)
            finally:
                await asyncio.to_thread(part.unlink, missing_ok=True)
        except OSError as error:  # of its folder or the note in it
            raise from_disk(error, "the egg") from error

    async def _keep_whole(self, part: Path, digest: str, name: str, peer: EggSender) -> EggKept:
        kept = await asyncio.to_thread(self._kept.keep, part, digest, name)
        try:
            return await asyncio.to_thread(self._look_at, kept, peer)
        except BaseException:
            await asyncio.to_thread(self._kept.discard, kept)
            raise

    def _look_at(self, kept: Path, peer: EggSender) -> EggKept:
        egg = unsealed(kept, self._home, self._kept)
        if egg != kept:
            self._kept.discard(kept)
        try:
            found = self._eggs.home_eggs.inspect(egg)
        except BaseException:
            self._kept.discard(egg)
            raise
        row: ArrivedEgg = {
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
        for folder in (egg.parent, self._folder):  # the sender deletes its bytes now
            sync_folder(folder)
        log.info("%s sent %s; it waits to be hatched", peer.name, egg.name)
        return {"arrived": {"id": row["id"], "name": row["name"], "size": row["size"]}}

    def _rows(self) -> list[ArrivedEgg]:
        found = []
        for note in self._folder.glob(f"*/{_NOTE}"):
            try:
                row = orjson.loads(note.read_bytes())
            except (OSError, orjson.JSONDecodeError):
                continue
            if Path(row["path"]).is_file():
                found.append(row)
        return sorted(found, key=lambda row: -row["at"])

    def _clear_up(self) -> None:
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if not path.is_dir():
                with contextlib.suppress(OSError):
                    path.unlink()
            elif not (path / _NOTE).exists():
                shutil.rmtree(path, ignore_errors=True)


class _IncomingTransfer:
    """An egg that is coming in."""

    def __init__(self) -> None:
        self.name = os.urandom(8).hex()
        self.ended = asyncio.Event()
        self._limit: asyncio.Timeout | None = None

    def give_up(self) -> None:
        """Waits for its bytes no longer; what came whole is kept all the same."""
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def receive(self, part: Path, body: AsyncIterator[bytes]) -> str:
        """Writes what comes to a new file, which is on the disk then; its SHA-256.

        Raises ``UsageProblemError`` when it is too much, nothing, or stops coming, ``DiskFullError``, ``not_writable``.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SILENT_SECONDS) as limit:
                self._limit = limit
                digest = await receive(
                    part,
                    body,
                    most=MOST_BYTES,
                    do="Carry it by hand.",
                    came=lambda: limit.reschedule(loop.time() + SILENT_SECONDS),
                )
                self._limit = None
                limit.reschedule(None)
                await asyncio.to_thread(_sync, part)
        except TimeoutError:
            raise UsageProblemError("The egg came no further.", do="Send it again.") from None
        except OSError as error:
            raise from_disk(error, "The egg") from error
        finally:
            self._limit = None
        return digest


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
