"""The setters of timers: what of a caller is kept with a timer, and the rights that it has when the timer is due."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from envelopes.identity.capabilities import attenuate
from neighborhoods.durable_tables import IssuedToken
from rappd.dispatch.rights import Caller
from rappd.errors import RefusedError
from rappd.sessions.participants import Speaker, caller_of
from rappd.tenants.tenant_endpoints import SETS_TIMERS

_OF_PROGRAM = "_token-"


class Setter(msgspec.Struct, frozen=True):
    """The caller that set a timer, as it was then. ``sender`` is the user whose memory counts."""

    listener: str
    sender: str
    operator: bool = False
    peer: str = ""
    device: str = ""
    mine: bool = False
    caps: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        """Equal for timers of one caller: so many may be set, and so they are found again."""
        if self.operator:
            return "operator"
        if self.caps is None:
            return "local"
        return f"device:{self.device}" if self.listener == "tether" else f"peer:{self.peer or self.sender}"

    @property
    def is_owner(self) -> bool:
        """True for callers on this machine, the owner's own phones, and the owner in a session: told by notices."""
        return self.caps is None or (self.listener == "tether" and (self.mine or not self.device))


def setter_of(caller: Caller, sender: str) -> Setter:
    """Raises ``RefusedError`` for a caller that may set no timers, or could not be found again later."""
    known = caller.caps is None or caller.listener == "tether" or caller.peer or _OF_PROGRAM in sender
    if not SETS_TIMERS.admits(caller) or not known:
        raise RefusedError("You may set no timers here.", do="Ask this machine's owner for the right TIMER.")
    return Setter(
        caller.listener, sender, caller.operator, caller.peer, caller.device, caller.mine, caller.caps
    )


class SetterRights:
    """Rights when a timer is due: the lesser of then and now."""

    def __init__(
        self,
        device: Callable[[str], Speaker | None],
        peer: Callable[[str], Caller | None],
        tokens: Callable[[], Awaitable[Sequence[IssuedToken]]],
    ) -> None:
        """``device`` and ``peer`` give a phone and a paired machine as they are now, ``tokens`` all that were issued."""
        self._device, self._peer, self._tokens = device, peer, tokens

    async def now(self, setter: Setter) -> Caller:
        """The caller as which a timer is performed. Raises ``RefusedError`` for one that may set none any more."""
        if setter.caps is None:
            return Caller(setter.listener, operator=setter.operator)
        caller = await self._present(setter)
        if caller is None or caller.caps is None or not SETS_TIMERS.admits(caller):
            raise RefusedError(
                "Who set it may set no timers here any more.", do="rappd timers cancel removes it"
            )
        lesser = attenuate(caller.caps, setter.caps)
        return msgspec.structs.replace(caller, caps=lesser, mine=caller.mine and setter.mine)

    async def _present(self, setter: Setter) -> Caller | None:
        if setter.listener == "tether":
            if not setter.device:  # the owner in a session with phones
                return Caller("tether", caps=setter.caps)
            device = self._device(setter.device)
            return caller_of(device) if device is not None else None
        if setter.peer:
            return self._peer(setter.peer)
        jti = setter.sender.rpartition(_OF_PROGRAM)[2]
        for token in await self._tokens():
            if token.jti.startswith(jti) and not token.revoked_at and token.expires_at > time.time():
                return Caller("federation", caps=token.caps)
        return None


def kept(setter: Setter) -> dict[str, Any]:
    """The setter as JSON."""
    return dict(msgspec.to_builtins(setter))


def read_setter(found: object) -> Setter:
    """The reverse."""
    return msgspec.convert(found, Setter)
