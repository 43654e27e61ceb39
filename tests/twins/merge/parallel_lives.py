"""Histories of one being, lived on several machines, as hypothesis draws them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from twins.eggs.frames import Frame, chained
from twins.merge.frame_merge import Side

STREAMS = ("garden", "kitchen")


def utc(second: int) -> str:
    """A moment; few enough of them that two lives often have the same."""
    return f"2026-04-12T14:{second // 60:02}:{second % 60:02}.000Z"


said = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), max_size=4)
"""The events of a stream: seconds since the last frame, and what was said."""
starts = st.sampled_from([0, 0, 0, 0, 1, 3])
"""The number of first frames of a stream that a machine has lost."""


def told(
    stream: str, after: Frame | None, start: int, saying: list[tuple[int, str]], who: str
) -> list[Frame]:
    """The frames of one stream, going on after another frame."""
    moments = []
    for pause, text in saying:
        start += pause
        moments.append((utc(start), "memory.note", {"text": text, "on": who}))
    return list(chained(stream, moments, after=after))


@st.composite
def lives(draw: st.DrawFn, machines: int = 2) -> list[list[Frame]]:
    """[what was before, what each machine has].

    Each has the beginning and then its own; now and then a machine does word for word what another did, or
    lost the beginning.
    """
    before: list[Frame] = []
    each: list[list[Frame]] = [[] for _ in range(machines)]
    for stream in draw(st.sampled_from([STREAMS[:1], STREAMS])):
        shared = told(stream, None, 0, draw(said), "both")
        before += shared
        for mine in each:
            kept = shared[: draw(st.integers(0, len(shared)))] if draw(st.integers(0, 5)) == 0 else shared
            who = draw(st.sampled_from(["one", "two"]))
            mine += (kept + told(stream, kept[-1] if kept else None, 30, draw(said), who))[draw(starts) :]
    return [before, *each]


def side(label: str, frames: list[Frame]) -> Side:
    """Any of the lives, with nothing kept aside yet."""
    return Side(label, frames)


def hashes(frames: Any) -> set[tuple[str, str]]:
    """The key that tells frames apart."""
    return {(frame["stream_id"], frame["hash"]) for frame in frames}
