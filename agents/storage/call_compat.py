"""Compatibility of storage calls: two published ways to name a file, and error values in place of exceptions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from agents.storage.paths import Parts, UnsafePathError, file_parts

_DIRECTORY = ("directory_name", "directory", "dir_name")
_FILE = ("file_name", "filename", "file_path", "path", "name")
_CONTENT = ("content", "data", "file_content")


def file_named(call: str, given: tuple[Any, ...], named: dict[str, Any]) -> Parts:
    """The file that ``(path)`` or ``(directory, file)`` names, by position or keyword.

    Raises ``TypeError`` when it is neither, ``UnsafePathError`` when the name leads out.
    """
    directory, file = _popped(named, _DIRECTORY), _popped(named, _FILE)
    if named:
        raise TypeError(f"{call}() got an unexpected argument {next(iter(named))!r}")
    names = [*([directory] if directory is not _NOT_GIVEN else []), *given]
    names += [file] if file is not _NOT_GIVEN else []
    if not 1 <= len(names) <= 2:
        raise TypeError(f"{call}() takes a path, or a directory and a file name; {len(names)} were given")
    return file_parts(*names)


def file_and_content(call: str, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Parts, Any]:
    """The same with content behind it: ``(path, content)`` or ``(directory, file, content)``."""
    content = _popped(named, _CONTENT)
    if content is _NOT_GIVEN:
        if not given:
            raise TypeError(f"{call}() needs content")
        *rest, content = given
        given = tuple(rest)
    return file_named(call, given, named), content


def _popped(named: dict[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in named:
            return named.pop(name)
    return _NOT_GIVEN


_NOT_GIVEN: Any = object()


log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def otherwise(answer: Callable[[], A], doing: str) -> Callable[[Callable[P, R]], Callable[P, R | A]]:
    """For methods that agents call: a refused path, or what the disk refuses, is logged and ``answer()``.

    A file that is not there is not worth a line in the log.
    """

    def deciding(call: Callable[P, R]) -> Callable[P, R | A]:
        @wraps(call)
        def answered(*args: P.args, **kwargs: P.kwargs) -> R | A:
            try:
                return call(*args, **kwargs)
            except FileNotFoundError:
                return answer()
            except (UnsafePathError, OSError, ValueError) as error:
                log.warning("Storage could not %s: %s", doing, error)
                return answer()

        return answered

    return deciding
