"""Two ends of a line that ask each other, and what they must not do: answer answers, or wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from envelopes.codecs.emergence import MAX_BYTES, encode
from envelopes.envelope import ACK, CANCEL, DONE, ERROR, HELLO, HELP, STREAM, Envelope, new_id
from neighborhoods.errors import NotPairedError, PeerOfflineError
from neighborhoods.transport.peer_connection import MOST_AT_ONCE
from neighborhoods.transport.replies import StreamedReply
from tests.neighborhoods.transport.two_ends import HERE, THERE, Both, asked, like_a_daemon


async def test_both_ask_at_once_and_each_gets_its_own() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        ours, theirs = [asked(n=n) for n in range(50)], [asked(n=-n) for n in range(50)]
        got = await asyncio.gather(
            *(both.here.ask(encode(one), one.id, wait=100) for one in ours),
            *(both.there.ask(encode(one), one.id, wait=100) for one in theirs),
        )
        assert [one.data["result"] for one in got] == [*range(50), *(-n for n in range(50))]


@pytest.mark.parametrize("protocol", ["rappd.1", "rappd.2"])
async def test_messages_of_one_moment_share_a_frame(protocol: str) -> None:
    async with Both(like_a_daemon, like_a_daemon, protocol=protocol) as both:
        many = [asked(n=n) for n in range(250)]
        got = await asyncio.gather(*(both.here.ask(encode(one), one.id, wait=100) for one in many))
        assert [one.data["result"] for one in got] == list(range(250))
        assert [one.id for one in both.ends[0].sent] == [one.id for one in many]  # in their order
        frames = [len(both.ends[0].frames), len(both.ends[1].frames)]
        assert frames == ([250, 250] if protocol == "rappd.1" else [8, 8])  # 32 in one


async def test_single_answer_is_sent_in_the_same_iteration() -> None:
    said_at_once: list[bool] = []

    async def answer(envelope: Envelope) -> Envelope | None:
        before = len(both.ends[1].sent)
        asyncio.get_running_loop().call_soon(lambda: said_at_once.append(len(both.ends[1].sent) > before))
        return envelope.reply(DONE, {"result": envelope.data["n"]})

    async with Both(like_a_daemon, answer) as both:
        for n in range(3):
            one = asked(n=n)
            assert (await both.here.ask(encode(one), one.id, wait=100)).data["result"] == n
        assert said_at_once == [True] * 3
        many = [asked(n=n) for n in range(3)]
        got = await asyncio.gather(*(both.here.ask(encode(one), one.id, wait=100) for one in many))
        assert [one.data["result"] for one in got] == [0, 1, 2]
        assert said_at_once[3] is False
        assert len(both.ends[1].frames) == 4


async def test_answer_right_behind_its_acknowledgment_is_taken() -> None:
    late: list[Envelope] = []

    async def takes(envelope: Envelope) -> Envelope | None:
        late.append(envelope)
        return envelope.reply(ACK, {"state": "done"})

    async def hurries(envelope: Envelope) -> Envelope | None:
        await both.there.tell(encode(envelope.reply(ACK, {"state": "started"})))
        return envelope.reply(DONE, {"result": 7})

    async with Both(takes, hurries) as both:
        one = asked(n=7)
        assert (await both.here.ask(encode(one), one.id, wait=100)).verb == ACK
        await both.quiet()
        assert [(reply.verb, reply.data) for reply in late] == [(DONE, {"result": 7})]


async def test_single_answer_waits_for_room_in_order() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        go = asyncio.Event()
        both.ends[1].before = go.wait
        first, second = asked(n=1), asked(n=2)
        asking = [asyncio.ensure_future(both.here.ask(encode(first), first.id, wait=100))]
        await asyncio.sleep(0.05)
        asking.append(asyncio.ensure_future(both.here.ask(encode(second), second.id, wait=100)))
        await asyncio.sleep(0.05)
        assert both.ends[1].sent == []
        go.set()
        assert [(await one).data["result"] for one in asking] == [1, 2]
        assert [one.id for one in both.ends[1].sent] == [first.id, second.id]


async def test_single_answer_keeps_a_broken_connection() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:

        async def broken() -> None:
            raise ConnectionResetError

        both.ends[1].before = broken
        one = asked(n=1)
        with pytest.raises(PeerOfflineError):
            await both.here.ask(encode(one), one.id, wait=0.2)
        both.ends[1].before = None
        two = asked(n=2)
        assert (await both.here.ask(encode(two), two.id, wait=100)).data["result"] == 2


async def test_one_frame_holds_no_more_than_is_taken() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        many = [asked(n="x" * 300_000) for _ in range(9)]
        got = await asyncio.gather(*(both.here.ask(encode(one), one.id, wait=100) for one in many))
        assert {len(one.data["result"]) for one in got} == {300_000}
        assert [len(frame) < MAX_BYTES for frame in both.ends[0].frames] == [True] * 3


async def test_in_an_array_a_bad_envelope_spoils_no_other() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        one = asked(n=1)
        await both.ends[0].send_frame(b'[{"id":"x"},%b]' % encode(one))
        await both.ends[0].send_frame(b"[" + b"," * 200 + b"]")
        await both.ends[0].send_frame(b"[%b]" % b",".join([encode(one)] * 101))
        await both.quiet()
        assert sorted(reply.verb for reply in both.ends[1].sent) == [DONE, ERROR, ERROR, ERROR]


async def test_a_slow_listener_holds_up_who_tells_it_much() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        go = asyncio.Event()
        both.ends[0].before = go.wait
        told = 0

        async def tell() -> None:
            nonlocal told
            for _ in range(1000):
                await both.here.tell(encode(asked(ACK)))
                told += 1

        telling = asyncio.ensure_future(tell())
        await asyncio.sleep(0.05)
        assert told < 100
        go.set()
        await asyncio.wait_for(telling, 100)
        await both.quiet()
        assert len(both.ends[0].sent) == 1000


async def test_a_word_that_cannot_be_sent_tells_all_who_wait() -> None:
    async def never(envelope: Envelope) -> Envelope | None:
        await asyncio.sleep(60)
        return None

    async with Both(like_a_daemon, never) as both:
        waiting = asyncio.ensure_future(both.here.ask(encode(asked()), new_id(), wait=3600))
        await asyncio.sleep(0.05)

        async def gone() -> None:
            raise ConnectionResetError

        both.ends[0].before = gone
        another = asyncio.ensure_future(both.here.ask(encode(asked()), new_id(), wait=3600))
        for attempt in (another, waiting):
            with pytest.raises(PeerOfflineError):
                await asyncio.wait_for(attempt, 100)


@pytest.mark.parametrize("verb", [ACK, ERROR, DONE, HELLO, STREAM, CANCEL, "PLEASE"])
async def test_no_word_keeps_two_lines_talking(verb: str) -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        await both.here.tell(encode(asked(verb, code=500)))
        assert await both.quiet() <= 3


async def test_an_answer_that_comes_too_late_is_not_answered_for_ever() -> None:
    async def late(envelope: Envelope) -> Envelope | None:
        await asyncio.sleep(0.2)
        return await like_a_daemon(envelope)

    for verb in (HELLO, HELP):
        async with Both(like_a_daemon, late) as both:
            one = asked(verb)
            with pytest.raises(PeerOfflineError):
                await both.here.ask(encode(one), one.id, wait=0.05)
            await asyncio.sleep(0.3)
            assert await both.quiet() <= 3


async def test_what_is_no_envelope_costs_one_refusal() -> None:
    async with Both(like_a_daemon, like_a_daemon) as both:
        await both.ends[0].send_frame(b"no envelope")
        assert await both.quiet() <= 2
        one = asked(n=1)
        assert (await both.here.ask(encode(one), one.id, wait=100)).data["result"] == 1


async def test_excess_is_postponed_and_answers_pass() -> None:
    """Each end has all it can work on, and every piece of work asks the other end something."""
    both: Both

    async def here(envelope: Envelope) -> Envelope | None:
        return envelope.reply(DONE, {"result": "deep"})

    async def there(envelope: Envelope) -> Envelope | None:
        await full.wait()
        inner = Envelope(new_id(), THERE, HERE, HELP, {})
        answer = await both.there.ask(encode(inner), inner.id, wait=100)
        return envelope.reply(DONE, {"result": answer.data["result"]})

    full = asyncio.Event()
    async with Both(here, there) as both:
        many = [asked(n=n) for n in range(MOST_AT_ONCE + 5)]
        waiting = [asyncio.ensure_future(both.here.ask(encode(one), one.id, wait=100)) for one in many]
        done, _ = await asyncio.wait(waiting[MOST_AT_ONCE:], timeout=100)
        assert {one.result().data["reason"] for one in done} == {"busy"}
        assert {one.result().data["code"] for one in done} == {503}
        full.set()
        got = await asyncio.gather(*waiting[:MOST_AT_ONCE])
        assert {one.data["result"] for one in got} == {"deep"}


async def test_problem_is_reported_and_fault_stays_private() -> None:
    async def answer(envelope: Envelope) -> Envelope | None:
        if envelope.data.get("n") == 1:
            raise NotPairedError("Not any more.", do="Pair anew.")
        raise RuntimeError("inside")

    async with Both(like_a_daemon, answer) as both:
        one, two = asked(n=1), asked(n=2)
        got = await both.here.ask(encode(one), one.id, wait=100)
        assert (got.data["code"], got.data["reason"], got.data["do"]) == (401, "not_paired", "Pair anew.")
        got = await both.here.ask(encode(two), two.id, wait=100)
        assert got.data["code"] == 500
        assert "inside" not in got.data["msg"].replace("went wrong inside", "")


async def test_pieces_come_before_the_end() -> None:
    async def answer(envelope: Envelope) -> Envelope | None:
        async def pieces() -> AsyncIterator[tuple[int, Envelope]]:
            for number in (1, 2):
                yield number, envelope.reply(STREAM, {"n": number})
            yield 3, envelope.reply(DONE, {"result": "x"})

        begun = envelope.reply(ACK, {})
        return StreamedReply(
            begun.id, begun.sender, begun.recipient, begun.verb, begun.data, begun.extensions, pieces=pieces
        )

    heard: list[int] = []
    async with Both(like_a_daemon, answer) as both:
        one = asked()
        got = await both.here.ask(
            encode(one), one.id, wait=100, on_stream=lambda piece: heard.append(piece.data["n"])
        )
        assert (got.verb, heard) == (DONE, [1, 2])


async def test_too_large_message_is_an_error_on_a_live_connection() -> None:
    async def answer(envelope: Envelope) -> Envelope | None:
        return envelope.reply(DONE, {"result": "x" * (envelope.data["n"])})

    async with Both(like_a_daemon, answer) as both:
        one, two = asked(n=2 << 20), asked(n=2)
        assert (await both.here.ask(encode(one), one.id, wait=100)).data["reason"] == "answer_too_large"
        assert (await both.here.ask(encode(two), two.id, wait=100)).data["result"] == "xx"


async def test_waiting_callers_get_an_error_at_disconnect() -> None:
    async def never(envelope: Envelope) -> Envelope | None:
        await asyncio.sleep(60)
        return None

    async with Both(like_a_daemon, never) as both:
        one = asked()
        waiting = asyncio.ensure_future(both.here.ask(encode(one), one.id, wait=100))
        await asyncio.sleep(0.05)
        with pytest.raises(PeerOfflineError):
            await both.here.ask(encode(one), one.id, wait=1)
        await both.there.close()
        with pytest.raises(PeerOfflineError) as found:
            await waiting
        assert found.value.maybe_sent
        assert not both.here.open
        with pytest.raises(PeerOfflineError):
            await both.here.ask(encode(one), one.id, wait=1)
