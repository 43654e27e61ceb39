"""Imports between modules form no cycle; those inside functions and for type checking count, too."""

from __future__ import annotations

import graphlib

import grimp


def test_modules_import_each_other_without_cycles() -> None:
    graph = grimp.build_graph(
        "rappd", "neighborhoods", "twins", "agents", "envelopes", exclude_type_checking_imports=False
    )
    assert len(graph.modules) > 500
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules
