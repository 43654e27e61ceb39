"""Writing a machine down."""

from __future__ import annotations

from typing import Any

import orjson

from agents.runtimes.lispy.builtins.table import is_unchanged
from agents.runtimes.lispy.frames import FIELDS
from agents.runtimes.lispy.machine_state import APPLY, DONE, EVALUATE, LANGUAGE, State
from agents.runtimes.lispy.number_format import SMALL
from agents.runtimes.lispy.value_codec import atom_to_wire
from agents.runtimes.lispy.values import Builtin, Closure, Combined, Macro, Pair, Scope, Symbol

SCHEMA = "lispy-image/1.0"
LONG = 64
"""Strings and names with more characters are written once, in the heap; so are integers that are not small."""

_WITH_PARTS = frozenset({list, Pair, dict, Closure, Macro, Combined})


def freeze(state: State) -> dict[str, Any]:
    """The image. The same state always gives the same one, in this runtime and in others."""
    return _Writing(state).image()


def image_text(image: dict[str, Any]) -> str:
    """An image as indented JSON: a line for each frame, scope and thing in the heap."""
    lines = []
    for key, section in image.items():
        if isinstance(section, list) and section:
            items = b",\n    ".join([orjson.dumps(item) for item in section])
            lines.append(b"  %b: [\n    %b\n  ]" % (orjson.dumps(key), items))
        else:
            lines.append(b"  %b: %b" % (orjson.dumps(key), orjson.dumps(section)))
    return (b"{\n" + b",\n".join(lines) + b"\n}\n").decode()


class _Writing:
    """Numbers things as it meets them: parts before what holds them, scopes in the order they are seen."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._heap: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}
        self._long: dict[Any, int] = {}
        self._scopes: list[Scope] = []
        self._scope_places: dict[int, int] = {}

    def image(self) -> dict[str, Any]:
        state = self._state
        self._scope(state.globals)
        going_on = self._registers()
        stack = [self._frame(frame) for frame in state.stack]
        inputs = None if state.inputs is None else self._values(state.inputs)
        scopes = [self._written_scope(scope) for scope in self._scopes]  # which grows meanwhile
        return {
            "schema": SCHEMA,
            "language": LANGUAGE,
            "profile": state.profile,
            "limits": state.limits.as_json(),
            "usage": {
                "steps": state.steps,
                "peak_call_depth": state.peak_call_depth,
                "cells": state.cells,
            },
            "output": "".join(state.output),
            "inputs": inputs,
            "next": going_on,
            "stack": stack,
            "scopes": scopes,
            "heap": self._heap,
        }

    def _registers(self) -> dict[str, Any]:
        state = self._state
        if state.mode is EVALUATE:
            return {"mode": EVALUATE, "form": self._value(state.form), "scope": self._scope(state.scope)}
        if state.mode is APPLY:
            procedure = self._value(state.procedure)
            return {"mode": APPLY, "procedure": procedure, "arguments": self._values(state.arguments)}
        if state.mode is DONE:
            return {"mode": DONE, "value": self._value(state.value)}
        assert state.fault is not None
        return {"mode": state.mode, "error": state.fault.as_json()}

    def _frame(self, frame: list[Any]) -> dict[str, Any]:
        name, fields = FIELDS[frame[0]]
        written: dict[str, Any] = {"kind": name}
        for (field, holds), item in zip(fields.items(), frame[1:], strict=True):
            if holds == "scope":
                written[field] = self._scope(item)
            elif holds == "own":
                written[field] = self._values(item)
            else:
                written[field] = item if holds == "number" else self._value(item)
        return written

    def _scope(self, scope: Scope) -> int:
        place = self._scope_places.get(id(scope))
        if place is not None:
            return place
        chain = []
        around: Scope | None = scope
        while around is not None and id(around) not in self._scope_places:
            chain.append(around)
            around = around.parent
        for met in reversed(chain):
            self._scope_places[id(met)] = len(self._scopes)
            self._scopes.append(met)
        return self._scope_places[id(scope)]

    def _written_scope(self, scope: Scope) -> dict[str, Any]:
        parent = scope.parent
        bound = list(scope.bindings.items())
        if parent is None:  # sorted, for runtimes differ in which builtin comes first
            bound = [one for one in bound if not is_unchanged(*one)]
            bound.sort(key=lambda one: str(one[0]))
        bindings = [[str(name), self._value(value)] for name, value in bound]
        return {"parent": None if parent is None else self._scope_places[id(parent)], "bindings": bindings}

    def _values(self, values: list[Any]) -> list[dict[str, Any]]:
        return [self._value(value) for value in values]

    def _value(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        if kind in _WITH_PARTS:
            place = self._places.get(id(value))
            return {"tag": "ref", "id": self._added(value) if place is None else place}
        if kind is int:
            if -SMALL < value < SMALL:
                return {"tag": "integer", "value": str(value)}
            return self._long_atom(value)
        if kind is str:
            return {"tag": "string", "value": value} if len(value) <= LONG else self._long_atom(value)
        if kind is Symbol:
            return {"tag": "symbol", "value": str(value)} if len(value) <= LONG else self._long_atom(value)
        if kind is Builtin:
            return {"tag": "builtin", "name": value.name}
        return self._atom(value)

    def _long_atom(self, value: Any) -> dict[str, Any]:
        key = (type(value), value)
        place = self._long.get(key)
        if place is None:
            place = self._long[key] = len(self._heap)
            self._heap.append(self._atom(value))
        return {"tag": "ref", "id": place}

    def _atom(self, value: Any) -> dict[str, Any]:
        atom = atom_to_wire(value)
        if atom is None:
            raise TypeError(f"not a value of the language: {type(value).__name__}")
        return atom

    def _added(self, value: Any) -> int:
        """Puts ``value`` into the heap, and before it what it holds; without recursion, however deep."""
        places = self._places
        wanted, waiting = value, [value]
        while waiting:
            value = waiting[-1]
            if id(value) in places:
                waiting.pop()
                continue
            if type(value) is Pair:
                self._add_pairs(waiting)
                continue
            inner = [part for part in _parts(value) if type(part) in _WITH_PARTS and id(part) not in places]
            if inner:
                inner.reverse()
                waiting += inner
                continue
            waiting.pop()
            written = self._written(value)  # may put long atoms before it
            places[id(value)] = len(self._heap)
            self._heap.append(written)
        return places[id(wanted)]

    def _add_pairs(self, waiting: list[Any]) -> None:
        """The same for the pair on top and all that follow it: the most frequent, and in the longest chains."""
        places, heap = self._places, self._heap
        pair = waiting.pop()
        chain = []
        while type(pair) is Pair and id(pair) not in places:
            chain.append(pair)
            pair = pair.cdr
        if type(pair) in _WITH_PARTS and id(pair) not in places:
            waiting += (*chain, pair)
            return
        rest: dict[str, Any] | None = None
        while chain:
            car = chain[-1].car
            if type(car) is int and -SMALL < car < SMALL:
                first = {"tag": "integer", "value": str(car)}
            elif type(car) in _WITH_PARTS and id(car) not in places:
                waiting += (*chain, car)
                return
            else:
                first = self._value(car)
            if rest is None:
                rest = self._value(pair)  # only now: a long atom comes after that of the car
            place = places[id(chain.pop())] = len(heap)
            heap.append({"tag": "pair", "car": first, "cdr": rest})
            rest = {"tag": "ref", "id": place}

    def _written(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        if kind is list:
            return {"tag": "list", "items": self._values(value)}
        if kind is dict:
            return {"tag": "map", "entries": [[self._value(k), self._value(v)] for k, v in value.items()]}
        if kind is Combined:
            return {"tag": "combined", "kind": value.kind, "parts": self._values(value.parts)}
        tag = "macro" if kind is Macro else "closure"
        return {"tag": tag, "form": self._value(value.form), "scope": self._scope(value.scope)}


def _parts(value: Any) -> Any:
    kind = type(value)
    if kind is list:
        return value
    if kind is dict:
        return value.values()
    return value.parts if kind is Combined else (value.form,)
