"""An answer that is told before it is on the disk, and counts once it is."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs.emergence import encode
from envelopes.envelope import ACK, DONE, ERROR, HELP, Envelope, new_id
from envelopes.errors import MalformedError
from neighborhoods.errors import PeerOfflineError
from neighborhoods.transport.early import EarlyReplies
from neighborhoods.transport.frame_writer import FrameWriter
from neighborhoods.transport.reply_types import Early
from rappd.errors import StoreError
from tests.neighborhoods.transport.two_ends import HERE, THERE, Both, asked, like_a_daemon


class Disk:
    """Where the other side's answers are on their way to."""

    def __init__(self, size: int = 1) -> None:
        self.futures: list[asyncio.Future[Any]] = []
        self._size = size

    async def __call__(self, envelope: Envelope) -> Envelope | None:
        if envelope.verb != HELP:
            return await like_a_daemon(envelope)
        self.futures.append(asyncio.get_running_loop().create_future())
        done = envelope.reply(DONE, {"result": "x" * self._size})
        parts = (done.id, done.sender, done.recipient, done.verb, done.data, done.extensions)
        return Early(*parts, on_disk=self.futures[-1])


async def _asking(both: Both, came: list[Envelope]) -> tuple[Envelope, asyncio.Task[Envelope]]:
    """A question, and who waits for what it comes to; nothing more is said for now."""
    one = asked()
    asking = asyncio.ensure_future(both.here.ask(encode(one), one.id, wait=10, on_early=came.append))
    await both.quiet()
    return one, asking


async def test_it_is_told_at_once_and_counts_once_it_is_on_the_disk() -> None:
    disk, came = Disk(), list[Envelope]()
    async with Both(like_a_daemon, disk, protocol="rappd.3") as both:
        one, asking = await _asking(both, came)
        assert [(early.id, early.data) for early in came] == [(one.id, {"result": "x"})]
        assert not asking.done()
        disk.futures[0].set_result(7)
        assert await asking is came[0]
        assert both.ends[1].frames == [encode(came[0]), one.id.encode()]


@pytest.mark.parametrize("protocol", ["rappd.1", "rappd.2"])
async def test_who_does_not_know_of_it_is_answered_once_it_is_on_the_disk(protocol: str) -> None:
    disk, came = Disk(), list[Envelope]()
    async with Both(like_a_daemon, disk, protocol=protocol) as both:
        _, asking = await _asking(both, came)
        assert both.ends[1].frames == []
        disk.futures[0].set_result(7)
        assert (await asking).data == {"result": "x"}
        assert (came, both.ends[1].frames) == ([], [encode(both.ends[1].sent[0])])


async def test_where_the_disk_fails_an_error_takes_its_place() -> None:
    disk = Disk()
    async with Both(like_a_daemon, disk, protocol="rappd.3") as both:
        _, asking = await _asking(both, [])
        disk.futures[0].set_exception(StoreError("The disk is full.", do="Make room."))
        found = await asking
        assert (found.verb, found.data["msg"], found.data["do"]) == (ERROR, "The disk is full.", "Make room.")


async def test_where_the_line_ends_first_it_is_no_answer() -> None:
    disk, came = Disk(), list[Envelope]()
    async with Both(like_a_daemon, disk, protocol="rappd.3") as both:
        _, asking = await _asking(both, came)
        await both.there.close()
        with pytest.raises(PeerOfflineError) as found:
            await asking
        assert (len(came), found.value.maybe_sent) == (1, True)


async def test_one_that_is_too_large_is_told_so() -> None:
    disk = Disk(2 << 20)
    async with Both(like_a_daemon, disk, protocol="rappd.3") as both:
        _, asking = await _asking(both, [])
        disk.futures[0].set_result(7)
        assert (await asking).data["reason"] == "answer_too_large"


async def test_what_was_not_asked_for_settles_nothing_and_what_is_no_envelope_is_refused() -> None:
    async def never(envelope: Envelope) -> Envelope | None:
        await asyncio.sleep(60)
        return None

    came: list[Envelope] = []
    async with Both(like_a_daemon, never, protocol="rappd.3") as both:
        one, asking = await _asking(both, came)
        other = Envelope(new_id(), THERE, HERE, DONE, {})
        said = (
            encode(other),
            other.id.encode(),
            one.id.encode(),
            b"",
            b"\xff" * 100,
            encode(one.reply(ACK, {})),
        )
        for frame in said:
            await both.ends[1].send_frame(frame, aiohttp.WSMsgType.BINARY)
        await both.quiet()
        assert (came, asking.done(), both.ends[0].sent) == ([], False, [one])
        await both.ends[1].send_frame(b"{not an envelope", aiohttp.WSMsgType.BINARY)
        await both.quiet()
        assert both.ends[0].sent[-1].verb == ERROR
        first, second = (encode(one.reply(DONE, {"n": number})) for number in (1, 2))
        for frame in (first, second, one.id.encode()):
            await both.ends[1].send_frame(frame, aiohttp.WSMsgType.BINARY)
        assert (await asking).data == {"n": 1}
        assert [early.data for early in came] == [{"n": 1}]


@given(st.lists(st.binary(max_size=200) | st.binary(max_size=200).map(lambda rest: b"{" + rest), max_size=5))
def test_whatever_comes_nothing_counts_that_did_not_come(frames: list[bytes]) -> None:
    early = EarlyReplies()
    one = asked()
    early.expect(one.id, None)
    for frame in frames:
        try:
            assert early.hear(frame) == []
        except MalformedError:
            assert frame.startswith(b"{")
    reply = one.reply(DONE, {"result": "x"})
    assert early.hear(encode(reply)) == []
    assert early.hear(new_id().encode() + one.id.encode()) == [reply]
    assert early.hear(one.id.encode()) == []


@given(st.lists(st.booleans(), min_size=1, max_size=80))
def test_what_is_said_comes_in_its_order_whatever_frame_it_goes_in(binary: list[bool]) -> None:
    class Heard:
        def __init__(self) -> None:
            self.words: list[tuple[bytes, bool]] = []

        async def send_frame(self, message: bytes, opcode: aiohttp.WSMsgType) -> None:
            is_binary = opcode is aiohttp.WSMsgType.BINARY
            self.words += [(word, is_binary) for word in message.strip(b"[]").split(b",")]

    async def speak() -> list[tuple[bytes, bool]]:
        heard = Heard()
        speaking = FrameWriter(heard, several=True, failed=lambda: None)
        for number, one in enumerate(binary):
            speaking.say(b"%d" % number, binary=one)
        await speaking.finish()
        return heard.words

    assert asyncio.run(speak()) == [(b"%d" % number, one) for number, one in enumerate(binary)]
