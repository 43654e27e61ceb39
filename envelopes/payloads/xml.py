"""Payloads as XML, read with lxml: elements of a handler's text, and the value of an element by its form.

lxml is loaded with this module, which only those import who have XML to read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from lxml import etree

from envelopes.codecs.xml_message import canonical, element_of
from envelopes.codecs.xml_repair import repair
from envelopes.errors import EnvelopeError
from envelopes.payloads.form import (
    Field,
    MistypedPayloadError,
    PayloadForm,
    Type,
    Typed,
    check,
    expected,
)
from envelopes.payloads.schemas import ITEM, entry_fields

MOST_BYTES = 1 << 20


_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_LEXICAL = {
    "float": re.compile(rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?"),
    "decimal": re.compile(_NUMBER),
    "datetime": re.compile(
        r"[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
    ),
}
"""Texts of values as XSD has them; JSON and Python take more."""
_HINTS = frozenset(
    f"{{http://www.w3.org/2001/XMLSchema-instance}}{one}"
    for one in ("schemaLocation", "noNamespaceSchemaLocation")
)
"""Hints for validators, which are no part of a payload."""


class Part(NamedTuple):
    """A part of a text: an element with its namespace and root, or loose text (``element`` None)."""

    text: str
    namespace: str = ""
    root: str = ""
    element: Any = None


def parts_of(text: str) -> list[Part]:
    """The top-level elements of a text, repaired where it is not quite XML, and the text around them, in order.

    A text is one loose part where it holds no element, a DTD or an instruction, or is beyond the limits of a message.
    No character of text is lost.
    """
    whole = [Part(text)] if text.strip() else []
    if "<" not in text or len(text) > MOST_BYTES:
        return whole
    try:
        root = element_of(repair(f"<dummy>{text}</dummy>").text)
    except EnvelopeError:
        return whole
    if not len(root):
        return whole
    found = [Part(root.text)] if root.text and root.text.strip() else []
    for child in root:
        tail = child.tail
        name = etree.QName(child)
        found.append(Part(canonical(child), name.namespace or "", name.localname, child))
        if tail and tail.strip():
            found.append(Part(tail))
    return found


def value_of(form: PayloadForm, element: Any) -> dict[str, Any]:
    """The checked value of an element: what the XSD of the form takes. Raises ``MistypedPayloadError``.

    Its own namespace is not looked at; all elements in it have the same.
    """
    if etree.QName(element).localname != form.root:
        raise MistypedPayloadError(
            f"{etree.QName(element).localname[:60]} is no {form.root}.", do=f"Send <{form.root}>."
        )
    return check(form, _object(form.fields, element, form.root))


def element_in(payload: Typed) -> Any:
    """The element of a payload. Raises ``MistypedPayloadError`` where it is not the one that the payload names."""
    element = element_of(payload.body)
    name = etree.QName(element)
    if (name.namespace or "", name.localname) != (payload.ns, payload.root):
        raise MistypedPayloadError("body is not the element that ns and root name.", do="Send that one.")
    return element


def value_as_it_is(form: PayloadForm, element: Any) -> Any:
    """The value of an element before it is checked; what cannot be read at all is its text."""
    try:
        return _object(form.fields, element, form.root)
    except MistypedPayloadError:
        return element.text or ""


def _object(fields: Sequence[Field], element: Any, where: str) -> dict[str, Any]:
    known = {field.name: field for field in fields}
    _check_bare(element, where)
    given: dict[str, list[Any]] = {}
    places, last = {name: at for at, name in enumerate(known)}, 0
    for child in _children(element, where):
        name = etree.QName(child).localname
        if name not in known:
            raise MistypedPayloadError(
                f"{where} has no field {name[:60]!r}.", do=f"Its fields: {', '.join(known)}."
            )
        if places[name] < last:
            raise MistypedPayloadError(
                f"{where}.{name} stands too late.", do=f"Send them in this order: {', '.join(known)}."
            )
        last = places[name]
        given.setdefault(name, []).append(child)
    found: dict[str, Any] = {}
    for name, field in known.items():
        elements = given.get(name, [])
        if field.type.kind in ("list", "set"):
            if elements or field.required:
                found[name] = _many(field.type, elements, f"{where}.{name}")
        elif len(elements) > 1:
            raise MistypedPayloadError(f"{where}.{name} stands there {len(elements)} times.", do="Send one.")
        elif elements:
            found[name] = _read(field.type, elements[0], f"{where}.{name}")
    return found


def _children(element: Any, where: str) -> list[Any]:
    """The elements in an element that has nothing else in it."""
    namespace = etree.QName(element).namespace
    if (element.text or "").strip() or any((child.tail or "").strip() for child in element):
        raise MistypedPayloadError(f"{where} holds text beside its fields.", do="Send the fields alone.")
    for child in element:
        if etree.QName(child).namespace != namespace:
            name = etree.QName(child).localname[:60]
            raise MistypedPayloadError(
                f"{where} has no field {name!r} of another namespace.", do="Leave its xmlns out."
            )
    return list(element)


def _check_bare(element: Any, where: str) -> None:
    for attribute in element.attrib:
        if attribute not in _HINTS:
            name = etree.QName(attribute).localname[:60]
            raise MistypedPayloadError(f"{where} has no attribute {name!r}.", do="Send elements alone.")


def _many(kind: Type, elements: Sequence[Any], where: str) -> list[Any]:
    inner = kind.of[0]
    if inner.kind in ("list", "set"):
        found = (_object((Field(ITEM, inner),), one, where).get(ITEM, []) for one in elements)
        return list(found)
    return [_read(inner, one, where) for one in elements]


def _read(kind: Type, element: Any, where: str) -> Any:
    match kind.kind:
        case "object":
            return _object(kind.fields, element, where)
        case "tuple":
            places = tuple(Field(f"{ITEM}{at}", one) for at, one in enumerate(kind.of, 1))
            return list(_object(places, element, where).values())
        case "dict":
            return _dict(kind, element, where)
        case "union" if kind.of[0].kind == "object":
            _check_bare(element, where)
            members = {one.name: one for one in kind.of}
            named = [(etree.QName(one).localname, one) for one in _children(element, where)]
            if len(named) != 1 or named[0][0] not in members:
                raise MistypedPayloadError(
                    f"{where} is mistyped: expected {expected(kind)}.", do="Send one of them."
                )
            return {name: _read(members[name], one, f"{where}.{name}") for name, one in named}
        case "union":
            return _first_that_fits(kind, element, where)
        case "payload":
            if len(element) > 1:
                raise MistypedPayloadError(f"{where} holds {len(element)} payloads.", do="Send one.")
            return {"text": canonical(element[0]) if len(element) else element.text or ""}
        case _:
            return _scalar(kind, element, where)


def _dict(kind: Type, element: Any, where: str) -> dict[str, Any]:
    _check_bare(element, where)
    found: dict[str, Any] = {}
    for one in _children(element, where):
        name = etree.QName(one).localname
        if name != ITEM:
            raise MistypedPayloadError(f"{where} has no field {name[:60]!r}.", do=f"Its fields: {ITEM}.")
        entry = _object(entry_fields(kind), one, where)
        for part in ("key", "value"):
            if part not in entry and kind.of[part == "value"].kind not in ("list", "set"):
                raise MistypedPayloadError(f"{where}.{ITEM}.{part} is missing.", do="Send it.")
        key = _key(entry["key"])
        if key in found:
            raise MistypedPayloadError(f"{where} has the key {key[:60]!r} twice.", do="Send it once.")
        found[key] = entry.get("value")
    return found


def _first_that_fits(kind: Type, element: Any, where: str) -> Any:
    for one in kind.of:
        try:
            value = _scalar(one, element, where)
        except MistypedPayloadError:
            continue
        form = PayloadForm("x", "x", "x", "x", (Field("x", one),))
        try:
            return check(form, {"x": value})["x"]
        except MistypedPayloadError:
            continue
    return element.text or ""


def _scalar(kind: Type, element: Any, where: str) -> Any:
    """A plain value from its text; a text that is none stays text, which ``check`` refuses."""
    if len(element):
        raise MistypedPayloadError(f"{where} holds elements, where a plain value stands.", do="Send text.")
    _check_bare(element, where)
    text: str = element.text or ""
    if kind.kind == "str":
        return text
    bare = text.strip()
    if (lexical := _LEXICAL.get(kind.kind)) is not None and lexical.fullmatch(bare) is None:
        raise MistypedPayloadError(
            f"{where} is mistyped: expected {expected(kind)}.", do="Send it like that."
        )
    match kind.kind:
        case "bool":
            return {"true": True, "1": True, "false": False, "0": False}.get(bare, text)
        case "int":
            return int(bare) if re.fullmatch(r"[+-]?[0-9]{1,400}", bare) else text
        case "float":
            return float(bare)
        case "choice":
            return next((one for one in kind.choices if _key(one) == bare), text)
        case _:
            return bare


def _key(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
