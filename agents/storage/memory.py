"""Partitions of the memory: one file for all, and one for each user."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agents.storage import json_store
from agents.storage.paths import Parts
from agents.storage.safe_fs import SafeTree

log = logging.getLogger(__name__)

DEFAULT_MARKER_GUID = "c0p110t0-aaaa-bbbb-cccc-123456789abc"
"""The user GUID for nobody in particular: no valid GUID, on purpose (RAPP v1 §8). Never fix it."""

SHARED_FOLDER = "shared_memories"
SHARED_FILE = "memory.json"
USER_FOLDER = "memory"
USER_FILE = "user_memory.json"

_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Partition(NamedTuple):
    """The place of memories.

    ``guid`` is None for the shared ones; ``accepted`` is False when a GUID was given that is none.
    """

    folder: str
    file: str
    guid: str | None
    accepted: bool

    @property
    def parts(self) -> Parts:
        return (*self.folder.split("/"), self.file)


def partition(guid: Any = None) -> Partition:
    """The partition of ``guid``, kept as written.

    Empty and the default GUID mean the shared one; so does anything that is not 8-4-4-4-12 hex, which never
    becomes a path.
    """
    if not guid or guid == DEFAULT_MARKER_GUID:
        return Partition(SHARED_FOLDER, SHARED_FILE, None, True)
    text = str(guid)
    if _GUID.fullmatch(text) is None:
        return Partition(SHARED_FOLDER, SHARED_FILE, None, False)
    return Partition(f"{USER_FOLDER}/{text}", USER_FILE, text, True)


def read_memories(tree: SafeTree, where: Partition) -> dict[str, Any]:
    """The memories of a partition; {} when there are none or they cannot be read. Never raises.

    A user's file that cannot be read is never made up for with the shared one.
    """
    try:
        memories: dict[str, Any] = json_store.read(tree, where.parts, objects_only=True)
    except OSError as error:
        log.warning("Memories in %s could not be read: %s", where.folder, error)
        return {}
    return memories


def memory_reader(data_dir: str | os.PathLike[str]) -> Callable[[str | None], Mapping[str, Any]]:
    """For sloshing: gives the memories of a user in the data directory; never raises."""
    tree = SafeTree(data_dir)
    return lambda guid: read_memories(tree, partition(guid))
