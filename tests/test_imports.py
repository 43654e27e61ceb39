"""Imports between modules: no cycle, those inside functions and for type checking included; few modules serve one other.

A module that is run as a program defines all that it needs first.
"""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import grimp
import pytest

SMALL = 60
"""Lines. What is smaller and serves one other module belongs into that one, as a rule."""
MOST_SMALL = 24
"""A change that adds one raises the number and says why here; one that folds one lowers it.

One more for `retention.py`: a rule that is looked for by its name.
"""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    found = grimp.build_graph(
        "rappd", "neighborhoods", "twins", "agents", "envelopes", exclude_type_checking_imports=False
    )
    assert len(found.modules) > 500
    return found


def test_modules_import_each_other_without_cycles(graph: grimp.ImportGraph) -> None:
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def test_few_small_modules_serve_one_other(graph: grimp.ImportGraph) -> None:
    served = {module: graph.find_modules_that_directly_import(module) for module in graph.modules}
    small = sorted(
        f"{module} serves {next(iter(importers))}"
        for module, importers in served.items()
        if len(importers) == 1
        and not module.startswith("agents.library.")  # each travels alone
        and (file := _file(module)).name != "__init__.py"
        and len(file.read_text().splitlines()) < SMALL
    )
    assert len(small) <= MOST_SMALL, "\n".join(small)


def test_modules_that_are_run_define_everything_first(graph: grimp.ImportGraph) -> None:
    """Definitions below the block that runs are not there yet when it runs."""
    late = []
    for module in graph.modules:
        source = _file(module).read_text()
        body = ast.parse(source).body if "__main__" in source else []  # to parse them all takes seconds
        runs = [isinstance(one, ast.If) and ast.unparse(one.test) == "__name__ == '__main__'" for one in body]
        if any(runs[:-1]):
            late.append(module)
    assert late == []


def _file(module: str) -> Path:
    below = Path(__file__).parents[1].joinpath(*module.split("."))
    return below / "__init__.py" if below.is_dir() else below.with_suffix(".py")
