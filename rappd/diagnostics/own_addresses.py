"""Tries the listeners of this machine from its own addresses, as another machine or a phone would."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from neighborhoods.discovery.address_text import is_listened_on, join, split

_ANSWER_SECONDS = 4.0


def listened_addresses(hosts: Sequence[str], port: int) -> list[str]:
    """``host:port`` of this machine on its links, where a listener at ``hosts`` answers; link-local with their link."""
    from neighborhoods.discovery.interfaces import interfaces

    return [
        join(f"{one}%{link.name}" if one.startswith("fe80:") else one, port)
        for link in interfaces()
        for one in link.addresses
        if is_listened_on(one, hosts)
    ]


def keys_at(addresses: Sequence[str]) -> dict[str, str]:
    """The fingerprint of the machine that answers at each address, "" for nobody. Blocks four seconds at most."""
    from envelopes.errors import BadCertificateError
    from neighborhoods.transport.connector import key_at

    async def key(address: str) -> str:
        try:
            return await key_at(address)
        except (OSError, TimeoutError, BadCertificateError):
            return ""

    async def every() -> list[str]:
        return await asyncio.gather(*map(key, addresses))

    return dict(zip(addresses, asyncio.run(every()), strict=True))


def pages_missing(addresses: Sequence[str], *, tls: bool) -> list[str]:
    """The addresses at which no page for phones is served. Blocks four seconds at most."""

    from neighborhoods.auth.tls import client_context

    context = client_context(None) if tls else None  # the certificate is this machine's own

    def is_missing(address: str) -> bool:
        host, port = split(address)
        line = (
            http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
            if context is None
            else http.client.HTTPSConnection(host, port, timeout=_ANSWER_SECONDS, context=context)
        )
        try:
            line.request("GET", "/t/index.html")  # the page at /t would count as a visitor
            return line.getresponse().status != 200
        except (OSError, http.client.HTTPException):
            return True
        finally:
            line.close()

    with ThreadPoolExecutor(max(1, len(addresses))) as pool:
        missing = list(pool.map(is_missing, addresses))
    return [address for address, gone in zip(addresses, missing, strict=True) if gone]
