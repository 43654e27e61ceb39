"""Asking several machines at once: the first that gets it done, or all within a time; and HELLO to all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

from msgspec.structs import replace

from envelopes.envelope import ACK, ERROR, THREAD, Envelope
from neighborhoods.delivery.broadcast import PeerResult, first_done, gather_all, hello_all
from neighborhoods.errors import PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.dispatcher import Dispatcher
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.arguments import UnfitArgumentError
from rappd.features.calls.call_forms import CallView, call_data, call_row, failed
from rappd.features.calls.operations import LONGEST_WAIT, CallOperations
from rappd.features.operation import OWNER, operation
from rappd.federation.greetings import PROBE_SECONDS, Greetings
from rappd.federation.peer_greeting import read_greeting
from rappd.federation.startup_state import Availability

MOST_AT_ONCE = 100
EVERYBODY = "all"
_SPARE_SECONDS = 15.0  # so that who is asked does not say "later" before nobody waits any more

Which = Literal["first", "all"]


class Broadcast(TypedDict):
    """The calls in the order asked, and the name of the peer that was first where only one was wanted."""

    calls: list[CallView]
    winner: str | None


class HelloRow(TypedDict):
    """A peer's answer to HELLO, or why there was none."""

    name: str
    fingerprint: str
    short: str
    answered: bool
    ms: float | None
    agents: int
    trouble: str


class BroadcastOperations:
    """``rappd call --first``, ``rappd call --all`` and ``rappd peers hello``."""

    def __init__(
        self,
        availability: Availability,
        peers: PeerStore,
        greetings: Greetings,
        dispatcher: Dispatcher,
        calls: CallOperations,
        members_of: Callable[[str], list[str]] | None = None,
    ) -> None:
        """``members_of``: the keys of the machines that are members of the neighborhood ``@NAME``; reads files."""
        self._availability, self._peers, self._greetings = availability, peers, greetings
        self._dispatcher, self._calls, self._members_of = dispatcher, calls, members_of

    @operation("calls.broadcast", "POST", "/call/broadcast", right=OWNER)
    async def call(
        self,
        peers: list[str] | str,
        which: Which = "all",
        text: str = "",
        agent: str = "",
        args: dict[str, Any] | None = None,
        twin: str = "",
        wait: float = 30.0,
    ) -> Broadcast:
        """Asks `peers`, a list or `all`, at once; `which`: the `first` that gets it done, or `all` within `wait` seconds.

        `@NAME` in the list is a neighborhood's paired members. `text`, `twin`, `agent` and `args` as with `/call`.

        ``{"calls": [as of a single call], "winner": a name or None}``, in the order asked.

        ``state``: done, failed (it said so), away, late (``wait`` passed), stopped (another was faster). Who
        is late or not needed is told to stop. Nothing of it is queued: what comes late is worth nothing.
        """
        await self._availability.wait()
        selectors = [peers] if isinstance(peers, str) else peers
        if not selectors or (isinstance(peers, str) and peers != EVERYBODY):
            raise UnfitArgumentError(
                "peers must be a list of names, or all", do='Send {"peers": ["pi", "shed"]}.'
            )
        chosen = self._chosen(await self._without_neighborhoods(selectors))
        wait = min(max(0.1, wait), LONGEST_WAIT - _SPARE_SECONDS)
        data = [call_data(text, agent, args, [] if twin else self._announced(peer)) for peer in chosen]
        begun = await asyncio.gather(
            *(self._calls.begin(peer, one, twin=twin) for peer, one in zip(chosen, data, strict=True))
        )
        asked = {peer.fingerprint: one for peer, one in zip(chosen, begun, strict=True)}
        started = time.monotonic()

        async def ask(peer: Peer) -> Envelope:
            return await self._calls.ask(peer, asked[peer.fingerprint], wait=wait + _SPARE_SECONDS)

        async def cancel(peer: Peer) -> None:
            await self._calls.cancel(peer.fingerprint, asked[peer.fingerprint].id)

        if which == "first":
            outcome = await first_done(chosen, ask, cancel, wait)
            winner, heard = outcome.winner, outcome.heard
        else:
            winner, heard = None, await gather_all(chosen, ask, wait, cancel=cancel)
        rows = [self._settled(one, asked[one.peer.fingerprint], started) for one in heard]
        calls = [row for row, _ in rows]
        await asyncio.gather(*(self._dispatcher.record_reply(end, end.thread) for _, end in rows))
        return {"calls": calls, "winner": winner.peer.name if winner else None}

    @operation("peers.hello", "POST", "/peers/hello", right=OWNER, answers="hello")
    async def hello(self) -> list[HelloRow]:
        """Says HELLO to every peer, and tells who answered how fast.

        ``{"hello": [{name, fingerprint, short, answered, ms, agents, trouble}]}``.
        """
        await self._availability.wait()
        heard = await hello_all(self._peers.all(), self._greetings.call, within=PROBE_SECONDS + 1)
        return [_hello_row(one) for one in heard]

    async def _without_neighborhoods(self, selectors: Sequence[str]) -> list[str]:
        """``@NAME`` as its paired members. Raises ``NoSuchNeighborhoodError``, ``NotFoundError`` where none is paired."""
        found: list[str] = []
        for one in selectors:
            if not one.startswith("@") or self._members_of is None:
                found.append(one)
                continue
            keys = await asyncio.to_thread(self._members_of, one)
            paired = [key for key in keys if self._peers.get(key) is not None]
            if not paired:
                raise NotFoundError(
                    f"No other member of {one} is paired with this machine.",
                    do=f"rappd neighborhood show '{one.removeprefix('@')}'",
                )
            found += paired
        return found

    def _chosen(self, selectors: Sequence[str]) -> list[Peer]:
        """The peers that the selector means, each once. Raises ``NoSuchPeerError``, ``NotFoundError``, ``UsageProblemError``."""
        book = self._peers
        if list(selectors) == [EVERYBODY] and book.named(EVERYBODY) is None:
            found = book.all()
            if not found:
                raise NotFoundError("No machine is paired with this one.", do="rappd peers pair NAME")
        else:
            found = list({peer.fingerprint: peer for peer in map(book.find, selectors)}.values())
        if not found:
            raise UsageProblemError("Whom?", do='rappd call --first PEER,PEER "…"')
        if len(found) > MOST_AT_ONCE:
            raise UsageProblemError(
                f"{len(found)} machines at once are too many.", do=f"At most {MOST_AT_ONCE}."
            )
        return found

    def _announced(self, peer: Peer) -> list[Any]:
        return list(self._greetings.of(peer.fingerprint).agents)

    def _settled(self, heard: PeerResult, asked: Envelope, started: float) -> tuple[CallView, Envelope]:
        """Returns the row of one peer's result and the envelope to record on its thread."""
        end, state = heard.reply, "done"
        if heard.outcome == "not_needed":
            state, end = "stopped", asked.refusal(499, "Stopped: another was faster.", "stopped")
        elif heard.outcome == "late" or (end is not None and end.verb == ACK):
            state, end = "late", asked.refusal(499, "Stopped: it took too long.", "late")
        elif end is None:
            is_offline = heard.outcome == "failed" and isinstance(heard.problem, PeerOfflineError)
            state = "away" if is_offline else "failed"
            end = failed(asked, heard.problem or PeerOfflineError(heard.trouble))
        elif end.verb == ERROR:
            state = "failed"
        row = call_row(heard.peer.name, asked, state, started, reply=end)
        return {**row, "seconds": round(heard.seconds, 3)}, replace(
            end, id=asked.id, extensions={**end.extensions, THREAD: asked.thread}
        )


def _hello_row(heard: PeerResult) -> HelloRow:
    reply = heard.reply if heard.outcome == "answered" else None
    agents = read_greeting(reply.data).agents if reply is not None else ()
    return {
        "name": heard.peer.name,
        "fingerprint": heard.peer.fingerprint,
        "short": heard.peer.short,
        "answered": reply is not None,
        "ms": round(heard.seconds * 1000, 1) if reply is not None else None,
        "agents": len(agents),
        "trouble": ""
        if reply is not None
        else (heard.trouble or f"{heard.peer.name} did not answer in time."),
    }
