"""Values of LisPy programs.

nil is None; booleans, integers, floats and strings are Python's; a list is a ``list``, a map is a
``dict`` with string keys. No list, map or pair is ever changed after a program has seen it, so that
only scopes can take part in a circle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agents.runtimes.lispy.errors import malformed, passed

DEEPEST_SCOPE = 1_000


class Symbol(str):
    """A name in a program; never equal to a string in the eyes of the language."""

    __slots__ = ()


class Pair:
    """The pair that ``cons`` makes."""

    __slots__ = ("car", "cdr")

    def __init__(self, car: Any, cdr: Any) -> None:
        self.car = car
        self.cdr = cdr


class Scope:
    """The bindings of one call or ``let``, and the scope around it; None around the globals.

    Raises ``LispyError`` when it would lie within too many: looking up a name must stay quick, and only code
    that macros make comes near.
    """

    __slots__ = ("bindings", "depth", "parent")

    def __init__(self, bindings: dict[Symbol, Any], parent: Scope | None) -> None:
        self.bindings = bindings
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        if self.depth > DEEPEST_SCOPE:
            raise passed("scope_depth", DEEPEST_SCOPE, self.depth)


ANY: Final = 1 << 30
"""As many arguments as one likes."""


class Builtin:
    """A procedure of the language: ``run(state, arguments)``, with ``least`` to ``most`` arguments."""

    __slots__ = ("least", "most", "name", "run")

    def __init__(self, name: str, run: Callable[[Any, list[Any]], Any], least: int, most: int) -> None:
        self.name = name
        self.run = run
        self.least = least
        self.most = most


class Closure:
    """A procedure written in LisPy: its whole ``lambda`` or ``define`` form, and where it was made.

    Its body starts at ``form[2]``. ``rest`` takes the arguments beyond ``parameters``.
    """

    __slots__ = ("form", "name", "parameters", "rest", "scope")

    def __init__(self, form: list[Any], scope: Scope) -> None:
        self.form = form
        self.scope = scope
        self.name = ""
        written = form[1]
        if type(written) is list and form[0] != "lambda":
            self.name = str(written[0])
            written = written[1:]
        self.parameters, self.rest = _parameters(written)


class Macro(Closure):
    """A closure that is given forms and returns the form to evaluate."""

    __slots__ = ()


class Combined:
    """A procedure made of others: ``kind`` is partial, compose, complement or constantly."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, parts: list[Any]) -> None:
        self.kind = kind
        self.parts = parts


COMBINATIONS = {"partial": 1, "compose": 0, "complement": 1, "constantly": 1}
"""Each kind with the fewest parts it has."""

PROCEDURES = (Closure, Builtin, Combined)


def is_procedure(value: Any) -> bool:
    """True when it can be applied to arguments."""
    return isinstance(value, PROCEDURES) and type(value) is not Macro


def kind_of(value: Any) -> str:
    """The language's word for what it is."""
    return _KINDS.get(type(value), "procedure")


_KINDS: dict[type, str] = {
    type(None): "nil",
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    Symbol: "symbol",
    list: "list",
    Pair: "pair",
    dict: "map",
    Macro: "macro",
}


def _parameters(written: Any) -> tuple[tuple[Symbol, ...], Symbol | None]:
    """A parameter list, ``(a b)``, ``(a . rest)`` or ``rest``, as its fixed names and its rest name."""
    if type(written) is Symbol:
        return (), written
    if type(written) is not list:
        raise malformed("lambda: parameters must be a list of names")
    names = written
    rest: Symbol | None = None
    if len(names) >= 2 and names[-2] == "." and type(names[-2]) is Symbol:
        names, rest = names[:-2], names[-1]
        if type(rest) is not Symbol:
            raise malformed("lambda: the rest parameter must be a name")
    for name in names:
        if type(name) is not Symbol or name == ".":
            raise malformed("lambda: parameters must be a list of names")
    return tuple(names), rest
