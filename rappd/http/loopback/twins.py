"""``/twins``: who lives here besides the brainstem, for the operator's page and command line."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok
from rappd.operations.buddies import BuddyOperations
from rappd.operations.twins import TwinOperations, number

routes = web.RouteTableDef()


@routes.get("/twins")
@operator_only
async def twins(request: web.Request) -> web.Response:
    """Active twins, each with the `model` of its own where it has one; `?state=archived` or `purged` lists those."""
    verbs = _verbs(request)
    match request.query.get("state", "active"):
        case "archived":
            return ok({"archived": await verbs.lifecycle.list_archived()})
        case "purged":
            return ok({"purged": await verbs.lifecycle.list_purged()})
    found = await verbs.listing()
    return ok({**found, "twins": [await _with_model(request, row) for row in found["twins"]]})


@routes.post("/twins")
@operator_only
async def new(request: web.Request) -> web.Response:
    """Mints a twin: `name`, and perhaps `kind` and `soul`. With `unique`, not beside another of that name."""
    body = await json_object(request)
    return ok(
        await _verbs(request).new(
            _maybe(body, "name"),
            kind=_maybe(body, "kind"),
            soul=_maybe(body, "soul"),
            unique=body.get("unique") is True,
        )
    )


@routes.get("/twins/lineage")
@operator_only
async def lineage(request: web.Request) -> web.Response:
    """Family trees, as rows in preorder; `?twin=` for one."""
    return ok(await _verbs(request).lineage(request.query.get("twin", "")))


@routes.post("/twins/archive")
@operator_only
async def archive_matching(request: web.Request) -> web.Response:
    """Sets aside all twins that `filter` means; only says which, unless `confirm` is true."""
    body = await json_object(request)
    return ok(
        await _verbs(request).archive(
            matching=body.get("filter"), confirm=body.get("confirm") is True, reason=_maybe(body, "reason")
        )
    )


@routes.get("/twins/{twin}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """One twin with its soul and files, and the `model` of its own where it has one."""
    found = await _verbs(request).show(_name(request))
    return ok({"twin": await _with_model(request, found["twin"])})


@routes.post("/twins/{twin}/rename")
@operator_only
async def rename(request: web.Request) -> web.Response:
    """Gives it another `name`."""
    return ok(await _verbs(request).rename(_name(request), _maybe(await json_object(request), "name")))


@routes.post("/twins/{twin}/fork")
@operator_only
async def fork(request: web.Request) -> web.Response:
    """A new twin that begins as its copy; `name` may be given."""
    return ok(await _verbs(request).fork(_name(request), _maybe(await json_object(request), "name")))


@routes.post("/twins/{twin}/boot")
@operator_only
async def boot(request: web.Request) -> web.Response:
    """Starts it on a port of its own."""
    return ok(await _verbs(request).boot(_name(request)))


@routes.post("/twins/{twin}/stop")
@operator_only
async def stop(request: web.Request) -> web.Response:
    """Stops it."""
    return ok(await _verbs(request).stop(_name(request)))


@routes.get("/twins/{twin}/soul")
@operator_only
async def soul(request: web.Request) -> web.Response:
    """Its soul, and the souls before."""
    return ok(await _verbs(request).soul(_name(request)))


@routes.put("/twins/{twin}/soul")
@operator_only
async def edit_soul(request: web.Request) -> web.Response:
    """Puts a `soul` in force; the one before is kept."""
    body = await json_object(request)
    return ok(
        await _verbs(request).edit_soul(
            _name(request), text_field(body, "soul"), reason=_maybe(body, "reason")
        )
    )


@routes.post("/twins/{twin}/soul/restore")
@operator_only
async def restore_soul(request: web.Request) -> web.Response:
    """Puts soul `number` of the history in force again."""
    return ok(
        await _verbs(request).restore_soul(_name(request), number(await json_object(request), "number"))
    )


@routes.get("/twins/{twin}/checkpoints")
@operator_only
async def checkpoints(request: web.Request) -> web.Response:
    """Moments it can be brought back to, oldest first."""
    return ok(await request.app[DAEMON].checkpoints.listing(_name(request)))


@routes.post("/twins/{twin}/checkpoints")
@operator_only
async def checkpoint(request: web.Request) -> web.Response:
    """Keeps it as it is now; a `note` may be given."""
    body = await json_object(request)
    return ok(await request.app[DAEMON].checkpoints.make(_name(request), note=_maybe(body, "note")))


@routes.post("/twins/{twin}/checkpoints/rollback")
@operator_only
async def rollback(request: web.Request) -> web.Response:
    """Brings it back to a `checkpoint`, or the latest; only says what would change, unless `confirm` is true."""
    body = await json_object(request)
    return ok(
        await request.app[DAEMON].checkpoints.rollback(
            _name(request), checkpoint=_maybe(body, "checkpoint"), confirm=body.get("confirm") is True
        )
    )


@routes.post("/twins/{twin}/archive")
@operator_only
async def archive(request: web.Request) -> web.Response:
    """Sets it aside; a `reason` may be given."""
    body = await json_object(request)
    return ok(await _verbs(request).archive(selector=_name(request), reason=_maybe(body, "reason")))


@routes.post("/twins/{twin}/unarchive")
@operator_only
async def unarchive(request: web.Request) -> web.Response:
    """Brings it back."""
    return ok(await _verbs(request).unarchive(_name(request)))


@routes.post("/twins/{twin}/purge")
@operator_only
async def purge(request: web.Request) -> web.Response:
    """Deletes an archived twin; only says which, unless `confirm` is true."""
    body = await json_object(request)
    return ok(
        await _verbs(request).purge(
            _name(request), confirm=body.get("confirm") is True, reason=_maybe(body, "reason")
        )
    )


async def _with_model(request: web.Request, row: dict[str, Any]) -> dict[str, Any]:
    model = await request.app[DAEMON].model_choices.of_twin(row["key"])
    return {**row, "model": model} if model else row


def _verbs(request: web.Request) -> TwinOperations:
    return request.app[DAEMON].twins


def _name(request: web.Request) -> str:
    return request.match_info["twin"]


def _maybe(body: dict[str, Any], field: str) -> str:
    return text_field(body, field) if body.get(field) else ""


@routes.get("/twins/{twin}/buddy")
async def buddy_status(request: web.Request) -> web.Response:
    """The present state of a buddy: stage, mood, energy, experience. Changes nothing."""
    return ok(await _buddies(request).status(request.match_info["twin"]))


@routes.post("/twins/{twin}/buddy")
@operator_only
async def act_buddy(request: web.Request) -> web.Response:
    """Does an `action`: feed, pet, explore, post, comment, heartbeat, remember, recall, status; `text` and `kind` for those that take them."""
    body = await json_object(request)
    action = text_field(body, "action")
    text = text_field(body, "text") if body.get("text") else ""
    kind = text_field(body, "kind") if body.get("kind") else ""
    return ok(await _buddies(request).act(request.match_info["twin"], action, text=text, kind=kind))


def _buddies(request: web.Request) -> BuddyOperations:
    return request.app[DAEMON].twins.buddies
