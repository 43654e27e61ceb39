"""Reading ``organism.yaml``: each fault with its line, its column and the nearest key.

The text is composed into nodes and read by the structs of ``rappd.organism.organism``; nothing is made of tags,
and an alias is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import inspect as forms

from agents.moments.errors import NoMomentError
from envelopes.payloads.form import LISTENER_NAME
from rappd.errors import UsageProblemError
from rappd.organism.organism import (
    MEANINGLESS_KEYS,
    REFUSED_KEYS,
    Gateway,
    ListedListener,
    ListedTimer,
    Organism,
)
from rappd.sessions.schedule.rules import zone_of

MOST_BYTES = 1 << 16
_DEEPEST = 64
"""Brackets within brackets: the parser's time grows with their square (2,000 took 4 s)."""
MOST_FAULTS = 20
_PLAIN_TAGS = tuple(
    f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null")
)
_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"
_EITHER: dict[type, tuple[str, str]] = {
    ListedTimer: ("ask", "remind"),
    Gateway: ("fingerprint", "trusted_identity"),
}
_Form = forms.Type


class Fault(msgspec.Struct, frozen=True):
    """A place in the file, counted from 1, and what is wrong there."""

    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.text}"


class Reading(msgspec.Struct, frozen=True):
    """The file as it was read: ``organism`` is None where it has faults; ``notes`` are of keys without meaning here."""

    organism: Organism | None
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()


def read(text: str) -> Reading:
    """Reads the text of a file. Loads the YAML parser (45 ms)."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(text.encode(errors="replace")) > MOST_BYTES:
        return Reading(None, (Fault(1, 1, f"The file has more than {MOST_BYTES} bytes."),))
    if (line := _too_deep(text)) is not None:
        return Reading(None, (Fault(line, 1, f"This is nested more than {_DEEPEST} deep."),))
    try:
        node = YAML(pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        return Reading(None, (Fault(line, column, f"This is not YAML: {error.problem or error.context}"),))
    except (YAMLError, RecursionError, ValueError) as error:
        return Reading(None, (Fault(1, 1, f"This is not YAML: {str(error)[:200]}"),))
    if node is None:
        return Reading(Organism())
    return _Reader().whole(node)


def _too_deep(text: str) -> int | None:
    """The line in which too many brackets are open at once; None where there is none."""
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        for mark in re.findall(r"[\[\]{}]", line):
            depth = max(0, depth + (1 if mark in "[{" else -1))
            if depth > _DEEPEST:
                return number
    return None


class _Reader:
    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.notes: list[Fault] = []

    def whole(self, node: Any) -> Reading:
        found = self._value(node, forms.type_info(Organism), "")
        organism: Organism | None = None
        if not self.faults:
            organism = msgspec.convert(found, Organism)
            self._check_names(node)
        faults = sorted(self.faults, key=lambda one: (one.line, one.column))[:MOST_FAULTS]
        return Reading(None if faults else organism, tuple(faults), tuple(self.notes))

    def _fault(self, node: Any, text: str) -> None:
        self.faults.append(_at(node, text))

    def _value(self, node: Any, form: _Form, path: str) -> Any:
        if getattr(node, "anchor", None):
            self._fault(node, "Anchors and aliases are not read; write it out.")
            return None
        if isinstance(form, forms.UnionType):
            return self._one_of(node, form, path)
        if not str(node.tag).startswith(_PLAIN_TAGS):
            self._fault(node, f"A tag ({str(node.tag)[:60]}) is not read; leave it out.")
            return None
        if isinstance(form, forms.StructType):
            return self._section(node, form, path)
        if isinstance(form, forms.VarTupleType):
            return self._list(node, form, path)
        return self._scalar(node, form, path)

    def _one_of(self, node: Any, form: forms.UnionType, path: str) -> Any:
        """A value that may be left out, or has two forms: text, or keys."""
        kinds = [one for one in form.types if not isinstance(one, forms.NoneType)]
        fits = [one for one in kinds if isinstance(one, forms.StructType) == (node.id == "mapping")]
        return self._value(node, (fits or kinds)[0], path)

    def _list(self, node: Any, form: forms.VarTupleType, path: str) -> Any:
        if node.tag == _NULL:  # `listeners:` with every entry taken out: nothing is offered, not everything
            return []
        if node.id != "sequence":
            self._fault(node, f"`{path}` is a list: begin each entry with “- ”.")
            return None
        return [self._value(one, form.item_type, path) for one in node.value]

    def _section(self, node: Any, form: forms.StructType, path: str) -> Any:
        if node.id != "mapping":
            self._fault(node, f"`{path or 'organism.yaml'}` has keys, such as `{form.fields[0].name}: …`.")
            return None
        fields = {one.name: one for one in form.fields}
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value)
            inner = f"{path}.{name}" if path else name
            if name in found:
                self._fault(key, f"`{name}` stands here twice.")
            elif name in fields:
                found[name] = self._value(value, fields[name].type, inner)
            elif inner in REFUSED_KEYS:
                self._fault(key, f"`{name}` is not taken: {REFUSED_KEYS[inner]}")
            elif inner in MEANINGLESS_KEYS:
                self.notes.append(_at(key, f"`{name}` has no meaning here: {MEANINGLESS_KEYS[inner]}"))
            else:
                self._fault(
                    key, f"`{name}` is no key{f' of `{path}`' if path else ''}. {_nearest(name, fields)}"
                )
        for one in form.fields:
            if one.required and one.name not in found:
                self._fault(node, f"`{path}` lacks `{one.name}`.")
        self._check_one_of(node, form, found, path)
        return found

    def _scalar(self, node: Any, form: _Form, path: str) -> Any:
        about, bare = "", form
        if isinstance(form, forms.Metadata):
            about, bare = str((form.extra_json_schema or {}).get("description", "")), form.type
        if isinstance(bare, forms.LiteralType):
            about = about or f"one of {', '.join(map(str, bare.values))}"
        value: object = node.value if node.id == "scalar" and node.tag != _NULL else None
        if isinstance(bare, forms.BoolType):
            about = "true or false"
            value = value == "true" if node.tag == _BOOL else None
        if value is None or not _fits(bare, value):
            shown = f", not “{node.value[:60]}”" if node.id == "scalar" else ""
            self._fault(node, f"`{path}` is {about}{shown}.")
            return None
        if path == "timers.when":
            self._check_repeated(node)
        if path == "timers.zone":
            self._check_zone(node)
        return value

    def _check_repeated(self, node: Any) -> None:
        from agents.moments.wishes import when

        once = ""
        try:
            if when(node.value, datetime.now()).rule:
                return
            once = f" “{node.value[:60]}” comes once: say it in the chat, “remind me …”."
        except NoMomentError:
            pass
        self._fault(node, f"`timers.when` is a repeated time, such as “every weekday at 9”.{once}")

    def _check_zone(self, node: Any) -> None:
        try:
            zone_of(node.value)
        except UsageProblemError as problem:
            self._fault(node, problem.with_advice())

    def _check_one_of(self, node: Any, form: forms.StructType, found: dict[str, Any], path: str) -> None:
        name, file = str(found.get("name")), str(found.get("file"))
        if form.cls is ListedListener and file.endswith("_listener.py") and not LISTENER_NAME.fullmatch(name):
            self._fault(
                node, "A listener's `name` is like calculator.add: letters, digits, “_”, “-” and dots."
            )
        either = _EITHER.get(form.cls, ())
        if either and sum(one in found for one in either) != 1:
            self._fault(node, f"`{path}` has `{either[0]}` or `{either[1]}`.")

    def _check_names(self, node: Any) -> None:
        """Each name once in its list (listeners and agents share theirs), and gateways of tools among those named."""
        seen: dict[tuple[str, str], int] = {}
        entries = [
            (key.value, entry) for key, value in node.value if value.id == "sequence" for entry in value.value
        ]
        for section, entry in entries:
            name = _inner(entry, "name")
            place = "listeners" if section == "agents" else section, name.value.casefold()
            if place in seen:
                self._fault(name, f"“{name.value}” has its name already in line {seen[place]}.")
            seen.setdefault(place, name.start_mark.line + 1)
        for _, entry in entries:
            for tool in getattr(_inner(entry, "tools"), "value", ()):
                for gateway in getattr(_inner(tool, "gateways"), "value", ()):
                    if ("gateways", gateway.value.casefold()) not in seen:
                        self._fault(gateway, f"“{gateway.value}” is no gateway of this file.")


def _inner(node: Any, name: str) -> Any:
    """The value at a key of a node that has keys; None where there is none."""
    pairs = node.value if node.id == "mapping" else ()
    return next((value for key, value in pairs if key.value == name), None)


def _at(node: Any, text: str) -> Fault:
    return Fault(node.start_mark.line + 1, node.start_mark.column + 1, text)


def _nearest(name: str, fields: Iterable[str]) -> str:
    import difflib  # where a name was misspelt, only

    known = list(fields)
    close = difflib.get_close_matches(name, known, 1, 0.5)
    return f"Did you mean `{close[0]}`?" if close else f"Known are: {', '.join(known)}."


def _fits(form: _Form, value: object) -> bool:
    if isinstance(form, forms.LiteralType):
        return value in form.values
    if not isinstance(form, forms.StrType):
        return True
    text = str(value)
    long = len(text) > (form.max_length or len(text)) or len(text) < (form.min_length or 0)
    return not long and (form.pattern is None or re.search(form.pattern, text) is not None)
