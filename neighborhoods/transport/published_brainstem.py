"""Published brainstems as peers: plain HTTP, no keys, ``/chat`` and nothing more (RAPP v1 §8, §13), or a Tier 2 path (§18.2).

They are called only where somebody wrote their address down. Nothing that comes back is trusted, and
nothing but the sentence, and who claims to say it, goes out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson

from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.chat import TWIN_CHAT
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import PeerFailedError, PeerOfflineError

LARGEST = 4 << 20
CONNECT_SECONDS = 4.0
MOST_WORDS = 300
"""Characters of a published brainstem's own error that are repeated."""


async def ask(
    entry: Entry, text: str, *, session: str, wait: float, from_rappid: str = "", nonce: str = ""
) -> dict[str, Any]:
    """One turn of a published brainstem: its whole answer, with ``response`` filled from either spelling.

    It is asked once: nothing says whether a second try would do the work twice. ``from_rappid`` sends the
    sentence as a twin-chat envelope, too. Raises ``PeerOfflineError`` (``maybe_sent`` unless it surely was not
    reached) and ``PeerFailedError``.
    """
    is_tier2 = entry.kind == "tier2"
    who = "user_guid" if is_tier2 else "session_id"
    body: dict[str, Any] = {"user_input": text, "conversation_history": [], who: session}
    if from_rappid and not is_tier2:
        body["twin_chat_envelope"] = twin_chat(text, from_rappid=from_rappid, nonce=nonce)
    name = entry.name or entry.host
    try:
        url = entry.url if is_tier2 else f"{entry.url.rstrip('/')}/chat"
        status, raw = await _posted(url, orjson.dumps(body), wait)
    except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
        raise PeerOfflineError(f"{name} is away.", do="rappd peers list") from error
    except TimeoutError as error:
        raise PeerOfflineError(
            f"{name} did not answer within {wait:g} s; it may be doing it all the same.",
            do="Wait longer with --wait, if it does no harm to do it twice.",
            maybe_sent=True,
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise PeerOfflineError(
            f"{name} broke off before it had answered; it may have done it all the same.",
            do="Ask again if it does no harm to do it twice.",
            maybe_sent=True,
        ) from error
    return _answer(name, status, raw)


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


async def _posted(url: str, body: bytes, wait: float) -> tuple[int, bytes]:
    """The status and up to one byte more than ``LARGEST`` of what came back."""
    limits = aiohttp.ClientTimeout(total=wait, sock_connect=min(wait, CONNECT_SECONDS))
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "rappd"}
    async with (
        aiohttp.ClientSession(
            timeout=limits, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        ) as http,
        http.post(url, data=body, headers=headers, allow_redirects=False) as answer,
    ):
        raw = bytearray()
        async for piece in answer.content.iter_any():
            raw += piece
            if len(raw) > LARGEST:
                break
        return answer.status, bytes(raw[: LARGEST + 1])


def _answer(name: str, status: int, raw: bytes) -> dict[str, Any]:
    """Returns the reply of a response. Raises ``PeerFailedError`` in its words, or in ours where it has none."""
    if len(raw) > LARGEST:
        raise PeerFailedError(f"{name} answered with more than {LARGEST >> 20} MB.", do="Ask for less.")
    if 300 <= status < 400:
        raise PeerFailedError(
            f"{name} sends callers elsewhere ({status}); that is not followed.", do="Add the right address."
        )
    try:
        found = bounded_json(raw, most_bytes=LARGEST)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PeerFailedError(f"{name} does not answer as a brainstem ({status}).", do="rappd peers list")
    texts = [found[key] for key in ("response", "assistant_response") if isinstance(found.get(key), str)]
    message = found.get("error")
    if status != 200 or (message and not texts):
        reason = str(message)[:MOST_WORDS] if message else f"it answered {status}"
        raise PeerFailedError(f"{name}: {reason}")
    if not texts:
        raise PeerFailedError(f"{name} answered without a text.", do="Is it a brainstem?")
    return {**found, "response": next((text for text in texts if text), "")}
