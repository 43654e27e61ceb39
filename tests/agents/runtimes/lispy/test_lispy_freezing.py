"""A machine frozen before every single step, carried to another process, resumed: nobody can tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.value_codec import from_wire
from agents.runtimes.lispy.values import Symbol

HERE = Path(__file__).parent
PROGRAMS: list[dict[str, Any]] = json.loads((HERE / "programs.json").read_text())
VECTORS = json.loads((HERE / "vectors.json").read_text())
PROGRAMS += [{"name": one["name"], "source": one["source"]} for one in VECTORS["programs"]]
PROGRAMS += [
    {"name": f"limit_{one['error']['resource']}", "source": one["source"], "limits": one["limits"]}
    for one in VECTORS["limit_cases"]
]


def machine_for(program: dict[str, Any]) -> Machine:
    inputs = program.get("inputs")
    return Machine(
        program["source"],
        limits=Limits(**program.get("limits", {})),
        profile=program.get("profile", "core"),
        inputs=None if inputs is None else [from_wire(wire) for wire in inputs],
    )


def test_frozen_at_every_step_and_resumed_in_one_fresh_process(tmp_path: Path) -> None:
    expected = []
    with (tmp_path / "images").open("w") as file:
        for program in PROGRAMS:
            whole = machine_for(program)
            result = [whole.run().as_json(), whole.freeze_text()]
            machine = machine_for(program)
            while True:
                file.write(json.dumps(machine.freeze_text()) + "\n")
                expected.append((program["name"], machine.outcome.steps, result))
                if machine.outcome.status in ("done", "failed"):
                    break
                machine.step()
    assert len(expected) > 5000
    environment = os.environ | {"PYTHONPATH": str(HERE.parents[3])}
    command = [
        sys.executable,
        str(HERE / "resume_all.py"),
        str(tmp_path / "images"),
        str(tmp_path / "results"),
    ]
    subprocess.run(command, check=True, env=environment)
    lines = (tmp_path / "results").read_text().splitlines()
    assert len(lines) == len(expected)
    for line, (name, step, result) in zip(lines, expected, strict=True):
        assert json.loads(line) == result, f"{name}, frozen after {step} steps"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program["name"])
def test_steps_one_by_one_are_the_same_as_all_at_once(program: dict[str, Any]) -> None:
    whole = machine_for(program)
    outcome = whole.run()
    machine = machine_for(program)
    while machine.step().status == "paused":
        text = machine.freeze_text()
        assert Machine.thaw(json.loads(text)).freeze_text() == text
    assert machine.outcome.as_json() == outcome.as_json()
    assert machine.freeze_text() == whole.freeze_text()


def test_every_kind_of_frame_is_met_in_the_middle() -> None:
    met = set()
    for program in PROGRAMS:
        machine = machine_for(program)
        while machine.step().status == "paused":
            met |= {frame["kind"] for frame in machine.freeze()["stack"]}
    from agents.runtimes.lispy.frames import FIELDS

    assert met == {name for name, _ in FIELDS.values()}


def test_freezing_leaves_the_machine_as_it_was() -> None:
    machine = Machine("(define l (list 1 2)) (map (lambda (x) (println x) (+ x 1)) l)")
    machine.run(12)
    before = machine.freeze_text()
    assert machine.freeze_text() == before
    assert machine.run().value == [2, 3]
    thawed = Machine.thaw(json.loads(before))
    thawed.run()
    assert Machine.thaw(json.loads(before)).freeze_text() == before


def test_identity_and_circles_survive() -> None:
    source = """
        (define part (list 1 2))
        (define (make) (define me (lambda () me)) me)
        (define me (make))
        (define pair (cons part part))
        (next-input)
        (list (eq? (car pair) (cdr pair)) (eq? (car pair) part) (eq? (me) me) (eq? (car pair) (list 1 2)))
    """
    machine = Machine(source, inputs=[])
    assert machine.run().status == "waiting"
    thawed = Machine.thaw(machine.freeze())
    thawed.give(None)
    assert thawed.run().value == [True, True, True, False]


def test_long_name_and_equal_long_text_are_frozen_as_two() -> None:
    long = "x" * 80
    machine = Machine(f"(list '{long} \"{long}\" '{long})")
    machine.run()
    name, text, again = Machine.thaw(machine.freeze()).run().value
    assert [type(one) for one in (name, text, again)] == [Symbol, str, Symbol]


def test_two_resumed_from_one_image_go_their_own_ways() -> None:
    machine = Machine(
        "(define n 0) (define (add x) (set! n (+ n x)) n) (add (next-input)) (add (next-input))", inputs=[]
    )
    machine.run()
    image = machine.freeze()
    one, other = Machine.thaw(image), Machine.thaw(image)
    one.give(1, 10)
    other.give(2, 20)
    assert (one.run().value, other.run().value) == (11, 22)


def test_the_text_is_for_people_too() -> None:
    machine = Machine(
        '(define greeting "hello") (map (lambda (who) (string-append greeting who)) \'("a" "b"))'
    )
    machine.run(15)
    text = machine.freeze_text()
    lines = text.splitlines()
    assert lines[0] == "{" and text.endswith("}\n")
    assert max(map(len, lines)) < 400
    assert '"greeting"' in text
    assert json.loads(text) == machine.freeze()
    shown = machine.inspect()
    assert 'greeting = "hello"' in shown and "map" in shown and "15 of 100,000" in shown


def test_an_image_may_be_written_anew_with_sorted_keys() -> None:
    machine = Machine("(define (f x) (* x 2)) (reduce (lambda (a b) (+ a (f b))) (range 5) 0)")
    machine.run(30)
    sorted_anew = json.loads(json.dumps(machine.freeze(), sort_keys=True))
    assert Machine.thaw(sorted_anew).freeze_text() == machine.freeze_text()


def test_waiting_costs_no_step_and_resumes_where_it_waits() -> None:
    machine = Machine("(list (next-input) (next-input))", inputs=[1])
    waiting = machine.run()
    assert waiting.status == "waiting"
    assert machine.run().steps == waiting.steps
    thawed = Machine.thaw(machine.freeze())
    assert thawed.run().status == "waiting"
    thawed.give([2])
    assert thawed.run().value == [1, [2]]
    straight = Machine("(list (next-input) (next-input))", inputs=[1, [2]]).run()
    assert thawed.outcome.steps == straight.steps
