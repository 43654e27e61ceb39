"""Parameters of commands that no decorator of click's describes: read from the signature of the function.

One is an argument of the command, required where it has no default; a ``tuple`` takes all that follow. With ``Annotated``
and an ``Argument`` or ``Option`` it has further settings of click's, or is an option. ``printer`` is ``--json``.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal

import click

from rappd.cli.printer import JSON

Function = Callable[..., Any]
_PRINTER = "printer"


class Argument:
    """Settings of an argument: those of ``click.argument``."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def made(self, name: str, settings: dict[str, Any]) -> click.Parameter:
        """The parameter of that name."""
        return click.Argument([name], **settings, **self.settings)


class Option(Argument):
    """The names and the settings of an option: those of ``click.option``."""

    def __init__(self, *names: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._names = names

    def made(self, name: str, settings: dict[str, Any]) -> click.Parameter:
        """The parameter of that name."""
        return click.Option([*self._names, name], **settings, **self.settings)


class Command(click.Command):
    """A command whose required arguments are words, never ``""``: a shell hands that over for a variable without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not (ctx.resilient_parsing or all(map(str.strip, args))):  # a shell completes empty words
            given, _, _ = self.make_parser(ctx).parse_args(list(args))
            for one in self.params:
                words = given.get(str(one.name))
                if one.required and isinstance(words, str | tuple) and not "".join(words).strip():
                    raise click.MissingParameter(ctx=ctx, param=one)
        return super().parse_args(ctx, args)


def cli_command(name: str | None = None, **settings: Any) -> Callable[[Function], click.Command]:
    """``click.command``, with the parameters of the signature."""
    made: Callable[[Function], click.Command] = click.command(name, cls=Command, **settings)
    return lambda function: made(with_parameters(function))


def with_parameters(function: Function) -> Function:
    """Has click see the parameters of the signature, in their order, ``--json`` last."""
    signature = inspect.signature(function).parameters
    described: dict[str, list[click.Parameter]] = {}
    for known in reversed(getattr(function, "__click_params__", [])):
        described.setdefault(str(known.name), []).append(known)
    if described.keys() >= signature.keys() or any(one.kind is one.VAR_KEYWORD for one in signature.values()):
        return function
    hints = typing.get_type_hints(function, include_extras=True)
    found: list[click.Parameter] = []
    for name, one in signature.items():
        if name in described or name != _PRINTER:
            found += described.get(name) or [_made(one, hints[name])]
    if _PRINTER in signature and _PRINTER not in described:
        JSON(function)
        found.append(function.__click_params__[-1])  # type: ignore[attr-defined]
    function.__click_params__ = found[::-1]  # type: ignore[attr-defined]
    return function


def _made(one: inspect.Parameter, hint: Any) -> click.Parameter:
    kind = Argument()
    if typing.get_origin(hint) is Annotated:
        hint, kind = typing.get_args(hint)
    return kind.made(one.name, {**_settings(hint, kind), **_of_default(one)})


def _settings(hint: Any, kind: Argument) -> dict[str, Any]:
    if isinstance(hint, UnionType):
        (hint,) = (one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is tuple:
        several = {"multiple": True} if isinstance(kind, Option) else {"nargs": -1}
        return several | _settings(typing.get_args(hint)[0], kind)
    if typing.get_origin(hint) is Literal:
        return {"type": click.Choice(typing.get_args(hint))}
    if hint is bool:
        return {"is_flag": True}
    return {} if "type" in kind.settings else {"type": click.Path(path_type=Path) if hint is Path else hint}


def _of_default(one: inspect.Parameter) -> dict[str, Any]:
    if one.default is one.empty:
        return {}
    return (
        {"required": False}
        if one.default in (None, False, ())
        else {"required": False, "default": one.default}
    )
