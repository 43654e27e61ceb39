"""Operations on what agents of the brainstem, or of a ``twin``, remember: list, search, add, correct, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Literal, TypedDict, TypeVar

from agents.storage import json_store
from agents.storage.memory import partition
from agents.storage.memory_store import MemoryRow, MemoryStore, checked_fields
from agents.storage.safe_fs import in_file_pool
from rappd.features.arguments import UnfitArgumentError
from rappd.features.operation import ANYBODY, OWNER, Text, operation
from rappd.tenants.tenant import Tenant
from rappd.tether.devices import ConnectedDevice

AT_ONCE = 200
_T = TypeVar("_T")


class Memories(TypedDict):
    """``total`` memories of somebody, ``found`` of them with the words searched for, and a part of these."""

    memories: list[MemoryRow]
    found: int
    total: int


class PersonRow(TypedDict):
    """A person with memories."""

    user_guid: str
    count: int
    devices: list[str]


class MemoryDeleted(TypedDict):
    """A deletion, and the ``undo`` that takes it back."""

    status: Literal["ok"]
    undo: str


class MemoryOperations:
    """``user_guid``: whose they are; without it, the shared ones, which only the owner reaches.

    A GUID in the path names a ``user`` as it does in `/chat`: it is no sign-in.
    """

    def __init__(self, devices: Callable[[], Iterable[ConnectedDevice]]) -> None:
        self._devices = devices

    @operation("memories.list", "GET", "/memories", right=OWNER, of_tenant=True)
    async def listing(
        self, tenant: Tenant, user_guid: str = "", query: str = "", offset: int = 0, limit: int = AT_ONCE
    ) -> Memories:
        """Memories with every word of `query`, newest first; `offset` and `limit` page on."""
        page = max(0, offset), max(0, min(limit, AT_ONCE))
        found = await in_file_pool(_store(tenant).search, _whose(user_guid), query, *page)
        return {"memories": found.memories, "found": found.found, "total": found.total}

    @operation("memories.people", "GET", "/memories/people", right=OWNER, of_tenant=True, answers="people")
    async def people(self, tenant: Tenant) -> list[PersonRow]:
        """Lists people with memories: `user_guid` ("" for the shared ones), `count`, and `devices`, the phones that talk for them."""
        counted = await in_file_pool(_store(tenant).people)
        names: dict[str, list[str]] = {}
        for device in self._devices():
            names.setdefault(device["user"].casefold(), []).append(device["name"])
        return [
            {"user_guid": guid, "count": count, "devices": names.get(guid.casefold(), [])}
            for guid, count in counted
        ]

    @operation("memories.add", "POST", "/memories", right=OWNER, of_tenant=True, answers="memory")
    async def add(
        self,
        tenant: Tenant,
        message: str = "",
        theme: str | None = None,
        tags: list[str] | None = None,
        user_guid: str = "",
    ) -> MemoryRow:
        """Adds a memory: `message`, perhaps a `theme` and `tags`."""
        guid, fields = _whose(user_guid), _fields(message=message, theme=theme, tags=tags)
        now = datetime.now().astimezone()
        return await in_file_pool(_store(tenant).add, guid, fields, now)

    @operation("memories.change", "PUT", "/memories/{key:.+}", right=OWNER, of_tenant=True, answers="memory")
    async def change(
        self,
        tenant: Tenant,
        key: str,
        version: Text,
        message: str | None = None,
        theme: str | None = None,
        tags: list[str] | None = None,
        user_guid: str = "",
    ) -> MemoryRow:
        """Corrects `message`, `theme` or `tags` of a memory, if it is still `version`; else 409 with the present one."""
        guid, fields = _whose(user_guid), _fields(message=message, theme=theme, tags=tags)
        return await in_file_pool(_store(tenant).change, guid, key, version, fields)

    @operation("memories.delete", "DELETE", "/memories/{key:.+}", right=OWNER, of_tenant=True)
    async def delete(self, tenant: Tenant, key: str, version: str = "", user_guid: str = "") -> MemoryDeleted:
        """Deletes a memory, if it is still `version`; the answer's `undo` brings it back."""
        removed = await in_file_pool(_store(tenant).remove, _whose(user_guid), key, version)
        return {"status": "ok", "undo": json_store.encode(removed).decode()}

    @operation("memories.undo", "POST", "/memories/undo", right=OWNER, of_tenant=True, answers="memory")
    async def undo(self, tenant: Tenant, key: Text, undo: Text, user_guid: str = "") -> MemoryRow:
        """Brings a deleted memory back: its `key`, and the `undo` of the answer to its deletion."""
        value = _checked(json_store.decode, undo.encode("utf-8", "surrogatepass"))
        return await in_file_pool(_store(tenant).put_back, _whose(user_guid), key, value)

    @operation("memories.list_of_user", "GET", "/users/{user}/memories", right=ANYBODY, of_tenant=True)
    async def listing_of_user(
        self, tenant: Tenant, user: str, query: str = "", offset: int = 0, limit: int = AT_ONCE
    ) -> Memories:
        """Memories of a user's own, as `/memories` has them."""
        return await self.listing(tenant, _own(user), query, offset, limit)

    @operation(
        "memories.change_of_user",
        "PUT",
        "/users/{user}/memories/{key:.+}",
        right=ANYBODY,
        of_tenant=True,
        answers="memory",
    )
    async def change_of_user(
        self,
        tenant: Tenant,
        user: str,
        key: str,
        version: Text,
        message: str | None = None,
        theme: str | None = None,
        tags: list[str] | None = None,
    ) -> MemoryRow:
        """Corrects a memory of a user's own, as `/memories/{key}` does."""
        return await self.change(tenant, key, version, message, theme, tags, _own(user))

    @operation(
        "memories.delete_of_user", "DELETE", "/users/{user}/memories/{key:.+}", right=ANYBODY, of_tenant=True
    )
    async def delete_of_user(self, tenant: Tenant, user: str, key: str, version: str = "") -> MemoryDeleted:
        """Deletes a memory of a user's own, as `/memories/{key}` does."""
        return await self.delete(tenant, key, version, _own(user))

    @operation(
        "memories.undo_of_user",
        "POST",
        "/users/{user}/memories/undo",
        right=ANYBODY,
        of_tenant=True,
        answers="memory",
    )
    async def undo_of_user(self, tenant: Tenant, user: str, key: Text, undo: Text) -> MemoryRow:
        """Brings a deleted memory of a user's own back, as `/memories/undo` does."""
        return await self.undo(tenant, key, undo, _own(user))


def _store(tenant: Tenant) -> MemoryStore:
    workspace = tenant.workspace
    return MemoryStore(workspace.files, workspace.data.relative_to(workspace.root).parts)


def _whose(user_guid: str) -> str:
    """The user whose memories are meant; "" for the shared ones. Raises ``UnfitArgumentError``."""
    where = partition(user_guid)
    if not where.accepted:
        raise UnfitArgumentError("That is no user's id.", do="Leave it out for the shared memories.")
    return where.guid or ""


def _own(user: str) -> str:
    """The user named in a path, who is not everybody. Raises ``UnfitArgumentError``."""
    if not (found := _whose(user)):
        raise UnfitArgumentError("That is no user's id.", do="Leave it out for the shared memories.")
    return found


def _fields(**given: Any) -> dict[str, Any]:
    return _checked(checked_fields, {name: value for name, value in given.items() if value is not None})


def _checked(read: Callable[[Any], _T], value: Any) -> _T:
    try:
        return read(value)
    except ValueError as error:
        raise UnfitArgumentError(str(error), do="Correct it and send it again.") from error
