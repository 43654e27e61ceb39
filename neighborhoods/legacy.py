"""Published brainstems as peers: plain HTTP, no keys, ``/chat`` and nothing more (RAPP v1 §8, §13).

They are called only where somebody wrote their address down. Nothing that comes back is trusted, and
nothing but the sentence goes out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson

from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import PeerAway, PeerFailed

LARGEST = 4 << 20
CONNECT_SECONDS = 4.0
TWIN_CHAT = "rapp-twin-chat/1.0"


async def ask(
    entry: Entry, text: str, *, session: str, wait: float, from_rappid: str = "", nonce: str = ""
) -> dict[str, Any]:
    """One turn of a published brainstem: its whole answer, with ``response`` filled from either spelling.

    ``from_rappid`` sends the sentence as a twin-chat envelope, too. Raises ``PeerAway``, ``PeerFailed``.
    """
    body: dict[str, Any] = {"user_input": text, "conversation_history": [], "session_id": session}
    if from_rappid:
        body["twin_chat_envelope"] = twin_chat(text, from_rappid=from_rappid, nonce=nonce)
    name = entry.name or entry.host
    limits = aiohttp.ClientTimeout(total=wait, sock_connect=CONNECT_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as http,
            http.post(
                f"{entry.url.rstrip('/')}/chat",
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json"},
                allow_redirects=False,
            ) as answer,
        ):
            raw = await answer.content.read(LARGEST)
            status = answer.status
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise PeerAway(f"{name} is away.", do="rappd peers list") from error
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise PeerFailed(f"{name} does not answer as a brainstem ({status}).", do="Is it one?")
    if status != 200:
        told = found.get("error")
        raise PeerFailed(f"{name}: {str(told)[:300] if told else f'it answered {status}'}", do="")
    text_back = found.get("response", found.get("assistant_response"))
    return {**found, "response": text_back if isinstance(text_back, str) else ""}


def twin_chat(text: str, *, from_rappid: str, nonce: str, to_rappid: str = "") -> dict[str, Any]:
    """A sentence as the published twin-chat envelope. Who it says it is from is a claim, to everybody."""
    return {
        "schema": TWIN_CHAT,
        "from_rappid": from_rappid,
        "to_rappid": to_rappid,
        "utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "nonce": nonce,
        "kind": "say",
        "payload": {"text": text},
        "facets": [],
    }
