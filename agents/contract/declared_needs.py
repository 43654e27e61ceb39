"""Needs that the text of an agent file declares, read without running it.

What code may reach has to be known before any of it runs, for a plan and for the sandbox in which it is first
loaded. So needs are written out as a literal: in ``metadata``, in ``__manifest__``, or in ``@listener(needs=…)``.
They are those of the file: its agents share them, as they share its code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from agents.contract.file_discovery import CARTRIDGE, LISPY, LISTENER_SUFFIX
from agents.contract.syntax import syntax_tree
from agents.runtimes.python.sandbox.needs import NOTHING, BadNeedsError, Needs, read_needs, together

KEY = "needs"
_HOLDERS = frozenset({"metadata", "__manifest__"})


class Declared(NamedTuple):
    """The declaration of a file. ``needs``: None for an agent that declares nothing; ``fault`` and ``line``: what is wrong with it."""

    needs: Needs | None
    fault: str = ""
    line: int | None = None


def declared_in(name: str, content: bytes) -> Declared:
    """The declaration in the file ``name`` with this content. Where it has a fault, its own storage alone.

    Every form of code but ``*_agent.py`` has its own storage alone where it declares nothing.
    """
    without = None if not name.endswith((LISTENER_SUFFIX, LISPY, CARTRIDGE)) else NOTHING
    if not name.endswith(".py") or KEY.encode() not in content:
        return Declared(without)
    try:
        tree = syntax_tree(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Declared(NOTHING)  # nothing of it runs
    found = []
    try:
        nodes = list(_declarations(tree))
    except RecursionError:
        return Declared(NOTHING, "it is nested too deep to be read")
    for node in nodes:
        try:
            found.append(read_needs(ast.literal_eval(node)))
        except BadNeedsError as error:
            return Declared(NOTHING, str(error), node.lineno)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return Declared(NOTHING, "needs is not written out, as a dict of lists of texts", node.lineno)
    return Declared(together(found) if found else without)


def _declarations(tree: ast.AST, *, local: bool = False) -> Iterator[ast.expr]:
    """The values of all declarations. ``local``: within a function, whose own variables are none."""
    for node in ast.iter_child_nodes(tree):
        inside = local
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            calls = (one for one in node.decorator_list if isinstance(one, ast.Call))
            yield from (one.value for call in calls for one in call.keywords if one.arg == KEY)
            inside = local or (not isinstance(node, ast.ClassDef) and node.name != "__init__")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_holder(target, local=local) for target in targets):
                yield from _in_dict(node.value)
            if any(_is_entry(target, local=local) for target in targets):
                yield node.value
        elif isinstance(node, ast.Call) and not local:
            yield from (
                found for one in node.keywords if one.arg == "metadata" for found in _in_dict(one.value)
            )
        yield from _declarations(node, local=inside)


def _in_dict(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == KEY:
                yield value


def _holder(target: ast.expr, *, local: bool) -> bool:
    """True for ``metadata``, ``self.metadata`` and ``__manifest__``."""
    if isinstance(target, ast.Attribute):
        return target.attr in _HOLDERS
    return not local and isinstance(target, ast.Name) and target.id in _HOLDERS


def _is_entry(target: ast.expr, *, local: bool) -> bool:
    """True for ``metadata["needs"]``."""
    return (
        isinstance(target, ast.Subscript)
        and _holder(target.value, local=local)
        and isinstance(target.slice, ast.Constant)
        and target.slice.value == KEY
    )
