"""The storage names that agent files import: one class, whatever the cloud in its name."""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakSet

from agents.compat import data_dir
from agents.storage.storage_manager import StorageManager, storage_for

__all__ = [
    "AzureFileStorageManager",
    "DynamicsStorageManager",
    "LocalFileStorageManager",
    "LocalStorageManager",
    "StorageManager",
    "create_storage_manager_safe",
    "get_storage_manager",
    "remember_for",
    "reset_storage_manager",
    "safe_json_loads",
    "storage_for",
]

_made: WeakSet[AzureFileStorageManager] = WeakSet()
_user: str | None = None


class AzureFileStorageManager(StorageManager):
    """Storage in the workspace of this process. Shares, accounts and addresses are taken and left aside."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__(data_dir.data_dir())
        _made.add(self)
        if _user:
            self.set_memory_context(_user)


DynamicsStorageManager = LocalFileStorageManager = LocalStorageManager = AzureFileStorageManager


def get_storage_manager(*_: Any, **__: Any) -> AzureFileStorageManager:
    """A new manager."""
    return AzureFileStorageManager()


def create_storage_manager_safe(*_: Any, **__: Any) -> AzureFileStorageManager:
    """A new manager; making one does not fail."""
    return AzureFileStorageManager()


def reset_storage_manager() -> None:
    """Nothing is shared between managers, so there is nothing to reset."""


def safe_json_loads(text: Any, default: Any = None) -> Any:
    """The JSON value in ``text``; ``default``, or else ``{}``, when there is none. Objects pass through."""
    if isinstance(text, (dict, list)):
        return text
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return {} if default is None else default


def remember_for(user_guid: str | None) -> None:
    """Turns every manager of this process, and those made later, to one user's memory; None: the shared one.

    What an agent chose for an earlier caller is forgotten by that.
    """
    global _user  # agents make managers without saying for whom
    _user = user_guid
    for manager in list(_made) if len(_made) else ():  # most agents make none, and each call comes here
        manager.set_memory_context(user_guid)
