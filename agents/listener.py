"""Declares listeners: a dataclass, which is the payload, and the function that handles it.

    @listener(category="calculator")
    @dataclass
    class Add:
        'Adds two numbers.'

        a: Decimal
        'The first one.'
        b: Decimal

    def add(payload: Add) -> Sum: ...

The function is the one public function of the file whose first parameter has the payload's type; it may be async.
``xmlify`` is the published spelling of the same, without a category. This file needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast, overload

T = TypeVar("T", bound=type)

DEFAULT_CATEGORY = "listeners"
_DECLARED = "__listener_declared__"


class Declared(NamedTuple):
    """A declaration of a payload; "" is what follows from its file."""

    name: str
    category: str
    root: str
    description: str
    published: bool = False
    """Said by ``xmlify``, which stands on payloads of answers, too."""


def listener(
    *,
    category: str = DEFAULT_CATEGORY,
    name: str = "",
    root: str = "",
    description: str = "",
    needs: object = None,
    _published: bool = False,
) -> Callable[[T], T]:
    """Makes a class the payload of a listener.

    ``name`` is the listener's, else that of its file; ``root`` the element of its XML, else the class's name in small
    letters; ``description`` what it does, else the class's docstring. ``needs``: the folders, hosts and programs that it
    uses beside its own storage, written out where it stands: rappd reads it without running the file.
    """

    def declare(payload: T) -> T:
        made: Any = payload if "__dataclass_fields__" in vars(payload) else dataclass(payload)
        setattr(made, _DECLARED, Declared(name, category, root, description, published=_published))
        return cast(T, made)

    return declare


@overload
def xmlify(payload: T) -> T: ...
@overload
def xmlify(payload: None = None, **more: Any) -> Callable[[T], T]: ...
def xmlify(payload: Any = None, **more: Any) -> Any:
    """The published spelling of ``listener``: with and without arguments."""
    known = {key: more[key] for key in ("category", "name", "root", "description", "needs") if key in more}
    declare = listener(**known, _published=True)
    return declare if payload is None else declare(payload)


def declared(payload: type) -> Declared | None:
    """The declaration of a class; None for one that is no listener's payload."""
    found = vars(payload).get(_DECLARED)
    return found if isinstance(found, Declared) else None
