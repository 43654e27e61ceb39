"""Anchors between machines of one owner: hands this machine's to them, and keeps theirs as a witness.

They travel in ``HELLO``: ``anchor`` is the sender's newest, ``want_anchors`` asks for those that the receiver
keeps of the sender, which come as ``anchors`` in the reply. Older machines ignore these keys.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

import orjson

from envelopes.errors import ReportableError
from envelopes.identity.anchor import LARGEST, Anchor, BadAnchorError, read_anchor
from envelopes.identity.capabilities import covers
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.daemon.anchoring import Anchoring
from rappd.daemon.rate_limit import RateLimit, RateLimitedError
from rappd.errors import NotFoundError
from rappd.store.anchor_file import AnchorFile, Witnessed
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

CAPABILITY = "ANCHOR"
HANDED_EVERY = 60.0
"""Seconds between two anchors that are handed to one peer."""
TAKEN_A_MINUTE = 12
"""Anchors that are looked at, of one peer."""
LATEST, DAYS, FAULTS = 8, 30, 16
"""Kept of each peer: the latest, one for each of the last days, and those that contradict earlier ones."""

_DAY = 86_400_000_000

Say = Callable[[Peer, dict[str, Any]], Awaitable[dict[str, Any]]]
"""(peer, more data) -> the data of the peer's reply to a HELLO with that."""


class WitnessRow(TypedDict):
    """The anchors of this machine that another one keeps, each with its fault ("" for none), or why none came."""

    name: str
    anchors: list[list[Any]]
    trouble: str


class AnchorFault(TypedDict):
    """An anchor that contradicts earlier ones."""

    counter: int
    received: int
    what: str


class KeptAnchors(TypedDict):
    """The anchors that are kept of a peer: their number, the newest, and faulty ones."""

    fingerprint: str
    name: str
    anchors: int
    counter: int
    events: int
    at: int
    faults: list[AnchorFault]


class AnchorWitness:
    """All calls come from the event loop; the file is written on its own thread."""

    def __init__(self, anchoring: Anchoring, book: PeerStore) -> None:
        self._anchoring = anchoring
        self._book = book
        self._kept: dict[str, list[Witnessed]] = {}
        self._handed: dict[str, tuple[float, str]] = {}
        self._taking = RateLimit(TAKEN_A_MINUTE, 60)
        self._writing = BackgroundTasks("an anchor of a peer was not written down")
        self._unwritten: dict[str, list[dict[str, Any]]] = {}
        """Anchors by node that could not be kept; the node's next HELLO tries them again."""
        self._ready = False

    async def open(self) -> None:
        """Reads what is kept of others. Raises ``StoreError``."""
        for one in await self._anchoring.on_file(AnchorFile.witnessed):
            self._kept.setdefault(one.node, []).append(one)
        self._ready = True

    async def close(self) -> None:
        """Returns once what was taken is written."""
        await self._writing.settle()

    def offer(self, peer: Peer, *, now: bool = False) -> dict[str, Any]:
        """The data that a HELLO to this peer brings along: the newest anchor, if it has not got it.

        At most once a minute, unless ``now``.
        """
        anchor = self._anchoring.report.anchor
        if anchor is None or self._anchoring.report.problems or not _is_own(peer):
            return {}
        at, handed = self._handed.get(peer.fingerprint, (-HANDED_EVERY, ""))
        if handed == anchor.hash or (time.monotonic() - at < HANDED_EVERY and not now):
            return {}
        return {"anchor": anchor.to_json()}

    def offered(self, peer: Peer, data: dict[str, Any]) -> None:
        """A HELLO with what ``offer`` gave was answered."""
        anchor = self._anchoring.report.anchor
        if "anchor" in data and anchor is not None:
            self._handed[peer.fingerprint] = (time.monotonic(), read_hash(data["anchor"], anchor))

    def greeted(self, fingerprint: str, data: dict[str, Any]) -> dict[str, Any]:
        """A peer said HELLO with this data: takes its anchor, and returns what the reply has to bring."""
        peer = self._book.get(fingerprint) if fingerprint else None
        if peer is None or not self._ready or not _is_own(peer):
            return {}
        for body in self._unwritten.pop(fingerprint, ()):
            self._take(peer, body)
        if "anchor" in data:
            self._take(peer, data["anchor"])
        if data.get("want_anchors") is True:
            kept = [one for one in self._kept.get(fingerprint, ()) if one.number]  # on the disk
            return {"anchors": [[one.body, one.fault] for one in kept]}
        return {}

    async def ask(self, say: Say) -> list[WitnessRow]:
        """The anchors of this machine that each of its owner's others keeps, as ``--peers`` shows them."""

        async def one(peer: Peer) -> WitnessRow:
            try:
                reply = await say(peer, {"want_anchors": True, **self.offer(peer)})
            except ReportableError as problem:
                return {"name": peer.name, "anchors": [], "trouble": f"is away: {problem}"}
            anchors = reply.get("anchors")
            if not isinstance(anchors, list):
                return {"name": peer.name, "anchors": [], "trouble": "keeps no anchors of this machine"}
            good = [list(row) for row in anchors if _is_row(row)]
            trouble = "" if good else "keeps no anchors of this machine yet"
            return {"name": peer.name, "anchors": good, "trouble": trouble}

        return list(await asyncio.gather(*(one(peer) for peer in self._book.all() if _is_own(peer))))

    def kept(self) -> list[KeptAnchors]:
        """The anchors kept of each peer, for screens."""
        rows: list[KeptAnchors] = []
        for node, kept in self._kept.items():
            peer = self._book.get(node)
            good = [one for one in kept if not one.fault]
            newest: dict[str, Any] = good[-1].body if good else {}
            rows.append(
                {
                    "fingerprint": node,
                    "name": peer.name if peer else "",
                    "anchors": len(good),
                    "counter": newest.get("counter", 0),
                    "events": newest.get("events", 0),
                    "at": newest.get("at", 0),
                    "faults": [
                        {"counter": one.counter, "received": one.received, "what": one.fault}
                        for one in kept
                        if one.fault
                    ],
                }
            )
        return rows

    def find(self, selector: str) -> str:
        """The fingerprint of a machine of which anchors are kept, by its name or how its fingerprint begins.

        Raises ``NotFoundError``.
        """
        for node in self._kept:
            peer = self._book.get(node)
            if (peer is not None and peer.name == selector) or (
                len(selector) >= 4 and node.startswith(selector)
            ):
                return node
        raise NotFoundError(f'No anchors of "{selector[:80]}" are kept here.', do="rappd threads witness")

    async def forget(self, node: str) -> int:
        """Drops what is kept of a peer, evidence included. Raises ``StoreError``."""
        await self.close()
        self._kept.pop(node, None)
        self._unwritten.pop(node, None)
        return await self._anchoring.on_file(lambda file: file.forget_witnessed(node))

    def _take(self, peer: Peer, value: Any) -> None:
        node = peer.fingerprint
        kept = self._kept.setdefault(node, [])
        if any(one.body == value for one in kept):
            return
        try:
            self._taking.take(node)
            if len(orjson.dumps(value)) > LARGEST:
                raise BadAnchorError("The anchor is too large.")
            anchor = read_anchor(value, peer.public_key)
        except (BadAnchorError, RateLimitedError, orjson.JSONEncodeError) as error:
            log.warning("security: %s sent an anchor that was not taken: %s", peer.name, error)
            return
        fault = _fault(anchor, [one for one in kept if not one.fault])
        if fault is None:
            return
        if fault:
            if sum(bool(one.fault) for one in kept) >= FAULTS:
                return
            log.error("security: %s sent anchor %d of its event log, %s", peer.name, anchor.counter, fault)
        new = Witnessed(0, node, anchor.counter, time.time_ns() // 1000, fault, anchor.to_json())
        kept.append(new)
        self._writing.spawn(self._written(node, new))

    async def _written(self, node: str, new: Witnessed) -> None:
        drop = _surplus(self._kept[node])
        numbers = [one.number for one in drop if one.number]
        try:
            number = await self._anchoring.on_file(lambda file: file.keep_witnessed(new, numbers))
        except ReportableError as problem:
            log.warning("an anchor of a peer could not be kept: %s", problem)
            self._kept[node] = [one for one in self._kept.get(node, ()) if one is not new]
            self._unwritten[node] = [*self._unwritten.get(node, ()), new.body][-LATEST:]
            return
        kept = [one for one in self._kept.get(node, ()) if one not in drop]
        self._kept[node] = [one._replace(number=number) if one is new else one for one in kept]


def read_hash(value: Any, anchor: Anchor) -> str:
    """The hash of an anchor that was sent; ``anchor`` is the newest now, which may be a later one."""
    return anchor.hash if value == anchor.to_json() else ""


def _is_own(peer: Peer) -> bool:
    return peer.whose == "mine" and covers(peer.scopes, CAPABILITY)


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], dict) and isinstance(row[1], str)


def _fault(anchor: Anchor, good: list[Witnessed]) -> str | None:
    """The contradiction between an anchor and those that were kept: "" when it follows them, None for one that is only late."""
    for one in good:
        if one.counter == anchor.counter:
            return "and another with that number before"
    if not good:
        return ""
    last = max(good, key=lambda one: one.counter)
    before: dict[str, Any] = last.body
    if anchor.counter < last.counter:
        return f"after anchor {last.counter}" if anchor.at > before["at"] else None
    if anchor.counter == last.counter + 1 and anchor.previous != _hash_of(before):
        return f"which does not follow anchor {last.counter}"
    if anchor.events < before["events"]:
        return f"with fewer events than anchor {last.counter}"
    return ""


def _hash_of(body: dict[str, Any]) -> str:
    return Anchor(**body).hash


def _surplus(kept: list[Witnessed]) -> list[Witnessed]:
    """The witnessed heads that are kept no longer."""
    good = sorted((one for one in kept if not one.fault), key=lambda one: one.counter)
    stays = {one.counter for one in good[-LATEST:]}
    days = {one.received // _DAY: one.counter for one in good}  # the latest of each day
    stays.update(days[day] for day in sorted(days)[-DAYS:])
    return [one for one in good if one.counter not in stays]
