"""Routes for tokens and permissions, for the owner: issue, delegate, list, revoke."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.tokens import DAYS, TokenOperations

routes = web.RouteTableDef()


@routes.get("/tokens")
@operator_only
async def tokens(request: web.Request) -> web.Response:
    """Lists issued tokens, without their texts."""
    return ok(await _verbs(request).listing())


@routes.post("/tokens")
@operator_only
async def issue(request: web.Request) -> web.Response:
    """A token for a program: its `name`, `caps` (what it may do), `days`. Its text is in this answer alone."""
    body = await json_object(request)
    return ok(await _verbs(request).issue(text_field(body, "name"), _caps(body), _days(body)))


@routes.post("/tokens/capability")
@operator_only
async def capability(request: web.Request) -> web.Response:
    """A permission for a machine: `peer` or `fingerprint`, `caps`, perhaps `uses`, `days`."""
    body = await json_object(request)
    to = text_field(body, "fingerprint" if body.get("fingerprint") else "peer")
    return ok(await _verbs(request).capability(to, _caps(body), _days(body), _uses(body)))


@routes.post("/tokens/narrow")
@operator_only
async def narrow(request: web.Request) -> web.Response:
    """Passes a permission of this machine on, narrower: `chain`, `to`, `caps`, perhaps `uses`, `days`."""
    body = await json_object(request)
    chain = body.get("chain")
    texts = [chain] if isinstance(chain, str) else chain
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) for one in texts):
        raise InvalidBodyError("chain is a text, or a list of texts", do='Send {"chain": ["…"]}.')
    to = text_field(body, "to")
    return ok(await _verbs(request).narrow(texts, to, _caps(body), _days(body), _uses(body)))


@routes.delete("/tokens/{jti}")
@operator_only
async def revoke(request: web.Request) -> web.Response:
    """Takes one back, at once."""
    return ok(await _verbs(request).revoke(request.match_info["jti"]))


def _verbs(request: web.Request) -> TokenOperations:
    return TokenOperations(request.app[DAEMON].federation)


def _caps(body: dict[str, Any]) -> list[str]:
    caps = body.get("caps")
    if caps is None:
        return []
    if not isinstance(caps, list) or not all(isinstance(one, str) for one in caps):
        raise InvalidBodyError(
            "caps is a list of capabilities", do='Send {"caps": ["HELP.brainstem.Clock"]}.'
        )
    return caps


def _days(body: dict[str, Any]) -> float:
    days = body.get("days", DAYS)
    if isinstance(days, bool) or not isinstance(days, int | float):
        raise InvalidBodyError("days is a number", do=f'Send {{"days": {DAYS}}}.')
    return days


def _uses(body: dict[str, Any]) -> int | None:
    uses = body.get("uses")
    if uses is not None and (isinstance(uses, bool) or not isinstance(uses, int)):
        raise InvalidBodyError("uses is a whole number", do='Send {"uses": 10}.')
    return uses
