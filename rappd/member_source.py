"""Reads a paired machine for a snapshot through the running daemon, which has the keys and the connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from neighborhoods import errors
from neighborhoods.errors import (
    BadMemberStreamError,
    MemberError,
    MemberTooLargeError,
    MemberUnreachableError,
)
from neighborhoods.transport.http_client import ResponseTooLongError, whole
from rappd.daemon.home import Home

_MOST_LISTED = 64 << 20
_SILENT_SECONDS = 120.0
_PIECE = 1 << 18
_ERRORS: dict[str, type[MemberError]] = {
    one.code: one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, MemberError)
}


class DaemonPeerSource:
    """One peer (``name`` for people, ``selector`` for the daemon), over the control socket of ``home``."""

    def __init__(self, home: Home, name: str, selector: str) -> None:
        self._home, self._name = home, name
        self._path = f"/peers/{quote(selector, safe='')}/snapshot"
        self._selector = selector

    async def answer(self, path: str) -> bytes:
        """See ``PeerSource``."""
        async with self._asked("GET", self._path + path) as response:
            try:
                return await whole(response, _MOST_LISTED)
            except ResponseTooLongError as error:
                raise MemberTooLargeError(
                    f"{self._name} answers without end.", do="Look what runs there."
                ) from error

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """See ``PeerSource``."""
        async with self._asked("GET", self._path + path) as response:
            async for piece in response.content.iter_chunked(_PIECE):
                yield piece

    async def send_egg(self, egg: Path) -> bool:
        """See ``PeerSource``."""
        body = {"path": str(egg), "peer": self._selector}
        async with self._asked("POST", "/eggs/send", body) as response:
            found = orjson.loads(await response.read())
        return bool(found["sent"]["state"] == "done")

    async def aclose(self) -> None:
        """Nothing is kept open."""

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        connector = aiohttp.UnixConnector(path=str(self._home.socket))
        limits = aiohttp.ClientTimeout(total=None, sock_read=_SILENT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=limits, auto_decompress=False) as session,
                session.request(method, f"http://localhost{path}", json=body) as response,
            ):
                if response.status >= 400:
                    raise self._problem(await response.read())
                yield response
        except aiohttp.ClientConnectorError as error:
            raise MemberUnreachableError(
                f"{self._name} is read through rappd, which isn't running here.", do="rappd start"
            ) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise MemberUnreachableError(f"The connection to {self._name} broke.", do="Rerun.") from error

    def _problem(self, raw: bytes) -> MemberError:
        try:
            found = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return BadMemberStreamError(f"{self._name}: no answer that can be read.", do="rappd logs")
        kind = _ERRORS.get(str(found.get("code", "")), MemberError)
        return kind(str(found.get("error", "")), do=str(found.get("do", "")))
