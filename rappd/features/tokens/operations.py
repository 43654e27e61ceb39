"""Credentials for calls without pairing: tokens for programs, permissions for machines."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict
from urllib.parse import quote

from envelopes.envelope import is_uuid, new_id
from envelopes.errors import BadCapabilityError
from envelopes.identity.caller_tokens import MOST_CAPABILITIES, mint_issued_token
from envelopes.identity.capabilities import check as check_capability
from envelopes.identity.capability_tokens import mint_root, narrow
from neighborhoods.durable_tables import IssuedToken
from neighborhoods.peer_store import PeerStore
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import OWNER, Text, operation
from rappd.features.tokens.client_settings import client_settings
from rappd.federation.local_node import LocalNode
from rappd.federation.startup_state import Availability, Deferred
from rappd.store.token_table import TokenTable

if TYPE_CHECKING:
    from rappd.federation.request_auth import RequestAuthenticator

DAYS = 90
MOST_DAYS = 3650
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class TokenRow(TypedDict):
    """An issued token; moments are seconds since 1970. ``text`` and what follows is told once, when it is issued.

    With codes in place of a text these are ``user``, ``secret`` and ``uri``, with lines for a program all of ``ClientSettings``.
    ``uses``: how often a permission can be used, None for any number.
    """

    jti: str
    name: str
    to: str
    kind: Literal["machine", "program"]
    caps: list[str]
    issued_at: float
    expires_at: float
    revoked_at: float | None
    used_at: float | None
    text: NotRequired[str]
    uses: NotRequired[int | None]
    url: NotRequired[str]
    certificate: NotRequired[str]
    lines: NotRequired[list[str]]
    user: NotRequired[str]
    secret: NotRequired[str]
    uri: NotRequired[str]


class Narrower(TypedDict):
    """A permission that was passed on, and to whom."""

    to: str
    chain: list[str]


class RevokedToken(TypedDict):
    """A token that counts no more."""

    jti: str
    name: str


class TokenOperations:
    """Texts are made here, shown once, and never kept: what is kept is what each allows, and until when."""

    def __init__(
        self,
        node: LocalNode,
        port: Callable[[], int],
        availability: Availability,
        peers: PeerStore,
        tokens: TokenTable,
        credentials: Deferred[RequestAuthenticator],
    ) -> None:
        """``port`` gives that of the listener for other machines."""
        self._node, self._port, self._availability = node, port, availability
        self._peers, self._tokens, self._credentials = peers, tokens, credentials

    @operation("tokens.list", "GET", "/tokens", right=OWNER, answers="tokens")
    async def listing(self) -> list[TokenRow]:
        """Lists issued tokens, the latest first, without their texts."""
        if not self._availability.rests:
            await self._availability.wait()
        return [self._row(token) for token in await self._tokens.tokens()]

    @operation("tokens.issue", "POST", "/tokens", right=OWNER, answers="token")
    async def issue(
        self,
        name: Text,
        caps: list[str] | None = None,
        days: float = DAYS,
        totp: bool = False,
        client: str = "",
    ) -> TokenRow:
        """A token for a program: its `name`, `caps` (what it may do), `days`. Its text is in this answer alone.

        With `totp` it has no text: it comes in by the codes of an authenticator, whose `secret` is in this answer alone.
        `client`: the protocol that the program speaks (openai, ollama, mcp, a2a, acp); `lines` are to be pasted there.
        """
        credentials = await self._credentials.ready()
        if not _LABEL.fullmatch(name):
            raise UsageProblemError(
                f'"{name[:40]}" cannot be a name.', do="Use letters, digits, - and _, at most 40 of them."
            )
        allowed, seconds, now = _allowed(caps), _seconds(days), time.time()
        token = _kept(new_id(), name, allowed, now, seconds)
        shown = self._row(token)
        if totp:
            secret = base64.b32encode(await credentials.codes.add(token.jti)).decode()
            uri = f"otpauth://totp/rappd:{name}?secret={secret}&issuer={quote(self._node.name)}"
            shown |= {"user": name, "secret": secret, "uri": uri}
        else:
            text = await asyncio.to_thread(
                mint_issued_token,
                self._node.identity,
                name=name,
                caps=allowed,
                now=now,
                seconds=seconds,
                jti=token.jti,
            )
            shown["text"] = text
            if client:  # before it counts: a protocol that is not there makes no token
                pasted = client_settings(client, text, port=self._port(), folder=self._node.home.keys)
                shown |= {
                    "url": pasted["url"],
                    "certificate": pasted["certificate"],
                    "lines": pasted["lines"],
                }
        await credentials.issue(token)
        return shown

    @operation("tokens.capability", "POST", "/tokens/capability", right=OWNER, answers="token")
    async def capability(
        self,
        peer: str = "",
        fingerprint: str = "",
        caps: list[str] | None = None,
        days: float = DAYS,
        uses: int | None = None,
    ) -> TokenRow:
        """A permission for a machine, which it may pass on narrower: `peer` or `fingerprint`, `caps`, perhaps `uses`, `days`."""
        if not (fingerprint or peer):
            raise MissingArgumentError("peer is required", do='Send {"peer": "…"}.')
        credentials = await self._credentials.ready()
        holder = self._fingerprint(fingerprint or peer)
        allowed, seconds, now = _allowed(caps), _seconds(days), time.time()
        token = _kept(new_id(), holder, allowed, now, seconds)
        text = await asyncio.to_thread(
            mint_root,
            self._node.identity,
            to=holder,
            caps=allowed,
            now=now,
            seconds=seconds,
            uses=_uses(uses),
            jti=token.jti,
        )
        await credentials.issue(token)
        return {**self._row(token), "uses": uses, "text": text}

    @operation("tokens.narrow", "POST", "/tokens/narrow", right=OWNER, answers="token")
    async def narrow(
        self,
        chain: str | list[str],
        to: Text,
        caps: list[str] | None = None,
        days: float = DAYS,
        uses: int | None = None,
    ) -> Narrower:
        """Passes a permission of this machine on, narrower: `chain` (texts), `to`, `caps`, perhaps `uses`, `days`.

        Raises ``BadTokenError`` for a chain that does not hold or was given to another machine, ``BadCapabilityError``
        when nothing of ``caps`` is in it.
        """
        await self._availability.wait()
        holder, now = self._fingerprint(to), time.time()
        links = await asyncio.to_thread(
            narrow,
            chain,
            self._node.identity,
            to=holder,
            caps=_allowed(caps),
            now=now,
            expires=int(now) + _seconds(days),
            uses=_uses(uses),
        )
        return {"to": holder, "chain": links}

    @operation("tokens.revoke", "DELETE", "/tokens/{jti}", right=OWNER, answers="revoked")
    async def revoke(self, jti: str) -> RevokedToken:
        """Takes one back, at once. One that another machine made is taken back by its whole ID."""
        credentials = await self._credentials.ready()
        wanted = jti.strip().lower()
        known = [one for one in await self._tokens.tokens() if one.jti == wanted]
        if not known and not is_uuid(wanted):
            raise NotFoundError(f'Nothing was issued with the ID "{jti[:60]}".', do="rappd token list")
        await credentials.revoke(wanted)
        return {"jti": wanted, "name": self._name(known[0].name) if known else ""}

    def _row(self, token: IssuedToken) -> TokenRow:
        is_machine = _FINGERPRINT.fullmatch(token.name) is not None
        return {
            "jti": token.jti,
            "name": self._name(token.name),
            "to": token.name if is_machine else "",
            "kind": "machine" if is_machine else "program",
            "caps": list(token.caps),
            "issued_at": token.issued_at / 1e6,
            "expires_at": token.expires_at / 1e6,
            "revoked_at": token.revoked_at / 1e6 if token.revoked_at else None,
            "used_at": token.used_at / 1e6 if token.used_at else None,
        }

    def _name(self, kept: str) -> str:
        """A label, or what the machine of a fingerprint is called here."""
        if not _FINGERPRINT.fullmatch(kept):
            return kept
        peer = self._peers.get(kept)
        return peer.name if peer is not None else kept[:16]

    def _fingerprint(self, to: str) -> str:
        wanted = to.strip().lower()
        return wanted if _FINGERPRINT.fullmatch(wanted) else self._peers.find(to).fingerprint


def _allowed(caps: Sequence[str] | None) -> tuple[str, ...]:
    if not caps:
        raise BadCapabilityError(
            "It would allow nothing.", do="Say what it may do: HELP.brainstem, HELP.brainstem.Clock, EGG."
        )
    if len(caps) > MOST_CAPABILITIES:
        raise BadCapabilityError(f"{len(caps)} are too many.", do=f"Name {MOST_CAPABILITIES} at most.")
    return tuple(dict.fromkeys(check_capability(one) for one in caps))


def _seconds(days: float) -> int:
    if not 0 < days <= MOST_DAYS:
        raise UsageProblemError(f"It lasts up to {MOST_DAYS} days.", do=f'Send {{"days": {DAYS}}}.')
    return max(1, int(days * 86_400))


def _uses(uses: int | None) -> int | None:
    if uses is not None and not 1 <= uses <= 1 << 53:
        raise UsageProblemError("It can be used once or more often.", do='Send {"uses": 10}.')
    return uses


def _kept(jti: str, name: str, caps: tuple[str, ...], now: float, seconds: int) -> IssuedToken:
    at = int(now * 1_000_000)
    return IssuedToken(jti, name, caps, at, (int(now) + seconds) * 1_000_000)
