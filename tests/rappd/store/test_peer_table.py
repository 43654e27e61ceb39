"""Peers and tokens: what was written is read back the same, by the next one to open the file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neighborhoods.durable_tables import IssuedToken, PeerStorage
from neighborhoods.peer import Peer
from rappd.errors import StoreError
from rappd.store.peer_table import PeerTable
from rappd.store.store import Store
from rappd.store.token_table import TokenTable

FP = "ab" * 32

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
moments = st.integers(0, 2**62)
peers_of_any_kind = st.builds(
    Peer, fingerprint=words, name=words, whose=st.sampled_from(("mine", "friend")), public_key=st.binary(max_size=9),
    certificate=st.binary(max_size=9), sealing_key=words, scopes=st.lists(words, max_size=3).map(tuple),
    paired_at=moments, called=words, address=words, seen_at=moments, offered=st.booleans(),
)  # fmt: skip


def _peer(fingerprint: str = FP, **other: Any) -> Peer:
    values = {"name": "desk", "whose": "mine", "scopes": ("*",), "paired_at": 100, **other}
    return Peer(fingerprint, public_key=b"k", certificate=b"c", sealing_key="age1", **values)


@pytest.fixture
def peers(store: Store) -> PeerStorage:
    return PeerTable(store)


@pytest.fixture
def tokens(store: Store) -> TokenTable:
    return TokenTable(store)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=st.lists(peers_of_any_kind, max_size=5))
def test_every_field_survives_closing(tmp_path_factory, written: list[Peer]) -> None:
    path = tmp_path_factory.mktemp("peers") / "rappd.db"

    async def write() -> None:
        store = await Store.open(path)
        for peer in written:
            await PeerTable(store).save_peer(peer)
        await store.close()

    async def read() -> list[Peer]:
        store = await Store.open(path)
        found = await PeerTable(store).peers()
        await store.close()
        return found

    asyncio.run(write())
    last = {peer.fingerprint: peer for peer in written}
    assert {peer.fingerprint: peer for peer in asyncio.run(read())} == last


async def test_ended_trust_returns_only_by_pairing(peers) -> None:
    await peers.save_peer(_peer())
    await peers.remove_peer(FP, 200)
    assert (await peers.peers(), await peers.revoked_peers()) == ([], {FP: 200})
    await peers.save_peer(_peer(name="renamed while it was ended"))
    assert (await peers.peers(), await peers.revoked_peers()) == ([], {FP: 200})
    anew = _peer(paired_at=300)
    await peers.save_peer(anew)
    assert (await peers.peers(), await peers.revoked_peers()) == ([anew], {})


async def test_ending_the_trust_of_a_stranger_is_remembered_too(peers) -> None:
    await peers.remove_peer("cd" * 32, 5)
    await peers.remove_peer("cd" * 32, 3)
    assert await peers.revoked_peers() == {"cd" * 32: 5}


async def test_a_peer_is_noted_where_it_was_seen_last(peers) -> None:
    await peers.save_peer(_peer(offered=True))
    await peers.seen_peer(FP, "10.0.0.7:7443", 500)
    await peers.seen_peer(FP, "late news", 400)
    await peers.seen_peer("cd" * 32, "of nobody", 600)
    seen = msgspec.structs.replace(_peer(offered=True), address="10.0.0.7:7443", seen_at=500)
    assert await peers.peers() == [seen]


async def test_a_peer_that_cannot_be_written_spoils_only_itself(peers) -> None:
    saved = [_peer("aa"), _peer("bb", name="\udc80"), _peer("cc")]
    results = await asyncio.gather(*map(peers.save_peer, saved), return_exceptions=True)
    assert isinstance(results[1], StoreError)
    assert results[::2] == [None, None]
    assert [peer.fingerprint for peer in await peers.peers()] == ["aa", "cc"]


async def test_tokens_are_listed_latest_first_with_state(tokens) -> None:
    first = IssuedToken("j1", "phone", ("HELP.brainstem", "EGG"), 10, 99)
    second = IssuedToken("j2", "ci", (), 10, 99)
    third = IssuedToken("j3", "old", ("*",), 5, 6)
    for token in (first, second, third):
        await tokens.issue(token)
    assert await tokens.tokens() == [second, first, third]
    await tokens.revoke("j1", 50)
    await tokens.revoke("j1", 60)
    await tokens.revoke("issued elsewhere", 70)
    assert await tokens.use("j2", 5, 55)
    assert await tokens.revoked() == {"j1": 50, "issued elsewhere": 70}
    found = {token.jti: (token.revoked_at, token.used_at) for token in await tokens.tokens()}
    assert found == {"j1": (50, 0), "j2": (0, 55), "j3": (0, 0)}


async def test_token_uses_are_counted_under_concurrency(path: Path) -> None:
    store = await Store.open(path)
    tokens = TokenTable(store)
    allowed = await asyncio.gather(*(tokens.use("j", 7, at) for at in range(50)))
    assert allowed == [True] * 7 + [False] * 43
    assert not await tokens.use("never", 0, 1)
    await store.close()
    store = await Store.open(path)
    tokens = TokenTable(store)
    assert not await tokens.use("j", 7, 99)
    assert await tokens.use("j", 8, 99)
    assert await tokens.use("never", 1, 99)
    await store.close()
