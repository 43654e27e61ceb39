"""The owner's operations on foreign programs: who connected, what they may use, what they asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypedDict

from envelopes.default_user import DEFAULT_USER_GUID
from neighborhoods.peer_store import PeerStore
from rappd.features.conversations.conversations import PROGRAMS, ConversationList, Conversations
from rappd.features.operation import OWNER, operation
from rappd.features.programs.program_record import STRANGER, ProgramRecord
from rappd.features.tokens.client_settings import PROTOCOLS
from rappd.settings.load import Settings
from rappd.store.program_table import ProgramRow
from rappd.store.store import Store
from rappd.store.token_table import TokenTable

TITLES = {"openai": "OpenAI", "ollama": "Ollama", "mcp": "MCP", "a2a": "A2A", "acp": "ACP"}
_OF_TOKEN = re.compile(r"(.+)_token-([0-9a-f]{8})")
_MOST = 200


class ProtocolRow(TypedDict):
    """A protocol, its switch, and the agents that its programs may call."""

    name: str
    title: str
    on: bool
    agents: list[str]


class ProgramView(TypedDict):
    """A program that connected. ``may``: the capabilities of its token, None without one."""

    protocol: str
    title: str
    name: str
    by: str
    where: Literal["here", "elsewhere", "refused"]
    may: list[str] | None
    first: float
    last: float
    turns: int
    tokens: int
    cost_usd: float
    error: str
    error_at: float | None


class Programs(TypedDict):
    """The protocols, and the programs that connected, the latest first."""

    protocols: list[ProtocolRow]
    programs: list[ProgramView]


class ProgramOperations:
    """``settings`` gives the settings in force."""

    def __init__(
        self,
        record: ProgramRecord,
        tokens: TokenTable,
        peers: PeerStore,
        settings: Callable[[], Settings],
        store: Store,
    ) -> None:
        self._record, self._tokens, self._peers, self._settings = record, tokens, peers, settings
        self._store = store

    @operation("programs.list", "GET", "/programs", right=OWNER)
    async def listing(self) -> Programs:
        """Lists the protocols with their switches, and the programs that connected, the latest first."""
        await self._record.load()
        settings = self._settings()
        protocols: list[ProtocolRow] = [
            {
                "name": name,
                "title": TITLES[name],
                "on": settings.on(f"programs.{name}"),
                "agents": list(settings.items(f"programs.{name}_agents")),
            }
            for name in PROTOCOLS
        ]
        tokens = {one.jti[:8]: one for one in await self._tokens.tokens()}
        caps = {jti: list(one.caps) for jti, one in tokens.items()}
        return {"protocols": protocols, "programs": [self._row(one, caps) for one in self._record.rows()]}

    @operation("programs.conversations", "GET", "/programs/conversations", right=OWNER)
    async def conversations(self, protocol: str = "", limit: int = 50) -> ConversationList:
        """Conversations of programs, the latest first; `?protocol=` those over one protocol."""
        found = await Conversations(self._store, DEFAULT_USER_GUID).latest(
            limit=max(1, min(limit, _MOST)), of_programs=protocol or PROGRAMS
        )
        for one in found["conversations"]:
            one["by"] = self._called(one["by"])
        return found

    def _row(self, row: ProgramRow, caps: dict[str, list[str]]) -> ProgramView:
        of_token = _OF_TOKEN.fullmatch(row.key)
        return {
            "protocol": row.protocol,
            "title": TITLES.get(row.protocol, row.protocol),
            "name": row.name,
            "by": self._called(row.key),
            "where": "here" if not row.key else "elsewhere" if row.key != STRANGER else "refused",
            "may": caps.get(of_token[2]) if of_token else None,
            "first": row.first,
            "last": row.last,
            "turns": row.turns,
            "tokens": row.tokens,
            "cost_usd": round(row.cost_usd, 6),
            "error": row.error,
            "error_at": row.error_at or None,
        }

    def _called(self, key: str) -> str:
        """The name of a token or a machine, "" for a program on this machine without a token."""
        if (found := _OF_TOKEN.match(key)) is not None:
            return found[1]
        for peer in self._peers.all():
            if key.endswith(f"_{peer.fingerprint[:16]}"):
                return peer.name
        return "" if key in (DEFAULT_USER_GUID, STRANGER) else key[:40]
