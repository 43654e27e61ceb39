"""A docstring says what a thing is or does; it does not begin with a relative pronoun."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("envelopes", "agents", "twins", "neighborhoods", "rappd", "benchmarks")
PRONOUN = re.compile(r"(What|Who|Whose|Whoever|Whether|Where|Which|How|Why|That)\b")


def test_docstrings_do_not_begin_with_a_pronoun() -> None:
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            shown = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    text = node.value.value
                    if isinstance(text, str) and PRONOUN.match(text.strip()):
                        found.append(f"{shown}:{node.lineno}: {text.strip().splitlines()[0]}")
    assert not found
