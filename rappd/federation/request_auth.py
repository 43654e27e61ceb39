"""Authentication of requests: by certificate, token, delegated capability or signature."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from envelopes.envelope import CAP, HELP, SIG, Envelope
from envelopes.errors import BadTokenError
from envelopes.identity.capability_tokens import Grant
from envelopes.identity.keys import IdentityKey
from envelopes.identity.signatures import verify
from neighborhoods.auth.caller_auth import Authorizer, CallerAuthenticator, effective
from neighborhoods.durable_tables import IssuedToken
from neighborhoods.errors import NeighborhoodError
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.rights import Caller
from rappd.federation.totp_secrets import CodeAccess
from rappd.store.inbox_table import InboxTable
from rappd.store.token_table import TokenTable
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

MOST_COUNTED = 4096
WITHOUT_LIMIT = 1 << 53
NOTED_EVERY = 60.0
"""Seconds between two notes of when a token was last used."""

Published = Callable[[str], tuple[str, ...]]

STRANGER = Caller("federation", caps=())


class RequestAuthenticator:
    """Asked for every request at the federation listener."""

    def __init__(
        self,
        identity: IdentityKey,
        book: PeerStore,
        rows: TokenTable,
        inbox: InboxTable,
        revoked: dict[str, int],
        published: Published,
        codes: CodeAccess,
    ) -> None:
        """``published``: what a paired machine may do by what is published to it. ``codes``: secrets of authenticators."""
        self.codes = codes
        self._rows = rows
        self._inbox = inbox
        self._published = published
        self._peers = book
        self.revoked = revoked
        self._bearer = CallerAuthenticator(identity.public, book.get, book.by_pin, revoked)
        self._counting = asyncio.Lock()
        self._counted: dict[tuple[str, str], None] = {}
        self._used: dict[str, float] = {}
        self._noting = BackgroundTasks(
            lambda error: log.warning("when an access was used could not be noted: %s", error)
        )
        self._grants = Authorizer(identity.public, revoked, book.was_revoked)

    @classmethod
    async def open(
        cls,
        identity: IdentityKey,
        book: PeerStore,
        rows: TokenTable,
        inbox: InboxTable,
        published: Published,
        codes: CodeAccess,
    ) -> RequestAuthenticator:
        """With what was taken back up to now, and the secrets that are kept."""
        await asyncio.to_thread(codes.load)
        return cls(identity, book, rows, inbox, await rows.revoked(), published, codes)

    def who(self, token: str, certificate: bytes | None) -> tuple[Caller, str]:
        """The caller, and the name that its envelopes are from when they may not say so themselves.

        Raises ``BadTokenError``, ``NotPairedError``.
        """
        shown = self._bearer.who(token, certificate, time.time())
        if shown is None:
            return STRANGER, ""
        if shown.peer is not None:
            peer = shown.peer
            return Caller(
                "federation",
                peer=peer.fingerprint,
                caps=(*peer.scopes, *self._published(peer.fingerprint)),
                mine=peer.whose == "mine",
            ), ""
        self._was_used(shown.jti)
        return Caller("federation", caps=shown.caps), f"{shown.name}_token-{shown.jti[:8]}"

    async def by_code(self, user: str, code: str, address: str) -> tuple[Caller, str, str]:
        """The caller by an authenticator's code, the name that its envelopes are from, and the id of its access.

        Raises ``WrongCodeError``, ``CodeBanError``.
        """
        valid_tokens = {one.jti: one for one in await self._valid_tokens() if one.name == user}
        jti = await self.codes.admit(user, code, address, valid_tokens)
        self._was_used(jti)
        return Caller("federation", caps=valid_tokens[jti].caps), f"{user}_token-{jti[:8]}", jti

    def is_valid(self, jti: str) -> bool:
        """False once an access with an authenticator was revoked."""
        return jti in self.codes

    async def has_codes(self) -> bool:
        """True while an access with an authenticator counts."""
        return bool(self.codes) and any(one.jti in self.codes for one in await self._valid_tokens())

    async def _valid_tokens(self) -> list[IssuedToken]:
        now = _now()
        return [one for one in await self._rows.tokens() if not one.revoked_at and one.expires_at > now]

    async def armed(self, envelope: Envelope, caller: Caller) -> Caller:
        """The caller with what its envelope shows beside: a signature, a capability that was passed on.

        Its uses are counted by ``spend``, once it is clear that the HELP will be begun. Raises
        ``BadSignatureError``, ``BadTokenError``.
        """
        signed, cap = envelope.extensions.get(SIG), envelope.extensions.get(CAP)
        if signed is None and cap is None:
            return caller
        proven = caller.peer
        if signed is not None:
            signer = verify(envelope, time.time())
            if proven and signer != proven:
                raise BadTokenError("disagree")
            proven = signer
        if cap is None:
            return caller
        grant = self._grants.accept(cap, caller=proven, now=time.time())
        spend = partial(self._spend, grant) if grant.uses else None
        peer = self._peers.get(proven)
        return replace(
            caller,
            peer=proven,
            caps=effective(caller.caps or (), [grant]),
            spend=spend,
            mine=peer is not None and peer.whose == "mine",
        )

    async def _spend(self, grant: Grant, asked: Envelope) -> None:
        """Counts one use of every link that is limited, for each HELP once. Raises ``used_up``."""
        key = (asked.sender, asked.id)
        async with self._counting:
            if key in self._counted or await self._inbox.find(*key, HELP) is not None:
                return
            for jti, limit in reversed(grant.uses.items()):
                if not await self._rows.use(jti, limit, _now()):
                    raise NeighborhoodError(
                        "That permission was used as often as it may be.",
                        do="Ask for a new one.",
                        code="used_up",
                    )
            self._counted[key] = None
            while len(self._counted) > MOST_COUNTED:
                del self._counted[next(iter(self._counted))]

    async def issue(self, token: IssuedToken) -> None:
        """Writes an issued token down."""
        await self._rows.issue(token)

    async def revoke(self, jti: str) -> None:
        """Takes a token back, at once."""
        at = _now()
        await self._rows.revoke(jti, at)
        self.revoked[jti] = at
        await self.codes.remove(jti)

    def _was_used(self, jti: str) -> None:
        """Notes, once a minute at most, when an issued token was last shown."""
        now = time.monotonic()
        if now - self._used.get(jti, -NOTED_EVERY) < NOTED_EVERY:
            return
        self._used[jti] = now
        self._noting.spawn(self._rows.use(jti, WITHOUT_LIMIT, _now()))


def _now() -> int:
    return time.time_ns() // 1000
