"""Frames of the control stack, and their fields.

A frame is a Python list: its kind, then its fields in the order given here. It waits for a value,
which ``agents.runtimes.lispy.evaluator`` or a higher-order builtin takes when it is there.
"""

from __future__ import annotations

from typing import Final

CALL, BODY, SEQUENCE, IF, COND, DEFINE, SET, LET, LET_STAR, AND, OR, EXPAND = range(12)
WHEN, UNLESS, PIPE, DOTIMES = range(12, 16)
COMPOSE, COMPLEMENT, MAP, FOR_EACH, FILTER, REDUCE, SORT, DICT_MAP, DICT_FILTER = range(16, 25)

FIELDS: Final[dict[int, tuple[str, dict[str, str]]]] = {
    CALL: ("call", {"form": "list", "scope": "scope", "done": "own"}),
    BODY: ("body", {"form": "list", "next": "number", "scope": "scope"}),
    SEQUENCE: ("sequence", {"form": "list", "next": "number", "scope": "scope"}),
    IF: ("if", {"form": "list", "scope": "scope"}),
    COND: ("cond", {"form": "list", "next": "number", "scope": "scope"}),
    DEFINE: ("define", {"form": "list", "scope": "scope"}),
    SET: ("set!", {"form": "list", "scope": "scope"}),
    LET: ("let", {"form": "list", "scope": "scope", "done": "own"}),
    LET_STAR: ("let*", {"form": "list", "next": "number", "scope": "scope"}),
    AND: ("and", {"form": "list", "next": "number", "scope": "scope"}),
    OR: ("or", {"form": "list", "next": "number", "scope": "scope"}),
    EXPAND: ("expand", {"scope": "scope"}),
    WHEN: ("when", {"form": "list", "scope": "scope"}),
    UNLESS: ("unless", {"form": "list", "scope": "scope"}),
    PIPE: ("pipe", {"form": "list", "next": "number", "scope": "scope"}),
    DOTIMES: ("dotimes", {"form": "list", "scope": "scope", "next": "number", "count": "number"}),
    COMPOSE: ("compose", {"procedures": "own", "next": "number"}),
    COMPLEMENT: ("complement", {}),
    MAP: ("map", {"procedure": "value", "lists": "own", "next": "number", "done": "own"}),
    FOR_EACH: ("for-each", {"procedure": "value", "lists": "own", "next": "number"}),
    FILTER: ("filter", {"procedure": "value", "items": "list", "next": "number", "done": "own"}),
    REDUCE: ("reduce", {"procedure": "value", "items": "list", "next": "number"}),
    SORT: (
        "sort",
        {
            "procedure": "value",
            "items": "list",
            "done": "own",
            "width": "number",
            "left": "number",
            "right": "number",
        },
    ),
    DICT_MAP: ("dict-map", {"procedure": "value", "map": "map", "keys": "own", "done": "own"}),
    DICT_FILTER: ("dict-filter", {"procedure": "value", "map": "map", "keys": "own", "done": "own"}),
}
"""Name and fields of each kind, as an image has them.

``list`` and ``map`` are the program's own values, ``own`` is a list that nothing else holds yet.
"""
