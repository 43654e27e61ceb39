"""All ways to a peer side by side: the first that leads to the very machine whose key is pinned is taken."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import aiohttp

from envelopes.errors import BadCertificateError
from envelopes.identity.certificates import identity_of
from envelopes.identity.keys import fingerprint_of
from neighborhoods.auth.tls import TlsFiles, client_context, presented_certificate
from neighborhoods.errors import KeyChangedError, PeerOfflineError, PeerRefusedError
from neighborhoods.peer import Peer

log = logging.getLogger(__name__)

CONNECT_SECONDS = 4.0
HEAD_START = 0.15
"""Seconds that the likeliest address has before the others are tried beside it."""
SURE_SECONDS = 5.0
"""So long after an address led to the peer it is taken without a look at the others."""
TOLD_SECONDS = 60.0
NOBODY_SECONDS = 2.0
"""So long after nobody answered at an address, it is not tried for another peer as well."""

_T = TypeVar("_T")


class Candidate(Protocol):
    """A possible address of a peer: ``host:port``, and the source that knows it."""

    @property
    def address(self) -> str:
        """``host:port``; an IPv6 host in brackets."""
        ...


Candidates = Callable[[Peer], Awaitable[Sequence[Candidate]]]


class Connector:
    """Finds out which address leads to a peer. A connection proves it, and is all that is tried at several."""

    def __init__(self, candidates: Candidates, own: TlsFiles) -> None:
        self._candidates = candidates
        self._own = own
        self._worked: dict[str, str] = {}
        self._sure: dict[str, float] = {}
        self._logged_at: dict[tuple[str, str], float] = {}
        self._nobody: dict[str, tuple[float, str]] = {}

    def address(self, peer: Peer) -> str:
        """Returns the address at which the peer was last reached since the start, or ""."""
        return self._worked.get(peer.fingerprint, "")

    def forget(self, peer: Peer) -> None:
        """The address that worked last comes first no more."""
        self._worked.pop(peer.fingerprint, None)

    def doubt(self, peer: Peer) -> None:
        """The peer may have moved: the address that worked last comes first, and no longer alone."""
        self._sure.pop(peer.fingerprint, None)

    async def first(self, peer: Peer, attempt: Callable[[str], Awaitable[_T]]) -> _T:
        """Returns the result of ``attempt(address)`` at the peer's right address; one address is tried at a time.

        Raises ``PeerOfflineError`` when none is, ``KeyChangedError`` when another key answered at one, and
        ``PeerRefusedError`` when the peer itself trusts this machine no more.
        """
        loud: KeyChangedError | PeerRefusedError | None = None
        addresses = await self._in_order(peer)
        alone = len(addresses) == 1 or self._is_sure(peer, addresses)
        while addresses:
            address = addresses[0]
            if not alone:
                found_at, changed = await self._answering(peer, addresses)
                loud = loud or changed
                if found_at is None:
                    break
                address = found_at
            alone = False
            addresses.remove(address)
            try:
                found = await _twice(attempt, address)
            except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
                loud = loud or self._other_key(peer, address, error)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ssl.SSLError) as error:
                if not isinstance(error, aiohttp.ClientConnectorError) and await self._answers(peer, address):
                    loud = PeerRefusedError(
                        f"{peer.name} does not trust this machine any more.",
                        do=f"pair anew: rappd peers pair {peer.name}",
                    )
            except (OSError, aiohttp.ClientError, TimeoutError) as error:
                log.debug("no way to %s by %s: %s", peer.name, address, error)
            else:
                self._worked[peer.fingerprint] = address
                self._sure[peer.fingerprint] = time.monotonic() + SURE_SECONDS
                return found
        self._worked.pop(peer.fingerprint, None)
        if loud is not None:
            raise loud
        raise PeerOfflineError(f"{peer.name} is away.", do="rappd peers list")

    async def _answering(self, peer: Peer, addresses: list[str]) -> tuple[str | None, KeyChangedError | None]:
        """The first address where the pinned key answers, None when it does at none; and whether another did."""
        context = client_context(peer.certificate, self._own)
        go = asyncio.Event()
        knocks = {
            asyncio.ensure_future(_knock(address, context, go if number else None)): address
            for number, address in enumerate(addresses)
        }
        changed: KeyChangedError | None = None
        active_requests = set(knocks)
        try:
            while active_requests:
                done, active_requests = await asyncio.wait(
                    active_requests, return_when=asyncio.FIRST_COMPLETED
                )
                for task in [one for one in knocks if one in done]:
                    error = task.exception()
                    if error is None:
                        return knocks[task], changed
                    if isinstance(error, ssl.SSLError):
                        changed = changed or self._other_key(peer, knocks[task], error)
                    else:
                        log.debug("no way to %s by %s: %r", peer.name, knocks[task], error)
                        self._nobody[knocks[task]] = (time.monotonic(), peer.fingerprint)
                go.set()
        finally:
            for task in knocks:
                task.cancel()
            await asyncio.gather(*knocks, return_exceptions=True)
        return None, changed

    def _is_sure(self, peer: Peer, addresses: list[str]) -> bool:
        known = self._worked.get(peer.fingerprint)
        until = self._sure.get(peer.fingerprint, 0.0)
        return bool(addresses) and known == addresses[0] and time.monotonic() < until

    def _other_key(self, peer: Peer, address: str, error: Exception) -> KeyChangedError:
        self._tell(peer, address, error)
        return KeyChangedError(
            f"{peer.name}'s key has changed; nothing was sent.",
            do=f"reinstalled? rappd peers revoke {peer.name}, and pair anew; else keep away",
        )

    async def _in_order(self, peer: Peer) -> list[str]:
        found = self._worth_a_try(peer, [one.address for one in await self._candidates(peer)])
        worked = self._worked.get(peer.fingerprint)
        return list(dict.fromkeys([worked, *found] if worked in found and worked else found))

    def _worth_a_try(self, peer: Peer, addresses: list[str]) -> list[str]:
        """Without those at which a search for another peer just found nobody: many peers may share a list."""
        since = time.monotonic() - NOBODY_SECONDS
        self._nobody = {address: found for address, found in self._nobody.items() if found[0] >= since}
        if not self._nobody:
            return addresses
        own = (peer.address, self._worked.get(peer.fingerprint))
        return [
            one
            for one in addresses
            if one in own or self._nobody.get(one, (0.0, peer.fingerprint))[1] == peer.fingerprint
        ]

    def _tell(self, peer: Peer, address: str, error: Exception) -> None:
        """Logs another key, of one peer at one address once a minute: it is tried far more often."""
        now = time.monotonic()
        self._logged_at = {key: at for key, at in self._logged_at.items() if now - at < TOLD_SECONDS}
        if (peer.fingerprint, address) not in self._logged_at:
            self._logged_at[peer.fingerprint, address] = now
            log.warning("security: at %s another key than %s's answers (%s)", address, peer.name, error)

    async def _answers(self, peer: Peer, address: str) -> bool:
        """True when the peer's own key answers there, to a caller without a certificate."""
        try:
            return await key_at(address) == peer.fingerprint
        except (OSError, TimeoutError, BadCertificateError):
            return False


async def _knock(address: str, context: ssl.SSLContext, go: asyncio.Event | None) -> None:
    """Opens a connection and ends it; with ``go`` not before that is set, or the head start is over."""
    if go is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEAD_START):
                await go.wait()
    host, port = split_address(address)
    async with asyncio.timeout(CONNECT_SECONDS):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    writer.close()


async def _twice(attempt: Callable[[str], Awaitable[_T]], address: str) -> _T:
    """Once more where a connection broke: the peer may have ended it just then, or have started anew."""
    try:
        return await attempt(address)
    except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError):
        raise
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        return await attempt(address)


async def key_at(address: str) -> str:
    """The fingerprint of the machine at an address, without showing this one's.

    Raises ``OSError``, ``TimeoutError``; ``BadCertificateError`` when it is no machine of this kind.
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
        raise BadCertificateError("No certificate was shown.")
    return shown


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port``. Raises ``OSError`` when it is neither."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise OSError(f"{address[:80]} is no address")
    return host.strip("[]"), int(port)
