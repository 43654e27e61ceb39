"""One way to a peer after the other, until one leads to the very machine whose key is pinned."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import aiohttp

from envelopes.certificates import identity_of
from envelopes.errors import BadCertificate
from envelopes.keys import fingerprint_of
from neighborhoods.errors import KeyChanged, PeerAway, PeerRefused
from neighborhoods.peer import Peer
from neighborhoods.trust.contexts import client_context
from neighborhoods.trust.presented import presented_certificate

log = logging.getLogger(__name__)

CONNECT_SECONDS = 4.0
TOLD_SECONDS = 60.0

_T = TypeVar("_T")


class Candidate(Protocol):
    """Where a peer may be: ``host:port``, and the rung of the ladder that says so."""

    @property
    def address(self) -> str:
        """``host:port``; an IPv6 host in brackets."""
        ...


Candidates = Callable[[Peer], Awaitable[Sequence[Candidate]]]


class Ways:
    """Tries addresses in the ladder's order; the one that worked last comes first."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._worked: dict[str, str] = {}
        self._told: dict[tuple[str, str], float] = {}

    def address(self, peer: Peer) -> str:
        """Where the peer was last reached since the start, or ""."""
        return self._worked.get(peer.fingerprint, "")

    def forget(self, peer: Peer) -> None:
        """The address that worked last comes first no more."""
        self._worked.pop(peer.fingerprint, None)

    async def first(self, peer: Peer, attempt: Callable[[str], Awaitable[_T]]) -> _T:
        """What ``attempt(address)`` gives at the first address that leads to the peer.

        Raises ``PeerAway`` when none does, ``KeyChanged`` when another key answered at one, and
        ``PeerRefused`` when the peer itself trusts this machine no more.
        """
        loud: KeyChanged | PeerRefused | None = None
        for address in await self._in_order(peer):
            try:
                found = await _twice(attempt, address)
            except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
                self._tell(peer, address, error)
                loud = loud or KeyChanged(
                    f"{peer.name}'s key has changed; nothing was sent.",
                    do=f"reinstalled? rappd peers revoke {peer.name}, and pair anew; else keep away",
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ssl.SSLError) as error:
                if not isinstance(error, aiohttp.ClientConnectorError) and await self._answers(peer, address):
                    loud = PeerRefused(
                        f"{peer.name} does not trust this machine any more.",
                        do=f"pair anew: rappd peers pair {peer.name}",
                    )
            except (OSError, aiohttp.ClientError, TimeoutError) as error:
                log.debug("no way to %s by %s: %s", peer.name, address, error)
            else:
                self._worked[peer.fingerprint] = address
                return found
        self._worked.pop(peer.fingerprint, None)
        if loud is not None:
            raise loud
        raise PeerAway(f"{peer.name} is away.", do="rappd peers list")

    async def _in_order(self, peer: Peer) -> list[str]:
        found = [candidate.address for candidate in await self._candidates(peer)]
        worked = self._worked.get(peer.fingerprint)
        return list(dict.fromkeys([worked, *found] if worked in found and worked else found))

    def _tell(self, peer: Peer, address: str, error: Exception) -> None:
        """Logs another key, of one peer at one address once a minute: it is tried far more often."""
        now = time.monotonic()
        self._told = {key: at for key, at in self._told.items() if now - at < TOLD_SECONDS}
        if (peer.fingerprint, address) not in self._told:
            self._told[peer.fingerprint, address] = now
            log.warning("security: at %s another key than %s's answers (%s)", address, peer.name, error)

    async def _answers(self, peer: Peer, address: str) -> bool:
        """Whether the peer's own key answers there, to somebody who shows none."""
        try:
            return await key_at(address) == peer.fingerprint
        except (OSError, TimeoutError, BadCertificate):
            return False


async def _twice(attempt: Callable[[str], Awaitable[_T]], address: str) -> _T:
    """Once more where a connection broke: the peer may have ended it just then, or have started anew."""
    try:
        return await attempt(address)
    except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError):
        raise
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        return await attempt(address)


async def key_at(address: str) -> str:
    """The fingerprint of whoever answers at an address, without showing him who asks.

    Raises ``OSError``, ``TimeoutError``; ``BadCertificate`` when it is no machine of this kind.
    """
    return fingerprint_of(identity_of(await certificate_at(address)))


async def certificate_at(address: str) -> bytes:
    """The certificate (DER) that is shown at an address."""
    host, port = split_address(address)
    async with asyncio.timeout(CONNECT_SECONDS):
        _, writer = await asyncio.open_connection(host, port, ssl=client_context(None))
    try:
        shown = presented_certificate(writer.get_extra_info("ssl_object"))
    finally:
        writer.close()
    if shown is None:
        raise BadCertificate("No certificate was shown.")
    return shown


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port``. Raises ``OSError`` when it is neither."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise OSError(f"{address[:80]} is no address")
    return host.strip("[]"), int(port)
