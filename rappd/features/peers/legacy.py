"""The legacy listener, for its owner: open it to listed addresses, look at it, close it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypedDict

from agents.contract.agent import needs_trust
from envelopes.identity.capabilities import check as check_capability
from neighborhoods.discovery.interfaces import interfaces
from rappd.errors import RappdError, RefusedError, UsageProblemError
from rappd.features.operation import OWNER, operation
from rappd.settings.load import Settings

log = logging.getLogger(__name__)

TALK = "HELP.brainstem"
LOOK_SECONDS = 10.0
"""Seconds between two looks at this machine's addresses, which the listener follows."""


class LegacyListenerProtocol(Protocol):
    """The listener for published brainstems."""

    listening: list[str]

    def check(self, allowed: Iterable[str]) -> None:
        """Raises ``RappdError`` for what is no address of another machine."""
        ...

    async def open(self, allowed: Iterable[str], caps: Iterable[str], *, own: Iterable[str]) -> None:
        """Listens at ``own`` addresses for callers from ``allowed`` ones, with the families that these are of."""
        ...

    async def close(self) -> None:
        """Listens no more."""
        ...


class LegacyState(TypedDict):
    """The listener for published brainstems; ``trouble`` is the reason of a failure."""

    open: bool
    listening: list[str]
    addresses: list[str]
    scopes: list[str]
    trouble: str


class LegacyOperations:
    """Opens and closes the legacy listener. The setting is kept, so the next start opens it again."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        write: Callable[[str, str], Awaitable[None]],
        listener: LegacyListenerProtocol,
    ) -> None:
        self._settings = settings
        self._write = write
        self._changing = asyncio.Lock()
        self._at: list[str] = []
        self._trouble = ""
        self.listener = listener

    async def reopen(self) -> None:
        """From a start on: as it was left, at the addresses that the machine has by then. Never returns."""
        while True:
            async with self._changing:
                await self._follow()
            await asyncio.sleep(LOOK_SECONDS)

    @operation("legacy.show", "GET", "/legacy", right=OWNER, answers="legacy")
    async def state(self) -> LegacyState:
        """The state of the legacy listener: open or closed, addresses, allowed callers."""
        return self.show()

    @operation("legacy.open", "POST", "/legacy", right=OWNER, answers="legacy")
    async def open(self, addresses: list[str] | None = None, scopes: list[str] | None = None) -> LegacyState:
        """Opens it to published brainstems at `addresses` alone; `scopes`: what they may do beside talk."""
        if not addresses:
            raise UsageProblemError("To whom?", do="rappd peers legacy open 192.168.1.20")
        proper = [TALK, *(one for one in dict.fromkeys(map(_proper, scopes or ())) if one != TALK)]
        async with self._changing:
            await self._open(addresses, proper)
            try:
                await self._write("legacy.scopes", ",".join(proper))
                await self._write("legacy.addresses", ",".join(addresses))
            except RappdError:
                await self._reopen_as_set()
                raise
        return self.show()

    @operation("legacy.close", "DELETE", "/legacy", right=OWNER, answers="legacy")
    async def close(self) -> LegacyState:
        """Closes it for good."""
        async with self._changing:
            await self._write("legacy.addresses", "")
            self._at, self._trouble = [], ""
            await self.listener.close()
        return self.show()

    def show(self) -> LegacyState:
        """Returns the state of the listener: open or closed, addresses, allowed callers; ``trouble`` is the reason of a failure."""
        settings = self._settings()
        listening = list(self.listener.listening)
        return {
            "open": bool(listening),
            "listening": listening,
            "addresses": list(settings.items("legacy.addresses")),
            "scopes": list(settings.items("legacy.scopes")),
            "trouble": self._trouble,
        }

    async def _reopen_as_set(self) -> None:
        """Opens or closes it as the settings have it, after a change that could not be written down."""
        self._at = []
        await self.listener.close()
        await self._follow()

    async def _follow(self) -> None:
        """Opens what should be open and is not, or is elsewhere than this machine now is."""
        settings = self._settings()
        addresses, scopes = settings.items("legacy.addresses"), settings.items("legacy.scopes")
        if not addresses:
            return
        if self.listener.listening and await asyncio.to_thread(_own_addresses) == self._at:
            return
        try:
            await self._open(addresses, [one for one in scopes if _fits(one)])
        except RappdError as problem:
            if str(problem) != self._trouble:
                log.warning("the legacy listener stays closed: %s", problem)
            self._trouble = str(problem)

    async def _open(self, addresses: Sequence[str], scopes: Sequence[str]) -> None:
        self.listener.check(addresses)
        own = await asyncio.to_thread(_own_addresses)
        await self.listener.open(addresses, scopes, own=own)
        self._at, self._trouble = own, ""


def _proper(capability: str) -> str:
    """A capability that this listener may give. Raises ``BadCapabilityError``, ``RefusedError``."""
    proper = check_capability(capability)
    if not _fits(proper):
        raise RefusedError(
            f"{proper} is not given at this listener: nobody proves there who he is.",
            do="--may HELP.brainstem.Clock",
        )
    return proper


def _fits(capability: str) -> bool:
    """Talk and single agents here, none of which changes structure or speaks to other machines."""
    talk, dot, agent = capability.rpartition(".")
    return capability == TALK or (talk == TALK and bool(dot) and agent != "*" and not needs_trust(agent))


def _own_addresses() -> list[str]:
    """Returns this machine's addresses on networks.

    IPv6 addresses of a single link are left out: a caller there would have to be listed with its link.
    """
    found = [ipaddress.ip_address(text) for one in interfaces() for text in one.addresses]
    return [str(one) for one in found if one.version == 4 or not one.is_link_local]
