"""Syntax trees of source text, for any thread."""

from __future__ import annotations

import ast
import threading

_one_at_a_time = threading.Lock()


def syntax_tree(source: str | bytes) -> ast.Module:
    """``ast.parse``. Raises what that raises: ``SyntaxError``, ``ValueError``, ``RecursionError``, ``MemoryError``.

    CPython 3.11 counts the depth of a tree in one place for all threads: two that are built at the same time end in
    "SystemError: AST constructor recursion depth mismatch" (python/cpython#106905).
    """
    with _one_at_a_time:
        try:
            return ast.parse(source)
        except SystemError:  # a library in another thread did it meanwhile
            return ast.parse(source)
