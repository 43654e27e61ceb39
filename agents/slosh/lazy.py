"""A dict whose values are computed when somebody looks at them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, ValuesView
from typing import Any, NoReturn


class LazyDict(dict[str, Any]):
    """Every key is there from the start; a value that is ``UNREAD`` is computed on first reading.

    Whatever reads through the mapping protocol (``dict(x)``, ``{**x}``, ``x == y``, ``json.dumps``,
    ``copy``, ``pickle``) sees computed values, plain dicts after copying. Only encoders that read the
    storage of dict subclasses directly (orjson) do not: hand them ``dict(x)``; without it they refuse.
    A subclass says in ``_compute`` what a key's value is.
    """

    __slots__ = ()

    def _compute(self, key: str) -> Any:
        """The value of ``key``. Raises ``KeyError`` for one that is not computed."""
        raise KeyError(key)

    def __getitem__(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        if value is UNREAD:
            value = self._compute(key)
            dict.__setitem__(self, key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        if key not in self:
            return default
        return self[key]

    # Overridden so that dict(x) and {**x} go through __getitem__: CPython reads the storage of a
    # dict subclass directly as long as its __iter__ is dict's own.
    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self)

    def _read_all(self) -> None:
        for key in list(dict.keys(self)):
            self[key]

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]  # dict_items is private to builtins
        self._read_all()
        return dict.items(self)

    def values(self) -> ValuesView[Any]:  # type: ignore[override]  # dict_values is private to builtins
        self._read_all()
        return dict.values(self)

    def pop(self, key: str, *default: Any) -> Any:
        if dict.__contains__(self, key):
            self[key]
        return dict.pop(self, key, *default)

    def popitem(self) -> tuple[str, Any]:
        self._read_all()
        return dict.popitem(self)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __eq__(self, other: object) -> bool:
        return dict(self) == other

    def __ne__(self, other: object) -> bool:
        return dict(self) != other

    __hash__ = None  # as dict: equal by content, so not hashable

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        return repr(dict(self))


class _Unread:
    """Stands in the storage of a ``LazyDict`` for a value nobody has looked at."""

    __slots__ = ()

    def __str__(self) -> NoReturn:
        # An encoder told to str() what it does not know must fail here, not write a stand-in down.
        raise TypeError("This dict is lazy: encode dict(it).")

    __repr__ = __str__


UNREAD = _Unread()
