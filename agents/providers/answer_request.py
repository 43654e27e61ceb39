"""One request to a model server over HTTP: sockets and time around the reader of answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from agents.providers import refusals, urls
from agents.providers.answers.reader import AnswerReader, Ending, ModelAnswer, Piece, Text
from agents.providers.json_http import JsonReply, ask_over, proxy_for
from agents.providers.lazy_imports import load
from agents.providers.local_servers import WorkerServes, WorkerServesError
from agents.providers.refusals import Meaning, Refusal
from envelopes.ip_addresses import is_this_machine, source_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

FIRST_WORD_SECONDS = 10.0
"""Silence after which the person is told that the answer is still awaited."""
_CONNECT_SECONDS = 5.0
_AFTER_END_SECONDS = 0.8
"""Time for usage and ``[DONE]`` after the reason to finish: some servers keep the connection open for ever."""
_BODY_PAUSE_SECONDS = 0.25
"""Silence after which a JSON body is looked at although the connection stays open."""
_MOST_ERROR_BYTES = 64 << 10
_SLICE = 32 << 10
"""Bytes read at a time between two looks at the event loop: some 5 ms of short pieces."""


class Outcome(msgspec.Struct, frozen=True):
    """An answer, or the refusal in its place; both where an answer broke off. ``shown``: a person saw some of it."""

    answer: ModelAnswer | None = None
    refusal: Refusal | None = None
    shown: bool = False
    of_worker: str = ""
    """The reason why nothing was sent: an agent's process listens there."""


class Listener(msgspec.Struct, frozen=True):
    """Callbacks of one request: pieces of the answer, and the seconds of silence each time that a person is told."""

    on_piece: Callable[[Piece], None] | None = None
    on_wait: Callable[[float], None] | None = None


class RequestLimits(msgspec.Struct, frozen=True):
    """Limits, and broken connections, are tried again up to ``max_retries`` times.

    ``timeout`` (seconds) bounds the wait for each next piece of an answer. ``via`` is this machine in HTTP's ``Via``: it
    knows itself again where its model server is itself.
    """

    max_retries: int = 2
    timeout: float = 60.0
    via: str = ""


class ModelConnection:
    """HTTP connections to one model server, kept open between answers.

    ``silence`` is the most seconds without a byte. With ``worker_serves``, nothing is sent to a server that turns out
    to be a worker process.
    """

    def __init__(self, silence: float, worker_serves: WorkerServes | None = None) -> None:
        self._silence = silence
        self._worker_serves = worker_serves
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()

    async def ask(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        model: str,
        listener: Listener,
        secrets: tuple[str, ...] = (),
    ) -> Outcome:
        """Sends one request, reads its answer to the end. Raises nothing for the server's or the network's sake."""
        session = await self._opened()
        import aiohttp

        proxy = None if urls.on_this_machine(url) else await asyncio.to_thread(proxy_for, url)
        shown: list[str] = []
        reader = AnswerReader(model)
        try:
            request = session.post(url, data=body, headers=headers, proxy=proxy, allow_redirects=False)
            async with await _head(request, self._silence, listener) as response:
                if response.status != 200:
                    return Outcome(refusal=await _refusal(response, self._silence, secrets))
                ended = await _read(response, reader, self._silence, listener, shown)
        except TimeoutError:
            return Outcome(refusal=Refusal(Meaning.SLOW))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error.__cause__, WorkerServesError):
                return Outcome(of_worker=str(error.__cause__))
            return Outcome(refusal=Refusal(Meaning.SILENT, sent=type(error).__name__))
        _tell(reader.finish(), listener, shown)
        answer = reader.answer()
        return Outcome(answer, _refusal_in(answer, ended, secrets), bool(shown))

    async def ask_json(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Mapping[str, Any] | None = None,
        within: float = 10.0,
    ) -> JsonReply:
        """One JSON question over the same connections."""
        return await ask_over(await self._opened(), method, url, headers=headers, json=json, within=within)

    async def hand_on(
        self, url: str, body: bytes, headers: Mapping[str, str], most: int
    ) -> tuple[int, str, bytes] | None:
        """Status, media type and at most ``most`` bytes of an answer that nobody reads here; None without one."""
        session = await self._opened()
        import aiohttp

        proxy = None if urls.on_this_machine(url) else await asyncio.to_thread(proxy_for, url)
        try:
            async with (
                asyncio.timeout(self._silence),
                session.post(url, data=body, headers=headers, proxy=proxy, allow_redirects=False) as response,
            ):
                raw = bytearray()
                while len(raw) <= most and (piece := await response.content.readany()):
                    raw += piece
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            return None
        return (response.status, response.content_type, bytes(raw)) if len(raw) <= most else None

    async def close(self) -> None:
        """Closes the connections; the next request opens new ones."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _opened(self) -> ClientSession:
        if self._session is None:
            async with self._opening:
                if self._session is None:
                    self._session = await _open_session(self._worker_serves)
        return self._session


async def _open_session(worker_serves: WorkerServes | None) -> ClientSession:
    aiohttp = await load("aiohttp")

    class CheckedConnector(aiohttp.TCPConnector):  # type: ignore[name-defined,misc]  # imported above, when first needed
        """Checks each new connection before anything is sent on it; aiohttp has no public place for that."""

        async def _create_connection(self, *args: Any, **options: Any) -> Any:
            protocol = await super()._create_connection(*args, **options)
            transport = protocol.transport
            server, client = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            if (
                worker_serves is not None
                and _is_local(server, client)
                and await asyncio.to_thread(worker_serves, server[:2], client[:2])
            ):
                transport.abort()
                raise WorkerServesError(f"An agent listens at {server[0]}:{server[1]}.")
            return protocol

    # No total time: an answer may stream for an hour. Silence is noticed here.
    limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    session: ClientSession = aiohttp.ClientSession(
        connector=CheckedConnector(limit=0),
        timeout=limits,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )
    return session


async def _head(request: Any, most: float, listener: Listener) -> ClientResponse:
    """The response once its head is there, with a word to the person every ten seconds. Raises ``TimeoutError``."""
    began = time.monotonic()
    asking = asyncio.ensure_future(_entered(request))
    given = False
    try:
        while True:
            left = most - (time.monotonic() - began)
            done, _ = await asyncio.wait({asking}, timeout=max(0.0, min(FIRST_WORD_SECONDS, left)))
            if done:
                given = True
                return asking.result()
            if left <= FIRST_WORD_SECONDS:
                raise TimeoutError
            if listener.on_wait is not None:
                listener.on_wait(time.monotonic() - began)
    finally:
        if not given:
            asking.cancel()
            asking.add_done_callback(_hang_up)


async def _entered(request: Any) -> ClientResponse:
    response: ClientResponse = await request
    return response


def _hang_up(asking: asyncio.Future[ClientResponse]) -> None:
    """Closes a response that came in the moment in which nobody waited for it any more: else its server goes on."""
    if not asking.cancelled() and asking.exception() is None:
        asking.result().close()


async def _read(
    response: ClientResponse, reader: AnswerReader, most: float, listener: Listener, shown: list[str]
) -> str:
    """Feeds the reader until the answer is complete. The reason why it is not, "" where it is."""
    import aiohttp

    silent_since = time.monotonic()
    reported = 0.0
    while not reader.complete:
        silence = time.monotonic() - silent_since
        if reader.finished and silence >= _AFTER_END_SECONDS:
            return ""
        if silence >= most:
            return "timeout"
        try:
            async with asyncio.timeout(
                min(_AFTER_END_SECONDS if reader.finished else _BODY_PAUSE_SECONDS, most)
            ):
                octets = await response.content.readany()
        except TimeoutError:
            _tell(reader.pause(), listener, shown)
            silence = time.monotonic() - silent_since
            if (
                silence - reported >= FIRST_WORD_SECONDS
                and listener.on_wait is not None
                and not reader.finished
            ):
                reported = silence
                listener.on_wait(silence)
            continue
        except (aiohttp.ClientError, OSError, ValueError) as error:
            _tell(reader.feed(_arrived(response)), listener, shown)
            return type(error).__name__
        if not octets:
            return ""
        silent_since, reported = time.monotonic(), 0.0
        for begin in range(0, len(octets), _SLICE):
            _tell(reader.feed(octets[begin : begin + _SLICE]), listener, shown)
            if begin:
                await asyncio.sleep(0)
    response.close()
    return ""


def _arrived(response: ClientResponse) -> bytes:
    """Bytes that came just before the connection broke; aiohttp's public methods raise in place of giving them."""
    return bytes(response.content._read_nowait(-1))


def _tell(pieces: list[Piece], listener: Listener, shown: list[str]) -> None:
    if listener.on_piece is None:
        return
    for piece in pieces:
        if isinstance(piece, Text):
            shown.append(piece.text)
        listener.on_piece(piece)


async def _refusal(response: ClientResponse, most: float, secrets: tuple[str, ...]) -> Refusal:
    import aiohttp

    raw = bytearray()
    try:
        async with asyncio.timeout(min(most, _CONNECT_SECONDS)):
            while len(raw) < _MOST_ERROR_BYTES and (piece := await response.content.readany()):
                raw += piece
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        pass  # the status alone is a refusal
    text = bytes(raw[:_MOST_ERROR_BYTES]).decode("utf-8", "replace").strip().removeprefix("data:").strip()
    try:
        error: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        error = text
    wait = refusals.seconds_to_wait(response.headers, time.time())
    refusal = refusals.read(error, response.status, wait, secrets)
    if 300 <= response.status < 400:
        return Refusal(
            Meaning.ELSEWHERE, sent=response.headers.get("Location", "")[:200], status=response.status
        )
    return refusal


def _refusal_in(answer: ModelAnswer, ended: str, secrets: tuple[str, ...]) -> Refusal | None:
    """The refusal in an answer of status 200, None where it is one."""
    if answer.ending is Ending.REFUSED:
        return refusals.read(answer.error if answer.error is not None else "", 0, 0.0, secrets)
    if answer.ending is Ending.NOT_A_MODEL_SERVER:
        if ended:
            return Refusal(Meaning.BROKE_OFF, sent=ended)
        found = refusals.read(answer.stray.lstrip(), 0, 0.0, secrets)
        if found.meaning is Meaning.SERVER or not _is_sentence(found.server_sentence):
            return Refusal(Meaning.NOT_A_MODEL_SERVER, sent=found.sent)
        return found
    if answer.ending is Ending.NO_ANSWER:
        return Refusal(Meaning.NO_ANSWER)
    if answer.ending is Ending.TOO_LONG:
        return Refusal(Meaning.TOO_LONG)
    if answer.ending is Ending.BROKEN:
        if ended == "timeout":
            return Refusal(Meaning.SLOW)
        return Refusal(Meaning.BROKE_OFF, sent=ended)
    return None


def _is_sentence(text: str) -> bool:
    """True for words of a program that answers in place of the model server, as a proxy's; not for scraps of bytes."""
    return text[:1].isalpha() and "\ufffd" not in text


def _is_local(server: Any, client: Any) -> bool:
    """True for a TCP connection that stays on this machine."""
    if not (isinstance(server, tuple) and isinstance(client, tuple)):
        return False
    host: str = server[0]
    return is_this_machine(host) or source_text(host) == source_text(client[0])
