"""Talking to a machine that is not trusted yet: its HELLO, and the steps of pairing."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson

from envelopes.codecs.bounded_json import bounded_json
from envelopes.errors import BadCertificateError
from envelopes.identity.node_card import NodeCard
from neighborhoods.auth.tls import client_context
from neighborhoods.discovery.peer_address_order import AddressResolver
from neighborhoods.errors import NotPairedError, PeerOfflineError
from neighborhoods.pairing.local_party import OnPaired, Send
from neighborhoods.peer import Whose
from neighborhoods.peer_store import PeerStore
from neighborhoods.transport.connector import CONNECT_SECONDS, certificate_at
from neighborhoods.transport.http_client import session, whole

ANSWER_SECONDS = 10.0
LARGEST = 1 << 20


async def say_hello(address: str, hello: bytes) -> tuple[dict[str, Any], bytes]:
    """The data of the HELLO at an address, and the certificate that was shown. Raises ``PeerOfflineError``."""
    status, found, certificate = await post(address, "/envelopes", hello)
    if status != 200 or not isinstance(found, dict) or found.get("verb") != "HELLO":
        raise NotPairedError(f"{address} is no machine of this kind.", do="Is rappd running there?")
    data = found.get("data")
    return data if isinstance(data, dict) else {}, certificate


async def post(address: str, path: str, body: bytes) -> tuple[int, Any, bytes]:
    """One request to the machine at the address: status, JSON and certificate. Raises ``PeerOfflineError``."""
    limits = aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    try:
        shown = await certificate_at(address)
        context = client_context(shown)  # what follows goes to the machine with that certificate
        async with (
            session(timeout=limits) as client,
            client.post(f"https://{address}{path}", data=body, headers=headers, ssl=context) as got,
        ):
            return got.status, bounded_json(await whole(got, LARGEST), most_bytes=LARGEST), shown
    except ValueError as error:
        raise PeerOfflineError(
            f"{address} does not answer in JSON.", do="Is another program on that port?"
        ) from error
    except (aiohttp.ClientError, OSError, TimeoutError, BadCertificateError) as error:
        raise PeerOfflineError(f"Nobody answers at {address}.", do="Is rappd running there?") from error


def pairing_parts(book: PeerStore, resolver: AddressResolver) -> tuple[Send, OnPaired]:
    """The two functions that ``PairingService`` is handed."""

    async def send(address: str, body: dict[str, Any]) -> dict[str, Any]:
        _, found, _ = await post(address, "/pairing", orjson.dumps(body))
        if not isinstance(found, dict):
            raise PeerOfflineError(f"{address} does not answer as a machine of this kind.")
        return found

    async def on_paired(introduction: NodeCard, whose: Whose, address: str) -> None:
        if not introduction.port:
            address = ""  # it has no listener: it opens the line
        await book.pair(introduction, whose, address)
        if address:
            resolver.learn(address, introduction.fingerprint)

    return send, on_paired
