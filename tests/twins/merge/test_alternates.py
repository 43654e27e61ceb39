from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.twins.merge.parallel_lives import lives, side, told
from twins.eggs.frames import Frame
from twins.errors import BadEggError
from twins.merge.alternates import Alternates, AlternatesFile, decoded
from twins.merge.frame_merge import merge

RAPPID = "rappid:@ada/gardener:" + "4f2a" * 16
ASIDE = AlternatesFile("agents/water_agent.py", "ab" * 32, ("pi.egg",), "2026-04-12T12:00:00Z")


@given(lives())
@settings(max_examples=50, deadline=None)
def test_what_lies_aside_is_written_and_read_back(drawn: list[list[Frame]]) -> None:
    _, ours, theirs = drawn
    aside = tuple(merge(side("desk.egg", ours), side("pi.egg", theirs)).aside)
    kept = Alternates(RAPPID, aside, (ASIDE,), {"cd" * 32: "2026-04-12T12:00:00Z"})
    assert decoded(kept.encoded()) == kept
    assert decoded(kept.encoded()).encoded() == kept.encoded()


def test_a_file_that_is_there_already_only_gains_a_label() -> None:
    kept = Alternates(RAPPID).with_file(ASIDE)
    assert not kept.is_empty
    again = kept.with_file(AlternatesFile(ASIDE.path, ASIDE.sha256, ("desk.egg",), "later"))
    assert [(one.seen_in, one.at) for one in again.files] == [(("desk.egg", "pi.egg"), ASIDE.at)]
    other = kept.with_file(AlternatesFile("agents/a.py", ASIDE.sha256, ("x",), "later"))
    assert [one.path for one in other.files] == ["agents/a.py", "agents/water_agent.py"]
    assert ASIDE.kept_as == ".brainstem_data/alternates/abababababababab/agents/water_agent.py"


def _written() -> dict[str, Any]:
    frames = told("garden", None, 0, [(1, "a"), (2, "b")], "one")
    rivals = told("garden", None, 0, [(9, "c")], "two")
    aside = tuple(merge(side("a", rivals), side("b", frames)).aside)
    found: dict[str, Any] = json.loads(Alternates(RAPPID, aside, (ASIDE,), {"cd" * 32: "now"}).encoded())
    return found


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["schema"], "rappd-alternates/2.0"),
        (["rappid"], None),
        (["dimensions"], {}),
        (["dimensions", 0], []),
        (["dimensions", 0, "first"], "00" * 32),
        (["dimensions", 0, "first"], 5),
        (["dimensions", 0, "stream_id"], "kitchen"),
        (["dimensions", 0, "seen_in"], [1]),
        (["dimensions", 0, "frames"], []),
        (["dimensions", 0, "frames", 0, "payload"], "never said"),
        (["files", 0, "path"], "../../x"),
        (["files", 0, "path"], "/etc/passwd"),
        (["files", 0, "kept_as"], "agents/run_me_agent.py"),
        (["files", 0, "sha256"], "../" * 20),
        (["merged", 0], "cd" * 32),
        (["merged", 0, "egg"], "cd"),
    ],
)
def test_what_no_merge_wrote_is_refused(place: list[Any], value: Any) -> None:
    document = _written()
    assert decoded(json.dumps(document).encode()).dimensions
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with pytest.raises(BadEggError):
        decoded(json.dumps(document).encode())
    with pytest.raises(BadEggError):
        decoded(b'{"schema": 1, "schema": 1}')
