"""A docstring says what a thing is or does; it begins with no relative pronoun, and does not send its reader elsewhere.

Docstrings and the page's comments name their subject, too.
"""

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
    r"(What|Whatever|Who|Whom|Whose|Whoever|Whether|When|Where|Wherever|Which|How|However|Why|That|See)\b"
)

OPENING = re.compile(r"[\"']\s*" + PRONOUN.pattern)
"""The beginning of any text that begins with one."""


PACKAGES = FOLDERS[:5]
NAMELESS = re.compile(r"(It|Its|They|Them|Their|These|Those|Nobody|Somebody|Something|Everybody|Anybody)\b")
COMMENT = re.compile(r"/\*\*\s*(?:\*\s*)?(.*)|\A//\s*(.*)")
"""A block comment, or the line comment that a module begins with."""


def docstrings(path: Path) -> list[tuple[int, str]]:
    """Each text that stands by itself, with its line."""
    return [
        (node.lineno, node.value.value.strip())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def test_docstrings_name_their_subject() -> None:
    opening = re.compile(r"\"\"\"\s*" + NAMELESS.pattern)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if opening.search(path.read_text())  # to parse them all takes seconds
        for line, text in docstrings(path)
        if NAMELESS.match(text)
    ]
    assert not found


def test_comments_of_the_page_name_their_subject() -> None:
    files = [
        path
        for folder in PACKAGES
        for path in sorted((ROOT / folder).rglob("*.js"))
        if "vendor" not in path.parts
    ]
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}: {words}"
        for path in files
        for comment in COMMENT.finditer(path.read_text())
        if PRONOUN.match(words := comment[1] or comment[2] or "") or NAMELESS.match(words)
    ]
    assert not found


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
            found += [
                f"{shown}:{line}: {text.splitlines()[0]}"
                for line, text in docstrings(path)
                if PRONOUN.match(text)
            ]
    assert not found
