"""This machine's side: what each part of pairing needs of the daemon, and the rules that hold for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat
from typing import Any, Final

import msgspec

from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard
from neighborhoods.errors import KeyChangedError, PairingStoppedError, PeerConflictError, PeerOfflineError
from neighborhoods.pairing.pairing_states import Ending, PairingAttempt, PairingAttempts, stopped
from neighborhoods.peer import Whose

Send = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Posts a body to ``/pairing`` at an address and returns the JSON object that came back, whatever its
status: a refusal is ``{"error", "do", "code"}``. Raises ``PeerOfflineError`` when nobody could be reached."""
OnPaired = Callable[[NodeCard, Whose, str], Awaitable[object]]
"""Writes a new peer down: (introduction, whose, address). Called again for the same one, it changes nothing."""
Known = Callable[[str], str | None]
"""The fingerprint that a name of a peer stands for here."""

AGAIN: Final = (0.5, 1.0, 2.0)
BUSY_PAUSE: Final = 5.0
SEND_SECONDS: Final = 15.0

WRONG_CODE: Final[Ending] = (
    "The code was wrong; nothing was paired.",
    "Read it again there, and type it again; after three wrong ones, show a new one.",
)

_REFUSALS: Final = {
    "": ("refused the pairing", "Update both machines, try again."),
    "key_changed": ("knows another machine by this one's name", "There: revoke the old one, then pair."),
    "no_pairing": ("knows nothing of this pairing any more", "Start anew on both machines."),
    "pairing_stopped": ("stopped the pairing", "Start anew on both machines."),
    "peer_conflict": ("is this machine itself", "Pair two machines."),
    "bad_introduction": ("does not believe this machine's introduction", "Update both machines."),
}


class LocalParty(msgspec.Struct, frozen=True):
    """Handed to every part.

    ``poll`` is the pause in seconds between two questions to the other side, ``within`` how long two owners
    have, from the first question to the last yes.
    """

    key: IdentityKey
    introduction: Callable[[], NodeCard]
    send: Send
    on_paired: OnPaired
    known: Known
    now: Callable[[], float]
    attempts: PairingAttempts
    poll: float
    within: float

    def meet(self, introduction: NodeCard) -> NodeCard:
        """Itself, when it holds and may be paired. ``BadNodeCardError``, ``PeerConflictError``, ``KeyChangedError``."""
        introduction.check()
        if introduction.fingerprint == self.key.fingerprint:
            raise PeerConflictError("That is this machine itself.", do="Pair two machines.")
        if self.known(introduction.name) not in (None, introduction.fingerprint):
            raise KeyChangedError(
                f"{introduction.name}'s key has changed; nothing was sent.",
                do=f"Reinstalled? rappd peers revoke {introduction.name}, and pair anew; else keep away.",
            )
        return introduction

    async def settle(self, attempt: PairingAttempt) -> None:
        """Both said yes: the peer is written down, then the attempt is paired. The caller holds its lock."""
        assert attempt.peer is not None and attempt.whose is not None
        attempt.settling = True
        failed: Ending | None = None
        try:
            await self.on_paired(attempt.peer, attempt.whose, attempt.address)
        except ReportableError as problem:
            failed = str(problem), problem.do
        finally:
            attempt.settling = False
        self.attempts.end(attempt, "stopped" if failed else "agreed", failed)

    async def say(self, attempt: PairingAttempt, body: dict[str, Any], *, patient: bool) -> dict[str, Any]:
        """Sends a message and returns the answer; sends it again while the other side is away or busy.

        ``patient`` goes on until the session's time is over, else three times. Raises ``PairingStoppedError``
        for a refusal, ``PeerOfflineError``, and whatever else ``send`` raises.
        """
        for pause in self._pauses(patient):
            self.attempts.clear()
            if patient and not attempt.live:
                break
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    answer = await self.send(attempt.address, body)
            except (PeerOfflineError, TimeoutError):
                await attempt.news(pause)
                continue
            if not isinstance(answer, dict) or "error" not in answer:
                return answer
            if answer.get("code") not in ("pairing_busy", "too_many"):
                raise _refusal(attempt, answer.get("code"))
            await attempt.news(BUSY_PAUSE)
        raise PeerOfflineError(
            f"{attempt.name} does not answer; nothing was paired.", do="Is rappd running there? Try again."
        )

    def _pauses(self, patient: bool) -> Iterator[float]:
        yield from AGAIN
        if patient:
            yield from repeat(max(self.poll, AGAIN[-1]))


def _refusal(attempt: PairingAttempt, code: object) -> PairingStoppedError:
    """In this machine's own words: a stranger's sentences are not put before people."""
    if attempt.by_code and code == "pairing_stopped":
        return stopped(WRONG_CODE)
    if attempt.by_code and code == "no_pairing":
        return PairingStoppedError(
            f"{attempt.name} shows no code now; nothing was paired.", do="There: rappd peers pair --code"
        )
    what, do = _REFUSALS.get(code if isinstance(code, str) else "", _REFUSALS[""])
    return PairingStoppedError(f"{attempt.name} {what}; nothing was paired.", do=do)
