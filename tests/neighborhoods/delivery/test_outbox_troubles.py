"""The outbox when a peer refuses, distrusts, is busy, or is somebody else."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from neighborhoods.delivery.peer_queue import PeerQueue
from neighborhoods.errors import DeclinedError, KeyChangedError


def outbox_tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("outbox")}


@pytest.mark.parametrize("how", ["its own key was proven again", "its owner cleared it"])
async def test_another_key_stops_the_queue_until_it_is_settled(
    home: Any, far: Any, kit: Any, how: str
) -> None:
    peer = far.peer.fingerprint
    home.way.raises = KeyChangedError("Another machine answers where kitchen was.")
    id = await home.put(kit.question())
    await kit.until(lambda: "Another machine" in home.outbox.trouble(peer))
    home.way.raises = None
    behind = await home.put(kit.question())
    await asyncio.sleep(0.2)
    assert far.sizes == [], "time does not start it again"
    assert {row.state for row in await home.outbox.listing()} == {"queued"}
    assert all("Another machine" in row.trouble for row in await home.outbox.listing())
    if how == "its owner cleared it":
        home.outbox.cleared(peer)
    else:
        home.heard()
    await kit.until(lambda: sorted(home.told) == sorted([(id, "done"), (behind, "done")]))
    assert home.outbox.trouble(peer) == ""


@pytest.mark.parametrize("when", ["while the queue is looked at", "while another key answers"])
async def test_a_sign_of_the_peers_own_key_at_work_is_not_forgotten(
    home: Any, far: Any, kit: Any, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, waiting, heard = far.peer.fingerprint, PeerQueue._waiting, list[str]()

    async def looked_at(queue: PeerQueue, most: int) -> Any:
        rows = await waiting(queue, most)
        if when == "while the queue is looked at" and queue.stopped and not heard:
            home.way.raises = None
            heard.append(when)
            home.heard()
        return rows

    async def sent(*_: Any) -> Any:
        monkeypatch.undo()
        heard.append(when)
        home.heard()
        raise KeyChangedError("Another machine answers where kitchen was.")

    if when == "while another key answers":
        monkeypatch.setattr(home.way, "send_batch", sent)
    else:
        monkeypatch.setattr(PeerQueue, "_waiting", looked_at)
        home.way.raises = KeyChangedError("Another machine answers where kitchen was.")
    id = await home.put(kit.question())
    await kit.until(lambda: home.told == [(id, "done")])
    assert heard == [when] and home.outbox.trouble(peer) == ""


async def test_a_peer_that_does_not_trust_us_stops_its_queue(home: Any, far: Any, kit: Any) -> None:
    far.distrusts = True
    fine, id = await home.put(kit.question()), await home.put(kit.question("stranger"))
    await kit.until(lambda: home.outbox.trouble(far.peer.fingerprint) == "Who are you?")
    await kit.until(lambda: home.rows.states() == ["done", "queued"])
    sent = len(far.sizes)
    await asyncio.sleep(0.2)
    assert len(far.sizes) == sent
    far.distrusts = False
    home.outbox.cleared(far.peer.fingerprint)
    await kit.until(lambda: (id, "done") in home.told)
    assert far.accepted == [fine, id]


async def test_peer_that_does_not_know_who_calls_gets_the_calls_once_it_does(
    home: Any, far: Any, kit: Any
) -> None:
    home.way.raises = DeclinedError("kitchen takes no calls of this machine (401): expired.", answered=401)
    ids = [await home.put(kit.question()) for _ in range(3)]
    await kit.until(lambda: "expired" in home.outbox.trouble(far.peer.fingerprint))
    await kit.until(lambda: any(row.tries > 2 for row in home.rows.rows.values()))
    assert set(home.rows.states()) == {"queued"}
    home.way.raises = None
    await kit.until(lambda: sorted(home.told) == sorted((id, "done") for id in ids))
    assert far.accepted == ids


async def test_a_sign_of_life_while_a_try_hangs_is_not_forgotten(far: Any, kit: Any) -> None:
    patient = kit.Home(far, msgspec.structs.replace(kit.QUICK, first_pause=600.0, longest_pause=600.0))
    far.hold = asyncio.Event()
    far.mood = "cut once"
    id = await patient.put(kit.question())
    await far.taken.wait()
    patient.heard()
    far.hold.set()
    await kit.until(lambda: patient.told == [(id, "done")])
    await patient.close()


async def test_a_refusal_to_look_something_up_is_not_its_answer(home: Any, far: Any, kit: Any) -> None:
    id = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    far.on_fetch = (429, "busy")
    home.heard()
    await kit.until(lambda: far.fetched > 2)
    assert home.rows.states() == ["accepted"]
    far.on_fetch = (401, "not_paired")
    await kit.until(lambda: home.outbox.trouble(far.peer.fingerprint) != "")
    assert home.rows.states() == ["accepted"]
    far.on_fetch = None
    far.finish(id)
    home.outbox.cleared(far.peer.fingerprint)
    await kit.until(lambda: home.told == [(id, "done")])


async def test_a_peer_whose_trust_was_ended_is_sent_nothing(home: Any, far: Any, kit: Any) -> None:
    home.book.clear()
    id = await home.put(kit.question(), ttl=0.3)
    await kit.until(lambda: "not a peer" in home.outbox.trouble(far.peer.fingerprint))
    await kit.until(lambda: home.told == [(id, "expired")])
    assert far.sizes == []
    await kit.until(lambda: not outbox_tasks())


async def test_one_that_is_refused_for_now_waits_and_the_others_pass(home: Any, far: Any, kit: Any) -> None:
    busy = await home.put(kit.question("busy", times=3))
    others = [await home.put(kit.question()) for _ in range(3)]
    await kit.until(lambda: len(home.told) == 4)
    assert home.told[-1] == (busy, "done")
    assert far.accepted == [*others, busy]


async def test_a_clock_that_is_set_back_delays_nothing(home: Any, far: Any, kit: Any) -> None:
    home.clock.ahead = 50_000.0
    id = await home.put(kit.question("busy", times=1))
    await kit.until(lambda: home.rows.rows[1].trouble != "")
    home.clock.ahead = 0.0
    await kit.until(lambda: home.told == [(id, "done")])


async def test_a_peer_that_asked_for_time_is_left_alone(far: Any, kit: Any) -> None:
    patient = kit.Home(far, msgspec.structs.replace(kit.QUICK, longest_pause=600.0))
    far.mood, far.retry_after = 503, "500"
    id = await patient.put(kit.question())
    await kit.until(lambda: patient.rows.rows[1].trouble != "")
    far.mood = ""
    patient.heard()
    (row,) = await patient.outbox.listing()
    assert row.next_at > patient.clock() + 300_000_000, "a sign of life does not cut it short"
    await patient.outbox.retry(id)
    await kit.until(lambda: patient.told == [(id, "done")])
    await patient.close()


async def test_a_recorded_failure_is_an_answer_whatever_its_status(home: Any, far: Any, kit: Any) -> None:
    far.mood = "cut after"
    failed, unavailable = await home.put(kit.question("fail")), await home.put(kit.question("fail503"))
    await kit.until(lambda: len(far.sizes) >= 2)
    far.mood = ""
    await kit.until(lambda: home.rows.states() == ["failed", "failed"])
    assert sorted(home.told) == sorted([(failed, "failed"), (unavailable, "failed")])
    assert [row.trouble for row in home.rows.rows.values()] == ["It broke.", "It broke."]
