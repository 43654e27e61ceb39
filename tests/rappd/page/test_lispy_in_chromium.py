"""The page's LisPy machine in a browser, under the page's own policy: frozen in Python, resumed there, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.value_codec import from_wire

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DATA = Path(__file__).parents[2] / "agents" / "runtimes" / "lispy"
PUBLISHED = json.loads((DATA / "vectors.json").read_text())["programs"]
PROGRAMS: list[dict[str, Any]] = json.loads((DATA / "programs.json").read_text())

_RUN = """async (asked) => {
  const { Machine } = await import("/web/lispy/machine.js");
  const { fromWire } = await import("/web/lispy/value-codec.js");
  return asked.map(({ source, image, limits = {}, profile = "core", inputs, steps }) => {
    const machine = image === undefined
      ? new Machine(source, { limits, profile, inputs: inputs?.map((wire) => fromWire(wire)) ?? null })
      : Machine.thaw(JSON.parse(image));
    const outcome = machine.run(steps ?? Infinity);
    return { outcome, image: machine.freezeText() };
  });
}"""


async def in_the_page(site: Any, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    async with site.opened() as page:
        found: list[dict[str, Any]] = await page.evaluate(_RUN, asked)
        return found


def here(program: dict[str, Any]) -> Machine:
    inputs = program.get("inputs")
    return Machine(
        program["source"],
        limits=Limits(**program.get("limits", {})),
        profile=program.get("profile", "core"),
        inputs=None if inputs is None else [from_wire(wire) for wire in inputs],
    )


async def test_published_programs_run_in_the_browser(site: Any) -> None:
    answers = await in_the_page(site, [{"source": program["source"]} for program in PUBLISHED])
    for program, answer in zip(PUBLISHED, answers, strict=True):
        outcome = answer["outcome"]
        assert (outcome["status"] == "done") is program["ok"], program["name"]
        assert (outcome["stdout"], outcome["usage"]) == (program["stdout"], program["usage"]), program["name"]


async def test_frozen_in_python_and_resumed_in_the_browser(site: Any) -> None:
    halves, ends = [], []
    for program in PROGRAMS:
        machine = here(program)
        machine.run(7)
        halves.append({"image": machine.freeze_text()})
        machine.run()
        ends.append((machine.outcome.as_json(), machine.freeze_text()))
    answers = await in_the_page(site, halves)
    for program, answer, end in zip(PROGRAMS, answers, ends, strict=True):
        assert (answer["outcome"], answer["image"]) == end, program["name"]


async def test_frozen_in_the_browser_and_resumed_in_python(site: Any) -> None:
    answers = await in_the_page(site, [{**program, "steps": 11} for program in PROGRAMS])
    for program, answer in zip(PROGRAMS, answers, strict=True):
        whole = here(program)
        whole.run()
        machine = Machine.thaw(json.loads(answer["image"]))
        machine.run()
        assert machine.outcome.as_json() == whole.outcome.as_json(), program["name"]
        assert machine.freeze_text() == whole.freeze_text(), program["name"]
