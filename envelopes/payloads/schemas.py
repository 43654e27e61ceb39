"""Texts that are written from the form of a payload: XSD, JSON Schema, an example, a tool description, XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from envelopes.payloads.form import Field, PayloadForm, Type, expected

_MOST_TOLD = 300
"""Characters of one field's text in a tool description."""
_LONGEST_TOOL_TEXT = 8_000
_XSD = {
    "str": "xs:string", "int": "xs:integer", "float": "xs:double", "bool": "xs:boolean",
    "decimal": "xs:decimal", "datetime": "xs:dateTime",
}  # fmt: skip
_JSON = {
    "str": {"type": "string"}, "int": {"type": "integer"}, "float": {"type": "number"},
    "bool": {"type": "boolean"}, "decimal": {"type": "number"}, "datetime": {"type": "string", "format": "date-time"},
}  # fmt: skip
_EXAMPLES: dict[str, Any] = {
    "str": "text", "int": 1, "float": 1.5, "bool": True, "decimal": "1.5", "datetime": "2026-01-31T12:00:00",
}  # fmt: skip
ITEM = "item"
"""The element of what has no name of its own: a list in a list, a place of a tuple (``item1``), an entry of a dict."""


def xsd(form: PayloadForm, version: int) -> str:
    """The XSD of a payload. Its second line has the digest of the form, by which a later version is told."""
    namespace = form.namespace(version)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<!-- form {form.digest()} -->",
        f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns={_attribute(namespace)}'
        f' targetNamespace={_attribute(namespace)} elementFormDefault="qualified">',
        *_indented(_element(form.root, Type("object", fields=form.fields), form.description, "")),
        "</xs:schema>",
    ]
    return "\n".join(lines) + "\n"


def xsd_of_all(forms: Sequence[PayloadForm]) -> str:
    """The XSD of payloads that share a namespace, without texts."""
    namespace = _attribute(forms[0].namespace(1))
    lines = [
        f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns={namespace}'
        f' targetNamespace={namespace} elementFormDefault="qualified">'
    ]
    for form in forms:
        fields = tuple(msgspec.structs.replace(field, doc="") for field in form.fields)
        lines += _indented(_element(form.root, Type("object", fields=fields), "", ""))
    return "\n".join([*lines, "</xs:schema>"]) + "\n"


def json_schema(form: PayloadForm) -> dict[str, Any]:
    """The JSON Schema of a payload, as models take it for the parameters of a tool."""
    return _object_schema(form.fields)


def example(form: PayloadForm) -> dict[str, Any]:
    """A value of a payload in which each field has something."""
    return {field.name: _example(field.type) for field in form.fields}


def tool_text(form: PayloadForm) -> str:
    """The description of a listener for models: what it does, its fields, and an example."""
    lines = [form.description.strip()]
    if form.fields:
        lines.append("")
    for field in form.fields:
        description = " ".join(field.doc.split())[:_MOST_TOLD]
        left_out = "" if field.required else "; may be left out"
        lines.append(
            f"- {field.name}: {description + ' ' if description else ''}({expected(field.type)}{left_out})"
        )
    text = "\n".join(lines)[:_LONGEST_TOOL_TEXT]
    shown = msgspec.json.encode(example(form)).decode()
    return f"{text}\nExample: {shown}" if len(text) + len(shown) < _LONGEST_TOOL_TEXT else text


def xml_text(form: PayloadForm, value: dict[str, Any], version: int) -> str:
    """A checked value as XML, in the namespace of that version. Its texts must be such that XML can hold them."""
    parts = list(_written(form.root, Type("object", fields=form.fields), value))
    first = parts[0].replace(f"<{form.root}", f"<{form.root} xmlns={_attribute(form.namespace(version))}", 1)
    return "".join([first, *parts[1:]])


_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_ELEMENT_NAME = re.compile(f"[{_START}][{_START}.0-9\xb7\u0300-\u036f\u203f\u2040-]*")
"""XML 1.0, fifth edition, NameStartChar and NameChar without the colon of prefixes."""


def is_element_name(text: str) -> bool:
    """True for a local name that an element of XML can have."""
    return _ELEMENT_NAME.fullmatch(text) is not None


def plain_xml(root: str, value: object, namespace: str) -> str:
    """A value without a form as canonical XML: fields become elements, a list one element for each of its values.

    An object with a key that is no name of an element becomes entries, as a dict of a form does.
    """
    parts = list(_plainly(root, value))
    opened = f"<{root} xmlns={_attribute(namespace)}>" if namespace else f"<{root}>"
    return "".join([opened, *parts[1:]])


def _plainly(name: str, value: object) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _plainly(name, {ITEM: one} if isinstance(one, list) else one)
        return
    yield f"<{name}>"
    if isinstance(value, dict):
        are_names = all(map(is_element_name, value))
        for key, one in value.items():
            yield from _plainly(key, one) if are_names else _plainly(ITEM, {"key": key, "value": one})
    elif value is not None:
        yield _escaped(scalar_text(value))
    yield f"</{name}>"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _element(name: str, kind: Type, doc: str, occurs: str) -> Iterator[str]:
    """The lines of an ``xs:element``; ``occurs`` is its attributes of number."""
    if kind.kind in ("list", "set"):
        yield from _element(name, _one_of_many(kind), doc, ' minOccurs="0" maxOccurs="unbounded"')
        return
    plain = _XSD.get(kind.kind)
    annotation = _annotation(doc)
    if plain is not None and not annotation:
        yield f'<xs:element name="{name}" type="{plain}"{occurs}/>'
        return
    typed = f' type="{plain}"' if plain is not None else ""
    yield f'<xs:element name="{name}"{typed}{occurs}>'
    yield from _indented(iter(annotation))
    if plain is None:
        yield from _indented(_type_lines(kind))
    yield "</xs:element>"


def _type_lines(kind: Type) -> Iterator[str]:
    match kind.kind:
        case "choice":
            yield "<xs:simpleType>"
            yield '  <xs:restriction base="xs:string">'
            for choice in kind.choices:
                yield f"    <xs:enumeration value={_attribute(scalar_text(choice))}/>"
            yield "  </xs:restriction>"
            yield "</xs:simpleType>"
        case "union" if kind.of[0].kind != "object":
            members = " ".join(_XSD[one.kind] for one in kind.of if one.kind != "choice")
            yield "<xs:simpleType>"
            yield f'  <xs:union memberTypes="{members}">' if members else "  <xs:union>"
            for one in kind.of:
                if one.kind == "choice":
                    yield from (f"    {line}" for line in _type_lines(one))
            yield "  </xs:union>"
            yield "</xs:simpleType>"
        case "union":
            yield "<xs:complexType>"
            yield "  <xs:choice>"
            for one in kind.of:
                yield from (f"    {line}" for line in _element(one.name, one, "", ""))
            yield "  </xs:choice>"
            yield "</xs:complexType>"
        case "payload":
            yield '<xs:complexType mixed="true">'
            yield "  <xs:sequence>"
            yield '    <xs:any minOccurs="0" namespace="##any" processContents="skip"/>'
            yield "  </xs:sequence>"
            yield "</xs:complexType>"
        case _:
            yield "<xs:complexType>"
            yield "  <xs:sequence>"
            for line in _inner_elements(kind):
                yield f"    {line}"
            yield "  </xs:sequence>"
            yield "</xs:complexType>"


def _inner_elements(kind: Type) -> Iterator[str]:
    if kind.kind == "tuple":
        for at, one in enumerate(kind.of, 1):
            yield from _element(f"{ITEM}{at}", one, "", "")
    elif kind.kind == "dict":
        entry = Type("object", fields=entry_fields(kind))
        yield from _element(ITEM, entry, "", ' minOccurs="0" maxOccurs="unbounded"')
    else:
        for field in kind.fields:
            yield from _element(field.name, field.type, field.doc, "" if field.required else ' minOccurs="0"')


def entry_fields(kind: Type) -> tuple[Field, ...]:
    """The fields of an entry of a dict, as XML has it."""
    return Field("key", kind.of[0]), Field("value", kind.of[1])


def _one_of_many(kind: Type) -> Type:
    """The type of one element of a list; a list in a list has elements ``item``."""
    inner = kind.of[0]
    return Type("object", fields=(Field(ITEM, inner),)) if inner.kind in ("list", "set") else inner


def _annotation(doc: str) -> list[str]:
    text = " ".join(doc.split())
    if not text:
        return []
    return [f"<xs:annotation><xs:documentation>{_escaped(text)}</xs:documentation></xs:annotation>"]


def _object_schema(fields: Sequence[Field]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in fields:
        schema = _schema(field.type)
        properties[field.name] = {**schema, "description": field.doc} if field.doc else schema
    return {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def _schema(kind: Type) -> dict[str, Any]:
    match kind.kind:
        case "choice":
            types = {"boolean" if isinstance(one, bool) else "integer" if isinstance(one, int) else "string"
                     for one in kind.choices}  # fmt: skip
            return {**({"type": types.pop()} if len(types) == 1 else {}), "enum": list(kind.choices)}
        case "list":
            return {"type": "array", "items": _schema(kind.of[0])}
        case "set":
            return {"type": "array", "items": _schema(kind.of[0]), "uniqueItems": True}
        case "tuple":
            inner = [_schema(one) for one in kind.of]
            items = inner[0] if all(one == inner[0] for one in inner) else {"anyOf": inner}
            return {"type": "array", "items": items, "minItems": len(inner), "maxItems": len(inner)}
        case "dict":
            return {"type": "object", "additionalProperties": _schema(kind.of[1])}
        case "union" if kind.of[0].kind == "object":
            return {"anyOf": [_object_schema([Field(one.name, one)]) for one in kind.of]}
        case "union":
            return {"anyOf": [_schema(one) for one in kind.of]}
        case "object":
            return _object_schema(kind.fields)
        case "payload":
            return {"type": "object", "description": expected(kind)}
        case _:
            return dict(_JSON[kind.kind])


def _example(kind: Type) -> Any:
    match kind.kind:
        case "choice":
            return kind.choices[0]
        case "list" | "set":
            return [_example(kind.of[0])]
        case "tuple":
            return [_example(one) for one in kind.of]
        case "dict":
            return {scalar_text(_example(kind.of[0])): _example(kind.of[1])}
        case "union":
            first = kind.of[0]
            return {first.name: _example(first)} if first.kind == "object" else _example(first)
        case "object":
            return {field.name: _example(field.type) for field in kind.fields}
        case "payload":
            return {"root": "note", "data": {"text": "text"}}
        case _:
            return _EXAMPLES[kind.kind]


def _written(name: str, kind: Type, value: Any) -> Iterator[str]:
    match kind.kind:
        case "list" | "set":
            inner = _one_of_many(kind)
            for one in value:
                yield from _written(name, inner, {ITEM: one} if inner is not kind.of[0] else one)
        case "object":
            yield f"<{name}>"
            for field in kind.fields:
                if field.name in value:
                    yield from _written(field.name, field.type, value[field.name])
            yield f"</{name}>"
        case "tuple":
            yield f"<{name}>"
            for at, (one, item) in enumerate(zip(kind.of, value, strict=True), 1):
                yield from _written(f"{ITEM}{at}", one, item)
            yield f"</{name}>"
        case "dict":
            yield f"<{name}>"
            entry = Type("object", fields=entry_fields(kind))
            for key, one in value.items():
                yield from _written(ITEM, entry, {"key": key, "value": one})
            yield f"</{name}>"
        case "union" if kind.of[0].kind == "object":
            yield f"<{name}>"
            meant = next(one for one in kind.of if one.name in value)
            yield from _written(meant.name, meant, value[meant.name])
            yield f"</{name}>"
        case "payload":
            yield f"<{name}>{_inner_payload(value)}</{name}>"
        case _:
            yield f"<{name}>{_escaped(scalar_text(value))}</{name}>"


def _inner_payload(value: dict[str, Any]) -> str:
    if "root" in value:
        return plain_xml(value["root"], value["data"], "").replace(">", ' xmlns="">', 1)
    text: str = value["text"]
    return text if text.startswith("<") else _escaped(text)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\r", "&#xD;")  # as canonical XML has it


def _attribute(text: str) -> str:
    escaped = html.escape(text).replace("\n", "&#10;").replace("\t", "&#9;").replace("\r", "&#13;")
    return f'"{escaped}"'


def scalar_text(value: object) -> str:
    """A plain value as XML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
