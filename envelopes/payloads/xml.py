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
from envelopes.payloads.form import Field, MistypedPayloadError, PayloadForm, Type, check
from envelopes.payloads.schemas import ITEM, entry_fields

MOST_BYTES = 1 << 20


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
    """The checked value of an element. Raises ``MistypedPayloadError``. Namespaces are not looked at."""
    return check(form, _object(form.fields, element, form.root))


def value_as_it_is(form: PayloadForm, element: Any) -> Any:
    """The value of an element before it is checked; what cannot be read at all is its text."""
    try:
        return _object(form.fields, element, form.root)
    except MistypedPayloadError:
        return element.text or ""


def _object(fields: Sequence[Field], element: Any, where: str) -> dict[str, Any]:
    known = {field.name: field for field in fields}
    given: dict[str, list[Any]] = {}
    for child in element:
        name = etree.QName(child).localname
        if name not in known:
            raise MistypedPayloadError(
                f"{where} has no field {name[:60]!r}.", do=f"Its fields: {', '.join(known)}."
            )
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


def _many(kind: Type, elements: Sequence[Any], where: str) -> list[Any]:
    inner = kind.of[0]
    if inner.kind in ("list", "set"):
        return [_many(inner, list(one), where) for one in elements]
    return [_read(inner, one, where) for one in elements]


def _read(kind: Type, element: Any, where: str) -> Any:
    match kind.kind:
        case "object":
            return _object(kind.fields, element, where)
        case "tuple":
            places = tuple(Field(f"{ITEM}{at}", one) for at, one in enumerate(kind.of, 1))
            return list(_object(places, element, where).values())
        case "dict":
            entries = [_object(entry_fields(kind), one, where) for one in element]
            return {_key(one.get("key")): one.get("value") for one in entries}
        case "union" if kind.of[0].kind == "object":
            members = tuple(Field(one.name, one, required=False) for one in kind.of)
            return _object(members, element, where)
        case "union":
            return _first_that_fits(kind, element, where)
        case "payload":
            if len(element) > 1:
                raise MistypedPayloadError(f"{where} holds {len(element)} payloads.", do="Send one.")
            return {"text": canonical(element[0]) if len(element) else element.text or ""}
        case _:
            return _scalar(kind, element, where)


def _first_that_fits(kind: Type, element: Any, where: str) -> Any:
    for one in kind.of:
        value = _scalar(one, element, where)
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
    text: str = element.text or ""
    if kind.kind == "str":
        return text
    bare = text.strip()
    match kind.kind:
        case "bool":
            return {"true": True, "1": True, "false": False, "0": False}.get(bare, text)
        case "int":
            return int(bare) if re.fullmatch(r"[+-]?[0-9]{1,400}", bare) else text
        case "float":
            return _float(bare, text)
        case "choice":
            return next((one for one in kind.choices if _key(one) == bare), text)
        case _:
            return bare


def _float(bare: str, text: str) -> float | str:
    try:
        return float(bare)
    except ValueError:
        return text


def _key(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
