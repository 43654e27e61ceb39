"""Fetching a model by Ollama's own download (``POST /api/pull``): its progress, and its words where it fails."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from agents.errors import AgentError
from agents.providers.json_http import ask, proxy_for
from agents.providers.lazy_imports import load
from agents.providers.refusals import read as read_refusal
from agents.providers.urls import base_url, on_this_machine, shown, without_login
from envelopes.codecs.bounded_json import bounded_object

if TYPE_CHECKING:
    from aiohttp import ClientResponse

MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?::\d{1,5})?(?:/[\w.-]+){0,4}(?::[\w.-]+)?", re.ASCII)
LONGEST_NAME = 200
_MOST_LINE = 1 << 16
_PACE_SECONDS = 0.1
_MOST_PARTS = 1_000
_MOST_BYTES = 1 << 50
_OLD_DO = "update Ollama, or `ollama pull {model}` in a terminal"
_RETRY_DO = "`rappd models download {model}`: what has arrived is kept"


class DownloadError(AgentError):
    """The model did not arrive; the text is Ollama's, where it said why."""

    code = "download"
    status = 502


class DownloadLimits(msgspec.Struct, frozen=True):
    """Seconds of silence after which a download is given up, and seconds that one may take at all.

    Ollama says nothing while it checks a large file on a slow disk.
    """

    silence: float = 600.0
    whole: float = 24 * 3600.0


USUAL_LIMITS = DownloadLimits()


class DownloadState(msgspec.Struct, frozen=True):
    """Ollama's present step, and bytes over all parts so far; ``total`` is 0 until it is known."""

    status: str = ""
    completed: int = 0
    total: int = 0


def root_of(address: str) -> str:
    """The address that Ollama's own interface lies below, of the one of its OpenAI-compatible interface."""
    parts = urlsplit(without_login(base_url(address))[0])
    return urlunsplit((parts.scheme, parts.netloc, "", "", ""))


async def is_ollama(root: str, headers: Mapping[str, str] | None = None) -> bool:
    """True when Ollama answers at ``root``."""
    version = await ask("GET", f"{root}/api/version", headers=headers, within=3.0)
    return version.status == 200 and isinstance(version.data.get("version"), str)


async def download(
    root: str,
    model: str,
    moved: Callable[[DownloadState], None],
    headers: Mapping[str, str] | None = None,
    limits: DownloadLimits = USUAL_LIMITS,
) -> None:
    """Lets the Ollama at ``root`` fetch ``model``, and tells its steps, ten a second at most. Raises ``DownloadError``.

    Cancelling it makes Ollama stop; what has arrived there is kept for the next time.
    """
    if len(model) > LONGEST_NAME or not MODEL_NAME.fullmatch(model):
        raise DownloadError(
            f"“{model[:60]}” is no name of a model.", do="write it as ollama.com/library has it"
        )
    aiohttp = await load("aiohttp")
    proxy = None if on_this_machine(root) else await asyncio.to_thread(proxy_for, root)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=limits.silence)
    try:
        async with (
            asyncio.timeout(limits.whole),
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                f"{root}/api/pull",
                json={
                    "model": model,
                    "name": model,
                    "stream": True,
                },  # "name" is what versions before 0.5 read
                headers=headers,
                proxy=proxy,
                allow_redirects=False,
            ) as response,
        ):
            await _follow(response, model, moved)
    except TimeoutError as error:
        raise DownloadError(
            f"Ollama at {shown(root)} said nothing more.", do=_RETRY_DO.replace("{model}", model)
        ) from error
    except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
        raise DownloadError(f"Ollama does not answer at {shown(root)}.", do="start Ollama") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise DownloadError(
            f"The connection to Ollama at {shown(root)} broke off.", do=_RETRY_DO.replace("{model}", model)
        ) from error


async def _follow(response: ClientResponse, model: str, moved: Callable[[DownloadState], None]) -> None:
    if response.status != 200:
        raw = await response.content.read(_MOST_LINE)
        raise _refused(bounded_object(raw, most_bytes=_MOST_LINE), response.status, model)
    parts: dict[str, tuple[int, int]] = {}
    tell_at = 0.0
    async for line in _lines(response):
        event = bounded_object(line, most_bytes=_MOST_LINE)
        if "error" in event:
            raise _refused(event, 0, model)
        status = str(event.get("status", ""))[:200]
        digest = event.get("digest")
        if isinstance(digest, str) and (digest in parts or len(parts) < _MOST_PARTS):
            before = parts.get(digest, (0, 0))
            total = _bytes(event.get("total")) or before[1]
            parts[digest] = min(_bytes(event.get("completed")), total), total
        done, total = (sum(part[place] for part in parts.values()) for place in (0, 1))
        ended = status == "success"
        if ended or time.monotonic() >= tell_at:
            moved(DownloadState(status, done, total))
            tell_at = time.monotonic() + _PACE_SECONDS
        if ended:
            return
    raise DownloadError(f"Ollama broke off before {model} was whole.", do=_RETRY_DO.replace("{model}", model))


async def _lines(response: ClientResponse) -> AsyncIterator[bytes]:
    """The lines of a stream, none longer than 64 KiB: a stranger's line may not fill the memory."""
    rest = b""
    async for piece in response.content.iter_any():
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > _MOST_LINE or any(len(line) > _MOST_LINE for line in whole):
            raise ValueError("a line is too long")
        for line in whole:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


def _refused(event: dict[str, Any], status: int, model: str) -> DownloadError:
    reason = read_refusal(event, status).server_sentence if event else ""
    if reason:
        do = (
            "check the name at ollama.com/library"
            if _is_unknown(reason)
            else "look at Ollama, then try again"
        )
        return DownloadError(f"Ollama said: “{reason}”.", do=do)
    if status in (404, 405):
        return DownloadError("This server cannot download models.", do=_OLD_DO.replace("{model}", model))
    return DownloadError(
        f"Ollama answered {status}." if status else "Ollama failed without a word.", do="look at Ollama"
    )


def _is_unknown(reason: str) -> bool:
    return (
        re.search(r"not (?:found|exist)|does not exist|invalid model name|manifest", reason, re.IGNORECASE)
        is not None
    )


def _bytes(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_BYTES else 0
