"""Eggs from the web: fetched whole into a file of the home, compared with the hash that is known of them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import aiohttp
import orjson

from agents.providers.json_http import proxy_for
from agents.providers.urls import on_this_machine
from rappd.errors import RappdError, UsageProblemError
from rappd.features.eggs.uploaded_eggs import UploadedEggs, new_file
from twins.errors import BadEggError
from twins.installer.errors import from_disk

MAX_BYTES = 2 << 30
_CHUNK = 1 << 20
_TIMES = aiohttp.ClientTimeout(total=900, connect=15, sock_read=30)
_SIDECAR_BYTES = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5


async def fetch_egg(url: str, waiting: UploadedEggs, *, expect_sha256: str = "") -> Path:
    """The file that ``url`` (http or https) gives, among the eggs that wait.

    It is only as trusted as what signs it.

    ``…/eggs/<name>.egg`` is compared with the ``sha256`` of ``<name>.json`` beside it, where there is one
    (the published hub's shape). Raises ``unreachable``, ``BadEggError`` on another hash, ``UsageProblemError``,
    ``DiskFullError``.
    """
    if not re.match(r"https?://[^\s]+$", url):
        raise UsageProblemError(f'"{url[:80]}" is no web address.', do="Give http://… or https://…")
    wanted = expect_sha256.lower()
    if wanted and not _SHA256.fullmatch(wanted):
        raise UsageProblemError("expect_sha256 is no SHA-256.", do="It has 64 digits of 0-9, a-f.")
    part = await asyncio.to_thread(waiting.part)
    try:
        async with aiohttp.ClientSession(timeout=_TIMES) as session:
            if not wanted and re.search(r"/eggs/[^/?#]+\.egg$", url):
                wanted = await _beside(session, url)
            digest = await _download(session, url, part)
        if wanted and digest != wanted:
            raise BadEggError("The egg at that address is not the one that is expected; nothing was written.",
                         do="Ask its publisher.")  # fmt: skip
        return await asyncio.to_thread(waiting.keep, part, digest, _name(url))
    except (aiohttp.ClientError, TimeoutError) as error:
        raise RappdError(
            f"{url[:120]} does not answer.", do="Check the address and the network.", code="unreachable"
        ) from error
    except OSError as error:
        raise from_disk(error, _name(url)) from error
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)


async def _download(session: aiohttp.ClientSession, url: str, part: Path) -> str:
    digest, size = hashlib.sha256(), 0
    async with _opened(session, url) as response:
        if response.status != 200:
            raise RappdError(
                f"{url[:120]} answered {response.status}.", do="Check the address.", code="unreachable"
            )
        with await asyncio.to_thread(new_file, part) as file:
            async for chunk in response.content.iter_chunked(_CHUNK):
                size += len(chunk)
                if size > MAX_BYTES:
                    raise BadEggError(f"The egg has more than {MAX_BYTES >> 30} GB.", do="Fetch it by hand.")
                await asyncio.to_thread(file.write, chunk)
                digest.update(chunk)
    return digest.hexdigest()


@asynccontextmanager
async def _opened(session: aiohttp.ClientSession, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer to a GET, wherever its redirects lead: within one origin, or by https.

    The owner chose the address, its server chooses where it leads: by plain http to any service of this network. By
    https a server must have a certificate for its name before it is asked anything.
    """
    here = url
    for _ in range(_MOST_REDIRECTS + 1):
        proxy = None if on_this_machine(here) else await asyncio.to_thread(proxy_for, here)
        async with session.get(here, allow_redirects=False, proxy=proxy) as response:
            if response.status not in _REDIRECTS:
                yield response
                return
            there = _led_to(here, response.headers.get("Location", ""))
        if there is None:
            break
        here = there
    raise RappdError(
        f"{url[:120]} leads elsewhere.", do="Give the address that it leads to.", code="unreachable"
    )


def _led_to(here: str, location: str) -> str | None:
    """The address that a redirect may lead to; None for any other."""
    try:
        there = urljoin(here, location)
        old, new = urlsplit(here), urlsplit(there)
        same = (old.scheme, old.hostname, old.port) == (new.scheme, new.hostname, new.port)
    except ValueError:
        return None
    return there if same or (new.scheme == "https" and new.hostname) else None


async def _beside(session: aiohttp.ClientSession, url: str) -> str:
    """The SHA-256 that the entry beside the egg tells; "" when there is none."""
    raw = bytearray()
    async with _opened(session, url.removesuffix(".egg") + ".json") as response:
        if response.status != 200:
            return ""
        async for chunk in response.content.iter_chunked(_CHUNK):
            raw += chunk
            if len(raw) > _SIDECAR_BYTES:
                return ""
    try:
        found = orjson.loads(bytes(raw))
    except orjson.JSONDecodeError:
        return ""
    declared = found.get("sha256") if isinstance(found, dict) else None
    digest = declared.lower() if isinstance(declared, str) else ""
    return digest if _SHA256.fullmatch(digest) else ""


def _name(url: str) -> str:
    return unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2] or "an egg"
