"""The owner's GitHub token: given, kept in a file, or borrowed from the ``gh`` program."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from pathlib import Path

from agents.programs import programs
from agents.providers import secret_file
from agents.providers.json_http import ask

CLIENT_ID = "Iv1.b507a08c87ecfe98"
_GH_AGAIN = 600.0  # seconds before `gh` is asked again after it had nothing
_GH_SECONDS = 2.0
_OF_GH = (
    "GH_CONFIG_DIR",
    "GH_HOST",
    "GH_TOKEN",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)
"""The places where it keeps its token: a folder, or the key ring of the owner's session."""


class GitHubToken:
    """Finds the token in that order and remembers where it came from.

    The file at ``path`` holds ``{access_token, refresh_token, saved_at}`` (or only the token as
    text), mode 0600. ``known`` says whether a token has been found so far, without looking.
    """

    def __init__(
        self,
        given: str = "",
        path: Path | None = None,
        *,
        gh: bool = True,
        web: str = "https://github.com",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._given = given
        self._path = path
        self._gh = gh
        self._web = web
        self._clock = clock
        self._access = ""
        self._refresh = ""
        self._borrowed = ""
        self._gh_asked_at = -math.inf
        self._read = path is None
        self._lock = asyncio.Lock()

    @property
    def source(self) -> str:
        """``"given"``, ``"file"``, ``"gh"`` or ``""``."""
        if self._given:
            return "given"
        if self._access:
            return "file"
        return "gh" if self._borrowed else ""

    @property
    def known(self) -> bool:
        return bool(self.source)

    async def find(self) -> str:
        """The token, or ``""``. Asks ``gh`` at most every ten minutes."""
        if self._given:
            return self._given
        async with self._lock:
            if not self._read:
                await self._load()
            if self._access:
                return self._access
            if self._gh and not self._borrowed and self._clock() - self._gh_asked_at >= _GH_AGAIN:
                self._borrowed = await _ask_gh()
                self._gh_asked_at = self._clock()
            return self._borrowed

    async def keep(self, access: str, refresh: str = "") -> None:
        """Stores a token that signing in brought."""
        async with self._lock:
            await self._store(access, refresh)

    async def renew(self, stale: str) -> str:
        """Another token than ``stale``, through the refresh token; ``""`` when there is none to be had."""
        async with self._lock:
            if stale == self._borrowed:
                self._borrowed = ""
                return ""
            if self._given:
                return ""
            if stale != self._access:
                return self._access  # somebody else renewed it meanwhile
            if not self._refresh:
                return ""
            form = {
                "client_id": CLIENT_ID,
                "grant_type": "refresh_token",
                "refresh_token": self._refresh,
            }
            reply = await ask("POST", f"{self._web}/login/oauth/access_token", form=form)
            access = reply.data.get("access_token")
            if not isinstance(access, str) or not access:
                return ""
            await self._store(access, str(reply.data.get("refresh_token") or self._refresh))
            return access

    async def _load(self) -> None:
        assert self._path is not None
        found = await secret_file.read(self._path)
        if isinstance(found, dict):
            self._access = str(found.get("access_token") or "")
            self._refresh = str(found.get("refresh_token") or "")
        elif found:
            self._access = found
        self._read = True

    async def _store(self, access: str, refresh: str) -> None:
        self._access, self._refresh, self._read = access, refresh, True
        if self._path is not None:
            saved = {"access_token": access, "refresh_token": refresh, "saved_at": int(self._clock())}
            await secret_file.write(self._path, saved)


async def _ask_gh() -> str:
    """``gh auth token``, unless it is one that Copilot refuses (``gho_``) or takes over 2 s."""
    try:
        done = await programs.run_async(
            ["gh", "auth", "token"],
            environment={
                "GH_PROMPT_DISABLED": "1",
                "GH_NO_UPDATE_NOTIFIER": "1",
                **programs.from_owner(*_OF_GH),
            },
            home=True,
            seconds=_GH_SECONDS,
        )
    except OSError:  # it is not here, or takes too long
        return ""
    token = done.text.strip()
    return "" if done.code or token.startswith("gho_") or " " in token else token
