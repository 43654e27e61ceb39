"""The book of peers: who is trusted, under which name, whatever happens at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard, introduce
from neighborhoods.errors import KeyChangedError, NoSuchPeerError, PeerConflictError
from neighborhoods.peer import FRIEND, MINE, Peer
from neighborhoods.peer_store import PeerStore
from twins.eggs.encryption import make_encryption_key


class Records:
    """Rows that take a moment to be written."""

    def __init__(self) -> None:
        self.rows: dict[str, Peer] = {}
        self.ended: dict[str, int] = {}

    async def peers(self) -> list[Peer]:
        return list(self.rows.values())

    async def save_peer(self, peer: Peer) -> None:
        await asyncio.sleep(0.01)
        if self.ended.get(peer.fingerprint, 0) <= peer.paired_at:
            self.ended.pop(peer.fingerprint, None)
            self.rows[peer.fingerprint] = peer

    async def remove_peer(self, fingerprint: str, at: int) -> None:
        await asyncio.sleep(0.01)
        self.rows.pop(fingerprint, None)
        self.ended[fingerprint] = at

    async def seen_peer(self, fingerprint: str, address: str, at: int) -> None:
        await asyncio.sleep(0.01)

    async def revoked_peers(self) -> dict[str, int]:
        return dict(self.ended)


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def book(records: Records) -> PeerStore:
    return PeerStore(records)


@pytest.fixture
def machine() -> Callable[[str], NodeCard]:
    sealing = make_encryption_key()[1]

    def make(name: str) -> NodeCard:
        key = IdentityKey.generate()
        return introduce(
            key, make_certificate(key, now=datetime.now(UTC)).certificate_der, sealing, name, 7443
        )

    return make


Make = Callable[[str], NodeCard]


async def test_a_peer_is_found_by_everything_it_goes_by(book: PeerStore, machine: Make) -> None:
    pi = await book.pair(machine("Pi of Ann"), "mine", "10.0.0.2:7443")
    assert (pi.name, pi.scopes) == ("pi-of-ann", MINE)
    for selector in (
        "pi-of-ann",
        pi.fingerprint,
        pi.short,
        f"pi-of-ann_{pi.short}",
        pi.fingerprint[:9].upper(),
    ):
        assert book.find(selector) is pi
    assert book.get(pi.fingerprint) is book.by_pin(pi.pin) is book.by_prefix(pi.prefix) is pi
    with pytest.raises(NoSuchPeerError):
        book.find("pi-of-an")
    with pytest.raises(NoSuchPeerError):
        book.find(pi.fingerprint[:3])


async def test_names_are_told_apart_however_many_claim_one(book: PeerStore, machine: Make) -> None:
    first = await book.pair(machine("pi"), "mine", "")
    second = await book.pair(machine("pi"), "friend", "")
    assert (first.name, second.name) == ("pi", f"pi_{second.short}")
    third = machine("pi")
    await book.rename(first.fingerprint, f"pi_{third.fingerprint[:4]}")
    await book.rename(second.fingerprint, "pi")
    peer = await book.pair(third, "friend", "")
    names = [one.name for one in book.all()]
    assert len(set(names)) == 3
    assert book.find(peer.name) is peer
    assert book.find(first.fingerprint).name != peer.name


async def test_a_name_that_the_owner_gave_is_no_other_keys(book: PeerStore, machine: Make) -> None:
    await book.pair(machine("pi"), "mine", "")
    with pytest.raises(KeyChangedError):
        await book.pair(machine("pi"), "mine", "", name="pi")
    other = await book.pair(machine("other"), "friend", "")
    assert other.scopes == FRIEND
    for name in ("pi", "", "a b", "-x", "x" * 41):
        with pytest.raises(PeerConflictError):
            await book.rename("other", name)


async def test_peers_own_name_is_noted_and_changes_nothing(
    book: PeerStore, records: Records, machine: Make
) -> None:
    pi = await book.pair(machine("pi"), "mine", "")
    told: list[str] = []
    book.listen(lambda what, peer: told.append(what))
    for said in ("kitchen", "pi", "garage"):  # it may say so as often as it likes
        await book.calls_itself(pi.fingerprint, said)
    now = book.find("pi")
    assert (now.name, now.called, told) == ("pi", "kitchen", ["renamed itself"])
    assert records.rows[pi.fingerprint].called == "kitchen"
    await book.revoke("pi")
    await book.calls_itself(pi.fingerprint, "back again")
    assert (book.all(), records.rows) == ([], {})


async def test_ended_trust_is_not_brought_back_by_a_change_under_way(
    book: PeerStore, records: Records, machine: Make
) -> None:
    pi = await book.pair(machine("pi"), "mine", "")
    results = await asyncio.gather(
        book.revoke("pi"),
        book.set_scopes("pi", ("*",)),
        book.rename("pi", "tau"),
        book.seen(pi.fingerprint, "10.0.0.9:1"),
        return_exceptions=True,
    )
    assert isinstance(results[1], NoSuchPeerError)
    assert isinstance(results[2], NoSuchPeerError)
    assert book.get(pi.fingerprint) is None
    assert book.by_pin(pi.pin) is None
    assert book.was_revoked(pi.fingerprint)
    assert records.rows == {}
    with pytest.raises(NoSuchPeerError):
        book.find("pi")


async def test_changes_at_once_do_not_undo_each_other(
    book: PeerStore, records: Records, machine: Make
) -> None:
    pi = await book.pair(machine("pi"), "mine", "")
    await asyncio.gather(
        book.set_scopes(pi.fingerprint, ("HELP.brainstem.Clock",)),
        book.offer(pi.fingerprint, True),
        book.rename(pi.fingerprint, "tau"),
    )
    found = book.find("tau")
    assert (found.scopes, found.offered) == (("HELP.brainstem.Clock",), True)
    assert records.rows[pi.fingerprint] == found
    with pytest.raises(NoSuchPeerError):
        book.find("pi")


async def test_trust_anew_starts_over_unless_it_never_ended(book: PeerStore, machine: Make) -> None:
    card = machine("pi")
    await book.pair(card, "friend", "")
    await book.set_scopes("pi", ("HELP.brainstem",))
    assert (await book.pair(card, "friend", "")).scopes == ("HELP.brainstem",)
    await book.revoke("pi")
    assert (await book.pair(card, "friend", "")).scopes == FRIEND
    assert not book.was_revoked(card.fingerprint)


async def test_wire_equal_keys_are_not_both_trusted(book: PeerStore, machine: Make) -> None:
    pi = await book.pair(machine("pi"), "mine", "")
    twin = machine("twin")
    alike = msgspec.structs.replace(twin, fingerprint=pi.prefix + twin.fingerprint[16:])
    with pytest.raises(PeerConflictError):
        await book.pair(alike, "friend", "")
    assert book.by_prefix(pi.prefix) == pi


async def test_listeners_are_called_after_the_change(book: PeerStore, machine: Make) -> None:
    heard: list[tuple[str, str, bool]] = []
    book.listen(lambda what, peer: heard.append((what, peer.name, book.get(peer.fingerprint) is not None)))
    await book.pair(machine("pi"), "mine", "")
    await book.rename("pi", "tau")
    await book.revoke("tau")
    assert heard == [("paired", "pi", True), ("changed", "tau", True), ("revoked", "tau", False)]


async def test_what_is_on_the_disk_is_there_after_a_start(records: Records, machine: Make) -> None:
    book = PeerStore(records)
    pi = await book.pair(machine("pi"), "mine", "")
    gone = await book.pair(machine("gone"), "mine", "")
    await book.revoke("gone")
    again = PeerStore(records)
    await again.load()
    assert again.all() == [pi]
    assert again.was_revoked(gone.fingerprint)
