from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twins.errors import BadCartridgeError
from twins.merge.stream_deltas import MAX_SNAPSHOTS, add, collapse

Document = dict[str, Any]


def delta(frame: int = 7, stream: str = "s1", at: str = "2026-03-01T10:00:00Z", **more: Any) -> Document:
    return {"frame": frame, "stream_id": stream, "stream_type": "agent", "completed_at": at, **more}


def post(number: int, created_at: str = "2026-03-01T10:00:00Z", title: str = "t") -> Document:
    return {"number": number, "created_at": created_at, "title": title}


def test_streams_of_a_frame_add_up_to_one_snapshot() -> None:
    late = delta(
        stream="s2",
        at="2026-03-01T11:00:00Z",
        agents_activated=["bee", "ant"],
        posts_created=[post(2), post(1, "2026-03-01T10:30:00Z", "later")],
        comments_added=[{"discussion": 1, "author": "ant", "body": "x" * 100 + "one"}],
        observations={"weather": "wet"},
    )
    early = delta(
        agents_activated=["ant"],
        posts_created=[post(1)],
        comments_added=[{"discussion": 1, "author": "ant", "body": "x" * 100 + "two"}, {"discussion": 2}],
        soul_files_updated=["ant.md"],
        observations={"weather": "wet"},
    )
    added = add({"theme": "garden"}, [late, early])
    assert added.state["theme"] == "garden"
    assert [(one["number"], one["title"]) for one in added.state["posts"]] == [(1, "later"), (2, "t")]
    assert added.state["counts"] == {"posts": 2}
    [snapshot] = added.state["snapshots"]
    assert snapshot["frame"] == 7
    assert snapshot["streams"] == ["s1", "s2"]
    assert snapshot["completed_at"] == "2026-03-01T11:00:00Z"
    assert snapshot["agents_activated"] == ["ant", "bee"]
    assert snapshot["posts"] == [1, 2]
    assert len(snapshot["comments"]) == 2, "the same first hundred letters are the same comment"
    assert [one["stream_id"] for one in snapshot["observations"]] == ["s1", "s2"], "observations are all kept"
    assert added.set_aside == []


def test_fullest_of_equal_frames_wins_and_none_is_lost() -> None:
    small = delta(stream="s1", posts_created=[post(1)], _meta={"timestamp": "x", "node_id": "desk"})
    full = delta(
        stream="s2", posts_created=[post(2)], comments_added=[{"discussion": 1}], _meta={"timestamp": "x"}
    )
    for given_ones in ([small, full], [full, small]):
        kept, set_aside = collapse(given_ones)
        assert (kept, set_aside) == ([full], [small])
    assert collapse([full, full]) == ([full], [])
    assert len(collapse([delta(frame=1), delta(frame=2)])[0]) == 2


def test_posts_that_are_logged_are_not_counted_again() -> None:
    state = add({}, [delta(posts_created=[post(1)])]).state
    again = add(
        state, [delta(frame=8, posts_created=[post(1, "2027-01-01T00:00:00Z", "new"), post(2)])]
    ).state
    assert [one["title"] for one in again["posts"]] == ["t", "t"]
    assert again["counts"] == {"posts": 2}


def test_the_last_two_hundred_frames_are_kept() -> None:
    state = add({}, [delta(frame=number) for number in range(MAX_SNAPSHOTS + 5)]).state
    assert [one["frame"] for one in state["snapshots"]] == list(range(5, MAX_SNAPSHOTS + 5))


@pytest.mark.parametrize(
    "broken",
    [{}, {"frame": "7"}, {"completed_at": None}, {"posts_created": {}}, {"_meta": []}, {"observations": []}],
)
def test_what_is_no_delta_is_refused(broken: Document) -> None:
    with pytest.raises(BadCartridgeError, match="A delta cannot be loaded"):
        add({}, [{**delta(), **broken} if broken else {}])


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ({"posts": 7}, "posts"),
        ({"counts": []}, "counts"),
        ({"counts": {"posts": "x"}}, "counts.posts"),
        ({"snapshots": {}}, "snapshots"),
        ({"snapshots": [3]}, "snapshots"),
        ({"snapshots": [{"frame": "7"}]}, "snapshots"),
        ({"snapshots": [{"frame": 7, "streams": [[]]}]}, "snapshots"),
    ],
)
def test_what_is_no_state_is_refused(broken: Document, named: str) -> None:
    with pytest.raises(BadCartridgeError, match=f"The state cannot be loaded: {named} is not"):
        add(broken, [delta()])


def test_a_stream_that_a_snapshot_no_longer_has_is_told() -> None:
    first, second = delta(stream="s1"), delta(stream="s2", at="2026-03-01T11:00:00Z")
    both = add({}, [first, second])
    assert both.left_out == {}
    assert add(both.state, [delta(frame=8), first, second]).left_out == {}
    alone = add(both.state, [first])
    assert alone.left_out == {7: ["s2"]}
    assert alone.state["snapshots"][0]["streams"] == ["s1"]


moments = st.sampled_from(["2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "noon", ""])
deltas = st.lists(
    st.builds(
        lambda frame, stream, at, posts, comments, seen: delta(
            frame, stream, at, posts_created=posts, comments_added=comments, observations=seen
        ),
        st.integers(0, 2),
        st.sampled_from(["s1", "s2"]),
        moments,
        st.lists(
            st.builds(post, st.integers(0, 3), moments, st.sampled_from("ab")) | st.just("odd"), max_size=3
        ),
        st.lists(
            st.fixed_dictionaries({"discussion": st.integers(0, 1), "body": st.sampled_from("ab")}),
            max_size=2,
        ),
        st.dictionaries(st.sampled_from("ab"), st.booleans(), max_size=1),
    ),
    max_size=6,
)


@given(deltas, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_adding_again_or_in_another_order_changes_nothing(given_ones: list[Document], random: Any) -> None:
    before = copy.deepcopy(given_ones)
    added = add({}, given_ones)
    assert given_ones == before
    assert add(added.state, given_ones).state == added.state
    shuffled = list(given_ones)
    random.shuffle(shuffled)
    assert add({}, shuffled).state == added.state
    kept, set_aside = collapse(given_ones)
    assert all(one in kept or one in set_aside for one in given_ones), "no delta is lost"
