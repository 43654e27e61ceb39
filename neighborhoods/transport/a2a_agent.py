"""Agents of other vendors, over A2A 1.0: their card, and one message each. No keys.

They are called only where somebody wrote their card's address down, as published brainstems are. Nothing that comes
back is trusted, and nothing but the sentence goes out. A card leads to no other machine than the one it came from.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from envelopes.codecs import a2a, a2a_cards, a2a_tasks
from envelopes.codecs.a2a_cards import ForeignCard
from envelopes.codecs.bounded_json import bounded_json
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import PeerFailedError, PeerOfflineError

LARGEST = 4 << 20
CONNECT_SECONDS = 4.0
CARD_SECONDS = 10.0
CARD_KEPT_SECONDS = 300.0
MOST_CARDS = 200
_POLLED = (0.25, 4.0)
"""Seconds between two looks at a task that takes longer: the first, and the most."""

_cards: dict[str, tuple[float, ForeignCard]] = {}


async def fetch_card(url: str, *, wait: float = CARD_SECONDS) -> ForeignCard:
    """The card at ``url``. Raises ``PeerOfflineError``, and ``PeerFailedError`` for what is no card that can be used."""
    name = url.split("/")[2]
    async with _Connection(name, wait) as http:
        status, raw = await http.exchange("GET", url, None)
    if status != 200:
        raise PeerFailedError(f"{name} has no agent card there ({status}).", do="Look at the address again.")
    try:
        card = await asyncio.to_thread(a2a_cards.read_card, raw, url)
    except ValueError as error:
        raise PeerFailedError(
            f"{name}'s agent card cannot be used: {error}.", do="Ask who runs it."
        ) from error
    if len(_cards) >= MOST_CARDS:
        del _cards[next(iter(_cards))]
    _cards[url] = time.monotonic(), card
    return card


async def ask(entry: Entry, text: str, *, session: str, wait: float, nonce: str) -> str:
    """A message to the agent whose card is at ``entry.url``: what it answers, as text.

    ``nonce`` is the id of the message, ``session`` its context. Raises ``PeerOfflineError`` (``maybe_sent`` unless it
    surely was not reached) and ``PeerFailedError``.
    """
    until = time.monotonic() + wait
    name = entry.name or entry.host
    known = _cards.get(entry.url)
    fresh = known is not None and time.monotonic() - known[0] < CARD_KEPT_SECONDS
    card = (
        known[1] if known is not None and fresh else await fetch_card(entry.url, wait=min(wait, CARD_SECONDS))
    )
    message = {"messageId": nonce, "contextId": session, "role": "ROLE_USER", "parts": [{"text": text}]}
    async with _Connection(name, max(0.1, until - time.monotonic())) as http:
        found = await http.call(card, "SendMessage", {"message": message})
        pause = _POLLED[0]
        while (task := _unfinished(found)) is not None:
            if time.monotonic() + pause >= until:
                raise PeerOfflineError(
                    f"{name} works on it still.", do="Wait longer with --wait.", maybe_sent=True
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _POLLED[1])
            found = {"task": await http.call(card, "GetTask", {"id": task})}
    return await asyncio.to_thread(answer_of, name, found)


class _Connection:
    """Requests to one agent, all of them within ``wait`` seconds each; no redirect is followed, no cookie kept."""

    def __init__(self, name: str, wait: float) -> None:
        self._name, self._wait = name, wait
        limits = aiohttp.ClientTimeout(total=wait, sock_connect=min(wait, CONNECT_SECONDS))
        self._http = aiohttp.ClientSession(
            timeout=limits, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )

    async def __aenter__(self) -> _Connection:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._http.close()

    async def call(self, card: ForeignCard, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of an operation, over the binding that the card names. Raises what ``ask`` raises."""
        if card.binding == a2a_cards.JSON_RPC:
            if card.tenant:
                params = {**params, "tenant": card.tenant}
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            status, raw = await self.exchange("POST", card.url, body)
        else:
            base = card.url.rstrip("/") + (f"/{card.tenant}" if card.tenant else "")
            if method == "SendMessage":
                status, raw = await self.exchange("POST", f"{base}/message:send", params)
            else:
                status, raw = await self.exchange("GET", f"{base}/tasks/{params['id']}", None)
        return await asyncio.to_thread(read_result, self._name, card.binding, status, raw)

    async def exchange(self, method: str, url: str, body: Any) -> tuple[int, bytes]:
        """The status and up to ``LARGEST`` bytes of an answer. Raises what ``ask`` raises."""
        sent = body is not None
        headers = {a2a.VERSION_HEADER: a2a.VERSION, "Accept-Encoding": "identity", "User-Agent": "rappd"}
        if sent:
            headers["Content-Type"] = "application/json"
        try:
            async with self._http.request(
                method, url, data=orjson.dumps(body) if sent else None, headers=headers, allow_redirects=False
            ) as answer:
                raw = bytearray()
                async for piece in answer.content.iter_any():
                    raw += piece
                    if len(raw) > LARGEST:
                        raise PeerFailedError(
                            f"{self._name} answered with more than {LARGEST >> 20} MB.", do="Ask for less."
                        )
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorCertificateError) as error:
            raise self._offline(error) from error
        except aiohttp.ClientConnectorError as error:
            raise self._offline(error) from error
        except TimeoutError as error:
            raise PeerOfflineError(
                f"{self._name} did not answer within {self._wait:g} s.",
                do="Wait longer with --wait, if it does no harm to do it twice.",
                maybe_sent=sent,
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PeerOfflineError(
                f"{self._name} broke off before it had answered.",
                do="Ask again if it does no harm to do it twice.",
                maybe_sent=sent,
            ) from error
        if 300 <= answer.status < 400:
            raise PeerFailedError(
                f"{self._name} sends callers elsewhere ({answer.status}); that is not followed.",
                do="Add the right address.",
            )
        return answer.status, bytes(raw)

    def _offline(self, error: Exception) -> PeerOfflineError:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return PeerOfflineError(
                f"{self._name}'s certificate is vouched for by nobody whom this machine knows.",
                do="If rappd runs there: rappd peers pair.",
            )
        return PeerOfflineError(f"{self._name} is away.", do="rappd peers list")


def read_result(name: str, binding: str, status: int, raw: bytes) -> dict[str, Any]:
    """The result in an agent's answer. Raises ``PeerFailedError``, for an error in its words."""
    try:
        found = bounded_json(raw, most_bytes=LARGEST)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PeerFailedError(f"{name} does not answer as an A2A agent ({status}).", do="rappd peers list")
    problem = found.get("error")
    if status != 200 or problem is not None:
        message = problem.get("message") if isinstance(problem, dict) else problem
        reason = a2a_cards.tame(message, 300) or f"it answered {status}"
        do = "It asks for a key, and none is sent." if status in (401, 403) else "Ask it otherwise."
        raise PeerFailedError(f"{name}: {reason}", do=do)
    result = found.get("result") if binding == a2a_cards.JSON_RPC else found
    if not isinstance(result, dict):
        raise PeerFailedError(f"{name} does not answer as an A2A agent.", do="rappd peers list")
    return result


def _unfinished(found: Mapping[str, Any]) -> str | None:
    """The id of a task that is worked on still."""
    task = found.get("task")
    if not isinstance(task, dict) or _state(task) not in (a2a.SUBMITTED, a2a.WORKING):
        return None
    ident = task.get("id")
    return ident if isinstance(ident, str) and _is_plain(ident) else None


def _is_plain(ident: str) -> bool:
    return 0 < len(ident) <= a2a.LONGEST_ID and all(one.isalnum() or one in "-_." for one in ident)


def _state(task: Mapping[str, Any]) -> object:
    status = task.get("status")
    return status.get("state") if isinstance(status, dict) else None


def answer_of(name: str, found: Mapping[str, Any]) -> str:
    """The text of an answer. Raises ``PeerFailedError`` for a task that failed, in its words."""
    task = found.get("task")
    if not isinstance(task, dict):
        return a2a_tasks.text_of(found.get("message"))
    status = task.get("status")
    message = a2a_tasks.text_of(status.get("message")) if isinstance(status, dict) else ""
    state = _state(task)
    if state in (a2a.FAILED, a2a.CANCELED, a2a.REJECTED, a2a.AUTH_REQUIRED):
        shown = a2a_cards.tame(message, 300) or "it could not do it"
        raise PeerFailedError(f"{name}: {shown}", do="Ask it otherwise.")
    artifacts = task.get("artifacts")
    texts = [a2a_tasks.text_of(one) for one in artifacts] if isinstance(artifacts, list) else []
    return "\n\n".join(text for text in (*texts, message) if text)
