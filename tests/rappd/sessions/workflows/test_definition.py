"""Workflow files are read strictly: an error names the file, the field and what to write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.sessions.errors import WorkflowError
from rappd.sessions.workflows.definition import MOST_STEPS, Step, cue_of, filled, read_workflow
from rappd.sessions.workflows.library import SHIPPED

STEP = {"participant": "Editor", "cue": "Sum up."}


def made(**changes: Any) -> bytes:
    whole = {"name": "w", "title": "W", "participants": [{"name": "Editor"}], "steps": [STEP], **changes}
    return json.dumps({key: value for key, value in whole.items() if value is not None}).encode()


@pytest.mark.parametrize("file", sorted(path.name for path in SHIPPED.glob("*.json")))
def test_shipped_workflows_are_readable(file: str) -> None:
    assert read_workflow(file, (SHIPPED / file).read_bytes()).name == file.removesuffix(".json")


@pytest.mark.parametrize(("steps", "length"), [([STEP], "1 step"), ([STEP] * 3, "3 steps")])
def test_length_of_a_workflow_in_words(steps: list[Any], length: str) -> None:
    assert read_workflow("w.json", made(steps=steps)).length == length


@pytest.mark.parametrize(
    ("content", "field", "do"),
    [
        (b"{", "w.json:", "JSON"),
        (b"[]", "w.json:", "Write"),
        (b"\xff", "w.json is not UTF-8 in line 1", "UTF-8"),
        (b"[" * 100_000, "w.json:", "JSON"),
        (made(name="other"), "w.json, name:", '"name": "w"'),
        (made(name=None), "w.json, name: It is missing", "name"),
        (made(steps=None), "w.json, steps: It is missing", '"steps"'),
        (made(steps=[]), "w.json, steps:", '"steps"'),
        (made(steps=[STEP] * (MOST_STEPS + 1)), "w.json, steps:", '"steps"'),
        (made(steps=[{"participant": "Editor"}]), "w.json, steps[0].cue: It is missing", '"cue"'),
        (made(steps=[{**STEP, "cue": 5}]), "w.json, steps[0].cue:", '"cue"'),
        (made(steps=[{**STEP, "cues": "x"}]), "w.json, steps[0].cues: No such field", "remove it"),
        (made(steps=[{**STEP, "participant": "Nobody"}]), "w.json, steps[0].participant:", '"Editor"'),
        (made(steps=[{**STEP, "cue": "{Editor}"}]), "w.json, steps[0].cue:", "asked before"),
        (made(steps=[STEP, {**STEP, "cue": "{Reporter:2}"}]), "w.json, steps[1].cue:", "asked before"),
        (made(steps=[{**STEP, "cue": "{file:story}"}]), "w.json, steps[0].cue:", '"files"'),
        (made(steps=[{**STEP, "cue": "a { b"}]), "w.json, steps[0].cue:", "{{"),
        (made(files={"story": "../.env"}), "w.json, files.story:", '"files"'),
        (made(files={"story": ".env"}), "w.json, files.story:", '"files"'),
        (made(files={"story": "w.json"}), "w.json, files.story:", '"files"'),
        (made(participants=[{"name": "Editor"}, {"name": "editor"}]), "participants[1].name:", "another name"),
        (made(participants=[{"name": "Coordinator"}]), "participants[0].name:", "another name"),
        (made(participants=[{"name": "a\nb"}]), "participants[0].name:", "Debater A"),
        (made(schema="rappd-workflow/9"), "w.json, schema:", "rappd-workflow/1.0"),
        (b" " * (300 << 10), "w.json:", "shorter"),
    ],
)  # fmt: skip
def test_bad_file_is_refused_with_place_and_advice(content: bytes, field: str, do: str) -> None:
    with pytest.raises(WorkflowError) as refused:
        read_workflow("w.json", content)
    assert field in str(refused.value)
    assert do in refused.value.do


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        read_workflow("w.json", content)
    except WorkflowError:
        return


def test_placeholders_are_filled_once() -> None:
    answers = {"Reporter": "{file:key} One. Two! 3.5 is a number? Four"}
    files = {"key": "secret"}
    assert filled("{{x}} {Reporter}", answers, files) == "{x} {file:key} One. Two! 3.5 is a number? Four"
    assert filled("{Reporter:2}|{Reporter:-1}", answers, files) == "{file:key} One. Two!|Four"
    assert filled("{Nobody}{file:none}", answers, files) == ""


def test_cue_without_its_file_is_the_other_one_or_fails() -> None:
    step = Step("Reporter", "Tell {file:story}", "Ask the news", "{file:story:1}")
    assert cue_of(step, {}, {"story": "A. B."}) == ("Tell A. B.", "A.")
    assert cue_of(step, {}, {}) == ("Ask the news", "")
    with pytest.raises(WorkflowError):
        cue_of(Step("Reporter", "Tell {file:story}"), {}, {})
