"""Other machines, for their owner: peers, pairing, calls, the outbox, tokens."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.http.app_keys import DAEMON
from rappd.http.event_stream import opened
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.calls import OwnersCall
from rappd.operations.peers import whose

routes = web.RouteTableDef()


@routes.get("/peers")
@operator_only
async def peers(request: web.Request) -> web.Response:
    """Paired machines, found ones, and who asks to be paired."""
    return ok(await request.app[DAEMON].peers.listing())


@routes.post("/peers")
@operator_only
async def add(request: web.Request) -> web.Response:
    """Writes an `address` down, and says who answers there."""
    return ok(await request.app[DAEMON].peers.add(text_field(await json_object(request), "address")))


@routes.post("/peers/forget")
@operator_only
async def forget(request: web.Request) -> web.Response:
    """Takes a written-down `address` out again."""
    return ok(await request.app[DAEMON].peers.forget(text_field(await json_object(request), "address")))


@routes.get("/peers/{peer}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """One peer, and what of it may be used here."""
    return ok(await request.app[DAEMON].peers.show(request.match_info["peer"]))


@routes.post("/peers/{peer}/rename")
@operator_only
async def rename(request: web.Request) -> web.Response:
    """Calls a peer `name` here."""
    name = text_field(await json_object(request), "name")
    return ok(await request.app[DAEMON].peers.rename(request.match_info["peer"], name))


@routes.post("/peers/{peer}/scopes")
@operator_only
async def scopes(request: web.Request) -> web.Response:
    """Sets what a peer may do here: `scopes`, a list of capabilities."""
    given = (await json_object(request)).get("scopes")
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidBodyError(
            "scopes is a list of capabilities", do='Send {"scopes": ["HELP.brainstem.Clock"]}.'
        )
    return ok(await request.app[DAEMON].peers.scopes(request.match_info["peer"], given))


@routes.post("/peers/{peer}/offer")
@operator_only
async def offer(request: web.Request) -> web.Response:
    """Sets if the brainstem here may use a peer's agents: `on`."""
    on = (await json_object(request)).get("on")
    return ok(await request.app[DAEMON].peers.offer(request.match_info["peer"], on is True))


@routes.post("/peers/{peer}/revoke")
@operator_only
async def revoke(request: web.Request) -> web.Response:
    """Ends the trust in a peer, at once."""
    return ok(await request.app[DAEMON].peers.revoke(request.match_info["peer"]))


@routes.post("/pairings")
@operator_only
async def pair(request: web.Request) -> web.Response:
    """Begins pairing with `peer` (a name or an address); `fingerprint` or `code` settle it at once.

    `offer_code` shows a code to type on the other machine. `whose`: mine or friend.
    """
    body = await json_object(request)
    verbs = request.app[DAEMON].peers
    theirs = whose(body.get("whose"))
    if body.get("offer_code") is True:
        return ok(await verbs.offer_code(theirs or "friend"))
    fingerprint, code = str(body.get("fingerprint") or ""), str(body.get("code") or "")
    return ok(await verbs.pair(text_field(body, "peer"), fingerprint=fingerprint, code=code, whose=theirs))


@routes.get("/pairings/{attempt}")
@operator_only
async def pairing(request: web.Request) -> web.Response:
    """The state of a pairing; with `?state=` it waits up to 20 s for another state than that."""
    known = request.query.get("state", "")
    return ok(await request.app[DAEMON].peers.pairing(request.match_info["attempt"], known))


@routes.post("/pairings/{attempt}")
@operator_only
async def confirm(request: web.Request) -> web.Response:
    """Confirms a pairing: if the words are the `same`, and `whose` the other machine is."""
    body = await json_object(request)
    same = body.get("same")
    if not isinstance(same, bool):
        raise InvalidBodyError("same is true or false", do='Send {"same": true, "whose": "mine"}.')
    attempt = request.match_info["attempt"]
    return ok(await request.app[DAEMON].peers.confirm(attempt, same, whose(body.get("whose"))))


@routes.delete("/pairings/{attempt}")
@operator_only
async def stop(request: web.Request) -> web.Response:
    """Wants no pairing."""
    return ok(await request.app[DAEMON].peers.stop(request.match_info["attempt"]))


@routes.post("/call")
@operator_only
async def call(request: web.Request) -> web.Response:
    """Asks a `peer`: its brainstem (`text`), a `twin` of it, or one `agent` with `args`. `wait`: seconds."""
    under_way = await _call(request, await json_object(request))
    return ok(await under_way.row())


@routes.post("/call/stream")
@operator_only
async def call_stream(request: web.Request) -> web.StreamResponse:
    """The same as server-sent events, as `/chat/stream` has them; the last is `done`, with the `call`, or `error`.

    A caller that disconnects does not stop the call.
    """
    under_way = await _call(request, await json_object(request), stream=True)
    async with opened(request) as events:
        async for number, event in under_way.turn.events():
            await events.send(event, number)
        try:
            last = {"type": "done", **await under_way.row()}
        except ReportableError as found:
            last = {"type": "error", **found.as_json(), "status": found.status}
        await events.send(last, under_way.turn.number + 1)
    return events.response


@routes.post("/call/cancel")
@operator_only
async def cancel(request: web.Request) -> web.Response:
    """Stops what a `peer` does for the call with that `id`."""
    body = await json_object(request)
    return ok(await request.app[DAEMON].calls.cancel(text_field(body, "peer"), text_field(body, "id")))


@routes.get("/outbox")
@operator_only
async def outbox(request: web.Request) -> web.Response:
    """The outbox: what waits for other machines; without `?waiting=1` also recent results.

    `?restored=1`: also calls that came back with a snapshot, unanswered (`state` `open`).
    """
    found = request.app[DAEMON].calls.outbox(
        waiting=request.query.get("waiting") == "1", restored=request.query.get("restored") == "1"
    )
    return ok(await found)


@routes.post("/outbox/{id}/redirect")
@operator_only
async def redirect(request: web.Request) -> web.Response:
    """Sends a call to the machine `peer`: for one that was set up anew, or that came back with a snapshot."""
    peer = text_field(await json_object(request), "peer")
    return ok(await request.app[DAEMON].calls.redirect(request.match_info["id"], peer))


@routes.post("/outbox/{id}/retry")
@operator_only
async def retry(request: web.Request) -> web.Response:
    """Tries one now."""
    return ok(await request.app[DAEMON].calls.retry(request.match_info["id"]))


@routes.delete("/outbox/{id}")
@operator_only
async def drop(request: web.Request) -> web.Response:
    """Cancels a waiting call."""
    return ok(await request.app[DAEMON].calls.drop(request.match_info["id"]))


async def _call(request: web.Request, body: dict[str, Any], *, stream: bool = False) -> OwnersCall:
    text = {key: value for key, value in body.items() if isinstance(value, str)}
    args: Any = body.get("args")
    if args is not None and not isinstance(args, dict):
        raise InvalidBodyError("args is an object", do='Send {"args": {"city": "Rome"}}.')
    wait = body.get("wait")
    return await request.app[DAEMON].calls.submit(
        text_field(body, "peer"),
        text=text.get("text", ""),
        agent=text.get("agent", ""),
        args=args,
        twin=text.get("twin", ""),
        wait=float(wait) if isinstance(wait, (int, float)) and not isinstance(wait, bool) else 30.0,
        id=text.get("id", ""),
        stream=stream,
    )
