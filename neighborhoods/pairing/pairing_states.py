"""States of attempts to pair: one as its owner sees it, and all of a daemon, ended in words, forgotten after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NotRequired, TypedDict

from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import Role
from neighborhoods.errors import NoSuchPairingError, PairingStoppedError
from neighborhoods.pairing.messages import State, StatusReply, VerdictReply
from neighborhoods.peer import Whose

PairingEvent = Literal["words", "proof", "yes", "no", "agreed", "stopped", "expired"]
"""words: both machines have them; proof: of the code, sent from here; yes, no: an owner's; agreed: by both, and kept."""

TRANSITIONS: Final[Mapping[State, Mapping[PairingEvent, State]]] = {
    "asking": {
        "words": "words",
        "proof": "waiting",
        "agreed": "paired",  # by a code, the side that shows it
        "stopped": "stopped",
        "expired": "expired",
    },
    "words": {"yes": "waiting", "no": "differ", "stopped": "stopped", "expired": "expired"},
    "waiting": {
        "yes": "waiting",
        "no": "differ",
        "agreed": "paired",
        "stopped": "stopped",
        "expired": "expired",
    },
}
"""The states that are no end: for each event that changes something there, the next state."""

Ending = tuple[str, str]
"""Texts for a person: (what happened, what to do)."""

DIFFER: Final[Ending] = ("The words differ; nothing was paired.", "Retry once, then change network.")
EXPIRED: Final[Ending] = ("Time is up; nothing was paired.", "Start anew on both machines.")
STOPPED: Final[Ending] = ("The pairing was stopped; nothing was paired.", "Start anew on both machines.")

GRACE: Final = 10.0
"""Seconds that the asking side, with a yes on both sides perhaps, goes on asking after the time is over."""
KEPT: Final = 600.0
"""Seconds that an end is remembered, for those who ask again because an answer got lost."""
MOST_KEPT: Final = 64

_TEXTS: Final[dict[PairingEvent, Ending]] = {"no": DIFFER, "expired": EXPIRED, "stopped": STOPPED}


def stopped(ending: Ending) -> PairingStoppedError:
    """An ending as an error."""
    return PairingStoppedError(ending[0], do=ending[1])


class PairingRow(TypedDict):
    """A pairing for screens: who, how far, how long still. One that was settled at once has no ``role`` and what follows."""

    attempt: str
    peer: str
    address: str
    state: State
    role: NotRequired[Role]
    short: NotRequired[str]
    words: NotRequired[list[str]]
    seconds_left: NotRequired[int]
    code: NotRequired[str]
    trouble: NotRequired[str]
    do: NotRequired[str]


@dataclass(slots=True, eq=False)
class PairingAttempt:
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
        return self.state in TRANSITIONS

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

    def row(self, now: float) -> PairingRow:
        """For screens: who, how far, how long still."""
        found: PairingRow = {
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

    def happen(self, event: PairingEvent) -> bool:
        """Changes the state by ``TRANSITIONS`` and wakes waiting tasks; False where the event changes nothing."""
        if event not in (events := TRANSITIONS.get(self.state, {})):
            return False
        self.state = events[event]
        self.tell()
        return True

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


class PairingAttempts:
    """Kept in memory only: a daemon that ends, ends them. Calls come from the event loop."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_id: dict[str, PairingAttempt] = {}
        self._joined: dict[str, str] = {}

    def add(self, attempt: PairingAttempt) -> PairingAttempt:
        """Keeps an attempt, and returns it."""
        self._by_id[attempt.id] = attempt
        return attempt

    def get(self, attempt: str) -> PairingAttempt:
        """The one of that id, or that one which it went over into. Raises ``NoSuchPairingError``."""
        found = self.find(self._joined.get(attempt, attempt))
        if found is None:
            raise NoSuchPairingError("No such pairing is under way.", do="Start anew on both machines.")
        return found

    def find(self, attempt: str) -> PairingAttempt | None:
        """Exactly the one of that id, if there is one."""
        return self._by_id.get(attempt)

    def live(self) -> list[PairingAttempt]:
        """Attempts that may still end well, the oldest first."""
        return [one for one in self._by_id.values() if one.live]

    def join(self, ours: PairingAttempt, kept: PairingAttempt) -> None:
        """``ours`` goes over into ``kept``: its id now leads there, and its own talking ends."""
        kept.whose = kept.whose or ours.whose
        self._by_id.pop(ours.id, None)
        self._joined = {old: kept.id if new == ours.id else new for old, new in self._joined.items()} | {
            ours.id: kept.id
        }
        self._silence(ours)
        ours.happen("stopped")

    def end(self, attempt: PairingAttempt, event: PairingEvent, ending: Ending | None = None) -> None:
        """Ends a live one; what is over, or just being written down, stays. Its secrets are forgotten."""
        if not attempt.live or attempt.settling:
            return
        if event != "agreed":
            attempt.trouble, attempt.do = ending or _TEXTS[event]
        attempt.ended_at = self._now()
        attempt.code, attempt.nonce = "", b""
        self._silence(attempt)
        attempt.happen(event)

    def clear(self) -> None:
        """Ends what is out of time, forgets what ended long ago."""
        now = self._now()
        for one in self.live():
            if now >= one.expires_at + (GRACE if one.role == "asks" and one.yes else 0):
                self.end(one, "expired")
        ended = sorted((one for one in self._by_id.values() if not one.live), key=lambda one: one.ended_at)
        for number, one in enumerate(reversed(ended)):
            if number >= MOST_KEPT or now - one.ended_at > KEPT:
                del self._by_id[one.id]
        self._joined = {old: new for old, new in self._joined.items() if new in self._by_id}

    def _silence(self, attempt: PairingAttempt) -> None:
        task, attempt.task = attempt.task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
