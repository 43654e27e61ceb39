"""Listeners of an executed file: their payloads' forms, read from dataclasses, and the objects that perform them.

Runs in workers. The daemon gets the form as data, and writes schemas and tool descriptions from that alone.
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import msgspec

from agents.contract import manifest
from agents.contract.agent_contract import ContractError, Description, safe_tool_name
from agents.contract.file_discovery import LISTENER_SUFFIX
from agents.contract.handler_results import ReturnedError, StateError, emitted_by, state_json, text_of
from agents.contract.syntax import syntax_tree
from agents.listener import Declared, declared
from agents.runtimes.python.worker.invoke import settled
from envelopes.payloads.core import check_core
from envelopes.payloads.form import (
    CORE,
    DEEPEST,
    BadFormError,
    Field,
    PayloadForm,
    Type,
    check_form,
    expected,
)

MOST_PAYLOADS = 64
"""Of one answer."""
_NONE = type(None)
_PLAIN: dict[Any, str] = {
    str: "str", int: "int", float: "float", bool: "bool", Decimal: "decimal", datetime: "datetime",
}  # fmt: skip


class ListenerError(ContractError):
    """A payload or a handler that cannot be served; ``line`` is where it stands."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


class LoadedListener:
    """A payload class with its handler. ``perform`` takes the fields, as an agent's does."""

    def __init__(
        self, form: PayloadForm, payload: type, handler: Callable[..., Any], shown: Any = None
    ) -> None:
        """``shown`` is the file's ``__manifest__``."""
        self.name = form.name
        self.metadata = {"description": form.description, "parameters": {"type": "object", "properties": {}}}
        self._form, self._payload, self._handler = form, payload, handler
        self._shown = shown if isinstance(shown, dict) else {}

    def perform(self, **kwargs: Any) -> str:
        """The text of what the handler emits, with an empty state where it takes one."""
        return str(self.answer(kwargs)["result"])

    def answer(self, arguments: dict[str, Any], state: dict[str, Any] | None = None) -> dict[str, Any]:
        """Handles a payload: ``{result, payloads}``, where a payload is ``{root, data}`` or ``{text}``.

        With ``state``, which a stateful handler changes in place, the same and ``state``. Raises ``StateError``.
        """
        value = made(self._payload, self._form.fields, arguments)
        try:
            if not self._form.stateful:
                emitted = emitted_by(_returned(self._handler(value)))
                return {"result": text_of(emitted), "payloads": emitted}
            kept = {} if state is None else state
            emitted = emitted_by(_returned(self._handler(value, kept)))
            return {"result": text_of(emitted), "payloads": emitted, "state": state_json(kept)}
        except (ReturnedError, StateError) as error:
            code = getattr(self._handler, "__code__", None)
            error.perform_line = code.co_firstlineno if code is not None else 0
            raise

    def describe(self) -> Description:
        """As an agent's file describes it."""
        return Description(
            name=self.name,
            tool_name=safe_tool_name(self.name),
            description=self._form.description,
            parameters={"type": "object", "properties": {}},
            class_name=self._payload.__name__,
            idempotent=self._shown.get("idempotent") is True,
            one_worker=self._shown.get("one_worker") is True,
            manifest=manifest.essentials(self._shown),
            listener=msgspec.to_builtins(self._form),
        )


def _returned(found: Any) -> Any:
    """The value that a handler returned, awaited; of a generator what it yields, texts that follow each other joined."""
    if isinstance(found, collections.abc.AsyncGenerator):
        return settled(_gathered_async(found))
    if isinstance(found, collections.abc.Generator):
        gathered: list[Any] = []
        for one in found:
            if not _gather(gathered, one):
                break
        return gathered
    return settled(found)


async def _gathered_async(found: collections.abc.AsyncGenerator[Any, None]) -> list[Any]:
    gathered: list[Any] = []
    async for one in found:
        if not _gather(gathered, one):
            break
    return gathered


def _gather(gathered: list[Any], one: Any) -> bool:
    """Adds what a generator yielded; False once there is more than an answer may hold."""
    if isinstance(one, str) and gathered and isinstance(gathered[-1], str):
        gathered[-1] += one
    else:
        gathered.append(one)
    return len(gathered) <= MOST_PAYLOADS


def listeners_in(
    module: ModuleType, file: str, content: bytes
) -> Iterator[LoadedListener | tuple[str, ListenerError]]:
    """The listeners of a file in the order of their classes; for one that cannot be served its class and the reason."""
    source = syntax_tree(content)
    classes = {node.name: node for node in ast.walk(source) if isinstance(node, ast.ClassDef)}
    handlers = [_Handler(module, node) for node in source.body if isinstance(node, _FUNCTIONS)]
    shown = getattr(module, "__manifest__", None)
    for value in list(vars(module).values()):
        declaration = declared(value) if isinstance(value, type) else None
        if declaration is None or not _is_served(value, declaration, module, handlers):
            continue
        node = classes.get(value.__name__)
        line = node.lineno if node is not None else None
        try:
            form, handler = _listener(value, declaration, file, line, handlers, _Docs(module, classes))
            yield LoadedListener(form, value, handler, shown)
        except ListenerError as error:
            yield value.__name__, error
        except BadFormError as error:
            yield value.__name__, ListenerError(f"{value.__name__}: {error}", line)


def _is_served(payload: type, declaration: Declared, module: ModuleType, handlers: list[_Handler]) -> bool:
    """True for a declared class of the file; for one of rappd's own, and one of ``xmlify``, where a handler takes it."""
    handled = any(one.payload is payload for one in handlers)
    if payload.__module__ != module.__name__:
        return handled and declaration.category == CORE
    return handled or not declaration.published


def name_of_file(rel: str) -> str:
    """The name of a listener whose file is called so."""
    return rel.rpartition("/")[2].removesuffix(LISTENER_SUFFIX)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Handler:
    """A public function of the file, with the type of its first parameter."""

    def __init__(self, module: ModuleType, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.name, self.line = node.name, node.lineno
        self.function = vars(module).get(node.name)
        self.payload: Any = None
        self.required = 0
        self.stateful = False
        """True where the handler's second argument is its state."""
        if node.name.startswith("_") or not callable(self.function):
            return
        parameters = list(inspect.signature(self.function).parameters.values())
        self.required = sum(
            one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
            for one in parameters
        )
        self.stateful = len(parameters) > 1 and _is_given(parameters[1])
        if parameters:
            try:
                self.payload = typing.get_type_hints(self.function).get(parameters[0].name)
            except Exception:  # noqa: BLE001 - annotations are code of the file
                self.payload = None


def _is_given(parameter: inspect.Parameter) -> bool:
    """True for a parameter that gets its argument by its place, and has no other."""
    by_place = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return by_place and parameter.default is parameter.empty


class _Docs:
    """Texts of fields: a string below the field, ``Annotated[…, "text"]``, or ``field(metadata={"doc": …})``."""

    def __init__(self, module: ModuleType, classes: dict[str, ast.ClassDef]) -> None:
        self._module, self._classes = module.__name__, classes

    def of(self, payload: type, field: dataclasses.Field[Any], hint: Any) -> str:
        description = field.metadata.get("doc")
        if isinstance(description, str):
            return inspect.cleandoc(description)
        if typing.get_origin(hint) is typing.Annotated:
            texts = [one for one in typing.get_args(hint)[1:] if isinstance(one, str)]
            if texts:
                return texts[0]
        node = self._declaring(payload, field.name)
        return _below(node, field.name) if node is not None else ""

    def line(self, payload: type, name: str) -> int | None:
        declaring = self._declaring(payload, name)
        if declaring is not None:
            return next(one.lineno for one in declaring.body if _declares(one, name))
        node = self._node(payload)
        return node.lineno if node is not None else None

    def _node(self, payload: type) -> ast.ClassDef | None:
        return self._classes.get(payload.__name__) if payload.__module__ == self._module else None

    def _declaring(self, payload: type, name: str) -> ast.ClassDef | None:
        """The class of the file that says this field: the payload's own, or the nearest one that it inherits from."""
        nodes = (self._node(one) for one in payload.__mro__)
        return next((node for node in nodes if node and any(_declares(one, name) for one in node.body)), None)


def _declares(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id == name
    )


def _below(node: ast.ClassDef, name: str) -> str:
    for one, after in zip(node.body, node.body[1:], strict=False):
        if _declares(one, name):
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                return inspect.cleandoc(text.value)
    return ""


def _listener(
    payload: type, declaration: Declared, file: str, line: int | None, handlers: list[_Handler], docs: _Docs
) -> tuple[PayloadForm, Callable[..., Any]]:
    root = declaration.root or payload.__name__.lower()
    stem = name_of_file(file)
    name = declaration.name or (f"{stem}.{root}" if declaration.category == CORE else stem)
    own = [one for one in handlers if one.payload is payload]
    if len(own) != 1:
        found = "no function" if not own else f"{len(own)} functions ({', '.join(one.name for one in own)})"
        raise ListenerError(f"{found} of the file takes a {payload.__name__} first; it needs one", line)
    handler = own[0]
    if handler.required > 1 + handler.stateful:
        raise ListenerError(f"{handler.name} wants more than the payload and a state", handler.line)
    description = declaration.description or _docstring(payload) or inspect.getdoc(handler.function) or ""
    if not description:
        raise ListenerError(f"{payload.__name__} has no description: a docstring, or description=…", line)
    fields = _fields(payload, docs, 1, payload.__name__)
    form = PayloadForm(
        name, declaration.category, root, description, fields, payload.__name__, line, handler.stateful
    )
    check_form(form)
    check_core(form)
    assert callable(handler.function)
    return form, handler.function


def _docstring(payload: type) -> str:
    text = inspect.cleandoc(payload.__doc__ or "")
    generated = text.startswith(f"{payload.__name__}(") and text.endswith(")")  # as ``dataclass`` writes it
    return "" if generated else text.strip()


def _fields(payload: type, docs: _Docs, level: int, where: str) -> tuple[Field, ...]:
    if level > DEEPEST:
        raise ListenerError(
            f"{where} is nested more than {DEEPEST} levels deep; a class cannot hold itself",
            docs.line(payload, where.rpartition(".")[2]),
        )
    try:
        hints = typing.get_type_hints(payload, include_extras=True)
    except Exception as error:
        raise ListenerError(
            f"the types of {payload.__name__} cannot be read: {error}", docs.line(payload, "")
        ) from error
    found = []
    for field in dataclasses.fields(payload):
        if not field.init:
            continue
        hint = hints.get(field.name, field.type)
        where = f"{payload.__name__}.{field.name}"
        try:
            kind, optional = _field_type(hint, docs, level, where)
        except _NoTypeError as error:
            raise ListenerError(f"{where}: {error}", docs.line(payload, field.name)) from error
        has_default = (
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        )
        found.append(
            Field(field.name, kind, docs.of(payload, field, hint), required=not (optional or has_default))
        )
    _check_made(payload, [field.name for field in found], docs)
    return tuple(found)


def _check_made(payload: type, names: list[str], docs: _Docs) -> None:
    """Raises ``ListenerError`` for a class that cannot be made from its fields: an ``InitVar``, or an ``__init__`` of its own."""
    takes = inspect.signature(payload).parameters.values()
    for one in takes:
        needed = one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if needed and one.name not in names:
            raise ListenerError(
                f"{payload.__name__}.{one.name} is no field, so nothing can be given for it; it needs a default",
                docs.line(payload, one.name),
            )
    by_name = {one.name for one in takes if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    lacking = next((name for name in names if name not in by_name), None)
    if lacking is not None and not any(one.kind is one.VAR_KEYWORD for one in takes):
        raise ListenerError(
            f"{payload.__name__}.{lacking} is a field that __init__ does not take by its name",
            docs.line(payload, lacking),
        )


class _NoTypeError(Exception):
    """A type that no field can have."""


def _field_type(hint: Any, docs: _Docs, level: int, where: str) -> tuple[Type, bool]:
    """The type of a field, and True where it may be None."""
    bare = _bare(hint)
    members = _members(bare)
    if members is None or _NONE not in members:
        return _type(bare, docs, level, where), False
    rest = [one for one in members if one is not _NONE]
    if not rest:
        raise _NoTypeError("None alone is no type of a field")
    return (_type(rest[0], docs, level, where) if len(rest) == 1 else _union(rest, docs, level, where)), True


def _type(hint: Any, docs: _Docs, level: int, where: str) -> Type:
    hint = _bare(hint)
    if isinstance(hint, collections.abc.Hashable) and hint in _PLAIN:
        return Type(_PLAIN[hint])  # type: ignore[arg-type]  # one of Kind
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        if not all(isinstance(one, str | int) for one in arguments):
            raise _NoTypeError("a Literal holds texts, whole numbers and truth values")
        return Type("choice", choices=tuple(arguments))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Type("choice", choices=tuple(_choices(hint)), name=hint.__name__)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Type("object", fields=_fields(hint, docs, level + 1, where), name=hint.__name__)
    if (members := _members(hint)) is not None:
        return _union(members, docs, level, where)
    if origin in (list, collections.abc.Sequence) and len(arguments) == 1:
        return Type("list", of=(_type(arguments[0], docs, level + 1, where),))
    if origin in (set, frozenset) and len(arguments) == 1:
        return Type("set", of=(_type(arguments[0], docs, level + 1, where),))
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return Type("list", of=(_type(arguments[0], docs, level + 1, where),))
    if origin is tuple and arguments:
        return Type("tuple", of=tuple(_type(one, docs, level + 1, where) for one in arguments))
    if origin in (dict, collections.abc.Mapping) and len(arguments) == 2:
        return Type("dict", of=tuple(_type(one, docs, level + 1, where) for one in arguments))
    raise _NoTypeError(f"{_shown(hint)} is no type that a field can have")


def _union(members: Iterable[Any], docs: _Docs, level: int, where: str) -> Type:
    if _NONE in members:
        raise _NoTypeError("None stands inside another type; only the field itself may be left out")
    return Type("union", of=tuple(_type(one, docs, level + 1, where) for one in members))


def _members(hint: Any) -> tuple[Any, ...] | None:
    """The members of a union; None for another type."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return None


def _bare(hint: Any) -> Any:
    while typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    return hint


def _choices(found: type[enum.Enum]) -> Iterator[str | int]:
    for one in found:
        if not isinstance(one.value, str | int):
            raise _NoTypeError(f"{found.__name__} has values that are neither texts nor whole numbers")
        yield one.value


def _shown(hint: Any) -> str:
    return str(getattr(hint, "__name__", None) or hint)[:80]


def made(payload: type, fields: Iterable[Field], value: dict[str, Any]) -> Any:
    """A dataclass from a checked value: the types of its fields are its own again.

    A field that was left out has its default, else, where it may be None, None.
    """
    hints = typing.get_type_hints(payload)
    given = {
        field.name: _value(field.type, hints[field.name], value[field.name])
        for field in fields
        if field.name in value
    }
    for field in dataclasses.fields(payload):
        without = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.init and without and field.name not in given:
            given[field.name] = None
    return payload(**given)


def _value(kind: Type, hint: Any, value: Any) -> Any:
    hint = _bare(hint)
    members = _members(hint)
    if members is not None:
        rest = [one for one in members if one is not _NONE]
        return _member(kind, rest, value) if kind.kind == "union" else _value(kind, rest[0], value)
    arguments = typing.get_args(hint)
    match kind.kind:
        case "decimal":
            return Decimal(str(value))
        case "datetime":
            return datetime.fromisoformat(value)
        case "choice" if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return hint(value)
        case "object":
            return made(hint, kind.fields, value)
        case "list":
            found = [_value(kind.of[0], arguments[0], one) for one in value]
            return tuple(found) if typing.get_origin(hint) is tuple else found
        case "set":
            return typing.get_origin(hint)(_value(kind.of[0], arguments[0], one) for one in value)
        case "tuple":
            return tuple(
                _value(inner, argument, one)
                for inner, argument, one in zip(kind.of, arguments, value, strict=True)
            )
        case "dict":
            return {
                _key(kind.of[0], arguments[0], key): _value(kind.of[1], arguments[1], one)
                for key, one in value.items()
            }
        case _:
            return value


def _key(kind: Type, hint: Any, text: str) -> Any:
    """The key of a dict, which JSON holds as text."""
    if kind.kind in ("int", "float"):
        return int(text) if kind.kind == "int" else float(text)
    if kind.kind == "bool":
        return text == "true"
    return _value(kind, hint, text)


def _member(kind: Type, members: list[Any], value: Any) -> Any:
    if kind.of[0].kind == "object":
        ((name, inner),) = value.items()
        at = [one.name for one in kind.of].index(name)
        return made(members[at], kind.of[at].fields, inner)
    from envelopes.payloads.form import MistypedPayloadError, check

    for inner_kind, hint in zip(kind.of, members, strict=True):
        probe = PayloadForm("x", "x", "x", "x", (Field("x", inner_kind),))
        try:
            return _value(inner_kind, hint, check(probe, {"x": value})["x"])
        except MistypedPayloadError:
            continue
    raise ValueError(f"expected {expected(kind)}")
