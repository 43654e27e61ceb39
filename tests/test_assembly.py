"""Assembly can be read: what an object works with is given to its constructor, and is never assigned to it later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OF_THE_STANDARD_LIBRARY = {"sni_callback", "daemon"}
"""Attributes of ``ssl.SSLContext`` and ``threading.Timer``, which are made to be set."""
ASSEMBLES = ("rappd/daemon/app.py", "rappd/daemon/open_home.py", "rappd/federation/components.py")
"""Modules that put objects together outside of constructors, too."""


def assigned(tree: ast.AST, *, everywhere: bool) -> Iterator[str]:
    """Assignments to attributes of other objects: in constructors, or everywhere."""
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        if not everywhere and function.name != "__init__":
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
                continue
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own and node.attr not in OF_THE_STANDARD_LIBRARY:
                yield f"line {node.lineno}: {ast.unparse(node)}"


def test_nothing_is_assigned_to_an_object_that_is_made() -> None:
    found = {}
    for file in (
        path
        for top in ("rappd", "neighborhoods", "twins", "agents/workers")
        for path in (ROOT / top).rglob("*.py")
    ):
        name = file.relative_to(ROOT).as_posix()
        if lines := list(assigned(ast.parse(file.read_text()), everywhere=name in ASSEMBLES)):
            found[name] = lines
    assert found == {}, "Give it to the constructor; what is made later is given as a call to it."


@pytest.mark.parametrize(
    ("line", "everywhere", "is_found"),
    [
        ("self.snapshots.schedule = show", False, True),
        ("services.peers = peers = Gateway()", False, True),
        ("self.a, self.b.c = 1, 2", False, True),
        ("self.name = name", True, False),
    ],
)
def test_the_check_sees_it(line: str, everywhere: bool, is_found: bool) -> None:
    tree = ast.parse(f"class A:\n    def __init__(self):\n        {line}\n")
    assert bool(list(assigned(tree, everywhere=everywhere))) is is_found
