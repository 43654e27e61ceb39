"""The legacy door, for its owner: open it to listed addresses, look at it, close it."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from envelopes.capabilities import check as check_capability
from neighborhoods.discovery.interfaces import interfaces
from rappd.errors import Conflict, Mistyped
from rappd.settings.load import Settings


class Door(Protocol):
    """What listens."""

    listening: list[str]

    async def open(self, allowed: Iterable[str], caps: Iterable[str], *, own: Iterable[str]) -> None:
        """Listens at ``own`` addresses for callers from ``allowed`` ones."""
        ...

    async def close(self) -> None:
        """Listens no more."""
        ...


class LegacyVerbs:
    """What is open is a setting, and so opens again at the next start."""

    def __init__(
        self, settings: Callable[[], Settings], write: Callable[[str, str], Awaitable[None]]
    ) -> None:
        self._settings = settings
        self._write = write
        self.door: Door | None = None

    async def reopen(self) -> None:
        """At a start: as it was left."""
        settings = self._settings()
        if settings.items("legacy.addresses"):
            await self._open(settings.items("legacy.addresses"), settings.items("legacy.scopes"))

    async def open(self, addresses: Sequence[str], scopes: Sequence[str] = ()) -> dict[str, Any]:
        """Opens it to these addresses alone. Without ``scopes`` they may talk, and use no agent."""
        if not addresses:
            raise Mistyped("To whom?", do="rappd peers legacy open 192.168.1.20")
        proper = [check_capability(one) for one in scopes] or ["HELP.brainstem"]
        await self._open(addresses, proper)
        await self._write("legacy.addresses", ",".join(addresses))
        await self._write("legacy.scopes", ",".join(proper))
        return self.show()

    async def close(self) -> dict[str, Any]:
        """Closes it for good."""
        if self.door is not None:
            await self.door.close()
        await self._write("legacy.addresses", "")
        return self.show()

    def show(self) -> dict[str, Any]:
        """Whether it is open, where, and to whom."""
        settings = self._settings()
        listening = list(self.door.listening) if self.door else []
        return {
            "legacy": {
                "open": bool(listening),
                "listening": listening,
                "addresses": list(settings.items("legacy.addresses")),
                "scopes": list(settings.items("legacy.scopes")),
            }
        }

    async def _open(self, addresses: Sequence[str], scopes: Sequence[str]) -> None:
        if self.door is None:
            raise Conflict("This daemon has no such door.", do="rappd start")
        own = await asyncio.to_thread(_own_addresses)
        await self.door.open(addresses, scopes, own=own)


def _own_addresses() -> list[str]:
    """Where other machines can reach this one: its IPv4 addresses on networks."""
    found = [address for one in interfaces() for address in one.addresses]
    return [text for text in found if isinstance(ipaddress.ip_address(text), ipaddress.IPv4Address)]
