"""The form of a payload: fields and their types, as bounded data that a worker returns for a dataclass.

A value of a payload is plain JSON; ``check`` says what is wrong with one.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NamedTuple

import msgspec

from envelopes.errors import EnvelopeError

MOST_FIELDS = 64
"""Of one payload, those of nested ones included."""
DEEPEST = 8
MOST_CHOICES = 256
LONGEST_TEXT = 4_000
"""Characters of a description, a field's text, or a choice."""
MOST_DIGITS = 400
"""Before or behind the point of a decimal number."""
MOST_STATE_BYTES = 64 << 10
"""JSON of what a listener keeps for one thread."""
NAMESPACES = "https://xml-pipeline.org/ns"
CORE = "core"
"""The category of rappd's own payloads (``envelopes.payloads.core``), which have one namespace."""

LISTENER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64}){0,7}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ROOT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_VERSION = re.compile(r"/v([1-9][0-9]{0,5})\Z")
_CATEGORY = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_NOT_PRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff\ud800-\udfff]")

Kind = Literal[
    "str", "int", "float", "bool", "decimal", "datetime",
    "choice", "list", "set", "tuple", "dict", "union", "object", "payload",
]  # fmt: skip
SCALARS = frozenset({"str", "int", "float", "bool", "decimal", "datetime", "choice"})


class BadFormError(EnvelopeError):
    """A form that no listener can have; the text names the field."""

    code = "bad_form"
    status = 400


class MistypedPayloadError(EnvelopeError):
    """A value that does not have the form of its payload: the field, and what was expected there."""

    code = "mistyped"
    status = 400


class Type(msgspec.Struct, frozen=True, omit_defaults=True):
    """A type: ``of`` are the types inside it, ``choices`` its values, ``fields`` those of an object named ``name``.

    ``dict`` has the types of key and value, ``tuple`` one for each place. ``payload``, of rappd's own forms alone, is
    ``{root, data}`` or ``{text}``, as a handler emits it.
    """

    kind: Kind
    of: tuple[Type, ...] = ()
    choices: tuple[str | int | bool, ...] = ()
    fields: tuple[Field, ...] = ()
    name: str = ""


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field. Without ``required`` it may be left out: its handler gets its default then."""

    name: str
    type: Type
    doc: str = ""
    required: bool = True


class PayloadForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """A listener's payload. ``line`` is where its class stands in the file; ``stateful``: its handler takes a state, too."""

    name: str
    category: str
    root: str
    description: str
    fields: tuple[Field, ...]
    class_name: str = ""
    line: int | None = None
    stateful: bool = False

    def namespace(self, version: int) -> str:
        """The XML namespace of that version of it."""
        if self.category == CORE:
            return f"{NAMESPACES}/{CORE}/v1"
        return f"{NAMESPACES}/{self.category}/{self.name}/v{version}"

    def serves(self, namespace: str, root: str, newest: int = 1) -> bool:
        """True for a payload of that root, in the namespace of one of its versions up to ``newest``, or in none."""
        if root != self.root:
            return False
        if not namespace:
            return True
        version = _VERSION.search(namespace)
        return version is not None and (
            int(version[1]) <= newest and namespace == self.namespace(int(version[1]))
        )

    def digest(self) -> str:
        """The same for two forms that take the same values, whatever their texts say."""
        bare = [self.root, [_bare(field) for field in self.fields]]
        return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


class Typed(NamedTuple):
    """A typed payload: namespace and local name of its element, and the element in exclusive canonical XML."""

    ns: str
    root: str
    body: str


def typed_of(data: dict[str, Any]) -> Typed | None:
    """The typed payload in a record's data: ``{ns, root, body}`` and nothing else."""
    if len(data) != 3:
        return None
    ns, root, body = data.get("ns"), data.get("root"), data.get("body")
    if not (isinstance(ns, str) and isinstance(root, str) and isinstance(body, str)):
        return None
    return Typed(ns, root, body)


def check_form(form: PayloadForm) -> None:
    """Raises ``BadFormError`` where a form is beyond its limits, or has a name that no element can have."""
    if not LISTENER_NAME.fullmatch(form.name):
        raise BadFormError(f"{form.name[:60]!r} is no name of a listener: letters, digits, _ - and dots.")
    if not _CATEGORY.fullmatch(form.category):
        raise BadFormError(f"{form.category[:60]!r} is no category: small letters, digits, _ and -.")
    if not _ROOT.fullmatch(form.root):
        raise BadFormError(f"{form.root[:60]!r} is no name of an element.")
    if not form.description.strip():
        raise BadFormError("it has no description; say in one sentence what it does.")
    _check_text(form.description, form.name)
    _check_fields(form.fields, 1, iter(range(MOST_FIELDS)))


def check(form: PayloadForm, value: object) -> dict[str, Any]:
    """The value of a payload, in the spelling that handlers get. Raises ``MistypedPayloadError``."""
    return _checked_object(form.fields, value, form.root)


def _bare(field: Field) -> list[Any]:
    return [field.name, field.required, _bare_type(field.type)]


def _bare_type(found: Type) -> list[Any]:
    inner = [_bare_type(one) for one in found.of]
    return [found.kind, inner, list(found.choices), [_bare(one) for one in found.fields]]


def _check_fields(fields: Sequence[Field], level: int, left: Iterator[int]) -> None:
    seen: set[str] = set()
    for field in fields:
        if next(left, None) is None:
            raise BadFormError(f"it has more than {MOST_FIELDS} fields.")
        if not _NAME.fullmatch(field.name):
            raise BadFormError(f"{field.name[:60]!r} is no name of a field.")
        if field.name in seen:
            raise BadFormError(f"the field {field.name} stands there twice.")
        seen.add(field.name)
        _check_text(field.doc, field.name)
        _check_type(field.type, field.name, level, left)


def _check_type(found: Type, where: str, level: int, left: Iterator[int]) -> None:
    if found.kind == "payload":
        raise BadFormError(f"{where} is a payload, which none but rappd's own forms hold.")
    if level > DEEPEST:
        raise BadFormError(f"{where} is nested more than {DEEPEST} levels deep.")
    inside = {"list": 1, "set": 1, "dict": 2}.get(found.kind)
    many = found.kind in ("tuple", "union")
    if (inside is not None and len(found.of) != inside) or (many and not 1 <= len(found.of) <= MOST_FIELDS):
        raise BadFormError(f"{where} has a type without its inner types.")
    if found.kind == "choice" and not 1 <= len(found.choices) <= MOST_CHOICES:
        raise BadFormError(f"{where} has no choices, or more than {MOST_CHOICES}.")
    for choice in found.choices:
        _check_text(str(choice), where)
    if found.kind == "dict" and found.of[0].kind not in SCALARS:
        raise BadFormError(f"the keys of {where} are no plain values.")
    if found.kind == "union":
        _check_union(found, where)
    if found.name and not _NAME.fullmatch(found.name):
        raise BadFormError(f"{where} has a class whose name is none.")
    for one in found.of:
        _check_type(one, where, level + 1, left)
    _check_fields(found.fields, level + 1, left)


def _check_union(found: Type, where: str) -> None:
    names = [one.name for one in found.of if one.kind == "object"]
    mixed = names and len(names) != len(found.of)
    if (
        mixed
        or len(set(names)) != len(names)
        or not all(one.kind in SCALARS | {"object"} for one in found.of)
    ):
        raise BadFormError(f"{where} is one of several, which are neither all plain values nor all classes.")


def _check_text(text: str, where: str) -> None:
    if len(text) > LONGEST_TEXT or _NOT_PRINTED.search(text):
        raise BadFormError(f"a text of {where[:60]} is too long, or has characters that no XML can hold.")


def _checked_object(fields: Sequence[Field], value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _mistyped(where, "an object")
    known = {field.name: field for field in fields}
    for key in value:
        if key not in known:
            raise MistypedPayloadError(
                f"{where} has no field {str(key)[:60]!r}.", do=f"Its fields: {', '.join(known) or 'none'}."
            )
    found: dict[str, Any] = {}
    for name, field in known.items():
        given = value.get(name)
        if given is None:
            if field.required:
                raise _mistyped(f"{where}.{name}", expected(field.type), missing=name not in value)
            continue
        found[name] = _checked(field.type, given, f"{where}.{name}")
    return found


def _checked(kind: Type, value: object, where: str) -> Any:
    match kind.kind:
        case "object":
            return _checked_object(kind.fields, value, where)
        case "list" | "set":
            if not isinstance(value, list):
                raise _mistyped(where, expected(kind))
            found = [_checked(kind.of[0], one, f"{where}[{at}]") for at, one in enumerate(value)]
            if kind.kind == "set" and len({msgspec.json.encode(one) for one in found}) != len(found):
                raise _mistyped(where, "values that differ")
            return found
        case "tuple":
            if not isinstance(value, list) or len(value) != len(kind.of):
                raise _mistyped(where, expected(kind))
            return [
                _checked(one, item, f"{where}[{at}]")
                for at, (one, item) in enumerate(zip(kind.of, value, strict=True))
            ]
        case "dict":
            if not isinstance(value, dict):
                raise _mistyped(where, expected(kind))
            return {
                _checked_key(kind.of[0], key, where): _checked(kind.of[1], one, f"{where}.{key}"[:200])
                for key, one in value.items()
            }
        case "union":
            return _one_of(kind, value, where)
        case "payload":
            if not _is_payload(value):
                raise _mistyped(where, expected(kind))
            return value
        case _:
            found = _SCALAR[kind.kind](kind, value)
            if found is None:
                raise _mistyped(where, _wanted(kind, value))
            return found


def _wanted(kind: Type, value: object) -> str:
    """The type in words that say what is wrong with a value."""
    if kind.kind == "int" and isinstance(value, int | float) and abs(value) >= 1 << 63:
        return f"{expected(kind)} of at most 64 bits"
    return expected(kind)


def _checked_key(kind: Type, key: object, where: str) -> str:
    """The key of a dict, which is text in JSON, whatever its type is."""
    if not isinstance(key, str):
        raise _mistyped(where, expected(kind))
    text = key.strip()
    match kind.kind:
        case "int":
            fits = re.fullmatch(r"[+-]?[0-9]{1,400}", text) is not None
        case "float":
            fits = re.fullmatch(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?", text) is not None and _is_finite(text)
        case "bool":
            fits = text in ("true", "false")
        case "choice":
            fits = any(
                text == (str(one).lower() if isinstance(one, bool) else str(one)) for one in kind.choices
            )
        case _:
            fits = _SCALAR[kind.kind](kind, key) is not None
    if not fits:
        raise _mistyped(f"{where}.{key}"[:200], expected(kind))
    return key


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_payload(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    typed = value.keys() == {"root", "data"} and isinstance(value["data"], dict)
    return (typed and isinstance(value["root"], str) and _ROOT.fullmatch(value["root"]) is not None) or (
        value.keys() == {"text"} and isinstance(value["text"], str)
    )


def _one_of(kind: Type, value: object, where: str) -> Any:
    if kind.of[0].kind == "object":
        named = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
        meant = next((one for one in kind.of if one.name == named), None)
        if meant is None or not isinstance(value, dict):
            raise _mistyped(where, expected(kind))
        return {meant.name: _checked(meant, value[meant.name], f"{where}.{meant.name}")}
    for one in kind.of:
        found = _SCALAR[one.kind](one, value)
        if found is not None:
            return found
    raise _mistyped(where, expected(kind))


def is_carried(number: int) -> bool:
    """True for a whole number that every reader of our JSON reads exactly: of 64 bits."""
    return -(1 << 63) <= number < 1 << 64


def _integer(_: Type, value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and isinstance(value, int) and is_carried(value) else None


def _float(_: Type, value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:  # a whole number beyond them
        return None
    return found if math.isfinite(found) else None


def _decimal(_: Type, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and ("_" in value or not value.isascii()):  # which Decimal takes
        return None
    try:
        found = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return format(found, "f") if found.is_finite() and abs(found.adjusted()) < MOST_DIGITS else None


def _datetime(_: Type, value: object) -> str | None:
    try:
        return datetime.fromisoformat(value.strip()).isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


def _choice(kind: Type, value: object) -> str | int | bool | None:
    return next((one for one in kind.choices if one == value and type(one) is type(value)), None)


_SCALAR: dict[str, Callable[[Type, object], Any]] = {
    "str": lambda _, value: value if isinstance(value, str) else None,
    "bool": lambda _, value: value if isinstance(value, bool) else None,
    "int": _integer,
    "float": _float,
    "decimal": _decimal,
    "datetime": _datetime,
    "choice": _choice,
}
_WORDS = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false",
    "decimal": "a decimal number", "datetime": "a date with time, as 2026-01-31T12:00:00",
}  # fmt: skip


def expected(kind: Type) -> str:
    """A type in words, as errors and tool descriptions say it."""
    inner = [expected(one) for one in kind.of[:MOST_FIELDS]]
    match kind.kind:
        case "choice":
            return "one of " + ", ".join(map(str, kind.choices))
        case "list":
            return f"a list of {inner[0]}"
        case "set":
            return f"a list of different {inner[0]}"
        case "tuple":
            return f"a list of {len(inner)}: {', '.join(inner)}"
        case "dict":
            return f"an object whose values are {inner[1]}"
        case "union" if kind.of[0].kind == "object":
            return "an object with one of " + ", ".join(one.name for one in kind.of)
        case "union":
            return " or ".join(inner)
        case "object":
            return f"an object with {', '.join(field.name for field in kind.fields) or 'no fields'}"
        case "payload":
            return 'a payload: {"root": …, "data": {…}}, or {"text": XML}'
        case _:
            return _WORDS[kind.kind]


def _mistyped(where: str, wanted: str, *, missing: bool = False) -> MistypedPayloadError:
    what = "is missing" if missing else "is mistyped"
    return MistypedPayloadError(f"{where[:200]} {what}: expected {wanted[:300]}.", do="Send it like that.")
