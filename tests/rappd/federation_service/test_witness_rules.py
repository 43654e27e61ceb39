"""Rules by which a peer's anchors are kept: what follows, what is only late, what contradicts, and how many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from envelopes.identity.anchor import Anchor, sign_anchor
from envelopes.identity.keys import IdentityKey
from neighborhoods.errors import PeerOfflineError
from neighborhoods.peer import MINE, Peer
from rappd.daemon.anchoring import Anchoring
from rappd.errors import StoreError
from rappd.federation import witness as witnessing
from rappd.federation.witness import AnchorWitness
from rappd.store.anchor_file import AnchorFile
from rappd.store.store import Store

PEER_KEY = IdentityKey.generate()


class OnePeer:
    """A peer book with one peer."""

    def __init__(self, **changes: Any) -> None:
        known = {"whose": "mine", "scopes": MINE, **changes}
        self.peer = Peer(PEER_KEY.fingerprint, "pi", public_key=PEER_KEY.public, certificate=b"", sealing_key="",
                         paired_at=1, **known)  # fmt: skip

    def get(self, fingerprint: str) -> Peer | None:
        return self.peer if fingerprint == self.peer.fingerprint else None

    def all(self) -> list[Peer]:
        return [self.peer]


@pytest.fixture
async def anchoring(tmp_path: Path) -> AsyncIterator[Anchoring]:
    store = await Store.open(tmp_path / "rappd.db")
    found = Anchoring(tmp_path / "rappd.db", IdentityKey.generate(), store)
    await found.start()
    yield found
    await found.close()
    await store.close()


@pytest.fixture
async def witness(anchoring: Anchoring, monkeypatch: pytest.MonkeyPatch) -> AnchorWitness:
    monkeypatch.setattr(witnessing, "TAKEN_A_MINUTE", 10_000)
    found = AnchorWitness(anchoring, OnePeer())  # type: ignore[arg-type]
    await found.open()
    return found


def signed(
    counter: int, *, before: Anchor | None = None, at: int = 0, events: int = 0, **more: Any
) -> Anchor:
    return sign_anchor(
        more.pop("key", PEER_KEY), previous=before, counter=counter, at=at or counter, threads=1,
        events=events or counter, root=more.pop("root", bytes(32)), **more,
    )  # fmt: skip


async def given(witness: AnchorWitness, *anchors: Anchor | dict[str, Any]) -> dict[str, Any]:
    for one in anchors:
        body = one.to_json() if isinstance(one, Anchor) else one
        assert witness.greeted(PEER_KEY.fingerprint, {"anchor": body}) == {}
        await witness.close()  # returns once it is written
    rows = witness.kept()
    return rows[0] if rows else {"anchors": 0, "counter": 0, "faults": []}


async def test_anchors_that_follow_are_kept_once(witness: AnchorWitness) -> None:
    one = signed(1)
    two = signed(2, before=one)
    row = await given(witness, one, one, two, two, signed(9, before=two))
    assert (row["anchors"], row["counter"], row["faults"]) == (3, 9, [])


async def test_anchor_is_claimed_to_be_kept_once_it_is_on_the_disk(
    witness: AnchorWitness, anchoring: Anchoring, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(work: Callable[[AnchorFile], Any]) -> Any:
        raise StoreError("The disk is full; anchors.db cannot grow.")

    one = signed(1)
    with monkeypatch.context() as patch:
        patch.setattr(anchoring, "on_file", full)
        assert (await given(witness, one))["anchors"] == 0
        assert witness.greeted(PEER_KEY.fingerprint, {"want_anchors": True}) == {"anchors": []}
        await witness.close()
    assert witness.greeted(PEER_KEY.fingerprint, {}) == {}, "a peer hands an anchor over once"
    await witness.close()
    assert witness.greeted(PEER_KEY.fingerprint, {"want_anchors": True}) == {"anchors": [[one.to_json(), ""]]}
    after = AnchorWitness(anchoring, OnePeer())  # type: ignore[arg-type]
    await after.open()
    assert after.kept()[0]["anchors"] == 1


@pytest.mark.parametrize(
    ("contradiction", "said"),
    [
        (lambda two: signed(2, at=50, root=b"x" * 32), "and another with that number before"),
        (lambda two: signed(1, at=50, root=b"x" * 32), "after anchor 2"),
        (lambda two: signed(3, at=50), "which does not follow anchor 2"),
        (lambda two: signed(7, at=50, events=1), "with fewer events than anchor 2"),
        (
            lambda two: signed(3, before=two, at=50, events=1, note="restored"),
            "with fewer events than anchor 2",
        ),
    ],
)
async def test_contradiction_is_kept_beside_and_survives(
    witness: AnchorWitness, anchoring: Anchoring, contradiction: Callable[[Anchor], Anchor], said: str
) -> None:
    two = signed(2)
    forged = contradiction(two)
    row = await given(witness, two, forged, forged)
    assert (row["anchors"], row["counter"]) == (1, 2)
    assert [fault["what"] for fault in row["faults"]] == [said]
    again = AnchorWitness(anchoring, OnePeer())  # type: ignore[arg-type]
    await again.open()
    assert again.kept() == witness.kept()
    reply = again.greeted(PEER_KEY.fingerprint, {"want_anchors": True})
    assert [fault for _, fault in reply["anchors"]] == ["", said]


async def test_late_anchor_is_no_contradiction(witness: AnchorWitness) -> None:
    row = await given(witness, signed(5), signed(4))
    assert (row["anchors"], row["counter"], row["faults"]) == (1, 5, [])


async def test_number_kept_of_a_peer_is_bounded(witness: AnchorWitness) -> None:
    row = await given(witness, *(signed(number * 2) for number in range(1, 60)))
    assert row["anchors"] <= witnessing.LATEST + 1
    assert row["counter"] == 118
    row = await given(witness, *(signed(118, at=200 + number) for number in range(40)))
    assert len(row["faults"]) == witnessing.FAULTS
    assert row["counter"] == 118


async def test_rate_of_a_peer_is_bounded(anchoring: Anchoring) -> None:
    witness = AnchorWitness(anchoring, OnePeer())  # type: ignore[arg-type]
    await witness.open()
    row = await given(witness, *(signed(number) for number in range(1, 60, 2)))
    assert row["counter"] == 2 * witnessing.TAKEN_A_MINUTE - 1


@pytest.mark.parametrize(
    "value",
    [None, "x", {}, signed(1, key=IdentityKey.generate()).to_json(), {**signed(1).to_json(), "events": 2},
     {**signed(1).to_json(), "note": "x" * 5000}],
)  # fmt: skip
async def test_what_the_peer_did_not_sign_is_not_kept(witness: AnchorWitness, value: Any) -> None:
    assert (await given(witness, {"x": 1} if value is None else value))["anchors"] == 0


@pytest.mark.parametrize("changes", [{"whose": "friend"}, {"scopes": ("HELP.brainstem",)}])
async def test_peer_without_the_capability_is_no_witness(
    anchoring: Anchoring, changes: dict[str, Any]
) -> None:
    book = OnePeer(**changes)
    witness = AnchorWitness(anchoring, book)  # type: ignore[arg-type]
    await witness.open()
    assert witness.offer(book.peer) == {}
    assert witness.greeted(PEER_KEY.fingerprint, {"anchor": signed(1).to_json(), "want_anchors": True}) == {}
    assert witness.kept() == []


async def test_anchor_is_handed_once_and_at_most_once_a_minute(
    witness: AnchorWitness, anchoring: Anchoring
) -> None:
    peer = OnePeer().peer
    first = witness.offer(peer)
    assert first["anchor"]["counter"] == 1
    witness.offered(peer, first)
    assert witness.offer(peer) == witness.offer(peer, now=True) == {}
    anchoring.report.anchor = signed(2)
    assert witness.offer(peer) == {}
    assert witness.offer(peer, now=True)["anchor"]["counter"] == 2


@pytest.mark.parametrize("reply", [{}, {"anchors": "x"}, {"anchors": [1, [], [{}, 1]]}, {"anchors": []}])
async def test_older_or_odd_machine_is_named_as_no_witness(
    witness: AnchorWitness, reply: dict[str, Any]
) -> None:
    async def say(peer: Peer, more: dict[str, Any]) -> dict[str, Any]:
        return reply

    (row,) = await witness.ask(say)
    assert row["name"] == "pi"
    assert row["anchors"] == []
    assert "keeps no anchors" in row["trouble"]


async def test_machine_that_is_away_is_named(witness: AnchorWitness) -> None:
    async def say(peer: Peer, more: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        raise PeerOfflineError("Nobody answers.")

    (row,) = await witness.ask(say)
    assert row["trouble"].startswith("is away")
