"""An image made by somebody else is refused or runs within its limits; it never crashes, hangs or escapes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.runtimes.lispy.errors import BadImageError
from agents.runtimes.lispy.limits import CEILING, Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.value_codec import from_wire

PROGRAMS = json.loads(Path(__file__).with_name("programs.json").read_text())


def images() -> list[dict[str, Any]]:
    found = []
    for program in PROGRAMS:
        inputs = program.get("inputs")
        machine = Machine(
            program["source"],
            limits=Limits(**program.get("limits", {})),
            profile=program.get("profile", "core"),
            inputs=None if inputs is None else [from_wire(wire) for wire in inputs],
        )
        while machine.run(23).status == "paused":
            found.append(machine.freeze())
        found.append(machine.freeze())
    return found


IMAGES = images()
JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2,
    7,
    10**20,
    1.0,
    "",
    "x",
    "map",
    "\ud800",
    [],
    {},
    [[]],
    {"tag": "nil"},
]
JUNK += [{"tag": "ref", "id": place} for place in (-1, 0, 1, 3, 10**9, True)]
JUNK += [{"tag": "symbol", "value": name} for name in ("if", "lambda", "quote", "let")]
JUNK += [{"tag": "builtin", "name": name} for name in ("map", "sort", "apply", "no-such")]
JUNK += [{"tag": "integer", "value": "9" * 5000}, {"tag": "float64", "bits": "7ff0000000000000"}]


def mutate(data: st.DataObject, image: dict[str, Any]) -> None:
    """A change somewhere inside: a part gone, replaced, repeated, or moved to where another was."""
    holder: Any = image
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
        held = holder[key]
        if not isinstance(held, (dict, list)) or not held or data.draw(st.integers(0, 3)) == 0:
            break
        holder = held
    change = data.draw(st.sampled_from(["junk", "gone", "again", "number", "swap"]))
    if change == "gone":
        del holder[key]
    elif change == "again" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(held))
    elif change == "number" and isinstance(held, int):
        holder[key] = held + data.draw(st.integers(-3, 3))
    elif change == "swap":
        other = data.draw(st.sampled_from(keys))
        holder[key], holder[other] = holder[other], holder[key]
    else:
        holder[key] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_images_are_refused_or_run(data: st.DataObject) -> None:
    image = copy.deepcopy(data.draw(st.sampled_from(IMAGES)))
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data, image)
    try:
        machine = Machine.thaw(image)
    except BadImageError as refusal:
        assert str(refusal).endswith("nothing was run.")
        return
    machine.inspect()
    text = machine.freeze_text()
    assert Machine.thaw(json.loads(text)).freeze_text() == text
    outcome = machine.run(2_000)
    outcome.as_json()
    Machine.thaw(machine.freeze())


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.sampled_from(JUNK), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_anything_else_is_no_image(value: Any) -> None:
    with pytest.raises(BadImageError):
        Machine.thaw(value)


def damaged(change: Any) -> str:
    machine = Machine("(define (f l) (map (lambda (x) (* x x)) l)) (f (list 1 2 3))")
    machine.run(18)
    image = machine.freeze()
    change(image)
    with pytest.raises(BadImageError) as refusal:
        Machine.thaw(image)
    assert refusal.value.exit_code == 5
    return str(refusal.value)


def test_a_list_cannot_hold_itself() -> None:
    def circle(image: dict[str, Any]) -> None:
        image["heap"][2] = {"tag": "list", "items": [{"tag": "ref", "id": 2}]}

    assert "heap 2" in damaged(circle)


def test_scopes_cannot_lie_inside_each_other() -> None:
    def circle(image: dict[str, Any]) -> None:
        image["scopes"][1]["parent"] = len(image["scopes"]) - 1

    assert "scope 1" in damaged(circle)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda image: image.update(schema="lispy-image/9.9"), "schema"),
        (lambda image: image.update(language="scheme"), "language"),
        (lambda image: image.update(more=1), "the image"),
        (lambda image: image.pop("heap"), "heap is missing"),
        (lambda image: image["usage"].update(steps=10**6), "usage steps"),
        (lambda image: image["usage"].update(peak_call_depth=0), "usage peak_call_depth"),
        (lambda image: image.update(output="x" * (1 << 21)), "output"),
        (lambda image: image["next"].update(mode="asleep"), "next"),
        (lambda image: image.update(next={"mode": "done", "value": {"tag": "nil"}}), "something waits"),
        (lambda image: image["stack"][0].update(kind="goto"), "stack 0"),
        (lambda image: image["stack"][-1].update(scope=99), "no such scope"),
        (lambda image: image["scopes"].clear(), "scopes"),
        (lambda image: image["scopes"][0]["bindings"].append(["f", {"tag": "nil"}]), "bound twice"),
        (lambda image: image["stack"].append({"kind": "complement", "extra": 1}), "more in it"),
        (
            lambda image: image["stack"].append(
                {"kind": "when", "form": {"tag": "ref", "id": 0}, "scope": 0}
            ),
            "profile",
        ),
        (lambda image: image.update(profile="scheme"), "profile"),
        (
            lambda image: image["heap"].append({"tag": "combined", "kind": "partial", "parts": []}),
            "combination",
        ),
        (
            lambda image: image["heap"].append({"tag": "integer", "value": "9" * 30_000}),
            "longer than its limit",
        ),
    ],
)
def test_refused(change: Any, where: str) -> None:
    assert where in damaged(change)


def test_an_image_cannot_allow_itself_more_than_its_reader_does() -> None:
    machine = Machine("(define (f) (f)) (f)", limits=Limits(max_steps=10**9))
    with pytest.raises(BadImageError, match="wants more"):
        Machine.thaw(machine.freeze())
    wider = Limits(**{**CEILING.as_json(), "max_steps": 10**9})
    assert Machine.thaw(machine.freeze(), ceiling=wider).run(100).status == "paused"


def test_nesting_in_the_json_itself_is_no_crash() -> None:
    image = IMAGES[0]
    nested: Any = {"tag": "nil"}
    for _ in range(5000):
        nested = {"tag": "list", "items": [nested]}
    for change in ({"next": {"mode": "done", "value": nested}}, {"heap": [nested]}, {"output": nested}):
        with pytest.raises(BadImageError):
            Machine.thaw({**image, **change})
