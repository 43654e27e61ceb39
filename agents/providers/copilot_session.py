"""The short-lived Copilot session that a GitHub token is exchanged for."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import ModelUnavailableError
from agents.providers import refusals, secret_file
from agents.providers.github_token import GitHubToken
from agents.providers.json_http import JsonReply, ask

# The service answers only to integrations it knows, and the client id of the sign-in is this one's.
HEADERS = {
    "Editor-Version": "vscode/1.104.0",
    "Editor-Plugin-Version": "copilot-chat/0.31.0",
    "Copilot-Integration-Id": "vscode-chat",
}
_ENDPOINT = "https://api.githubcopilot.com"
_MARGIN = 60.0  # seconds before its end at which a session counts as over


@dataclass(slots=True, frozen=True)
class Session:
    """``token`` opens ``endpoint`` until ``expires_at`` (epoch seconds); ``account`` tells tokens apart."""

    token: str = field(repr=False)
    endpoint: str
    expires_at: float
    account: str = ""


class CopilotSessions:
    """Hands out the session in force: from memory, from its file (0600), or exchanged anew."""

    def __init__(
        self,
        github: GitHubToken,
        path: Path | None = None,
        *,
        api: str = "https://api.github.com",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._github = github
        self._path = path
        self._api = api
        self._clock = clock
        self._session: Session | None = None
        self._refusal = 0
        self._lock = asyncio.Lock()

    @property
    def state(self) -> str:
        """As ``/health`` shows it: ``"✓"`` in force, ``"no_access"`` without Copilot, else ``"pending"``."""
        if self._session is not None and self._in_force(self._session):
            return "✓"
        return "no_access" if self._refusal in (403, 404) else "pending"

    @property
    def refused(self) -> bool:
        """True when GitHub refused this token or its account; a new sign-in clears it."""
        return self._refusal != 0

    async def get(self) -> Session:
        """The session in force. Raises ModelUnavailableError."""
        async with self._lock:
            github_token = await self._github.find()
            account = _account(github_token)
            session = self._session or await self._stored()
            if session is None or not self._in_force(session) or session.account not in ("", account):
                session = await self._exchange(github_token)
            self._session = session
            return session

    async def end(self, session: Session | None = None) -> None:
        """Forgets ``session`` (or any), unless another has taken its place already."""
        async with self._lock:
            if session is None:
                self._refusal = 0
            elif self._session is not None and self._session.token != session.token:
                return
            self._session = None
            if self._path is not None:
                await secret_file.remove(self._path)

    async def _stored(self) -> Session | None:
        found = await secret_file.read(self._path) if self._path is not None else None
        if not isinstance(found, dict):
            return None
        try:
            return Session(
                str(found["token"]),
                str(found["endpoint"]),
                float(found["expires_at"]),
                str(found.get("account", "")),
            )
        except (KeyError, TypeError, ValueError):
            return None

    async def _exchange(self, github_token: str) -> Session:
        if not github_token:
            raise ModelUnavailableError("Nobody is signed in to GitHub.", do="sign in to GitHub")
        reply = await self._ask(github_token)
        if reply.status == 401 and (renewed := await self._github.renew(github_token)):
            github_token = renewed
            reply = await self._ask(github_token)
        token = reply.data.get("token")
        if reply.status != 200 or not isinstance(token, str) or not token:
            raise self._why_not(reply, github_token)
        session = Session(token, _endpoint(reply.data), self._expiry(reply.data), _account(github_token))
        self._refusal = 0
        if self._path is not None:
            kept = {
                "token": session.token,
                "endpoint": session.endpoint,
                "expires_at": session.expires_at,
                "account": session.account,
            }
            await secret_file.write(self._path, kept)
        return session

    async def _ask(self, github_token: str) -> JsonReply:
        scheme = "token" if github_token.startswith("ghu_") else "Bearer"
        headers = {**HEADERS, "Authorization": f"{scheme} {github_token}"}
        return await ask("GET", f"{self._api}/copilot_internal/v2/token", headers=headers)

    def _why_not(self, reply: JsonReply, github_token: str) -> ModelUnavailableError:
        detail = refusals.scrub(reply.text, (github_token, str(reply.data.get("token") or "")))
        if reply.status in (401, 403, 404):
            self._refusal = reply.status
            message, do = "This GitHub account has no Copilot.", "sign in with another account"
            if reply.status == 401:
                message, do = "GitHub no longer accepts the sign-in.", "sign in to GitHub again"
        elif reply.status:
            message, do = f"GitHub answered {reply.status} instead of a Copilot session.", "ask again later"
        else:
            message, do = "GitHub doesn't answer.", "check the connection"
        return ModelUnavailableError(message, do=do, detail=detail, upstream_status=reply.status)

    def _expiry(self, data: dict[str, Any]) -> float:
        at = data.get("expires_at")
        return float(at) if isinstance(at, int | float) else self._clock() + 25 * 60

    def _in_force(self, session: Session) -> bool:
        return session.expires_at - _MARGIN > self._clock()


def _endpoint(data: dict[str, Any]) -> str:
    endpoints = data.get("endpoints")
    url = endpoints.get("api") if isinstance(endpoints, dict) else None
    return url.rstrip("/") if isinstance(url, str) and url else _ENDPOINT


def _account(github_token: str) -> str:
    return hashlib.sha256(github_token.encode()).hexdigest()[:16] if github_token else ""
