"""JSON as agents store it: readable by people, tolerant of what other implementations wrote."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from agents.storage.paths import Parts
from agents.storage.safe_fs import SafeTree

log = logging.getLogger(__name__)

DAMAGED_SUFFIX = ".damaged"

Mutator = Callable[[Any], Any]
"""Changes the value in place and returns None, or returns a new one."""


def read(tree: SafeTree, parts: Parts, *, objects_only: bool) -> Any:
    """The value in a file; {} when there is no file, or no JSON in it. Raises ``OSError``.

    With ``objects_only``, other JSON counts as damage too. A damaged file also stays under
    ``<name>.damaged``, so that writing the next value does not end what could be saved.
    """
    try:
        content = tree.read(parts, max_bytes=None)
    except FileNotFoundError:
        return {}
    try:
        value = decode(content)
    except ValueError:
        value = None
    else:
        if isinstance(value, dict) or not objects_only:
            return value
    if content.strip():
        _keep_damaged(tree, parts)
    return {}


def write(tree: SafeTree, parts: Parts, value: Any, *, objects_only: bool) -> None:
    """Replace a file's value. Raises ``OSError``; ``ValueError`` for what cannot be written."""
    tree.write(parts, _encoded(value, objects_only))


def update(tree: SafeTree, parts: Parts, mutator: Mutator, *, objects_only: bool) -> None:
    """Let ``mutator`` change a file's value while no one else writes it; it sees {} for a new one.

    Raises ``OSError`` or ``ValueError``, or whatever ``mutator`` does, with nothing written.
    """
    with tree.locked(parts) as folder:
        value = read(tree, parts, objects_only=objects_only)
        changed = mutator(value)
        tree.put(folder, parts[-1], _encoded(value if changed is None else changed, objects_only))


def decode(content: bytes) -> Any:
    """The value in ``content``; NaN, lone surrogates and a byte order mark pass. Raises ``ValueError``."""
    with suppress(ValueError):
        return orjson.loads(content)
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None


def encode(value: Any) -> bytes:
    """``value`` as indented JSON; what JSON has not is written as ``str()``. Raises ``ValueError``."""
    with suppress(TypeError):  # lone surrogates, great integers, lazy dicts: json below takes them
        return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    try:
        return json.dumps(value, default=str, indent=2).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _encoded(value: Any, objects_only: bool) -> bytes:
    if objects_only and not isinstance(value, Mapping):
        raise ValueError(f"Memories are an object, not {type(value).__name__}.")
    return encode(value)


def _keep_damaged(tree: SafeTree, parts: Parts) -> None:
    name = parts[-1]
    log.warning("%s is damaged; a copy stays in %s%s", "/".join(parts), name, DAMAGED_SUFFIX)
    with suppress(OSError), tree.locked(parts) as folder:  # there already, or no room: nothing to lose by it
        os.link(name, name + DAMAGED_SUFFIX, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
