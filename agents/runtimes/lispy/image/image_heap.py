"""The heap and the scopes of an image, and the values in it. What does not hold together is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from agents.runtimes.lispy.errors import BadImageError, LispyError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.number_format import SMALL_BITS, most_digits
from agents.runtimes.lispy.value_codec import atom_from_wire
from agents.runtimes.lispy.values import (
    COMBINATIONS,
    DEEPEST_SCOPE,
    Builtin,
    Closure,
    Combined,
    Macro,
    Pair,
    Scope,
    Symbol,
    is_procedure,
)

_LARGEST = (1 << 53) - 1
_SPARE = 1_000  # the words of an error around a name


def bad(where: str, what: str) -> NoReturn:
    """Refuses the image: ``where`` in it, and ``what`` is wrong there."""
    raise BadImageError(f"This image is damaged ({where}: {what}); nothing was run.", do="Get it again.")


class Parts:
    """Reads the heap, then gives the values that the rest of the image speaks of."""

    def __init__(self, limits: Limits, builtins: dict[str, Builtin], first: Scope) -> None:
        self._builtins = builtins
        self._most_digits = most_digits(max(limits.max_integer_bits, SMALL_BITS)) + 1
        # What was read from a source is not held to the limit on what a program makes.
        self._longest = max(limits.max_collection_items, limits.max_source_bytes) + _SPARE
        self._heap: list[Any] = []
        self._scopes = [first]

    def read(self, scopes: Any, heap: Any) -> None:
        """Takes in all scopes and the heap; the scope it was made with becomes the first, the globals."""
        self._make_scopes(array_in(scopes, "scopes"))
        for place, written in enumerate(array_in(heap, "heap")):
            self._heap.append(self._thing(object_in(written, f"heap {place}"), f"heap {place}"))
        self._fill_scopes(scopes)

    def scope(self, place: Any, where: str) -> Scope:
        """The scope at ``place``."""
        if type(place) is not int or not 0 <= place < len(self._scopes):
            bad(where, "there is no such scope")
        return self._scopes[place]

    def values(self, written: Any, where: str) -> list[Any]:
        """An array of values, as a list of its own."""
        self._check_length(array_in(written, where), where)
        return [self.value(one, where) for one in written]

    def _check_length(self, items: list[Any], where: str) -> None:
        if len(items) > self._longest:
            bad(where, "longer than its limit")

    def value(self, written: Any, where: str) -> Any:
        """One value: an atom, a builtin, or a thing of the heap."""
        if type(written) is not dict:
            bad(where, "a value has no tag")
        tag = written.get("tag")
        if tag == "ref":
            place = written.get("id")
            if len(written) != 2 or type(place) is not int or not 0 <= place < len(self._heap):
                bad(where, "it refers to nothing before it")
            return self._heap[place]
        if tag == "builtin":
            found = self._builtins.get(self.text(written.get("name"), where))
            if len(written) != 2 or found is None:
                bad(where, "no known builtin")
            return found
        if tag == "integer" or tag == "string" or tag == "symbol":
            text = self.text(written.get("value"), where)
            if tag == "integer" and len(text) > self._most_digits:
                bad(where, "an integer longer than its limit")
        elif tag not in ("nil", "boolean", "float64"):
            bad(where, "not a value")
        return atom_from_wire(written)

    def text(self, text: Any, where: str) -> str:
        """Text of bearable length, in whole characters."""
        if type(text) is not str:
            bad(where, "not text")
        if len(text) > self._longest:
            bad(where, "longer than its limit")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                bad(where, "it holds half a character")
        return text

    def _make_scopes(self, written: list[Any]) -> None:
        if not written:
            bad("scopes", "there are no globals")
        for place, one in enumerate(written):
            where = f"scope {place}"
            exactly(object_in(one, where), ["parent", "bindings"], where)
            parent = one["parent"]
            if place == 0:
                if parent is not None:
                    bad(where, "the globals have no parent")
                continue
            if type(parent) is not int or not 0 <= parent < place:
                bad(where, "its parent is not one before it")
            if self._scopes[parent].depth >= DEEPEST_SCOPE:
                bad(where, "it lies too deep")
            self._scopes.append(Scope({}, self._scopes[parent]))

    def _fill_scopes(self, scopes: list[Any]) -> None:
        for place, written in enumerate(scopes):
            where = f"scope {place}"
            bindings = self._scopes[place].bindings
            met: set[str] = set()
            for binding in array_in(written["bindings"], where):
                if type(binding) is not list or len(binding) != 2:
                    bad(where, "a binding is not a name and a value")
                name = self.text(binding[0], where)
                if name in met:
                    bad(where, "a name is bound twice")
                met.add(name)
                bindings[Symbol(name)] = self.value(binding[1], where)

    def _thing(self, written: dict[str, Any], where: str) -> Any:
        """One thing of the heap; ``self._heap`` holds all that it may refer to."""
        tag = written.get("tag")
        if tag == "list":
            exactly(written, ("tag", "items"), where)
            return self.values(written["items"], where)
        if tag == "pair":
            exactly(written, ("tag", "car", "cdr"), where)
            return Pair(self.value(written["car"], where), self.value(written["cdr"], where))
        if tag == "map":
            exactly(written, ("tag", "entries"), where)
            return self._map(array_in(written["entries"], where), where)
        if tag == "closure" or tag == "macro":
            exactly(written, ("tag", "form", "scope"), where)
            kind = Macro if tag == "macro" else Closure
            return self._closure(kind, written["form"], written["scope"], where)
        if tag == "combined":
            exactly(written, ("tag", "kind", "parts"), where)
            return self._combined(written["kind"], self.values(written["parts"], where), where)
        if tag == "string" or tag == "symbol" or tag == "integer":
            return self.value(written, where)
        bad(where, "nothing that a heap holds")

    def _map(self, entries: list[Any], where: str) -> dict[str, Any]:
        self._check_length(entries, where)
        found: dict[str, Any] = {}
        for entry in entries:
            if type(entry) is not list or len(entry) != 2:
                bad(where, "an entry is not a key and a value")
            key = self.value(entry[0], where)
            if type(key) is not str or key in found:
                bad(where, "the keys are not different strings")
            found[key] = self.value(entry[1], where)
        return found

    def _closure(self, kind: type[Closure], form: Any, scope: Any, where: str) -> Closure:
        item = self.value(form, where)
        if type(item) is not list or len(item) < 2 or type(item[0]) is not Symbol:
            bad(where, "not the form of a procedure")
        if item[0] != "lambda":
            named = item[1]
            if item[0] != ("define-macro" if kind is Macro else "define"):
                bad(where, "not the form of a procedure")
            if type(named) is not list or not named or type(named[0]) is not Symbol:
                bad(where, "a procedure's form has no name")
        try:
            return kind(item, self.scope(scope, where))
        except LispyError as fault:
            bad(where, fault.message)

    def _combined(self, kind: Any, parts: list[Any], where: str) -> Combined:
        if type(kind) is not str or kind not in COMBINATIONS or len(parts) < COMBINATIONS[kind]:
            bad(where, "not a known combination")
        if kind in ("complement", "constantly") and len(parts) != 1:
            bad(where, "not a known combination")
        inner = {"partial": parts[:1], "constantly": []}.get(kind, parts)
        if not all(is_procedure(part) for part in inner):
            bad(where, "what it combines is no procedure")
        return Combined(kind, parts)


def object_in(written: Any, where: str) -> dict[str, Any]:
    """``written``, if it is a JSON object."""
    if type(written) is not dict:
        bad(where, "not an object")
    return written


def array_in(written: Any, where: str) -> list[Any]:
    """``written``, if it is a JSON array."""
    if type(written) is not list:
        bad(where, "not an array")
    return written


def number_in(written: Any, where: str) -> int:
    """``written``, if it is a whole number that is not negative, as every JSON reader takes it."""
    if type(written) is not int or not 0 <= written <= _LARGEST:
        bad(where, "not a number that counts")
    return written


def exactly(written: dict[str, Any], keys: Sequence[str], where: str) -> None:
    """Refuses the image if the object has other keys than these."""
    for key in keys:
        if key not in written:
            bad(where, f"{key} is missing")
    if len(written) > len(keys):
        bad(where, "there is more in it than there may be")
