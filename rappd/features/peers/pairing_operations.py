"""The owner's operations on pairings: begin, look, compare, stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envelopes.codecs.emergence import encode
from envelopes.envelope import HELLO, Envelope, new_id
from envelopes.errors import BadNodeCardError
from envelopes.identity.node_card import NodeCard
from neighborhoods.errors import KeyChangedError, NoSuchPeerError
from neighborhoods.pairing.pairing_states import PairingRow
from neighborhoods.peer import Whose
from neighborhoods.peer_store import PeerStore
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import OWNER, operation
from rappd.federation.local_node import LocalNode
from rappd.federation.peer_addresses import PeerAddresses
from rappd.federation.startup_state import Deferred

if TYPE_CHECKING:
    from neighborhoods.pairing.pairing_states import PairingAttempt
    from neighborhoods.pairing.service import PairingService

STATE_WAIT = 20.0


class PairingOperations:
    """Each answers the pairing as the page and the command line show it."""

    def __init__(
        self,
        node: LocalNode,
        peers: PeerStore,
        addresses: PeerAddresses,
        pairings: Deferred[PairingService],
    ) -> None:
        self._node, self._peers, self._addresses, self._pairings = node, peers, addresses, pairings

    @operation("pairings.begin", "POST", "/pairings", right=OWNER, answers="pairing")
    async def begin_pairing(
        self,
        peer: str = "",
        fingerprint: str = "",
        code: str = "",
        offer_code: bool = False,
        whose: Whose | None = None,
    ) -> PairingRow:
        """Begins pairing with `peer` (a name or an address); `fingerprint` or `code` settle it at once.

        `offer_code` shows a code to type on the other machine. `whose`: mine or friend.
        """
        if offer_code:
            pairings = await self._pairings.ready()
            return self._row(await pairings.offer_code(whose or "friend"))
        if not peer:
            raise MissingArgumentError("peer is required", do='Send {"peer": "…"}.')
        return await self.pair(peer, fingerprint=fingerprint, code=code, whose=whose)

    async def pair(
        self, peer: str, *, fingerprint: str = "", code: str = "", whose: Whose | None = None
    ) -> PairingRow:
        """Begins pairing with a discovered machine, one that asks, or an address.

        With its whole fingerprint or the code that it shows, pairing is completed at once.
        """
        pairings = await self._pairings.ready()
        address, introduction = await self._meet(peer)
        if fingerprint:
            if fingerprint.strip().lower() != introduction.fingerprint:
                raise KeyChangedError(
                    f"{introduction.name} has another fingerprint; nothing was paired.",
                    do="Look it up there: rappd peers list --json",
                )
            paired = await self._peers.pair(introduction, whose or "friend", address)
            self._addresses.resolver.learn(address, introduction.fingerprint)
            return {"state": "paired", "peer": paired.name, "address": address, "attempt": ""}
        if code:
            attempt = await pairings.use_code(address, introduction, code, whose or "friend")
        else:
            attempt = await pairings.ask(introduction, address, whose)
        return self._row(attempt)

    @operation("pairings.show", "GET", "/pairings/{attempt}", right=OWNER, answers="pairing")
    async def pairing(self, attempt: str, state: str = "") -> PairingRow:
        """The state of a pairing; with `?state=` it waits up to 20 s for another state than that."""
        pairings = await self._pairings.ready()
        if state:
            known: Any = state
            return self._row(await pairings.wait(attempt, known, STATE_WAIT))
        return self._row(pairings.get(attempt))

    @operation("pairings.confirm", "POST", "/pairings/{attempt}", right=OWNER, answers="pairing")
    async def confirm(self, attempt: str, same: bool, whose: Whose | None = None) -> PairingRow:
        """Confirms a pairing: if the words are the `same`, and `whose` the other machine is."""
        pairings = await self._pairings.ready()
        return self._row(await pairings.confirm(attempt, same, whose))

    @operation("pairings.stop", "DELETE", "/pairings/{attempt}", right=OWNER, answers="pairing")
    async def stop(self, attempt: str) -> PairingRow:
        """Wants no pairing."""
        pairings = await self._pairings.ready()
        return self._row(await pairings.stop(attempt))

    async def _meet(self, selector: str) -> tuple[str, NodeCard]:
        """The address and introduction of whom the owner means. Raises ``NoSuchPeerError``, ``KeyChangedError``."""
        between: NoSuchPeerError | None = None
        for address in await self._addresses_of(selector):
            try:
                introduction = await introduced_at(self._node, address)
            except NoSuchPeerError as problem:
                between = problem if isinstance(problem, IdentityMismatchError) else between
                continue
            known = self._peers.named(selector.strip().lower())
            if known is not None and known != introduction.fingerprint:
                raise _key_changed(selector)
            for peer in self._peers.all():  # the same machine by its address, or by its new key
                is_there = (peer.address, peer.called) == (address, introduction.name)
                if is_there and peer.fingerprint != introduction.fingerprint:
                    raise _key_changed(peer.name)
            return address, introduction
        raise between or NoSuchPeerError(
            f'No machine "{selector[:60]}" answers.', do="rappd peers list, or rappd peers add ADDRESS"
        )

    async def _addresses_of(self, selector: str) -> list[str]:
        from neighborhoods.discovery.address_text import BadAddressError, join, split

        wanted = selector.strip().lower()
        asking = [one for one in self._pairings.now().asking() if one.peer is not None]
        claimed = [(one.name, one.fingerprint, [one.address]) for one in asking]
        claimed += [
            (one.name, one.fingerprint, [join(host, one.port) for host in one.addresses])
            for one in self._addresses.discovered.machines()
        ]
        claimed += [
            (entry.name, entry.fingerprint, [entry.address])
            for entry in await self._addresses.written.entries()
            if not entry.legacy
        ]
        claimed += [
            (peer.name, peer.fingerprint, [peer.address]) for peer in self._peers.all() if peer.address
        ]
        found = [
            address for name, key, addresses in claimed if _means(wanted, name, key) for address in addresses
        ]
        try:
            found.append(join(*split(selector)))
        except BadAddressError:
            if not found:
                raise NoSuchPeerError(
                    f'No machine "{selector[:60]}" was found.',
                    do="rappd peers list, or rappd peers add ADDRESS",
                ) from None
        return list(dict.fromkeys(found))

    def _row(self, attempt: PairingAttempt) -> PairingRow:
        return attempt.row(self._pairings.now().now())


class IdentityMismatchError(NoSuchPeerError):
    """The machine that introduces itself is not the one that the connection leads to."""


async def introduced_at(node: LocalNode, address: str) -> NodeCard:
    """The introduction of the machine at an address. Raises ``NoSuchPeerError`` where there is none."""
    from neighborhoods.errors import NeighborhoodError
    from rappd.federation.handshake_client import say_hello  # aiohttp is for those who are asked something

    hello = Envelope(new_id(), node.id, "broadcast", HELLO, {"capabilities": [], "name": node.name})
    try:
        card, certificate = await say_hello(address, encode(hello))
        introduction = NodeCard.from_json(card.get("introduction")).check()
    except (NeighborhoodError, BadNodeCardError) as error:
        raise NoSuchPeerError(f"No machine answers at {address}.", do="Is rappd running there?") from error
    if introduction.certificate != certificate:
        raise IdentityMismatchError(
            f"Somebody stands between this machine and {address}.", do="Try another network."
        )
    return introduction


def _key_changed(name: str) -> KeyChangedError:
    return KeyChangedError(
        f"{name}'s key has changed; nothing was sent.",
        do=f"reinstalled? rappd peers revoke {name}, and pair anew; else keep away",
    )


def _means(wanted: str, name: str, fingerprint: str) -> bool:
    if not fingerprint:
        return wanted == name.lower() and bool(name)
    return wanted in (name.lower(), f"{name.lower()}_{fingerprint[:4]}", fingerprint) or (
        len(wanted) >= 4 and fingerprint.startswith(wanted)
    )
