from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtimes.lispy.limits import Limits
from tests.twins.cartridges.living_documents import keys, objects, values
from twins.cartridges import lispy_file, lispy_runner
from twins.cartridges.json_documents import encode, parse, same
from twins.cartridges.lispy_runner import inspect, run
from twins.eggs.readers.detect import open_egg
from twins.errors import BadCartridgeError

Document = dict[str, Any]
NOON = datetime(2026, 4, 12, 12, 0, tzinfo=UTC)

PUBLISHED: Document = {
    "_meta": {
        "type": "lispy-cartridge",
        "version": 1,
        "format": ".lispy.json",
        "agent_id": "zion-ant-01",
        "exported_at": "2026-03-01T00:00:00Z",
        "source_platform": "rappterbook",
        "description": "An ant.",
        "bootable": True,
    },
    "env": {"hunger": 3, "likes": ["sugar", 1.5, None, True]},
    "programs": {"main": "(define hunger (+ hunger 1)) (display agent-id) (list hunger (first likes))"},
    "tools": {"sum": {"name": "sum", "code": "(+ 1 2)", "uses": 4}},
    "soul": "# Ant",
    "profile": {"karma": 7},
    "echoes": [{"frame": 9, "final_output": "..."}],
    "state_snapshot": {"agents": 100},
    "colony": "north",
}
"""The published fields, and one that nobody published."""

COUNTING = """
(define (grow kept) (append (list echo-frame) kept))
(define kept (grow (if (= echo-frame 1) '() kept)))
(define seen (if (= echo-frame 1) (make-dict) seen))
(define seen (dict-set seen (number->string echo-frame) prev-result))
(define ratio (/ echo-frame 3))
(println agent-id echo-frame prev-result ratio)
(define (run said) (println "heard" said) (list 'heard said (length kept)))
(list 'frame echo-frame (length kept) (reduce + (range 40) 0))
"""


def counting() -> Document:
    return lispy_file.new("ant", {"main": COUNTING})


def carried(document: Document) -> Document:
    """Saved to a file and loaded again."""
    found = parse(encode(document))
    lispy_file.checked(found)
    return found


def test_published_cartridge_runs_and_keeps_unknown_fields() -> None:
    ran = run(carried(PUBLISHED), now=NOON)
    assert ran.as_json() | {"steps": 0} == {
        "status": "done",
        "output": "zion-ant-01",
        "echo_frames_run": 1,
        "frames": [{"frame": 1, "result": '(4 "sugar")'}],
        "steps": 0,
        "notes": [],
    }
    saved = ran.document
    for key in ("programs", "tools", "soul", "profile", "state_snapshot", "colony"):
        assert saved[key] == PUBLISHED[key]
    assert saved["env"] == {"hunger": 4, "likes": ["sugar", 1.5, None, True]}
    assert saved["env_wire"]["hunger"] == {"tag": "integer", "value": "4"}
    assert saved["_meta"] == PUBLISHED["_meta"] | {
        "exported_at": "2026-04-12T12:00:00Z",
        "source_platform": "rappd",
    }
    assert saved["echoes"] == [
        PUBLISHED["echoes"][0],
        {"frame": 1, "result": '(4 "sugar")', "output": "zion-ant-01"},
    ]
    assert saved["dialect"] == "rappterbook"
    assert list(saved)[:4] == ["_meta", "schema", "dialect", "env"]
    assert run(carried(saved)).frames == [{"frame": 2, "result": '(5 "sugar")'}]


def test_frames_know_where_they_are_and_what_came_before() -> None:
    ran = run(counting(), frames=3)
    assert (
        ran.output
        == "ant 1 () 0.3333333333333333\nant 2 (frame 1 1 780) 0.6666666666666666\nant 3 (frame 2 2 780) 1.0\n"
    )
    assert [frame["result"] for frame in ran.frames] == [
        "(frame 1 1 780)",
        "(frame 2 2 780)",
        "(frame 3 3 780)",
    ]
    assert ran.document["continuation"]["frame"] == 3
    assert ran.document["env"]["ratio"] == 1.0
    assert "kept" in ran.document["env"], "a list is JSON"
    assert "seen" not in ran.document["env"], "symbols are not, and lie in env_wire alone"
    assert "seen" in ran.document["env_wire"]
    assert "grow" not in ran.document["env_wire"], "procedures are defined anew"
    assert ran.notes == []


inputs = st.lists(values, max_size=3)


@given(st.integers(0, 5), st.integers(0, 5), inputs)
@settings(max_examples=40, deadline=None)
def test_load_run_save_load_run_save_is_one_run(first: int, then: int, given_inputs: list[Any]) -> None:
    whole = run(counting(), frames=first + then, inputs=given_inputs)
    one = run(counting(), frames=first, inputs=given_inputs)
    two = run(carried(one.document), frames=then)
    assert one.output + two.output == whole.output
    assert one.frames + two.frames == whole.frames
    assert encode(two.document) == encode(whole.document)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_frozen_and_resumed_output_is_the_same(data: st.DataObject) -> None:
    whole = run(counting(), frames=3, inputs=["a", 2])
    document, output, frames, left = counting(), "", [], 3
    given_inputs: list[Any] = ["a", 2]
    while left:
        steps = data.draw(st.integers(1, 150))
        ran = run(document, frames=left, steps=steps, inputs=given_inputs)
        assert ran.steps <= steps + 41, "one builtin may go on over its items"
        output, frames, given_inputs = output + ran.output, frames + ran.frames, []
        left -= len(ran.frames)
        assert ran.status == ("done" if left == 0 else "frozen")
        document = carried(ran.document)
        assert bool(inspect(document)) is ("image" in document["continuation"])
    assert (output, frames) == (whole.output, whole.frames)
    assert encode(document) == encode(whole.document)


def test_a_frozen_cartridge_is_an_egg_for_the_importer(tmp_path: Path) -> None:
    path = tmp_path / "ant.lispy.json"
    path.write_bytes(encode(run(run(counting()).document, steps=60).document))
    with open_egg(path) as opened:
        assert opened.family.kind == "lispy"
        [part] = opened.parts
        assert same(parse(part.read()), parse(path.read_bytes()))


def test_inputs_wait_their_turn_and_a_program_may_wait_for_them() -> None:
    asking = lispy_file.new(
        "ant", {"main": '(display "name? ") (define name (next-input)) (string-append "hi " name)'}
    )
    ran = run(asking)
    assert (ran.status, ran.output, ran.frames) == ("waiting", "", [])
    again = run(carried(ran.document), inputs=["ada", "bob"])
    assert (again.status, again.output, again.frames) == (
        "done",
        "name? ",
        [{"frame": 1, "result": '"hi ada"'}],
    )
    assert again.document["continuation"]["pending_inputs"] == ["bob"]
    assert "image" not in again.document["continuation"]
    assert run(carried(again.document)).frames == [{"frame": 2, "result": '"hi bob"'}]
    waiting = copy.deepcopy(again.document)
    waiting["continuation"]["pending_inputs"] = []
    frozen = run(waiting, inputs=["x", "y"], steps=1).document
    frozen["continuation"]["pending_inputs"].pop()
    with pytest.raises(BadCartridgeError, match="pending_inputs"):
        run(frozen)


def test_run_is_applied_to_each_input() -> None:
    ran = run(counting(), frames=3, inputs=[{"a": [1]}, "two"])
    assert [frame["result"] for frame in ran.frames] == [
        '(heard {"a": (1)} 1)' if '{"a"' in ran.frames[0]["result"] else ran.frames[0]["result"],
        '(heard "two" 2)',
        "(frame 3 3 780)",
    ]
    assert ran.frames[0]["result"].startswith("(heard")
    assert 'heard "two"' in ran.output or "heard two" in ran.output


def test_a_frame_that_fails_leaves_the_cartridge_as_it_was() -> None:
    document = lispy_file.new(
        "ant", {"main": '(define n echo-frame) (display "on ") (if (= echo-frame 3) (error "stop") n)'}
    )
    ran = run(document, frames=9)
    assert ran.status == "error"
    assert ran.output == "on on on "
    assert ran.frames[:2] == [{"frame": 1, "result": "1"}, {"frame": 2, "result": "2"}]
    assert ran.frames[2]["frame"] == 3
    assert ran.frames[2]["error"]["category"] == "evaluation"
    assert encode(ran.document) == encode(run(document, frames=2).document)
    assert run(ran.document).frames[0]["error"]["message"] == ran.frames[2]["error"]["message"]


@pytest.mark.parametrize(
    ("program", "category"),
    [
        ("(", "syntax"),
        ("(f", "syntax"),
        ("(car 1)", "evaluation"),
        ("(define (f) (f)) (f)", "resource-limit"),
    ],
)
def test_what_goes_wrong_is_told_by_its_category(program: str, category: str) -> None:
    ran = run(lispy_file.new("ant", {"main": program}), inputs=["x"])
    assert [frame["error"]["category"] for frame in ran.frames] == [category]
    assert ran.document["continuation"]["pending_inputs"] == ["x"], "what was not taken waits on"


def test_limits_hold_for_each_frame() -> None:
    document = lispy_file.new("ant", {"main": "(reduce + (range 50) 0)"})
    assert run(document, frames=5, limits=Limits(max_steps=200)).status == "done"
    ran = run(document, limits=Limits(max_steps=20))
    assert ran.frames[0]["error"]["resource"] == "steps"
    frozen = run(document, steps=2, limits=Limits(max_steps=200)).document
    with pytest.raises(BadCartridgeError, match="nothing was run"):
        run(frozen, ceiling=Limits(max_steps=199))


def test_env_is_for_hands_and_env_wire_is_exact() -> None:
    document = run(lispy_file.new("ant", {"main": "(define n (if (= echo-frame 1) 10 (+ n 1))) n"})).document
    assert document["env"] == {"n": 10}
    document["env"]["n"] = 41
    ran = run(carried(document))
    assert ran.frames == [{"frame": 2, "result": "42"}]
    assert ran.notes == ["n was changed by hand."]
    assert run(carried(ran.document)).notes == []
    document["env"] = {}
    assert run(document).frames[0]["result"] == "11", "what env cannot say is still known exactly"


def test_what_cannot_be_kept_is_said() -> None:
    ran = run(
        lispy_file.new("ant", {"main": "(define f car) (define fs (list car)) (define n 1) car"}), frames=2
    )
    assert ran.notes == ["fs cannot be kept from frame to frame."]
    assert ran.document["env_wire"].keys() == {"n"}
    assert ran.document["continuation"]["last_state"]["prev-result"] == {"tag": "nil"}
    deep = "(define (nest n x) (if (= n 0) x (nest (- n 1) (list x)))) (define deep (nest 50 1)) (define big (expt 2 80)) 1"
    ran = run(lispy_file.new("ant", {"main": deep}))
    assert ran.notes == ["deep cannot be kept from frame to frame."]
    assert ran.document["env_wire"]["big"] == {"tag": "integer", "value": str(2**80)}
    assert "big" not in ran.document["env"]
    carried(ran.document)


def test_an_entry_is_one_of_the_programs() -> None:
    two = {"a": "1", "b": "2"}
    assert run(lispy_file.new("ant", two, entry="b")).frames[0]["result"] == "2"
    assert run(lispy_file.new("ant", {**two, "main": "3"})).frames[0]["result"] == "3"
    with pytest.raises(BadCartridgeError, match="names no entry"):
        run(lispy_file.new("ant", two))
    with pytest.raises(BadCartridgeError, match="holds no program"):
        run(lispy_file.new("ant", {}))
    with pytest.raises(BadCartridgeError, match="none of its programs"):
        run({**lispy_file.new("ant", two), "entry": "c"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"_meta": {"type": "lispy-cartridge", "version": 2}}, "_meta.version is not 1"),
        ({"_meta": {"type": "other"}}, "is no .lispy.json"),
        ({"programs": {"main": 5}}, "programs is not an object of texts"),
        ({"programs": []}, "programs is not"),
        ({"schema": "rappd-lispy/9"}, "schema is not"),
        ({"dialect": "scheme"}, "dialect is not"),
        ({"env": []}, "env is not an object"),
        ({"env_wire": {"n": 1}}, "env_wire is not"),
        ({"env_wire": {"n": {"tag": "closure"}}}, "nothing was run"),
        ({"env_wire": {"n": {"tag": "integer", "value": "1", "more": 1}}}, "nothing was run"),
        ({"continuation": {"frame": 1.5}}, "continuation.frame is not"),
        ({"continuation": {"pending_inputs": {}}}, "pending_inputs is not a list"),
        ({"continuation": {"last_state": {"prev-result": {"tag": "no"}}}}, "nothing was run"),
        ({"continuation": {"image": []}}, "continuation.image is not"),
        ({"continuation": {"image": {}}}, "nothing was run"),
        ({"continuation": {"image": {"schema": "lispy-image/1.0"}}}, "nothing was run"),
        ({"echoes": {}}, "echoes is not a list"),
        ({"tools": {"a": []}}, "tools is not"),
    ],
)
def test_a_cartridge_that_is_not_what_it_says_is_refused(change: Document, why: str) -> None:
    with pytest.raises(BadCartridgeError, match=why.replace(".", r"\.")):
        run(PUBLISHED | change)


def test_an_input_that_is_no_json_is_refused() -> None:
    with pytest.raises(BadCartridgeError, match="input"):
        run(counting(), inputs=[{1, 2}])


@given(
    st.dictionaries(
        keys.filter(lambda key: key not in lispy_file.FIELDS and key != "entry"), values, max_size=3
    ),
    objects,
)
@settings(max_examples=50)
def test_unknown_keys_come_back_as_they_were(strange: Document, in_meta: Document) -> None:
    document = {**counting(), **strange}
    document["_meta"] = in_meta | document["_meta"]
    saved = carried(run(document).document)
    for key, value in strange.items():
        assert same(saved[key], value)
    for key, value in in_meta.items():
        assert key in counting()["_meta"] or same(saved["_meta"][key], value)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_edited_frozen_cartridge_runs_or_is_refused(data: st.DataObject) -> None:
    document = run(counting(), steps=data.draw(st.integers(0, 120)), inputs=["a"]).document
    for _ in range(data.draw(st.integers(1, 2))):
        holder: Any = document
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = data.draw(st.sampled_from(places))
            if isinstance(holder[place], dict | list) and data.draw(st.sampled_from([True, True, False])):
                holder = holder[place]
                continue
            holder[place] = data.draw(values | st.integers(-2, 9))
            break
    try:
        ran = run(document, steps=500)
    except BadCartridgeError:
        return
    encode(ran.document)
    lispy_file.checked(ran.document)


def test_the_seam_binds_what_the_convention_names() -> None:
    document = lispy_file.new("ant", {"main": "(list prev-result echo-frame agent-id prior-echo)"})
    ran = run(document, frames=1)
    assert ran.frames == [{"frame": 1, "result": '(() 1 "ant" ())'}]
    assert run(ran.document).document["continuation"]["last_state"]["prev-result"]["items"][1] == {
        "tag": "integer",
        "value": "2",
    }
    assert lispy_runner.DONE == "done"
