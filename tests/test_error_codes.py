"""Errors that are raised by a code: the class has a row for each, and no row is there in vain."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from envelopes.errors import ReportableError

REPO = Path(__file__).parents[1]
PACKAGES = ("rappd", "envelopes", "agents", "twins", "neighborhoods")


def _raised() -> Iterator[tuple[str, type[ReportableError], str]]:
    """Place, class and code of each error that is made with a code."""
    for file in (file for package in PACKAGES for file in (REPO / package).rglob("*.py")):
        text = file.read_text()
        if 'code="' not in text or "Error(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    func=ast.Name(name), keywords=[*_, ast.keyword("code", ast.Constant(str(code)))]
                ):
                    module = ".".join(file.relative_to(REPO).with_suffix("").parts)
                    made = getattr(importlib.import_module(module), name)
                    if isinstance(made, type) and issubclass(made, ReportableError):
                        yield f"{module}:{node.lineno}", made, code


def test_each_code_that_is_raised_has_a_row_and_each_row_is_raised() -> None:
    raised = list(_raised())
    assert len(raised) > 50
    assert not [f"{place}: {code}" for place, made, code in raised if code not in made.refusals]
    rows = {(id(made.refusals), code) for _, made, code in raised}
    tables = {id(made.refusals): made.refusals for _, made, _ in raised}
    assert not [code for key, table in tables.items() for code in table if (key, code) not in rows]
