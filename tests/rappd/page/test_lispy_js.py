"""The page's LisPy machine is the same machine: same results, same counts, same images, byte for byte."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rappd
from agents.runtimes.lispy.errors import BadImageError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.value_codec import from_wire, to_wire

HERE = Path(__file__).parent
WEB = Path(rappd.__file__).parent / "web"
DATA = HERE.parents[1] / "agents" / "runtimes" / "lispy"
VECTORS = json.loads((DATA / "vectors.json").read_text())
PROGRAMS: list[dict[str, Any]] = json.loads((DATA / "programs.json").read_text())
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")


class Runner:
    """The machines of the page in a JavaScript runtime without a browser: one request, one answer."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(WEB / "lispy", folder / "machines")
        shutil.copy(HERE / "lispy_runner.js", folder)
        (folder / "package.json").write_text('{"type": "module"}')
        command = [str(NODE), str(folder / "lispy_runner.js")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the runner ended"
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate(timeout=100)
        assert self._process.returncode == 0


@pytest.fixture(scope="module")
def js(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    runner = Runner(tmp_path_factory.mktemp("lispy"))
    yield runner
    runner.close()


def machine_for(program: dict[str, Any]) -> Machine:
    inputs = program.get("inputs")
    return Machine(
        program["source"],
        limits=Limits(**program.get("limits", {})),
        profile=program.get("profile", "core"),
        inputs=None if inputs is None else [from_wire(wire) for wire in inputs],
    )


def named(program: dict[str, Any]) -> str:
    return program["name"]


@pytest.mark.parametrize("program", VECTORS["programs"], ids=named)
def test_published_program(js: Runner, program: dict[str, Any]) -> None:
    outcome = js.ask(source=program["source"])["outcome"]
    assert (outcome["status"] == "done") is program["ok"]
    assert outcome["stdout"] == program["stdout"]
    assert outcome["usage"] == program["usage"]
    if program["ok"]:
        assert (outcome["repr"], outcome["wire"]) == (program["repr"], program["wire"])
    else:
        assert outcome["error"]["category"] == program["category"]
        assert outcome["error"]["message"] == program["message"]


@pytest.mark.parametrize("case", VECTORS["limit_cases"], ids=lambda case: case["error"]["resource"])
def test_published_limit(js: Runner, case: dict[str, Any]) -> None:
    outcome = js.ask(source=case["source"], limits=case["limits"])["outcome"]
    assert outcome["usage"] == case["usage"]
    assert outcome["error"] == {key: case["error"][key] for key in outcome["error"]}


@pytest.mark.parametrize("items", [63, 64, 65, 127, 128])
def test_going_through_many_items_costs_as_many_steps_there(js: Runner, items: int) -> None:
    source = f"(length (cdr (range {items})))"
    there = js.ask(source=source)["outcome"]
    assert there == Machine(source).run().as_json()


@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_frozen_here_and_resumed_there_at_every_step(js: Runner, program: dict[str, Any]) -> None:
    machine = machine_for(program)
    images = []
    while machine.outcome.status == "paused":
        images.append(machine.freeze_text())
        machine.step()
    there = js.ask(**program, every=True)
    assert there["images"] == images
    assert there["outcome"] == machine.outcome.as_json()
    end = machine.freeze_text()
    assert there["image"] == end
    for image in images:
        resumed = js.ask(image=image)
        assert (resumed["outcome"], resumed["image"]) == (machine.outcome.as_json(), end)


@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_there_and_back_all_the_way(js: Runner, program: dict[str, Any]) -> None:
    whole = machine_for(program)
    whole.run()
    image = machine_for(program).freeze_text()
    for _ in range(1000):
        image = js.ask(image=image, steps=3)["image"]
        machine = Machine.thaw(json.loads(image))
        if machine.run(2).status != "paused":
            break
        image = machine.freeze_text()
    assert machine.outcome.as_json() == whole.outcome.as_json()
    assert machine.freeze_text() == whole.freeze_text()


def test_input_given_on_the_other_side(js: Runner) -> None:
    machine = Machine('(define n (next-input)) (println "got" n) (* n (next-input))', inputs=[])
    assert machine.run().status == "waiting"
    there = js.ask(image=machine.freeze_text(), given=[to_wire(6)])
    assert (there["outcome"]["status"], there["outcome"]["stdout"]) == ("waiting", "got 6\n")
    back = Machine.thaw(json.loads(there["image"]))
    back.give(7)
    assert back.run().value == 42


class Writer:
    """Writes programs that mean something: an expression of a kind, out of expressions of fitting kinds."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def program(self) -> str:
        said = " ".join(f"(println {self.any(3)})" for _ in range(self._random.randint(1, 3)))
        return f'(define n 4) (define s "zażółć") (define l (list 9 8 7.5)) {said} {self.any(3)}'

    def any(self, depth: int) -> str:
        return self._one(self.number, self.text, self.list, self.map, self.truth)(depth)

    def number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.25:
            r = self._random
            size = r.choice([8, 53, 64, 200, 300, 1100, 2000])
            return self._one(
                str(r.randint(-20, 20)),
                repr(r.uniform(-1, 1) * 10 ** r.randint(-20, 25)),
                str(r.getrandbits(size) * r.choice([1, -1])),
                self._one(
                    "0.5", "2.5", "-0.0", "1e308", "5e-324", "1e16", "1e-5", "pi", "n", "9007199254740993"
                ),
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        two = self._one("+", "-", "*", "/", "//", "%", "remainder", "max", "min", "expt")
        one = self._one("-", "abs", "round", "floor", "ceil", "sin", "cos")
        return self._one(
            f"({two} {a} {b})",
            f"({two} {a} {b})",
            f"({one} {a})",
            f"(log (abs {a}))",
            f"(sqrt (abs {a}))",
            f"(length {self.list(depth - 1)})",
            f"(string-length {self.text(depth - 1)})",
            f"(->number (->string {a}))",
            f"(reduce + {self.list(depth - 1)} {a})",
            f"((lambda (n) {b}) {a})",
        )

    def text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.25:
            return self._one(
                '"b c,d"', '""', '"h😀llo"', '"Straße ŉ"', '"ΑΣ ΟΔΟΣ"', '"İI"', '" \t\u2003x\x85"', "s"
            )
        a, b = self.text(depth - 1), self.text(depth - 1)
        return self._one(
            f"(string-append {a} {b})",
            f"(concat {a} {self.any(depth - 1)})",
            f"(->string {self.any(depth - 1)})",
            f"(string-upcase {a})",
            f"(string-downcase {a})",
            f"(string-trim {a})",
            f'(string-replace {a} "a" {b})',
            f"(substring {a} 1)",
            f"(string-join (string-split {a}) {b})",
            f"(json-dump {self.any(depth - 1)})",
            f"(reduce (lambda (t i) (string-append t t)) (range 11) {a})",
        )

    def list(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.2:
            return self._one("'(3 1 2)", "(range 70)", "nil", "l", "(range 10 0 -3)", "(cons 1 (cons 2 nil))")
        a, b = self.list(depth - 1), self.list(depth - 1)
        return self._one(
            f"(map (lambda (n) {self.number(depth - 1)}) {a})",
            f"(map + {a} {b})",
            f"(filter (lambda (n) {self.truth(depth - 1)}) {a})",
            f"(sort {a})",
            f"(sort {a} (lambda (a b) (> a b)))",
            f"(append {a} {b})",
            f"(take (reverse {a}) 3)",
            f"(zip {a} {b})",
            f"(flatten (list {a} (list {b})))",
            f"(values {self.map(depth - 1)})",
            f"(list {self.any(depth - 1)} {self.any(depth - 1)})",
            f"(let ((l {a})) (append l l))",
        )

    def map(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.3:
            return self._one(
                '(make-dict "b" 1 "a" 2)', "(make-dict)", '(make-dict "10" 3 "2" 4 "__proto__" 5)'
            )
        a, b = self.map(depth - 1), self.map(depth - 1)
        return self._one(
            f"(dict-set {a} {self.text(depth - 1)} {self.any(depth - 1)})",
            f"(dict-merge {a} {b})",
            f"(dict-map (lambda (k v) (list k v)) {a})",
            f"(dict-filter (lambda (k v) (number? v)) {a})",
            f"(json-parse (json-dump {a}))",
        )

    def truth(self, depth: int) -> str:
        a, b = self.any(depth - 1), self.any(depth - 1)
        return self._one(
            f"(= {a} {b})",
            f"(let ((v {a})) (= v (first (list v))))",
            f"(< {self.number(depth - 1)} {self.number(depth - 1)})",
            f"(<= {self.text(depth - 1)} {self.text(depth - 1)})",
            f"(eq? {a} {b})",
        )

    def _one(self, *choices: Any) -> Any:
        return self._random.choice(choices)


LIMITS = [
    {},
    {},
    {},
    {"max_steps": 60},
    {"max_collection_items": 9},
    {"max_cells": 90},
    {"max_integer_bits": 300},
]


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.sampled_from(LIMITS), st.integers(0, 300))
def test_programs_of_all_sorts(js: Runner, seed: int, limits: dict[str, int], steps: int) -> None:
    source = Writer(seed).program()
    machine = Machine(source, limits=Limits(**limits))
    machine.run(steps)
    active_requests = machine.freeze_text()
    there = js.ask(source=source, limits=limits, steps=steps)
    assert there["image"] == active_requests
    machine.run()
    resumed = js.ask(image=active_requests)
    assert resumed["outcome"] == machine.outcome.as_json()
    assert resumed["image"] == machine.freeze_text()


def damaged_images() -> list[str]:
    """Images with one change each, drawn once and for all."""
    drawn = random.Random(7)
    found = []
    for program in PROGRAMS * 8:
        machine = machine_for(program)
        machine.run(drawn.randint(0, 120))
        image = copy.deepcopy(machine.freeze())
        holder: Any = image
        while True:
            key = drawn.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if not isinstance(holder[key], (dict, list)) or not holder[key] or drawn.random() < 0.2:
                break
            holder = holder[key]
        holder[key] = drawn.choice(
            [None, True, -1, 0, 2, 9, "x", "if", "done", [], {}, {"tag": "ref", "id": 1}]
        )
        found.append(json.dumps(image))
    return found


def test_damaged_images_are_refused_alike(js: Runner) -> None:
    refused = 0
    for text in damaged_images():
        there = js.ask(image=text, steps=500)
        try:
            machine = Machine.thaw(json.loads(text))
        except BadImageError as refusal:
            refused += 1
            assert there.get("refused") == str(refusal)
        else:
            assert there.get("outcome") == machine.run(500).as_json(), text
    assert 100 < refused < len(PROGRAMS) * 8


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(blacklist_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('ab é"\\😀\n')), inner),
        max_leaves=15,
    )
)
def test_wire(js: Runner, value: Any) -> None:
    wire = to_wire(value)
    assert js.ask(wire=wire)["wire"] == wire


def test_it_needs_nothing_but_itself() -> None:
    for module in sorted((WEB / "lispy").rglob("*.js")):
        text = module.read_text()
        for wanted in re.findall(r"from \"([^\"]+)\"", text):
            found = (module.parent / wanted).resolve()
            assert found.is_relative_to(WEB / "lispy") and found.is_file(), f"{module.name}: {wanted}"
        assert not re.search(r"\b(require|process|window|document|fetch|eval|Function)\b\s*[(.]", text), (
            module.name
        )


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_frozen_here_and_resumed_in_the_browser(site: Any) -> None:
    program = next(one for one in PROGRAMS if one["name"] == "sort_by_a_predicate")
    machine = machine_for(program)
    machine.run(100)
    image = machine.freeze_text()
    machine.run()
    page = await site.browser.new_page()
    await page.goto(f"http://127.0.0.1:{site.port}/health")  # anything under the page's policy
    resumed = await page.evaluate(
        """async (image) => {
            const { Machine } = await import("/web/lispy/machine.js");
            const machine = Machine.thaw(JSON.parse(image));
            return { outcome: machine.run(), image: machine.freezeText() };
        }""",
        image,
    )
    await page.close()
    assert resumed == {"outcome": machine.outcome.as_json(), "image": machine.freeze_text()}
