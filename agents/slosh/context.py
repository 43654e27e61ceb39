"""The context of one invocation, as an agent reads it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any, NoReturn

from agents.slosh.filters import default_of
from agents.slosh.layer_names import ALIASES, LAYER_NAMES, Layer, published
from agents.slosh.layers import Layers
from agents.slosh.privacy import Privacy


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


MOST_BREADCRUMBS = 5


class View:
    """Display rules of layers: hidden ones as defaults, a hint put first, private values withheld."""

    __slots__ = ("hidden", "hint", "privacy")

    def __init__(self, hidden: frozenset[str], hint: str | None, privacy: Privacy | None) -> None:
        self.hidden = hidden
        self.hint = hint
        self.privacy = privacy

    def shown(self, name: str, value: Any) -> Any:
        """``value`` of a layer that is not hidden, as the agent may see it."""
        if name == "orientation" and self.hint is not None:
            value = Layer(value, hints=[self.hint, *value["hints"]])
        return self.privacy.applied(name, value) if self.privacy is not None else value


class Context(LazyDict):
    """A dict of layers; keys read as attributes too, under the published names and those of RAPP v1 §6.

    Keys: timestamp, temporal, query_signals, memory_echoes, behavioral, priors, orientation,
    breadcrumbs, and upstream_slush when there is some. ``memory``, ``query`` and ``slush`` are other
    names for three of them. A layer is computed when it is first read; an unread memory costs no file.
    A layer that is not there raises ``KeyError`` as an item and reads as empty as an attribute.
    """

    __slots__ = ("_parts",)
    _parts: tuple[Layers, View | None, Sequence[Layers]]

    def __init__(
        self,
        layers: Layers | None = None,
        view: View | None = None,
        trail: Sequence[Layers] = (),
        upstream: Mapping[str, Any] | None = None,
    ) -> None:
        if layers is None:  # nothing was sloshed: no keys
            return
        dict.__init__(self, _ALL_UNREAD)
        object.__setattr__(self, "_parts", (layers, view, trail))
        if upstream:
            dict.__setitem__(self, "upstream_slush", Layer(upstream))
        if view is not None and view.privacy is not None:
            self._withhold(view.privacy)

    def _withhold(self, privacy: Privacy) -> None:
        for name in privacy.removed():
            dict.pop(self, name, None)
        if dict.__contains__(self, "upstream_slush"):
            slush = dict.__getitem__(self, "upstream_slush")
            dict.__setitem__(self, "upstream_slush", privacy.applied("upstream_slush", slush))

    def _compute(self, key: str) -> Any:
        layers, view, trail = self._parts
        if view is None:
            return _trail(trail) if key == "breadcrumbs" else layers.read(key)
        if key in view.hidden:
            return default_of(key)
        return view.shown(key, _trail(trail) if key == "breadcrumbs" else layers.read(key))

    def __getitem__(self, key: str) -> Any:
        return LazyDict.__getitem__(self, published(key) if key in ALIASES else key)

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, ALIASES.get(key, key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        key = published(name)
        if dict.__contains__(self, key):
            return self[key]
        if key not in _ATTRIBUTES:
            raise AttributeError(f"the context has no {name!r}; it has {', '.join(sorted(_ATTRIBUTES))}")
        return "" if key == "timestamp" else default_of(key)

    def __setattr__(self, name: str, value: Any) -> None:
        self[published(name)] = value


def _trail(trail: Sequence[Layers]) -> list[Layer]:
    return [
        Layer(
            query=layers.query,
            timestamp=layers.read("timestamp"),
            confidence=layers.read("orientation")["confidence"],
        )
        for layers in trail
    ]


_ALL_UNREAD: dict[str, Any] = dict.fromkeys(LAYER_NAMES, UNREAD)
_ATTRIBUTES = frozenset(LAYER_NAMES) | {"upstream_slush"}
