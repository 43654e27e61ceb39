"""The table of operations: each is a method with a name, a right and a way to ask for it over HTTP.

Its arguments are the parameters of the method, its answer is what the method returns; from these and the docstring come
the route, the checking of requests, ``/openapi.json``, ``docs/routes.md``, the page's ``lib/operations.js`` and the
command line's ``rappd/features/operation_paths.py``.

The types of a method say its form: it takes a file with a parameter of the type ``Upload``, or ``bytes`` for a small one
(the body is the file then, and the arguments come in the query), or a ``FormFile`` for one in a form of a page, answers
with a file by returning a ``Download``, and takes a while by returning the ``Turn`` that it began, or a ``ShownTurn`` (its
events are told to callers that accept them): an ``Annotated[Turn, X]`` ends with an X. A ``Stream`` is told to its
``Reader`` as it comes. A ``Caller`` is who asks. A method that is not async may block: it runs in a thread.

With a name ``agents``, structural agents may ask for it, too, by ``utils.host``; ``agent_operation`` is for them alone.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar

import msgspec

from neighborhoods.peer import Peer
from rappd.dispatch.rights import AGENT, Caller, Right
from rappd.dispatch.rights import ANYBODY as ANYBODY
from rappd.dispatch.rights import OWNER as OWNER
from rappd.dispatch.turns import Turn
from rappd.features.arguments import ArgumentReader
from rappd.tether.devices import Device

Method = Literal["GET", "POST", "PUT", "DELETE"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
"""A text that must not be empty."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Status(TypedDict):
    """The answer where there is nothing to tell but that it was done."""

    status: Literal["ok"]


class Upload(NamedTuple):
    """A file that comes in. Reading raises ``ReportableError`` where it breaks off."""

    pieces: AsyncIterator[bytes]
    size: int
    """As it was announced; 0 where it was not."""


class FormFile(NamedTuple):
    """A small file that a form of a page sends in its field ``file``; the other fields are arguments."""

    name: str
    content: bytes


class Download(NamedTuple):
    """A file that goes out, to be saved under its name: one on this machine, or ``content`` that was made for it."""

    path: Path
    content: bytes | None = None
    kind: str = "application/octet-stream"


class ShownTurn(NamedTuple):
    """A turn whose events are told as ``shown`` puts them."""

    turn: Turn
    shown: Callable[[bytes], dict[str, Any]]


class Reader(NamedTuple):
    """The reader of a stream: the number of the last event that it has, as it says, and whether it is still there."""

    last: str
    is_there: Callable[[], bool]


class Stream(NamedTuple):
    """Events as they happen, sent to a reader: each with its number, or None. ``greets``: the reader is answered before the first."""

    events: AsyncGenerator[tuple[int | None, bytes | dict[str, Any]], None]
    greets: bool = True


class OpenDownload(NamedTuple):
    """An open file that goes out to another machine or a phone; ``close`` is called when it went, or broke off.

    ``went`` is called where all of it went.
    """

    file: IO[bytes]
    close: Callable[[], object]
    name: str = ""
    went: Callable[[], object] = lambda: None
    kind: str = "application/octet-stream"


@dataclass(frozen=True)
class Operation:
    """A row of the table. ``name`` is its noun and its verb: ``peers.rename``."""

    name: str
    method: Method
    path: str
    right: Right
    function: Callable[..., Any]
    of_tenant: bool = False
    """True for one of the brainstem and of every twin, which is its first argument: ``/agents``, ``/twins/{twin}/agents``."""
    agents: str = ""
    """The name by which agents ask for it; "" when they may not. ``{…}`` in it is an argument."""
    answers: str = ""
    """The one field of the answer, which has what the method returns; "" where that is the whole answer."""

    @property
    def noun(self) -> str:
        """``peers`` of ``peers.rename``."""
        return self.name.partition(".")[0]

    @cached_property
    def about(self) -> str:
        """The docstring: the first paragraph is its line in lists."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """The parameters of the method."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        fields: list[Any] = []
        given = 2 if self.of_tenant else 1  # beside what is sent: the object, and perhaps whose it is
        for one in list(inspect.signature(self.function).parameters.values())[given:]:
            if one.name in self.of_request:
                continue
            required = one.default is inspect.Parameter.empty
            fields.append((one.name, hints[one.name], *(() if required else (one.default,))))
        return msgspec.defstruct(self._titled("Arguments"), fields, kw_only=True)

    @cached_property
    def of_request(self) -> dict[str, type]:
        """The parameters that are no arguments, by their types: what the listener knows of the request."""
        hints = typing.get_type_hints(self.function)
        kinds = (Caller, Device, Peer, Reader, Upload, FormFile, bytes)
        return {name: hint for name, hint in hints.items() if hint in kinds}

    @property
    def takes_file(self) -> bool:
        """True where the body is a file."""
        return self.takes_stream or bytes in self.of_request.values()

    @property
    def takes_stream(self) -> bool:
        """True where that file may be larger than memory."""
        return Upload in self.of_request.values()

    @property
    def takes_form(self) -> bool:
        """True where the body is a form with a file."""
        return FormFile in self.of_request.values()

    @property
    def has_body(self) -> bool:
        """True where the arguments are fields of a JSON body; else they come in the query."""
        return self.method in ("POST", "PUT") and not self.takes_file and not self.takes_form

    @property
    def is_long(self) -> bool:
        """True where the answer takes a while, and progress is told before it."""
        return self.result in (Turn, ShownTurn)

    @cached_property
    def result(self) -> Any:
        """The type of the answer."""
        return typing.get_type_hints(self.function)["return"]

    @cached_property
    def ending(self) -> Any:
        """The type of what a long operation ends with; else that of the answer."""
        declared = typing.get_type_hints(self.function, include_extras=True)["return"]
        if self.answers:
            return TypedDict(self._titled("Answer"), {self.answers: declared})  # type: ignore[operator]
        return typing.get_args(declared)[1] if self.is_long else declared

    @cached_property
    def in_path(self) -> list[str]:
        """The arguments that stand in the path."""
        return re.findall(r"\{(\w+)[:}]", self.path)

    def read(self, given: Mapping[str, Any], *, as_text: bool) -> dict[str, Any]:
        """The arguments that were sent, see ``ArgumentReader``."""
        return self._reader.read(given, as_text=as_text)

    def _titled(self, what: str) -> str:
        return "".join(part.title() for part in re.split(r"\W|_", self.name)) + what

    @cached_property
    def _reader(self) -> ArgumentReader:
        return ArgumentReader(self.arguments)


def operation(
    name: str,
    method: Method,
    path: str,
    *,
    right: Right,
    of_tenant: bool = False,
    agents: str = "",
    answers: str = "",
) -> Callable[[_Function], _Function]:
    """Makes a method an operation."""

    def mark(function: _Function) -> _Function:
        row = Operation(name, method, path, right, function, of_tenant, agents, answers)
        function.operation = row  # type: ignore[attr-defined]
        return function

    return mark


def agent_operation(
    name: str, *, of_tenant: bool = False, answers: str = ""
) -> Callable[[_Function], _Function]:
    """Makes a method an operation that agents alone ask for."""
    return operation(name, "POST", "", right=AGENT, of_tenant=of_tenant, agents=name, answers=answers)


def operations_of(feature: type) -> list[Operation]:
    """The operations of a class, with those that it inherits, in the order in which they stand there."""
    return [one for one in _marked(feature) if one.right != AGENT]


def agent_operations_of(feature: type) -> list[Operation]:
    """A feature's operations that agents may ask for, and those that are for agents alone."""
    return [one for one in _marked(feature) if one.agents]


def _marked(feature: type) -> Iterator[Operation]:
    for cls in reversed(feature.__mro__):
        for value in vars(cls).values():
            if isinstance(one := getattr(value, "operation", None), Operation):
                yield one


class OperationTable:
    """The operations of some objects: each row with its method, bound."""

    def __init__(self, *features: object) -> None:
        self._rows = {
            one.name: (one, awaitable(one.function, feature))
            for feature in features
            for one in operations_of(type(feature))
        }

    def __iter__(self) -> Iterator[tuple[Operation, Callable[..., Any]]]:
        return iter(self._rows.values())

    def __getitem__(self, name: str) -> tuple[Operation, Callable[..., Any]]:
        return self._rows[name]


def awaitable(function: Callable[..., Any], feature: object) -> Callable[..., Any]:
    """A method of a feature, bound, with its whole answer; one that may block runs in a thread."""
    if inspect.iscoroutinefunction(function):
        perform = partial(function, feature)
    else:
        perform = partial(asyncio.to_thread, function, feature)
    answers = function.operation.answers  # type: ignore[attr-defined]
    return partial(_in_field, answers, perform) if answers else perform


async def _in_field(name: str, perform: Callable[..., Any], /, *args: Any, **given: Any) -> dict[str, Any]:
    return {name: await perform(*args, **given)}
