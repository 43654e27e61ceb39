"""Maps from strings to values, in the order their keys came. Nothing changes one: it is copied."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.builtins.lists import items_of
from agents.runtimes.lispy.errors import wrong
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.values import ANY, Pair


def map_of(name: str, value: Any) -> dict[str, Any]:
    """``value``, if it is a map."""
    if type(value) is not dict:
        raise wrong(f"{name}: not a map: {shortly(value)}")
    return value


def _key(name: str, value: Any) -> str:
    if type(value) is not str:
        raise wrong(f"{name}: a key must be a string: {shortly(value)}")
    return value


def _make_dict(state: State, arguments: list[Any]) -> Any:
    """``(make-dict "a" 1 "b" 2)``; a step for each entry."""
    if len(arguments) % 2:
        raise wrong("make-dict: a key has no value")
    state.charge(len(arguments) // 2)
    made: dict[str, Any] = {}
    for index in range(0, len(arguments), 2):
        made[_key("make-dict", arguments[index])] = arguments[index + 1]
    return state.made_map(made)


def _get(state: State, arguments: list[Any]) -> Any:
    """``(get map key default)`` or ``(get list index default)``; nil where no default is given."""
    holder, key = arguments[0], arguments[1]
    default = arguments[2] if len(arguments) == 3 else None
    if type(holder) is dict:
        return holder.get(_key("get", key), default)
    if holder is None:
        return default
    if type(holder) not in (list, Pair):
        raise wrong(f"get: not a map or a list: {shortly(holder)}")
    items = items_of(state, "get", holder)
    if type(key) is not int:
        raise wrong(f"get: not an index: {shortly(key)}")
    return items[key] if -len(items) <= key < len(items) else default


def _dict_set(state: State, arguments: list[Any]) -> Any:
    """A copy of the map with one more, or one other, entry."""
    entries, key, value = arguments
    map_of("dict-set", entries)
    state.work(len(entries))
    return state.made_map({**entries, _key("dict-set", key): value})


def _dict_merge(state: State, arguments: list[Any]) -> Any:
    """The entries of all maps; of the same key the last one's."""
    merged: dict[str, Any] = {}
    for argument in arguments:
        entries = map_of("dict-merge", argument)
        state.work(len(entries))
        merged.update(entries)
        state.fits(len(merged))
    return state.made_map(merged)


def _has_key(state: State, arguments: list[Any]) -> Any:
    return _key("has-key?", arguments[1]) in map_of("has-key?", arguments[0])


def _keys(state: State, arguments: list[Any]) -> Any:
    entries = map_of("keys", arguments[0])
    state.charge(len(entries))
    return state.made(list(entries))


def _values(state: State, arguments: list[Any]) -> Any:
    entries = map_of("values", arguments[0])
    state.charge(len(entries))
    return state.made(list(entries.values()))


BUILTINS = {
    "make-dict": (_make_dict, 0, ANY),
    "get": (_get, 2, 3),
    "dict-set": (_dict_set, 3, 3),
    "dict-merge": (_dict_merge, 0, ANY),
    "has-key?": (_has_key, 2, 2),
    "keys": (_keys, 1, 1),
    "values": (_values, 1, 1),
}
