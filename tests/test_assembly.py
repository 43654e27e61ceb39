"""Assembly can be read: what an object works with is given to its constructor, and is never assigned to it later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OF_THE_STANDARD_LIBRARY = {"sni_callback", "daemon", "dont_write_bytecode"}
"""Attributes of ``ssl.SSLContext``, ``threading.Timer`` and ``sys``, which are made to be set."""
ASSEMBLES = ("rappd/daemon/app.py", "rappd/daemon/open_home.py", "rappd/federation/assembly.py")
"""Modules that put objects together outside of constructors, too."""

PUTS_TOGETHER = {
    "rappd/daemon/app.py",
    "rappd/daemon/other_machines.py",
    "rappd/federation/opening.py",
    "rappd/federation/service.py",
}
"""Modules that know all parts for other machines at once, to give each module its own."""


def assigned(tree: ast.AST, *, everywhere: bool) -> Iterator[str]:
    """Assignments to attributes of other objects, or into them: in constructors, or everywhere."""
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        if not everywhere and function.name != "__init__":
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
                is_stored, node = isinstance(node.ctx, ast.Store), node.value
            elif isinstance(node, ast.Attribute):
                is_stored = isinstance(node.ctx, ast.Store)
            else:
                continue
            if not is_stored:
                continue
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own and node.attr not in OF_THE_STANDARD_LIBRARY:
                yield f"line {node.lineno}: {ast.unparse(node)}"


def test_nothing_is_assigned_to_an_object_that_is_made() -> None:
    found = {}
    for file in (
        path
        for top in ("rappd", "neighborhoods", "twins", "agents/runtimes/python")
        for path in (ROOT / top).rglob("*.py")
    ):
        name = file.relative_to(ROOT).as_posix()
        if lines := list(assigned(ast.parse(file.read_text()), everywhere=name in ASSEMBLES)):
            found[name] = lines
    assert found == {}, "Give it to the constructor; what is made later is given as a call to it."


def test_no_part_is_reached_through_a_bag_of_parts() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in (ROOT / "rappd").rglob("*.py")
        if ".parts." in (source := path.read_text())  # to parse them all takes seconds
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "parts"
    ]
    assert found == [], "Give it the part itself, as an argument of its constructor."


def test_parts_for_other_machines_are_put_together_in_few_modules() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "rappd").rglob("*.py")
        if "rappd.federation.assembly" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "rappd.federation.assembly"
    }
    assert found == PUTS_TOGETHER


@pytest.mark.parametrize(
    ("line", "everywhere", "is_found"),
    [
        ("self.snapshots.schedule = show", False, True),
        ("services.peers = peers = Gateway()", False, True),
        ("self.a, self.b.c = 1, 2", False, True),
        ("notices.applies['pairing'] = is_asking", False, True),
        ("self.activity.watched['devices'] = looks", False, True),
        ("self.name = name", True, False),
        ("self.kept[name] = app[name] = 1", True, False),
    ],
)
def test_the_check_sees_it(line: str, everywhere: bool, is_found: bool) -> None:
    tree = ast.parse(f"class A:\n    def __init__(self):\n        {line}\n")
    assert bool(list(assigned(tree, everywhere=everywhere))) is is_found
