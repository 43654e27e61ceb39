"""The published programs of lispy-core@1: results, wire values, output, errors, and every step counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.runtimes.lispy.builtins.table import NAMES
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())


def named(program: dict[str, Any]) -> str:
    return program["name"]


@pytest.mark.parametrize("program", VECTORS["programs"], ids=named)
def test_program(program: dict[str, Any]) -> None:
    outcome = Machine(program["source"]).run().as_json()
    assert (outcome["status"] == "done") is program["ok"]
    assert outcome["stdout"] == program["stdout"]
    assert outcome["usage"] == program["usage"]
    if program["ok"]:
        assert outcome["repr"] == program["repr"]
        assert outcome["wire"] == program["wire"]
    else:
        assert {key: outcome["error"][key] for key in ("category", "message", "resource")} == {
            key: program[key] for key in ("category", "message", "resource")
        }


@pytest.mark.parametrize("case", VECTORS["limit_cases"], ids=lambda case: case["error"]["resource"])
def test_limit(case: dict[str, Any]) -> None:
    outcome = Machine(case["source"], limits=Limits(**case["limits"])).run().as_json()
    assert outcome["usage"] == case["usage"]
    assert outcome["error"] == {key: case["error"][key] for key in outcome["error"]}


def test_names_and_default_limits() -> None:
    assert VECTORS["builtin_names"] == NAMES
    defaults = Limits().as_json()
    assert {name: defaults[name] for name in VECTORS["defaults"]} == VECTORS["defaults"]
    manifest = Machine("(builtin-manifest)").run().value
    assert manifest == NAMES
