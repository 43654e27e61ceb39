"""The table of defences: single changes to the program, each with the tests that have to notice it.

The rows lie in ``*.toml`` beside this module, one file for each part of the program. A row is::

    [[defence]]
    threat = "..."     # the threat's words in docs/threat-model.md, whose row names the tests;
                       # or `invariant = "..."`: what always holds, where it is in no threat's row
    file = "..."       # where the defence is
    text = "..."       # its text, which is in that file once
    becomes = "..."    # what stands there when the defence is taken out ("" without this key)
    tests = ["..."]    # `file::name` or `file::name[parameter]`: one of them fails without the defence
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]
THREAT_MODEL = REPO / "docs" / "threat-model.md"
_KEYS = {"threat", "invariant", "file", "text", "becomes", "tests"}


class TableError(ValueError):
    """A row of the table that cannot be used; the message names it."""


@dataclass(frozen=True)
class Defence:
    """A row of the table."""

    name: str
    """``<file of the table>: <words of the threat or invariant>``."""
    threat: str
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]

    def mutant(self, root: Path) -> str:
        """The file's content below ``root`` with the defence taken out. Raises ``TableError``."""
        path = root / self.file
        source = path.read_text() if path.is_file() else ""
        if (count := source.count(self.text)) != 1:
            raise TableError(f"{self.name}: {self.file} has the text {count} times: {self.text}")
        changed = source.replace(self.text, self.becomes)
        if self.file.endswith(".py"):
            try:
                same = _meaning(source) == _meaning(changed)
            except SyntaxError as error:
                raise TableError(f"{self.name}: {self.file} is no Python any more: {error}") from error
            if same:
                raise TableError(f"{self.name}: {self.file} says the same as before")
        return changed


def read_table(folder: Path = Path(__file__).parent) -> list[Defence]:
    """All rows, in the order of the files' names. Raises ``TableError``."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(path.read_text())["defence"]:
            about = row.get("threat") or row.get("invariant") or ""
            name = f"{path.stem}: {about}"
            if set(row) - _KEYS or not about or ("threat" in row) == ("invariant" in row) or not row["tests"]:
                raise TableError(f"{name}: a row has threat or invariant, file, text, becomes, tests: {row}")
            found.append(
                Defence(
                    name,
                    row.get("threat", ""),
                    row["file"],
                    row["text"],
                    row.get("becomes", ""),
                    tuple(row["tests"]),
                )
            )
    return found


def tests_of_threat(threat: str) -> frozenset[str]:
    """The tests that the threat model names for a threat; empty for one that it does not have."""
    rows = [line for line in THREAT_MODEL.read_text().splitlines() if f"| {threat} |" in line]
    return frozenset(name for row in rows for name in re.findall(r"`(tests/[^`]+)`", row))


@cache
def tests_in(path: Path) -> frozenset[str]:
    """The names of the tests of a file, those of classes as ``Class::name``."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = set()
    for node in ast.parse(path.read_text()).body:
        inner = [node] if isinstance(node, functions) else node.body if isinstance(node, ast.ClassDef) else []
        before = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {before + one.name for one in inner if isinstance(one, functions)}
    return frozenset(found)


@cache  # a file has many rows
def _meaning(source: str) -> int:
    return hash(ast.dump(ast.parse(source)))


def without_parameter(test: str) -> str:
    """``file::name`` of a test that is named with its parameter."""
    return test.partition("[")[0]
