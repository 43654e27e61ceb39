"""A docstring says what a thing is or does; it does not begin with a relative pronoun."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *("envelopes", "agents", "twins", "neighborhoods", "rappd"),
    *("benchmarks", "containers", "docs", "requirements", "tests"),
)
NO_PYTHON = "tests/agents/fixtures/collection/faulty_syntax_agent.py"
PRONOUN = re.compile(
    r"(What|Whatever|Who|Whom|Whose|Whoever|Whether|When|Where|Wherever|Which|How|However|Why|That)\b"
)

OPENING = re.compile(r"[\"']\s*" + PRONOUN.pattern)
"""The beginning of any text that begins with one."""


def test_docstrings_do_not_begin_with_a_pronoun() -> None:
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            shown = path.relative_to(ROOT).as_posix()
            if shown == NO_PYTHON:
                continue
            source = path.read_text()
            if not OPENING.search(source):
                continue  # to parse them all takes ten seconds
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    text = node.value.value
                    if isinstance(text, str) and PRONOUN.match(text.strip()):
                        found.append(f"{shown}:{node.lineno}: {text.strip().splitlines()[0]}")
    assert not found
