"""The storage that agent files ask for, under every name they know it by."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from agents.storage import json_store
from agents.storage.memory import (
    DEFAULT_MARKER_GUID,
    SHARED_FILE,
    SHARED_FOLDER,
    partition,
    read_memories,
)
from agents.storage.paths import Parts, UnsafePathError, file_parts, parts_of
from agents.storage.safe_fs import SafeTree

BINARY_SUFFIXES = (
    ".pptx",
    ".docx",
    ".xlsx",
    ".pdf",
    ".zip",
    ".jpg",
    ".png",
    ".gif",
    ".jpeg",
    ".webp",
)
"""Files that ``read_file`` gives as bytes."""


class ListedName(str):
    """A name in a folder: a string to those who want one, with ``name`` and ``is_directory``."""

    is_directory: bool

    def __new__(cls, name: str, is_directory: bool) -> ListedName:
        entry = super().__new__(cls, name)
        entry.is_directory = is_directory
        return entry

    def __getnewargs__(self) -> tuple[str, bool]:  # type: ignore[override]  # str's own has one argument
        return self.name, self.is_directory

    @property
    def name(self) -> str:
        return str(self)


_DIRECTORY = ("directory_name", "directory", "dir_name")
_FILE = ("file_name", "filename", "file_path", "path", "name")
_CONTENT = ("content", "data", "file_content")


def _file_named(call: str, given: tuple[Any, ...], named: dict[str, Any]) -> Parts:
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


def _file_and_content(call: str, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Parts, Any]:
    """The same with content behind it: ``(path, content)`` or ``(directory, file, content)``."""
    content = _popped(named, _CONTENT)
    if content is _NOT_GIVEN:
        if not given:
            raise TypeError(f"{call}() needs content")
        *rest, content = given
        given = tuple(rest)
    return _file_named(call, given, named), content


def _popped(named: dict[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in named:
            return named.pop(name)
    return _NOT_GIVEN


_NOT_GIVEN: Any = object()


_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_A = TypeVar("_A")


def _otherwise(answer: Callable[[], _A], doing: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R | _A]]:
    """For methods that agents call: a refused path, or what the disk refuses, is logged and ``answer()``.

    A file that is not there is not worth a line in the log.
    """

    def deciding(call: Callable[_P, _R]) -> Callable[_P, _R | _A]:
        @wraps(call)
        def answered(*args: _P.args, **kwargs: _P.kwargs) -> _R | _A:
            try:
                return call(*args, **kwargs)
            except FileNotFoundError:
                return answer()
            except (UnsafePathError, OSError, ValueError) as error:
                _log.warning("Storage could not %s: %s", doing, error)
                return answer()

        return answered

    return deciding


class StorageManager:
    """Files and memories below one data directory, for one user at a time.

    Serves both published call shapes: a file is ``(path)`` or ``(directory_name, file_name)``. A name
    that leads out of the data directory, and whatever the disk refuses, is answered by None, False,
    [] or {} and logged; only a call of no known shape raises (``TypeError``). Each manager has a
    memory context of its own.
    """

    DEFAULT_MARKER_GUID = DEFAULT_MARKER_GUID
    shared_memory_path = SHARED_FOLDER
    default_file_name = SHARED_FILE

    def __init__(self, data_dir: str | os.PathLike[str]) -> None:
        self._tree = SafeTree(data_dir)
        self._memory = partition()

    @property
    def current_guid(self) -> str | None:
        """The user whose memory is read and written; None for the shared one."""
        return self._memory.guid

    @property
    def current_memory_path(self) -> str:
        return self._memory.folder

    def set_memory_context(self, guid: Any = None) -> bool:
        """Choose whose memory ``read_json`` and ``write_json`` mean.

        False for a GUID that is none: the shared memory is chosen then. A user's memory stays theirs also
        when its file fails.
        """
        self._memory = partition(guid)
        if self._memory.guid is not None:
            self._begin_memory()
        return self._memory.accepted

    @_otherwise(dict, "read JSON")
    def read_json(self, file_path: Any = None) -> Any:
        """The memories, or the JSON value in ``file_path``; {} when there is none or it cannot be read."""
        if file_path is None:
            return read_memories(self._tree, self._memory)
        return json_store.read(self._tree, file_parts(file_path), objects_only=False)

    @_otherwise(bool, "write JSON")
    def write_json(self, data: Any, file_path: Any = None) -> bool:
        """Replace the memories, or the value in ``file_path``. False when it could not be written."""
        parts, objects_only = self._json_file(file_path)
        json_store.write(self._tree, parts, data, objects_only=objects_only)
        return True

    def update_json(self, mutator: Callable[[Any], Any], file_path: Any = None) -> bool:
        """Change the memories (or ``file_path``) without losing what others write meanwhile.

        ``mutator`` changes the value it is given, or returns a new one; what it raises goes through.
        False when the result could not be written.
        """
        try:
            return self._update_json(lambda value: _through(mutator, value), file_path)
        except _MutatorError as raised:
            raise raised.error from None

    @_otherwise(bool, "update JSON")
    def _update_json(self, mutator: Callable[[Any], Any], file_path: Any) -> bool:
        parts, objects_only = self._json_file(file_path)
        json_store.update(self._tree, parts, mutator, objects_only=objects_only)
        return True

    @_otherwise(bool, "write a file")
    def write_file(self, *where_and_content: Any, **named: Any) -> bool:
        """``(path, content)`` or ``(directory_name, file_name, content)``.

        Content is text, bytes, something with ``read()``, or a value to be written as JSON.
        """
        parts, content = _file_and_content("write_file", where_and_content, named)
        self._tree.write(parts, _as_bytes(content))
        return True

    @_otherwise(lambda: None, "read a file")
    def read_file(self, *where: Any, **named: Any) -> str | bytes | None:
        """``(path)`` or ``(directory_name, file_name)``: text, bytes for ``BINARY_SUFFIXES``, or None."""
        parts = _file_named("read_file", where, named)
        content = self._tree.read(parts, max_bytes=None)
        binary = parts[-1].lower().endswith(BINARY_SUFFIXES)
        return content if binary else content.decode("utf-8", "replace")

    @_otherwise(lambda: None, "read a file")
    def read_file_binary(self, *where: Any, **named: Any) -> bytes | None:
        return self._tree.read(_file_named("read_file_binary", where, named), max_bytes=None)

    @_otherwise(bool, "look for a file")
    def file_exists(self, *where: Any, **named: Any) -> bool:
        self._tree.stat(_file_named("file_exists", where, named))
        return True

    @_otherwise(bool, "delete a file")
    def delete_file(self, *where: Any, **named: Any) -> bool:
        """True when the file was there and is gone."""
        self._tree.remove(_file_named("delete_file", where, named))
        return True

    @_otherwise(list, "list a folder")
    def list_files(self, directory_name: Any = "", auto_create: bool = False) -> list[ListedName]:
        """The names in a folder. ``auto_create`` makes the folder when it is missing."""
        parts = parts_of(directory_name)
        if auto_create:
            self._tree.make_folder(parts)
        return [ListedName(*entry) for entry in self._tree.entries(parts)]

    @_otherwise(bool, "make a folder")
    def ensure_directory_exists(self, directory_name: Any) -> bool:
        self._tree.make_folder(parts_of(directory_name))
        return True

    @_otherwise(lambda: None, "find a file")
    def generate_download_url(
        self, directory: Any, filename: Any = None, expiry_minutes: int = 30
    ) -> str | None:
        """A ``file://`` address of an existing file, which does not expire; None when there is none."""
        parts = file_parts(directory, filename)
        self._tree.stat_file(parts)
        return self._tree.root.absolute().joinpath(*parts).as_uri()

    @_otherwise(lambda: None, "look at a file")
    def get_file_properties(self, *where: Any, **named: Any) -> dict[str, Any] | None:
        """``{name, size, content_type, last_modified (ISO 8601, UTC), etag}``, or None."""
        parts = _file_named("get_file_properties", where, named)
        found = self._tree.stat_file(parts)
        return {
            "name": parts[-1],
            "size": found.st_size,
            "content_type": _content_type(parts[-1]),
            "last_modified": datetime.fromtimestamp(found.st_mtime, UTC).isoformat(),
            "etag": f'"{found.st_mtime_ns:x}-{found.st_size:x}"',
        }

    def refresh_credentials(self) -> bool:
        """There are none to refresh."""
        return True

    def _json_file(self, file_path: Any) -> tuple[Parts, bool]:
        if file_path is None:
            return self._memory.parts, True
        return file_parts(file_path), False

    @_otherwise(lambda: None, "begin a memory")
    def _begin_memory(self) -> None:
        try:
            self._tree.stat(self._memory.parts)
        except FileNotFoundError:
            json_store.update(self._tree, self._memory.parts, lambda memories: None, objects_only=True)


def storage_for(data_dir: str | os.PathLike[str]) -> StorageManager:
    """A new manager for the files and memories below ``data_dir`` (a workspace's ``.brainstem_data``)."""
    return StorageManager(data_dir)


class _MutatorError(Exception):
    """Carries what a mutator raised past what is answered for the disk."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _through(mutator: Callable[[Any], Any], value: Any) -> Any:
    try:
        return mutator(value)
    except Exception as error:
        raise _MutatorError(error) from error


def _as_bytes(content: Any) -> bytes:
    if hasattr(content, "read"):
        content = content.read()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    if isinstance(content, str):
        return content.encode("utf-8", "replace")
    if content is None:
        raise ValueError("there is no content")
    return json_store.encode(content)


def _content_type(name: str) -> str:
    from mimetypes import guess_type

    return guess_type(name)[0] or "application/octet-stream"
