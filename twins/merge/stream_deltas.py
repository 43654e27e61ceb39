"""Deltas: what parallel streams did in one frame, each in its own file, added to one state.

A delta is ``state/stream_deltas/frame-<N>-<stream>.json``: ``{frame, stream_id, stream_type, completed_at,
agents_activated[], posts_created[], comments_added[], reactions_added[], discussions_engaged[],
soul_files_updated[], observations{}, _meta{frame, node_id, timestamp}}``. The state that they are added to:

    posts      every post once, by ``number``
    counts     {posts}: how many were ever added
    snapshots  one for each frame, {frame, completed_at, streams, agents_activated, posts, comments,
               reactions, discussions_engaged, soul_files_updated, observations[]}, the last 200 frames

Keys of the state that are not named here stay. Adding the same deltas again changes nothing. A frame's
snapshot is made of the deltas given for it, so all of a frame's are to be given together: a stream that the
snapshot had, and that has no delta now, is told.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from twins.cartridges.field_specs import COUNT, LIST, OBJECT, TEXT, FieldSpec, check, is_count
from twins.cartridges.json_documents import Document, canonical, parse_timestamp

MAX_SNAPSHOTS = 200
_COMMENT_BODY = 100
"""Characters of a comment's body that make it the same comment."""

FIELDS = {
    "frame": COUNT,
    "stream_id": TEXT,
    "stream_type": TEXT.or_null(),
    "completed_at": TEXT,
    "agents_activated": LIST,
    "posts_created": LIST,
    "comments_added": LIST,
    "reactions_added": LIST,
    "discussions_engaged": LIST,
    "soul_files_updated": LIST,
    "observations": OBJECT,
    "_meta": OBJECT,
    "_meta.timestamp": TEXT.or_null(),
}
STATE = {
    "posts": LIST,
    "counts": OBJECT,
    "counts.posts": COUNT,
    "snapshots": FieldSpec(
        "a list of objects with a frame, a whole number, and the names of its streams",
        lambda value: isinstance(value, list) and all(map(_is_snapshot, value)),
    ),
}
_SETS = ("agents_activated", "discussions_engaged", "soul_files_updated")


@dataclass(slots=True)
class MergedState:
    """The state after deltas were applied.

    ``set_aside`` are deltas that another one of the same moment stood for; ``left_out`` the streams, by their
    frame, that a snapshot had and has no more.
    """

    state: Document
    set_aside: list[Document]
    left_out: dict[int, list[str]]


def add(state: Document, deltas: Iterable[Document]) -> MergedState:
    """Adds deltas, in whatever order they come; the given ones stay untouched. Raises ``BadCartridgeError``."""
    check(state, STATE, required=(), name="The state")
    kept, set_aside = collapse(deltas)
    new = copy.deepcopy(state)
    posts: list[Any] = new.setdefault("posts", [])
    counts = new.setdefault("counts", {})
    logged = {_number(post) for post in posts}
    fresh = [post for post in _posts(kept) if _number(post) not in logged]
    posts += copy.deepcopy(fresh)
    counts["posts"] = counts.get("posts", 0) + len(fresh)
    frames: dict[int, list[Document]] = defaultdict(list)
    for delta in kept:
        frames[delta["frame"]].append(delta)
    before = {one["frame"]: one for one in new.get("snapshots", [])}
    now = {number: _snapshot(number, inside) for number, inside in frames.items()}
    snapshots = {**before, **now}
    new["snapshots"] = [snapshots[number] for number in sorted(snapshots)[-MAX_SNAPSHOTS:]]
    return MergedState(new, set_aside, _left_out(before, now, set_aside))


def collapse(deltas: Iterable[Document]) -> tuple[list[Document], list[Document]]:
    """The deltas by when they were completed; of those with one frame and one moment the fullest, and apart from them the others."""
    best: dict[tuple[int, str], Document] = {}
    set_aside: dict[bytes, Document] = {}
    for delta in deltas:
        check(delta, FIELDS, required=("frame", "stream_id", "completed_at"), name="A delta")
        key = (delta["frame"], delta.get("_meta", {}).get("timestamp") or delta["completed_at"])
        known = best.get(key)
        if known is None:
            best[key] = delta
        else:
            first, second = sorted((known, delta), key=_fullness, reverse=True)
            best[key] = first
            set_aside[canonical(second)] = second
    kept = sorted(best.values(), key=lambda one: (_when(one["completed_at"]), canonical(one)))
    kept_texts = {canonical(one) for one in kept}
    return kept, [set_aside[text] for text in sorted(set_aside) if text not in kept_texts]


def _snapshot(number: int, deltas: list[Document]) -> Document:
    comments = {_comment(one): one for delta in deltas for one in delta.get("comments_added", [])}
    reactions = {canonical(one): one for delta in deltas for one in delta.get("reactions_added", [])}
    snapshot: Document = {
        "frame": number,
        "completed_at": deltas[-1]["completed_at"],
        "streams": [delta["stream_id"] for delta in deltas],
    }
    for key in _SETS:
        found = {canonical(one): one for delta in deltas for one in delta.get(key, [])}
        snapshot[key] = [found[text] for text in sorted(found)]
    snapshot["posts"] = [_number(post) for post in _posts(deltas)]
    snapshot["comments"] = list(comments.values())
    snapshot["reactions"] = list(reactions.values())
    snapshot["observations"] = [
        {"stream_id": delta["stream_id"], "observations": delta["observations"]}
        for delta in deltas
        if delta.get("observations")
    ]
    return copy.deepcopy(snapshot)


def _is_snapshot(value: Any) -> bool:
    if not isinstance(value, dict) or not is_count(value.get("frame")):
        return False
    streams = value.get("streams", [])
    return isinstance(streams, list) and all(isinstance(one, str) for one in streams)


def _left_out(
    before: dict[int, Document], now: dict[int, Document], set_aside: list[Document]
) -> dict[int, list[str]]:
    known = {(one["frame"], one["stream_id"]) for one in set_aside}
    found = {
        number: [
            stream
            for stream in before[number].get("streams", [])
            if stream not in now[number]["streams"] and (number, stream) not in known
        ]
        for number in sorted(before.keys() & now.keys())
    }
    return {number: streams for number, streams in found.items() if streams}


def _posts(deltas: list[Document]) -> list[Any]:
    """Every post once; of two with one number the one created later."""
    found: dict[Any, Any] = {}
    for delta in deltas:
        for post in delta.get("posts_created", []):
            known = found.get(_number(post))
            if known is None or _created(known) < _created(post):
                found[_number(post)] = post
    return list(found.values())


def _number(post: Any) -> Any:
    """The identity of a post: its number, or all of it."""
    number = post.get("number") if isinstance(post, dict) else None
    return number if isinstance(number, int | str) else canonical(post).decode()


def _created(post: Any) -> Any:
    created_at = post.get("created_at") if isinstance(post, dict) else None
    return (_when(created_at if isinstance(created_at, str) else ""), canonical(post))


def _comment(comment: Any) -> Any:
    if not isinstance(comment, dict):
        return canonical(comment)
    body = comment.get("body")
    begins = body[:_COMMENT_BODY] if isinstance(body, str) else body
    return canonical([comment.get("discussion"), comment.get("author"), begins])


def _fullness(delta: Document) -> Any:
    many = len(delta.get("posts_created", [])) + len(delta.get("comments_added", []))
    return (many, canonical(delta))


def _when(text: str) -> Any:
    found = parse_timestamp(text)
    return (0, 0.0, text) if found is None else (1, found.timestamp(), "")
