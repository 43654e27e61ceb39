"""What a caller shows, and what it may do by that: certificate, token, passed-on capability, signature."""

from __future__ import annotations

import time
from dataclasses import replace

from envelopes.errors import BadToken
from envelopes.keys import IdentityKey
from envelopes.record import CAP, HELP, SIG, Envelope
from envelopes.signatures import verify
from neighborhoods.book import PeerBook
from neighborhoods.errors import UsedUp
from neighborhoods.needs import IssuedToken
from neighborhoods.trust.bearer import Bearer
from neighborhoods.trust.grants import Grants, effective
from rappd.gate import Caller
from rappd.store.inbox_rows import InboxRows
from rappd.store.token_rows import TokenRows

STRANGER = Caller("federation", caps=())


class Credentials:
    """Asked for every request at the door for peers."""

    def __init__(
        self,
        identity: IdentityKey,
        book: PeerBook,
        rows: TokenRows,
        inbox: InboxRows,
        revoked: dict[str, int],
    ) -> None:
        self._rows = rows
        self._inbox = inbox
        self.revoked = revoked
        self._bearer = Bearer(identity.public, book.get, book.by_pin, revoked)
        self._grants = Grants(identity.public, revoked, book.was_revoked)

    @classmethod
    async def open(
        cls, identity: IdentityKey, book: PeerBook, rows: TokenRows, inbox: InboxRows
    ) -> Credentials:
        """With what was taken back up to now."""
        return cls(identity, book, rows, inbox, await rows.revoked())

    def who(self, token: str, certificate: bytes | None) -> tuple[Caller, str]:
        """The caller, and the name that its envelopes are from when they may not say so themselves.

        Raises ``BadToken``, ``NotPaired``.
        """
        shown = self._bearer.who(token, certificate, time.time())
        if shown is None:
            return STRANGER, ""
        if shown.peer is not None:
            return Caller("federation", peer=shown.peer.fingerprint, caps=shown.peer.scopes), ""
        return Caller("federation", caps=shown.caps), f"{shown.name}_token-{shown.jti[:8]}"

    async def armed(self, envelope: Envelope, caller: Caller) -> Caller:
        """The caller with what its envelope shows beside: a signature, a capability that was passed on.

        Raises ``BadSignature``, ``BadToken``, ``UsedUp``.
        """
        signed, cap = envelope.extensions.get(SIG), envelope.extensions.get(CAP)
        if signed is None and cap is None:
            return caller
        proven = caller.peer
        if signed is not None:
            signer = verify(envelope, time.time())
            if proven and signer != proven:
                raise BadToken("disagree")
            proven = signer
        if cap is None:
            return caller
        grant = self._grants.accept(cap, caller=proven, now=time.time())
        if grant.uses and envelope.verb == HELP and await self._is_new(envelope):
            for jti, limit in reversed(grant.uses.items()):
                if not await self._rows.use(jti, limit, time.time_ns() // 1000):
                    raise UsedUp("That permission was used as often as it may be.", do="Ask for a new one.")
        return replace(caller, peer=proven, caps=effective(caller.caps or (), [grant]))

    async def issue(self, token: IssuedToken) -> None:
        """Writes an issued token down."""
        await self._rows.issue(token)

    async def revoke(self, jti: str) -> None:
        """Takes a token back, at once."""
        at = time.time_ns() // 1000
        await self._rows.revoke(jti, at)
        self.revoked[jti] = at
        self.forget(jti)

    def forget(self, name: str) -> None:
        """Drops what was verified by a ``jti`` or for a peer."""
        self._bearer.forget(name)
        self._grants.forget(name)

    async def _is_new(self, envelope: Envelope) -> bool:
        return await self._inbox.find(envelope.sender, envelope.id, HELP) is None
