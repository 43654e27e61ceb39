"""The tables of issued tokens, of revoked ones, and of uses of capability tokens."""

from __future__ import annotations

import orjson

from neighborhoods.durable_tables import IssuedToken
from rappd.store.anchor_file import Note, Revoked
from rappd.store.store import Store
from rappd.store.write_operations import SqlStatement

_ISSUE = "INSERT OR REPLACE INTO issued_tokens(jti, name, caps, issued_at, expires_at) VALUES(?,?,?,?,?)"
_REVOKE = "INSERT INTO revoked_tokens(jti, at) VALUES(?, ?) ON CONFLICT(jti) DO NOTHING"
_USE = """INSERT INTO token_uses(jti, uses, at) SELECT ?1, 1, ?3 WHERE ?2 > 0
    ON CONFLICT(jti) DO UPDATE SET uses = uses + 1, at = excluded.at WHERE uses < ?2 RETURNING uses"""
_TOKENS = """SELECT jti, name, caps, issued_at, expires_at, coalesce(revoked_tokens.at, 0),
    coalesce(token_uses.at, 0) FROM issued_tokens LEFT JOIN revoked_tokens USING(jti)
    LEFT JOIN token_uses USING(jti) ORDER BY issued_at DESC, issued_tokens.rowid DESC"""


class TokenTable:
    """Issued tokens, those that were ended, and how often each was used. All methods raise ``StoreError``."""

    def __init__(self, store: Store, note: Note | None = None) -> None:
        """``note`` gets each revocation, to write it down outside of the database; None for reading only."""
        self._store = store
        self._note = note

    async def issue(self, token: IssuedToken) -> None:
        """Writes an issued token down; ``revoked_at`` and ``used_at`` come of ``revoke`` and ``use``."""
        caps = orjson.dumps(token.caps).decode()
        values = (token.jti, token.name, caps, token.issued_at, token.expires_at)
        await self._store.change(SqlStatement(_ISSUE, values))

    async def tokens(self) -> list[IssuedToken]:
        """Every issued token, the latest first."""
        rows = await self._store.rows(_TOKENS)
        return [IssuedToken(row[0], row[1], tuple(orjson.loads(row[2])), *row[3:]) for row in rows]

    async def revoke(self, jti: str, at: int) -> None:
        """Ends a token, issued here or anywhere; the first moment stays."""
        if self._note is not None:
            await self._note(Revoked("token", jti, at))
        await self._store.change(SqlStatement(_REVOKE, (jti, at)))

    async def revoked(self) -> dict[str, int]:
        """Every ``jti`` that was ended, and when."""
        return dict(await self._store.rows("SELECT jti, at FROM revoked_tokens"))

    async def use(self, jti: str, limit: int, at: int) -> bool:
        """Counts one use of a token that may be used ``limit`` times; False when they are used up."""
        return bool(await self._store.change(SqlStatement(_USE, (jti, limit, at))))
