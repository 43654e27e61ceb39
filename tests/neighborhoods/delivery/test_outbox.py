"""The outbox against a far machine on loopback that comes, goes, refuses and forgets."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from fixtures.refusals import refused

from envelopes.codecs import emergence
from envelopes.envelope import CANCEL, DONE, Envelope, new_id
from neighborhoods.errors import OutboxConflictError


def outbox_tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("outbox")}


async def test_what_waited_goes_in_order_when_the_peer_returns(home: Any, far: Any, kit: Any) -> None:
    await far.leave()
    ids = [await home.put(kit.question()) for _ in range(250)]
    await kit.until(lambda: home.rows.rows[1].tries > 1)
    assert set(home.rows.states()) <= {"queued", "delivered"}
    await far.come()
    home.heard()
    await kit.until(lambda: set(home.rows.states()) == {"done"})
    assert far.accepted == ids
    assert sorted(home.told) == sorted((id, "done") for id in ids)
    assert max(far.sizes) <= 100
    assert far.most_at_once == 1


async def test_a_sign_of_life_ends_the_pause(far: Any, kit: Any) -> None:
    patient = kit.Home(far, msgspec.structs.replace(kit.QUICK, first_pause=600.0, longest_pause=600.0))
    await far.leave()
    id = await patient.put(kit.question())
    await kit.until(lambda: patient.rows.rows[1].trouble != "")
    (row,) = await patient.outbox.listing()
    assert row.next_at > patient.clock() + 300_000_000, "the pause is told"
    assert "away" in row.trouble
    await far.come()
    patient.heard()
    await kit.until(lambda: patient.told == [(id, "done")])
    await patient.close()


async def test_signs_of_life_do_not_keep_tries_that_fail_frequent(far: Any, kit: Any) -> None:
    pace = msgspec.structs.replace(kit.QUICK, first_pause=600.0, longest_pause=600.0, try_gap=0.02)
    chatty = kit.Home(far, pace)
    await far.leave()
    id = await chatty.put(kit.question())
    until = asyncio.get_running_loop().time() + 1.2
    while asyncio.get_running_loop().time() < until:
        chatty.heard()
        await asyncio.sleep(0.005)
    (row,) = await chatty.outbox.listing()
    assert 3 <= row.tries <= 8, "0.02 s, doubling; some 60 without"
    await far.come()
    await chatty.outbox.retry(id)
    await kit.until(lambda: chatty.told == [(id, "done")])
    await chatty.close()


async def test_peers_that_nothing_waits_for_cost_nothing(home: Any, far: Any, kit: Any) -> None:
    before = asyncio.all_tasks()
    for number in range(1000):
        home.outbox.heard_from(f"{number:064x}")
    assert asyncio.all_tasks() == before
    await home.put(kit.question())
    assert len(outbox_tasks()) == 2, "the peer's and the one that looks at the clock"
    await kit.until(lambda: not outbox_tasks())


async def test_a_reply_that_got_lost_is_given_again_from_the_record(home: Any, far: Any, kit: Any) -> None:
    far.mood = "cut after"
    id = await home.put(kit.question())
    await kit.until(lambda: len(far.sizes) >= 3)
    far.mood = ""
    await kit.until(lambda: home.told == [(id, "done")])
    assert far.accepted == [id]


async def test_a_pushed_answer_counts_once(home: Any, far: Any, kit: Any) -> None:
    id = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    reply, peer = far.finish(id), far.peer.fingerprint
    assert not await home.outbox.answered("c" * 64, reply), "only the peer that was asked may answer"
    assert not await home.outbox.answered(peer, msgspec.structs.replace(reply, id=new_id()))
    taken = await asyncio.gather(*(home.outbox.answered(peer, reply) for _ in range(5)))
    assert sorted(taken) == [False] * 4 + [True]
    assert home.told == [(id, "done")]
    assert b'"DONE"' in home.rows.rows[1].answer
    await kit.until(lambda: not outbox_tasks())


async def test_an_answer_that_overtakes_its_own_reply_counts_once(home: Any, far: Any, kit: Any) -> None:
    far.hold = asyncio.Event()
    id = await home.put(kit.question())
    await far.taken.wait()
    assert await home.outbox.answered(far.peer.fingerprint, far.finish(id))
    far.hold.set()
    await kit.until(lambda: not outbox_tasks())
    assert home.told == [(id, "done")]


async def test_an_answer_does_not_answer_our_own_answer(home: Any, far: Any, kit: Any) -> None:
    await far.leave()
    reply = Envelope(new_id(), "brainstem_" + "a" * 16, "them_" + "b" * 16, DONE, {})
    await home.put(reply)
    assert not await home.outbox.answered(far.peer.fingerprint, reply)
    assert home.told == []


async def test_a_start_asks_at_once_for_what_was_answered_meanwhile(far: Any, kit: Any) -> None:
    patient = kit.Home(far, msgspec.structs.replace(kit.QUICK, ask_every=600.0))
    id = await patient.put(kit.question("later"))
    await kit.until(lambda: patient.rows.states() == ["accepted"])
    far.finish(id)
    await patient.restart()
    await kit.until(lambda: patient.told == [(id, "done")])
    await patient.close()


async def test_one_put_at_the_moment_the_queue_ends_is_not_left_behind(far: Any, kit: Any) -> None:
    patient = kit.Home(far, msgspec.structs.replace(kit.QUICK, ask_every=600.0, sweep_every=600.0))
    for turns in range(60):
        await patient.put(kit.question())
        while len(patient.told) <= turns:
            await asyncio.sleep(0)
        for _ in range(turns % 15):
            await asyncio.sleep(0)
    await kit.until(lambda: set(patient.rows.states()) == {"done"})
    await patient.close()


async def test_a_short_time_to_live_is_kept_to(far: Any, kit: Any) -> None:
    pause = {"first_pause": 600.0, "longest_pause": 600.0, "ask_every": 600.0, "sweep_every": 600.0}
    patient = kit.Home(far, msgspec.structs.replace(kit.QUICK, **pause))
    await far.leave()
    await patient.put(kit.question())
    await kit.until(lambda: patient.rows.rows[1].trouble != "")
    id = await patient.put(kit.question(), ttl=0.2)
    await kit.until(lambda: patient.told == [(id, "expired")])
    await patient.close()


async def test_an_answer_that_is_never_pushed_is_fetched(home: Any, far: Any, kit: Any) -> None:
    id = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    far.finish(id)
    await kit.until(lambda: home.told == [(id, "done")])


async def test_a_peer_that_lost_its_record_is_sent_it_again(home: Any, far: Any, kit: Any) -> None:
    id = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    far.forget()
    home.heard()
    await kit.until(lambda: far.accepted == [id, id])
    far.finish(id)
    home.heard()
    await kit.until(lambda: home.told == [(id, "done")])


async def test_answer_is_awaited_after_direct_call(home: Any, far: Any, kit: Any) -> None:
    asked = kit.question("later")
    await home.way.send(far.peer, emergence.encode(asked), wait=100)
    await home.outbox.put(far.peer.fingerprint, asked, "a call", accepted=True)
    far.finish(asked.id)
    home.heard()
    await kit.until(lambda: home.told == [(asked.id, "done")])
    assert far.sizes == [], "it was not sent again"


async def test_what_runs_out_of_time_is_told_and_never_sent(home: Any, far: Any, kit: Any) -> None:
    await far.leave()
    short = await home.put(kit.question(), ttl=0.1)
    long = await home.put(kit.question())
    await kit.until(lambda: home.told == [(short, "expired")])
    await far.come()
    home.heard()
    await kit.until(lambda: home.rows.states() == ["expired", "done"])
    assert home.told == [(short, "expired"), (long, "done")]
    assert far.accepted == [long]


async def test_accepted_row_expires_and_late_answer_is_ignored(home: Any, far: Any, kit: Any) -> None:
    id = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    home.clock.ahead = 90_000.0
    await kit.until(lambda: home.told == [(id, "expired")])
    assert not await home.outbox.answered(far.peer.fingerprint, far.finish(id))
    assert home.rows.states() == ["expired"]


async def test_a_restart_takes_up_what_waits(home: Any, far: Any, kit: Any) -> None:
    later = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    far.hold = asyncio.Event()
    cut = await home.put(kit.question())
    await kit.until(lambda: len(far.sizes) == 2)  # committed over there, and no reply yet
    await home.outbox.stop()
    behind = await home.put(kit.question())
    assert home.rows.states() == ["accepted", "delivered", "queued"]
    far.finish(later)
    far.hold.set()
    await home.restart()
    await kit.until(lambda: len(home.told) == 3)
    assert sorted(home.told) == sorted((id, "done") for id in (later, cut, behind))
    assert far.accepted == [later, cut, behind]


async def test_drop_before_it_is_sent(home: Any, far: Any, kit: Any) -> None:
    await far.leave()
    first, second = await home.put(kit.question()), await home.put(kit.question())
    dropped = await home.outbox.drop(first[:13])
    assert (dropped.id, dropped.state) == (first, "dropped")
    await far.come()
    home.heard()
    await kit.until(lambda: home.told == [(first, "dropped"), (second, "done")])
    assert far.accepted == [second]
    with pytest.raises(OutboxConflictError):
        await home.outbox.drop(first)


@pytest.mark.parametrize("announced", [(CANCEL,), ()])
async def test_drop_of_an_accepted_one_tells_a_peer_that_can_cancel(
    home: Any, far: Any, kit: Any, announced: tuple[str, ...]
) -> None:
    home.verbs = announced
    id = await home.put(kit.question("later"))
    await kit.until(lambda: home.rows.states() == ["accepted"])
    await home.outbox.drop(id)
    other = await home.put(kit.question())
    await kit.until(lambda: (other, "done") in home.told and (not announced or bool(far.cancelled)))
    assert far.cancelled == ([id] if announced else [])
    assert home.told.count((id, "dropped")) == 1


async def test_drop_of_what_never_left_tells_nobody(home: Any, far: Any, kit: Any) -> None:
    home.verbs = (CANCEL,)
    far.hold = asyncio.Event()
    first = await home.put(kit.question())
    await far.taken.wait()
    second = await home.put(kit.question())
    await home.outbox.drop(second)
    far.hold.set()
    await kit.until(lambda: not outbox_tasks())
    await asyncio.sleep(0.1)
    assert far.cancelled == []
    assert far.accepted == [first]


async def test_drop_while_it_is_on_its_way_cancels_after_the_ack(home: Any, far: Any, kit: Any) -> None:
    home.verbs = (CANCEL,)
    far.hold = asyncio.Event()
    id = await home.put(kit.question("later"))
    await far.taken.wait()
    await home.outbox.drop(id)
    assert far.cancelled == []
    far.hold.set()
    await kit.until(lambda: far.cancelled == [id])
    assert home.told == [(id, "dropped")]
    assert home.rows.states() == ["dropped"]


async def test_retry_by_a_part_of_the_id(far: Any, kit: Any) -> None:
    slow = msgspec.structs.replace(kit.QUICK, first_pause=600.0, longest_pause=600.0, ask_every=600.0)
    patient = kit.Home(far, slow)
    await far.leave()
    alike = [
        msgspec.structs.replace(kit.question(), id=f"55555555-5555-4555-8555-55555555555{end}")
        for end in "ab"
    ]
    for one in alike:
        await patient.put(one)
    await kit.until(lambda: patient.rows.rows[1].trouble != "")
    await far.come()
    with pytest.raises(OutboxConflictError):
        await patient.outbox.retry("5555")
    with refused("not_in_outbox"):
        await patient.outbox.retry("ffff")
    with refused("not_in_outbox"):
        await patient.outbox.retry("")
    await patient.outbox.retry(alike[0].id)
    await kit.until(lambda: patient.rows.states() == ["done", "done"])
    with pytest.raises(OutboxConflictError):
        await patient.outbox.retry(alike[0].id)

    later = await patient.put(kit.question("later"))
    await kit.until(lambda: patient.rows.states()[-1] == "accepted")
    far.finish(later)
    await patient.outbox.retry(later)
    await kit.until(lambda: (later, "done") in patient.told)
    await patient.close()


async def test_batches_stay_small_and_a_big_one_goes_alone(home: Any, far: Any, kit: Any) -> None:
    await far.leave()
    for octets in (200_000, 200_000, 200_000, 700_000, 10, 10):
        await home.put(kit.question(padding="x" * octets))
    await far.come()
    home.heard()
    await kit.until(lambda: set(home.rows.states()) == {"done"})
    assert far.sizes == [2, 1, 1, 2]
    assert [size < 512 * 1024 for size in far.octets] == [True, True, False, True]


async def test_one_that_the_peer_cannot_take_fails_alone(home: Any, far: Any, kit: Any) -> None:
    await far.leave()
    small, big, last = [
        await home.put(one) for one in (kit.question(), kit.question(padding="x" * 9000), kit.question())
    ]
    far.too_many_octets = 5000
    await far.come()
    home.heard()
    await kit.until(lambda: len(home.told) == 3)
    assert home.told == [(small, "done"), (big, "failed"), (last, "done")]
    assert far.accepted == [small, last]


async def test_an_answer_of_ours_is_over_once_it_is_taken(home: Any, far: Any, kit: Any) -> None:
    asked = kit.question()
    reply = Envelope(asked.id, "brainstem_" + "a" * 16, "them_" + "b" * 16, DONE, {"result": 1})
    await home.put(reply)
    await kit.until(lambda: home.told == [(reply.id, "done")])
    await kit.until(lambda: not outbox_tasks())
    await home.put(msgspec.structs.replace(asked, data={"does": "later"}))
    await kit.until(lambda: home.rows.states() == ["done", "accepted"])
    assert await home.outbox.answered(far.peer.fingerprint, far.finish(asked.id)), (
        "not mistaken for the other"
    )


async def test_an_answer_that_cannot_be_written_down_is_told_again(home: Any, far: Any, kit: Any) -> None:
    home.disk_full = 2
    ids = [await home.put(kit.question()) for _ in range(5)]
    await kit.until(lambda: set(home.rows.states()) == {"done"})
    assert sorted(home.told) == sorted((id, "done") for id in ids)
    assert far.accepted == ids


async def test_the_same_envelope_is_kept_once(home: Any, far: Any, kit: Any) -> None:
    asked = kit.question()
    await asyncio.gather(home.put(asked), home.put(asked))
    await kit.until(lambda: home.rows.states() == ["done"])
    assert home.told == [(asked.id, "done")]
