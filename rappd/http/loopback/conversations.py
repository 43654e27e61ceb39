"""``/conversations``: the list beside the chat, what was said, titles, and the search. For the operator."""

from __future__ import annotations

from aiohttp import web

from envelopes.codecs.chat import DEFAULT_USER_GUID
from envelopes.envelope import is_uuid
from rappd.errors import UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidFieldError, json_object
from rappd.http.responses import ok
from rappd.operations.conversations import ConversationOperations

routes = web.RouteTableDef()

_MOST = 200


@routes.get("/conversations")
@operator_only
async def conversations(request: web.Request) -> web.Response:
    """Conversations, the latest first; `?removed=1` those taken off the list, `?before=` the `next` of the page before."""
    removed = request.query.get("removed", "") in ("1", "true")
    return ok(await _of(request).latest(removed=removed, limit=_limit(request, 50), before=_cursor(request)))


@routes.get("/conversations/search")
@operator_only
async def search(request: web.Request) -> web.Response:
    """Conversations in which something with all of `?words=` was said, with excerpts; `?below=` looks further back."""
    below = request.query.get("below", "")
    if below and not (below.isdecimal() and len(below) < 19):
        raise UsageProblemError("below must be a number", do="Send the `next` of the answer before.")
    words = request.query.get("words", "")
    return ok(
        await _of(request).search(words, limit=_limit(request, 20), below=int(below) if below else None)
    )


@routes.get("/conversations/{thread}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """The last turns of a conversation; `?before=` those before a turn, `?at=` those of the course that has a turn."""
    before, at = _turn(request, "before"), _turn(request, "at")
    found = await _of(request).show(
        request.match_info["thread"], limit=_limit(request, 50), before=before, at=at
    )
    turns = request.app[DAEMON].dispatcher.turns
    for turn in found["turns"]:
        turn["running"] = turn["state"] == "open" and turns.running(turn["from"], turn["id"]) is not None
    return ok(found)


@routes.post("/conversations/{thread}/rename")
@operator_only
async def rename(request: web.Request) -> web.Response:
    """Gives it the title `title`; "" gives back the words that it began with."""
    title = (await json_object(request)).get("title")
    if not isinstance(title, str):
        raise InvalidFieldError("title must be a string", do='Send {"title": "…"}.')
    return ok(await _of(request).rename(request.match_info["thread"], title))


@routes.post("/conversations/{thread}/remove")
@operator_only
async def remove(request: web.Request) -> web.Response:
    """Takes it off the list and out of searches. What was said stays in the event log."""
    return ok(await _of(request).remove(request.match_info["thread"]))


@routes.post("/conversations/{thread}/restore")
@operator_only
async def restore(request: web.Request) -> web.Response:
    """Puts it back into the list."""
    return ok(await _of(request).restore(request.match_info["thread"]))


def _of(request: web.Request) -> ConversationOperations:
    """Those of `?user_guid=`, or of who talks without one, as the page does."""
    return ConversationOperations(
        request.app[DAEMON].store, request.query.get("user_guid", "") or DEFAULT_USER_GUID
    )


def _turn(request: web.Request, name: str) -> str:
    found = request.query.get(name, "")
    if found and not is_uuid(found):
        raise UsageProblemError(f"{name} must be the id of a turn", do="Send a turn's id, or leave it out.")
    return found.lower()


def _cursor(request: web.Request) -> tuple[int, str] | None:
    found = request.query.get("before", "")
    moment, _, id = found.partition(".")
    if not found:
        return None
    if not (moment.isdecimal() and len(moment) < 19 and is_uuid(id)):
        raise UsageProblemError("before is no place in the list", do="Send the `next` of the answer before.")
    return int(moment), id


def _limit(request: web.Request, default: int) -> int:
    found = request.query.get("limit", "")
    return max(1, min(int(found[:9]), _MOST)) if found.isdecimal() else default
