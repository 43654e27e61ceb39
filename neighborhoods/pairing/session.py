"""One attempt to pair, as its owner sees it and as far as it has come."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import Role
from neighborhoods.errors import PairingStoppedError
from neighborhoods.pairing.messages import State, StatusReply, VerdictReply
from neighborhoods.peer import Whose

LIVE: Final[tuple[State, ...]] = ("asking", "words", "waiting")
"""States that are no end."""

Ending = tuple[str, str]
"""Texts for a person: (what happened, what to do)."""

DIFFER: Final[Ending] = ("The words differ; nothing was paired.", "Retry once, then change network.")
EXPIRED: Final[Ending] = ("Time is up; nothing was paired.", "Start anew on both machines.")
STOPPED: Final[Ending] = ("The pairing was stopped; nothing was paired.", "Start anew on both machines.")


def stopped(ending: Ending) -> PairingStoppedError:
    """An ending as an error."""
    return PairingStoppedError(ending[0], do=ending[1])


@dataclass(slots=True, eq=False)
class PairingSession:
    """The messages of two machines and their owners so far. ``id`` is a uuid4 that both sides know.

    ``peer`` is the claimed identity of the other side (None while a code waits for somebody), ``address`` its
    ``host:port``, ``host`` the source of an incoming one. Times are those of the clock that was handed in.
    """

    id: str
    role: Role
    mine: NodeCard
    expires_at: float
    peer: NodeCard | None = None
    address: str = ""
    host: str = ""
    whose: Whose | None = None
    state: State = "asking"
    words: tuple[str, ...] = ()
    code: str = field(default="", repr=False)
    by_code: bool = False
    trouble: str = ""
    do: str = ""
    ended_at: float = 0.0

    nonce: bytes = field(default=b"", repr=False)
    commitment: str = field(default="", repr=False)
    other_nonce: str = field(default="", repr=False)
    transcript: bytes = field(default=b"", repr=False)
    verdict: VerdictReply | None = field(default=None, repr=False)
    other_yes: bool = False
    yielded: bool = False
    settling: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def live(self) -> bool:
        """True while it may still succeed."""
        return self.state in LIVE

    @property
    def name(self) -> str:
        """The name that the other side gives itself."""
        return self.peer.name if self.peer else ""

    @property
    def fingerprint(self) -> str:
        """The other side's key, or nothing."""
        return self.peer.fingerprint if self.peer else ""

    @property
    def yes(self) -> bool:
        """True when the owner here said that the words are the same."""
        return self.verdict is not None and self.verdict.same

    @property
    def standing(self) -> StatusReply:
        """The state as the other side gets it."""
        return StatusReply(self.state, self.verdict)

    def problem(self) -> PairingStoppedError | None:
        """The reason why it ended without trust, None while it did not."""
        if self.live or self.state == "paired":
            return None
        return stopped((self.trouble, self.do))

    def row(self, now: float) -> dict[str, Any]:
        """For screens: who, how far, how long still."""
        found: dict[str, Any] = {
            "attempt": self.id,
            "role": self.role,
            "peer": self.name,
            "short": self.fingerprint[:4],
            "address": self.address,
            "state": self.state,
            "words": list(self.words),
            "seconds_left": max(0, int(self.expires_at - now)) if self.live else 0,
        }
        if self.code:
            found["code"] = self.code
        if self.trouble:
            found |= {"trouble": self.trouble, "do": self.do}
        return found

    def become(self, state: State) -> None:
        """Sets the state and wakes waiting tasks."""
        self.state = state
        self.tell()

    def tell(self) -> None:
        """Wakes waiting tasks."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def news(self, seconds: float) -> None:
        """Returns when something changes, or after so long."""
        changed = self._changed
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return
