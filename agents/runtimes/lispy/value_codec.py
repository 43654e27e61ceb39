"""``lispy-value@1``: values as JSON objects that any runtime reads. Procedures have no such form."""

from __future__ import annotations

import math
import struct
from typing import Any

import orjson

from agents.runtimes.lispy.errors import BadValueError, LispyError, passed
from agents.runtimes.lispy.number_format import INTEGER, decimal, whole
from agents.runtimes.lispy.values import Pair, Symbol, kind_of

DEEPEST = 100
"""The most values that may be nested: JSON readers give up at about twice as many."""
MOST_VALUES = 200_000


def atom_to_wire(value: Any) -> dict[str, Any] | None:
    """The form of nil, a boolean, a number, a string or a symbol; None for anything else."""
    kind = type(value)
    if kind is Symbol:
        return {"tag": "symbol", "value": str(value)}
    if kind is int:
        return {"tag": "integer", "value": decimal(value)}
    if kind is str:
        return {"tag": "string", "value": value}
    if value is None:
        return {"tag": "nil"}
    if kind is bool:
        return {"tag": "boolean", "value": value}
    if kind is float:
        return {"tag": "float64", "bits": struct.pack(">d", value).hex()}
    return None


def to_wire(value: Any) -> dict[str, Any]:
    """Any value. Raises ``LispyError`` (serialization, resource-limit) for procedures, great depth and size."""
    return _to_wire(value, 0, [0])


def _to_wire(value: Any, depth: int, count: list[int]) -> dict[str, Any]:
    count[0] += 1
    if count[0] > MOST_VALUES:
        raise passed("wire_values", MOST_VALUES, count[0])
    atom = atom_to_wire(value)
    if atom is not None:
        return atom
    if depth >= DEEPEST:
        raise LispyError("serialization", f"more than {DEEPEST} values lie inside each other")
    depth += 1
    kind = type(value)
    if kind is list:
        return {"tag": "list", "items": [_to_wire(item, depth, count) for item in value]}
    if kind is Pair:
        car = _to_wire(value.car, depth, count)
        return {"tag": "pair", "car": car, "cdr": _to_wire(value.cdr, depth, count)}
    if kind is dict:
        entries = [
            [_to_wire(key, depth, count), _to_wire(content, depth, count)] for key, content in value.items()
        ]
        entries.sort(key=lambda entry: orjson.dumps(entry[0]["value"]))
        return {"tag": "map", "entries": entries}
    raise LispyError("serialization", f"a {kind_of(value)} cannot leave its machine")


def from_wire(wire: Any) -> Any:
    """The value; the opposite of ``to_wire``. Raises ``BadValueError`` for anything that is not one."""
    return _from_wire(wire, 0)


def atom_from_wire(wire: Any) -> Any:
    """The atom in ``wire``, a JSON object with a tag. Raises ``BadValueError``; ``KeyError`` for a tag of no atom."""
    read, field = _ATOMS[wire["tag"]]
    if len(wire) != (1 if field is None else 2):
        raise BadValueError(f"a {wire['tag']} has other fields")
    return read(wire.get(field))


def _from_wire(wire: Any, depth: int) -> Any:
    if type(wire) is not dict or type(wire.get("tag")) is not str:
        raise BadValueError("a value has no tag")
    tag = wire["tag"]
    if tag in _ATOMS:
        return atom_from_wire(wire)
    if depth >= DEEPEST:
        raise BadValueError(f"more than {DEEPEST} values lie inside each other")
    depth += 1
    match wire:
        case {"tag": "list", "items": list(items), **rest} if not rest:
            return [_from_wire(item, depth) for item in items]
        case {"tag": "pair", "car": car, "cdr": cdr, **rest} if not rest:
            return Pair(_from_wire(car, depth), _from_wire(cdr, depth))
        case {"tag": "map", "entries": list(entries), **rest} if not rest:
            return _map_from(entries, depth)
    raise BadValueError(f"not a value: {tag[:40]!r}")


def _map_from(entries: list[Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in entries:
        if type(entry) is not list or len(entry) != 2:
            raise BadValueError("a map's entry is not a key and a value")
        key = _from_wire(entry[0], depth)
        if type(key) is not str or key in found:
            raise BadValueError("a map's keys must be different strings")
        found[key] = _from_wire(entry[1], depth)
    return found


def _nil(_: Any) -> None:
    return None


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise BadValueError("a boolean must be true or false")
    return value


def _integer(digits: Any) -> int:
    if type(digits) is not str or not INTEGER.fullmatch(digits) or len(digits) > 100_000:
        raise BadValueError("an integer must be written in digits")
    number = whole(digits.replace("_", ""))
    if decimal(number) != digits:
        raise BadValueError("an integer must be written as short as can be")
    return number


def _float(bits: Any) -> float:
    if type(bits) is not str or len(bits) != 16 or bits.lower() != bits or not set(bits) <= _HEX:
        raise BadValueError("a float must be 16 hexadecimal digits")
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    if not math.isfinite(number):
        raise BadValueError("a float must be finite")
    return float(number)


def _string(text: Any) -> str:
    if type(text) is not str:
        raise BadValueError("a string must be text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadValueError("a string holds half a character") from None
    return text


def _symbol(name: Any) -> Symbol:
    return Symbol(_string(name))


_HEX = frozenset("0123456789abcdef")
_ATOMS: dict[str, Any] = {
    "nil": (_nil, None),
    "boolean": (_boolean, "value"),
    "integer": (_integer, "value"),
    "float64": (_float, "bits"),
    "string": (_string, "value"),
    "symbol": (_symbol, "value"),
}
