"""Operations of phones that may carry eggs: they fetch what the owner put there, and send what waits for its hatching."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from rappd.features.operation import OpenDownload, Upload, operation
from rappd.store.egg_table import EggKept
from rappd.tether.devices import EGGS, Device

if TYPE_CHECKING:
    from rappd.sessions.sessions import Session
    from rappd.tether.phone_eggs import PhoneEggs

SESSION = "session"
"""The id under which a phone fetches the session that it is in."""


class EggsForPhones:
    """A request carries a token that is good once; see ``rappd.tether.egg_tokens``."""

    def __init__(self, eggs: PhoneEggs, current_session: Callable[[], Awaitable[Session]]) -> None:
        self._eggs, self._current_session = eggs, current_session

    @operation("phone_eggs.fetch", "GET", "/tether/v2/eggs/{id}", right=EGGS)
    async def fetch(self, device: Device, id: str) -> OpenDownload:
        """An egg: `session`, or one that the owner put there for this phone. `Authorization: Bearer` and a token."""
        if id != SESSION:
            offered = self._eggs.find(device, id)
            file = await asyncio.to_thread(offered.path.open, "rb")
            return OpenDownload(file, file.close, offered.name, partial(self._eggs.fetched, device, offered))
        session = await self._current_session()
        path = await self._eggs.store.session_egg(session.id)
        try:
            file = await asyncio.to_thread(path.open, "rb")
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)  # what is open can be read to its end
        return OpenDownload(file, file.close, f"session-{session.id[:8]}.egg")

    @operation("phone_eggs.send", "POST", "/tether/v2/eggs", right=EGGS)
    async def send(self, device: Device, egg: Upload, name: str = "") -> EggKept:
        """Stages an egg of a phone: the body is the file, `X-Rappd-Name` what it is called (percent-encoded)."""
        return await self._eggs.take_in(device, name[:200], egg)
