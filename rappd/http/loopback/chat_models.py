"""``/chat/model`` and ``/twins/{twin}/model``: a model for one conversation, or for a twin."""

from __future__ import annotations

from aiohttp import web

from envelopes.codecs.chat import DEFAULT_USER_GUID, model_name
from rappd.dispatch.rows import thread_of
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import InvalidBodyError, InvalidFieldError, check_depth, json_object, ok
from rappd.http.loopback.security import tenant_of

conversation_routes = web.RouteTableDef()


@conversation_routes.post("/chat/model")
async def conversation_model(request: web.Request) -> web.Response:
    """Tells which model answers the conversation `session_id`; with `model`, chooses it, or `auto` for none of its own."""
    body = await json_object(request)
    session, guid = body.get("session_id"), body.get("user_guid") or DEFAULT_USER_GUID
    if not session:
        raise InvalidBodyError("session_id is required", do='Send {"session_id": "…"}.')
    if not isinstance(guid, str):
        raise InvalidFieldError("user_guid must be a string", do="Send a GUID, or leave it out.")
    check_depth(session)
    choices, workspace = request.app[DAEMON].model_choices, tenant_of(request).name
    thread, _ = thread_of(workspace, guid, session)
    if body.get("model") is not None:
        await choices.choose_for_conversation(thread, model_name(body["model"]))
    return ok(await choices.describe(thread, workspace))
