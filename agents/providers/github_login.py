"""Signing in to GitHub with a code on another screen (OAuth device flow).

Answers have the shapes of the published brainstem's ``/login*`` routes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from agents.errors import AgentError
from agents.providers import secret_file
from agents.providers.github_token import CLIENT_ID, GitHubToken
from agents.providers.json_http import ask

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class _Pending(msgspec.Struct):
    device_code: str
    user_code: str
    verification_uri: str
    expires_at: float
    interval: float


class GitHubLogin:
    """One sign-in at a time; the code under way is kept at ``path`` (0600) and used until it expires.

    ``on_token`` is awaited once a new token is stored.
    """

    def __init__(
        self,
        token: GitHubToken,
        path: Path | None = None,
        *,
        web: str = "https://github.com",
        on_token: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._path = path
        self._web = web
        self._on_token = on_token
        self._clock = clock
        self._pending: _Pending | None = None
        self._read = path is None
        self._next_poll = 0.0
        self._lock = asyncio.Lock()

    async def start(self) -> dict[str, Any]:
        """``{user_code, verification_uri}``; the same ones while they are valid. Raises AgentError."""
        async with self._lock:
            pending = await self._current() or await self._begin()
            return {"user_code": pending.user_code, "verification_uri": pending.verification_uri}

    async def switch(self) -> dict[str, Any]:
        """``{status:"ok", user_code, verification_uri}`` of a fresh code, to sign in as somebody else.

        The present account stays until the new one is confirmed. Raises AgentError, AgentError.
        """
        if self._token.source == "given":
            raise AgentError(
                "GITHUB_TOKEN is set and comes first.",
                do="unset GITHUB_TOKEN, then switch",
                code="login_fixed",
            )
        async with self._lock:
            await self._forget()
            pending = await self._begin()
            return {
                "status": "ok",
                "user_code": pending.user_code,
                "verification_uri": pending.verification_uri,
            }

    async def status(self) -> dict[str, Any]:
        """``{pending:false}`` or ``{pending:true, user_code, verification_uri, expires_in}`` (seconds)."""
        async with self._lock:
            pending = await self._current()
        if pending is None:
            return {"pending": False}
        return {
            "pending": True,
            "user_code": pending.user_code,
            "verification_uri": pending.verification_uri,
            "expires_in": int(pending.expires_at - self._clock()),
        }

    async def poll(self) -> dict[str, Any]:
        """``{status}`` pending, ok (``message``), error or expired (``error``).

        GitHub is asked no more often than it allows; until then, and while it cannot be reached,
        the answer is pending.
        """
        async with self._lock:
            await self._load()
            pending = self._pending
            if pending is None:
                return {"status": "error", "error": "No sign-in is under way. Start one first."}
            if self._clock() >= pending.expires_at:
                return await self._end("expired", "The code has expired. Start again.")
            if self._clock() < self._next_poll:
                return {"status": "pending"}
            self._next_poll = self._clock() + pending.interval
            form = {"client_id": CLIENT_ID, "device_code": pending.device_code, "grant_type": _GRANT}
            reply = await ask("POST", f"{self._web}/login/oauth/access_token", form=form)
            return await self._settle(pending, reply.data)

    async def _settle(self, pending: _Pending, data: dict[str, Any]) -> dict[str, Any]:
        access = data.get("access_token")
        if isinstance(access, str) and access:
            await self._token.keep(access, str(data.get("refresh_token") or ""))
            await self._forget()
            if self._on_token is not None:
                await self._on_token()
            return {"status": "ok", "message": "Signed in to GitHub."}
        error = data.get("error")
        if error == "slow_down":
            pending.interval += 5
            self._next_poll = self._clock() + pending.interval
        if error in (None, "authorization_pending", "slow_down"):
            return {"status": "pending"}
        if error == "expired_token":
            return await self._end("expired", "The code has expired. Start again.")
        if error == "access_denied":
            return await self._end("error", "GitHub was told no. Start again to ask anew.")
        return await self._end("error", f"GitHub refused: {str(error)[:80]}. Start again.")

    async def _end(self, status: str, error: str) -> dict[str, Any]:
        await self._forget()
        return {"status": status, "error": error}

    async def _begin(self) -> _Pending:
        form = {"client_id": CLIENT_ID, "scope": "read:user"}
        reply = await ask("POST", f"{self._web}/login/device/code", form=form)
        lasts = reply.data.get("expires_in", 900)
        pending = _pending(reply.data, self._clock() + lasts if isinstance(lasts, int | float) else None)
        if pending is None:
            why = f"GitHub answered {reply.status}." if reply.status else "GitHub doesn't answer."
            raise AgentError(why, do="check the connection, then try again", code="login_failed")
        self._pending, self._next_poll = pending, 0.0
        if self._path is not None:
            await secret_file.write(self._path, asdict(pending))
        return pending

    async def _current(self) -> _Pending | None:
        await self._load()
        if self._pending is not None and self._clock() >= self._pending.expires_at:
            await self._forget()
        return self._pending

    async def _load(self) -> None:
        if self._read:
            return
        assert self._path is not None
        found = await secret_file.read(self._path)
        self._read = True
        if isinstance(found, dict):
            self._pending = _pending(found, found.get("expires_at"))

    async def _forget(self) -> None:
        self._pending, self._read, self._next_poll = None, True, 0.0
        if self._path is not None:
            await secret_file.remove(self._path)


def _pending(data: dict[str, Any], expires_at: object) -> _Pending | None:
    codes = [data.get(key) for key in ("device_code", "user_code", "verification_uri")]
    interval = data.get("interval", 5)
    if not isinstance(expires_at, int | float) or not isinstance(interval, int | float):
        return None
    device_code, user_code, uri = codes
    if not (isinstance(device_code, str) and isinstance(user_code, str) and isinstance(uri, str)):
        return None
    return _Pending(device_code, user_code, uri, float(expires_at), float(interval))
