"""Eggs between a phone and this machine over HTTP: who may, what goes out, what comes in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rappd.errors import NotFoundError, RefusedError
from rappd.features.operation import Upload
from rappd.sessions.participants import caller_of
from rappd.store.egg_table import EggKept
from rappd.tether.devices import EGGS, Device
from rappd.tether.egg_tokens import SECONDS, EggTokens
from rappd.tether.egg_transfers import EggTransfers
from rappd.tether.errors import EggTooLargeError

log = logging.getLogger(__name__)

MOST_BYTES = 512 << 20
MOST_OFFERS = 20


class EggStore(Protocol):
    """The operations on eggs, as phones use them."""

    async def session_egg(self, session: str) -> Path:
        """Packs a session into a new file, which the caller deletes. Raises ``ReportableError``."""
        ...

    async def copy_for_phone(self, path: Path) -> Path:
        """A copy of an egg, made to stay as it is. Raises ``ReportableError``."""
        ...

    async def take_in(self, sender: Any, name: str, body: AsyncIterator[bytes], id: str = "") -> EggKept:
        """Stages an egg until the owner hatches it. Raises ``ReportableError``."""
        ...


class OfferedEgg(msgspec.Struct, frozen=True):
    """An egg that the owner put there for a phone."""

    id: str
    name: str
    size: int
    path: Path


class EggSender(msgspec.Struct, frozen=True):
    """A phone as the sender of an egg."""

    fingerprint: str
    name: str


class PhoneEggs:
    """All calls come from the event loop."""

    def __init__(self, store: EggStore) -> None:
        self.store = store
        self.tokens = EggTokens()
        self.transfers = EggTransfers()
        self._offers: dict[str, dict[str, OfferedEgg]] = {}

    def shown(self, device: Device) -> dict[str, Any]:
        """The frame that tells a phone what it may do with eggs, and which ones wait for it."""
        may = EGGS.admits(caller_of(device))
        offers = self._offers.get(device.id, {}).values() if may else ()
        return {
            "type": "eggs",
            "may": may,
            "offers": [{"id": one.id, "name": one.name, "size": one.size} for one in offers],
        }

    def token(self, device: Device) -> dict[str, Any]:
        """The frame with a token for one request. Raises ``RefusedError``, ``RateLimitedError``."""
        self._check(device)
        return {"type": "egg_token", "token": self.tokens.mint(device), "seconds": SECONDS}

    async def offer(self, device: Device, path: Path) -> OfferedEgg:
        """Puts an egg of the owner's there for a phone. Raises ``RefusedError``, ``ReportableError``."""
        self._check(device)
        offers = self._offers.setdefault(device.id, {})
        if len(offers) >= MOST_OFFERS:
            raise RefusedError(
                f"{MOST_OFFERS} eggs wait for {device.name} already.", do="Fetch them there first."
            )
        copy = await self.store.copy_for_phone(path)
        size = (await asyncio.to_thread(copy.stat)).st_size
        offered = offers[copy.parent.name] = OfferedEgg(copy.parent.name, path.name, size, copy)
        log.info("%s waits for the phone %s", path.name, device.name)
        return offered

    def find(self, device: Device, id: str) -> OfferedEgg:
        """An egg that waits for a phone. Raises ``NotFoundError``."""
        found = self._offers.get(device.id, {}).get(id)
        if found is None:
            raise NotFoundError("That egg does not wait here any more.", do="Ask for it again.")
        return found

    def fetched(self, device: Device, offered: OfferedEgg) -> None:
        """A phone has it whole: it waits no longer."""
        self._offers.get(device.id, {}).pop(offered.id, None)

    def forget(self, device: Device) -> None:
        """A device was removed."""
        self._offers.pop(device.id, None)

    async def take_in(self, device: Device, name: str, egg: Upload) -> EggKept:
        """Stages what a phone sends, like what a peer sends. Raises ``EggTooLargeError``, ``ReportableError``."""
        if egg.size > MOST_BYTES:
            raise EggTooLargeError(MOST_BYTES)

        async def bounded() -> AsyncIterator[bytes]:
            received = 0
            async for piece in egg.pieces:
                received += len(piece)
                if received > MOST_BYTES:
                    raise EggTooLargeError(MOST_BYTES)
                yield piece

        return await self.store.take_in(EggSender(device.id, device.name), name, bounded())

    def _check(self, device: Device) -> None:
        if not EGGS.admits(caller_of(device)):
            raise RefusedError(
                "This phone may send and fetch no eggs.",
                do=f"On the computer: rappd devices scopes {device.name} --eggs",
            )
