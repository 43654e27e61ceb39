"""The parameters of an agent's ``perform``, read from its code once per class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

_VAR_KEYWORDS = 0x08  # inspect.CO_VARKEYWORDS; importing inspect would cost a worker 10 ms


class PerformSignature:
    """Parameters of a ``perform`` method.

    ``takes_any``: there is a ``**kwargs``. ``parameters`` are the named ones; ``speaks_of`` adds every string
    constant in the code (``kwargs.get("user_guid")`` speaks of user_guid).

    ``keeps_slush`` and ``leaves_context_free`` say whether the class has a ``last_data_slush``, and no
    ``context`` of its own.
    """

    __slots__ = (
        "_own",
        "_positional",
        "keeps_slush",
        "leaves_context_free",
        "parameters",
        "speaks_of",
        "takes_any",
    )

    def __init__(
        self,
        parameters: frozenset[str],
        *,
        takes_any: bool,
        constants: frozenset[str] = frozenset(),
        positional: tuple[str, ...] = (),
        own: str = "",
    ) -> None:
        self.keeps_slush = False
        self.leaves_context_free = True
        self.parameters = parameters
        self.takes_any = takes_any
        self.speaks_of = parameters | constants
        self._positional = positional
        self._own = own

    def call(self, perform: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Call ``perform`` with those of the arguments that it accepts."""
        if self.takes_any and not self._positional and self._own not in arguments:
            return perform(**arguments)
        named = {
            name: value
            for name, value in arguments.items()
            if name in self.parameters or (self.takes_any and name != self._own)
        }
        first = []
        for name in self._positional:
            if name not in named:
                break
            first.append(named.pop(name))
        return perform(*first, **named)


def signature_of(instance: Any) -> PerformSignature:
    """Reads the signature of ``instance.perform``. Raises ``AttributeError`` when there is none."""
    agent = type(instance)
    if "perform" in getattr(instance, "__dict__", ()):
        return _read(instance.perform, agent)
    known = _known.get(agent)
    if known is None:
        known = _known[agent] = _read(instance.perform, agent)
    return known


def _read(perform: Callable[..., Any], agent: type) -> PerformSignature:
    signature = _accepted(perform, agent.__mro__)
    signature.keeps_slush = hasattr(agent, "last_data_slush")
    signature.leaves_context_free = not hasattr(agent, "context")
    return signature


def _accepted(perform: Callable[..., Any], mro: tuple[type, ...]) -> PerformSignature:
    bound = isinstance(perform, MethodType)
    function = perform.__func__ if isinstance(perform, MethodType) else perform
    code = getattr(_unwrapped(function), "__code__", None)
    if code is None:  # a partial, an object with __call__, something compiled
        return _inspected(perform)
    skip = 1 if bound and code.co_argcount else 0
    named = code.co_varnames[skip : code.co_argcount + code.co_kwonlyargcount]
    return PerformSignature(
        frozenset(named),
        takes_any=bool(code.co_flags & _VAR_KEYWORDS),
        constants=frozenset(_strings(code)).union(*map(_strings, _inherited(mro))),
        positional=code.co_varnames[skip : code.co_posonlyargcount],
        own=code.co_varnames[0] if skip else "",
    )


def _inspected(perform: Callable[..., Any]) -> PerformSignature:
    from inspect import Parameter, signature

    try:
        parameters = signature(perform).parameters.values()
    except (TypeError, ValueError):  # compiled code that does not tell
        return PerformSignature(frozenset(), takes_any=True)
    named = frozenset(
        p.name for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    )
    return PerformSignature(named, takes_any=any(p.kind is Parameter.VAR_KEYWORD for p in parameters))


def _unwrapped(function: Any) -> Any:
    """Below decorators made with ``functools.wraps``: they pass on what the function takes."""
    seen = 0
    while hasattr(function, "__wrapped__") and seen < 32:
        function = function.__wrapped__
        seen += 1
    return function


def _inherited(mro: tuple[type, ...]) -> Iterator[CodeType]:
    """The code of every perform in the class's ancestry: ``super().perform(**kwargs)`` reaches them."""
    for ancestor in mro:
        function = _unwrapped(vars(ancestor).get("perform"))
        if isinstance(function, FunctionType):
            yield function.__code__


def _strings(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from (item for item in constant if isinstance(item, str))
        elif isinstance(constant, CodeType):
            yield from _strings(constant)


_known: WeakKeyDictionary[type, PerformSignature] = WeakKeyDictionary()
