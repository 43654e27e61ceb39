"""``/memories``: what agents remember, for its owner to see, search, correct and delete."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from aiohttp import web

from agents.storage import json_store
from agents.storage.memory import partition
from agents.storage.memory_store import MemoryStore, checked_fields
from agents.storage.safe_fs import in_file_pool
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import InvalidFieldError, json_object, ok, text_field
from rappd.http.loopback.security import operator_only, tenant_of

routes = web.RouteTableDef()

AT_ONCE = 200
_T = TypeVar("_T")


@routes.get("/users/{user}/memories")
async def listing(request: web.Request) -> web.Response:
    """Memories with every word of `query`, newest first; `offset` and `limit` page on. Whose: `user_guid`, else the shared ones."""
    guid, store = _whose(request, request.query), _store(request)
    offset, limit = _number(request, "offset", 0), min(_number(request, "limit", AT_ONCE), AT_ONCE)
    page = await in_file_pool(store.search, guid, request.query.get("query", ""), offset, limit)
    return ok(page._asdict())


routes.get("/memories")(operator_only(listing))


@routes.get("/memories/people")
@operator_only
async def people(request: web.Request) -> web.Response:
    """Lists people with memories: `user_guid` ("" for the shared ones), `count`, and `devices`, the phones that talk for them."""
    counted = await in_file_pool(_store(request).people)
    names: dict[str, list[str]] = {}
    for device in request.app[DAEMON].tether.listing():
        names.setdefault(str(device["user"]).casefold(), []).append(device["name"])
    return ok(
        {
            "people": [
                {"user_guid": guid, "count": count, "devices": names.get(guid.casefold(), [])}
                for guid, count in counted
            ]
        }
    )


@routes.post("/memories")
@operator_only
async def add(request: web.Request) -> web.Response:
    """Adds a memory: `message`, perhaps a `theme` and `tags`. Whose: `user_guid`, else the shared ones."""
    body = await json_object(request)
    guid, fields = _whose(request, body), _checked(checked_fields, body)
    if "message" not in fields:
        raise InvalidFieldError("message is required", do='Send {"message": "…"}.')
    now = datetime.now().astimezone()
    return ok({"memory": await in_file_pool(_store(request).add, guid, fields, now)})


@routes.put("/users/{user}/memories/{key:.+}")
async def change(request: web.Request) -> web.Response:
    """Corrects `message`, `theme` or `tags` of a memory, if it is still `version`; else 409 with the present one."""
    body = await json_object(request)
    guid, key, version = _whose(request, body), request.match_info["key"], text_field(body, "version")
    fields = _checked(checked_fields, body)
    return ok({"memory": await in_file_pool(_store(request).change, guid, key, version, fields)})


routes.put("/memories/{key:.+}")(operator_only(change))


@routes.delete("/users/{user}/memories/{key:.+}")
async def delete(request: web.Request) -> web.Response:
    """Deletes a memory, if it is still `version`; the answer's `undo` brings it back."""
    guid, key = _whose(request, request.query), request.match_info["key"]
    version = request.query.get("version", "")
    removed = await in_file_pool(_store(request).remove, guid, key, version)
    return ok({"status": "ok", "undo": json_store.encode(removed).decode()})


routes.delete("/memories/{key:.+}")(operator_only(delete))


@routes.post("/users/{user}/memories/undo")
async def undo(request: web.Request) -> web.Response:
    """Brings a deleted memory back: its `key`, and the `undo` of the answer to its deletion."""
    body = await json_object(request)
    guid, key = _whose(request, body), text_field(body, "key")
    value = _checked(lambda text: json_store.decode(text.encode()), text_field(body, "undo"))
    return ok({"memory": await in_file_pool(_store(request).put_back, guid, key, value)})


routes.post("/memories/undo")(operator_only(undo))


def _store(request: web.Request) -> MemoryStore:
    workspace = tenant_of(request).workspace
    return MemoryStore(workspace.files, workspace.data.relative_to(workspace.root).parts)


def _whose(request: web.Request, fields: Any) -> str:
    """The user whose memories a request means; "" for the shared ones, which only the operator's routes reach.

    A GUID names a memory here as it does in `/chat`: it is no sign-in. Raises ``InvalidFieldError``.
    """
    named = request.match_info.get("user")
    where = partition(named or fields.get("user_guid"))
    if not where.accepted or (named is not None and where.guid is None):
        raise InvalidFieldError("That is no user's id.", do="Leave it out for the shared memories.")
    return where.guid or ""


def _number(request: web.Request, name: str, otherwise: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return otherwise
    if not text.isdecimal() or len(text) > 9:
        raise InvalidFieldError(f"{name} must be a number", do=f"Send {name}={otherwise}.")
    return int(text)


def _checked(read: Callable[[Any], _T], value: Any) -> _T:
    try:
        return read(value)
    except ValueError as error:
        raise InvalidFieldError(str(error), do="Correct it and send it again.") from error
