"""``/api/<service>``: the workspace's services (RAPP v1 §18.8), and the Tier 2 wire (§18.2)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from agents.errors import AgentError
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.worker.service_files import ServiceFailedError
from envelopes.codecs.chat import decode_request, reply_body, request_envelope
from envelopes.codecs.privileged import refuse_privileged, refuse_privileged_text
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import ERROR, is_uuid
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import check_depth, ok, plain, refusal
from rappd.listeners.loopback.request_guard import at_operator_origin, caller, tenant_of
from rappd.version import __version__

routes = web.RouteTableDef()

GREETING = "I have your memory at hand. What can I do for you?"


@routes.post("/api/businessinsightbot_function")
async def tier2(request: web.Request) -> web.Response:
    """The Tier 2 request and answer shapes; the turn behind it is an ordinary one."""
    raw = await request.read()
    try:
        body = orjson.loads(raw) if raw.strip() else None
    except orjson.JSONDecodeError:
        return web.Response(status=400, text="Invalid JSON in request body")
    refuse_privileged(body, listener="loopback")
    if not isinstance(body, dict) or not body:
        return web.Response(status=400, text="Missing JSON payload in request body")
    found = body.get("user_input")
    text = "" if found is None else str(found).strip()
    guid = str(body.get("user_guid") or "")
    if not text:
        return plain(400, "Missing or empty user_input in JSON payload", "bad_body")
    if is_uuid(text):
        return ok(_tier2_body(GREETING, "", "", guid or text))
    check_depth(body)
    history = body.get("conversation_history")
    asked = decode_request(
        orjson.dumps(
            {
                "user_input": text,
                "conversation_history": [
                    item
                    for item in (history if isinstance(history, list) else [])
                    if isinstance(item, dict) and isinstance(item.get("content"), str)
                ],
                "user_guid": guid or DEFAULT_USER_GUID,
            }
        )
    )
    turn = request.app[DAEMON].dispatcher.submit(
        request_envelope(asked, recipient=tenant_of(request).id), caller(request), session=asked.user_guid
    )
    reply = await turn.reply()
    if reply.verb == ERROR:
        return refusal(reply)
    answer = reply_body(reply, session_id=None, voice_mode=True, twin_mode=False)
    return ok(
        _tier2_body(answer["response"], answer["voice_response"], answer["agent_logs"], asked.user_guid)
    )


@routes.get("/api/health")
async def tier2_health(request: web.Request) -> web.Response:
    """Tier 2's health; `?deep=true` also asks the store and the workers."""
    daemon, tenant = request.app[DAEMON], tenant_of(request)
    started = time.perf_counter()
    healthy = tenant.ready.is_set()
    checks: dict[str, Any] = {"agents": len(tenant.registry.serving()), "ready": healthy}
    if request.query.get("deep") == "true":
        checks["records"] = (await daemon.store.counts()).events
        checks["workers"] = await tenant.workers_answer()
        healthy = healthy and checks["workers"]
        checks["model"] = daemon.providers.describe().state
    return ok(
        {
            "status": "healthy" if healthy else "degraded",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "version": __version__,
            "checks": checks,
            "response_time_ms": round((time.perf_counter() - started) * 1000, 2),
        }
    )


@routes.route("*", "/api/{service}")
@routes.route("*", "/api/{service}/{path:.*}")
async def service(request: web.Request) -> web.StreamResponse:
    """Hands the request to a service in the workspace's worker."""
    if request.method not in ("GET", "POST", "PUT", "DELETE"):
        raise web.HTTPMethodNotAllowed(request.method, ["GET", "POST", "PUT", "DELETE"])
    name = request.match_info["service"]
    raw = await request.read()
    try:
        body = (orjson.loads(raw) if raw.strip() else {}) or {}
    except orjson.JSONDecodeError:
        refuse_privileged_text(raw, listener="loopback")
        body = {}
    check_depth(body)
    refuse_privileged(body, listener="loopback")
    try:
        found = await tenant_of(request).service(
            request.method, name, request.match_info.get("path", "").rstrip("/"), body, caller(request)
        )
    except AgentRaisedError as error:
        if error.kind != ServiceFailedError.__name__:
            return plain(error.status, str(error), error.code, error.do)
        return plain(500, error.message, ServiceFailedError.code, "Fix and save; it reloads by itself.")
    except AgentError as error:
        return plain(error.status, str(error), error.code, error.do)
    if found is None:
        return plain(404, f"service '{name}' not found", "not_found", "Put it into services/.")
    if found.status < 200:
        return plain(500, f"service '{name}' answered with status {found.status}", "service_failed")
    headers = service_headers(name, found.headers, at_operator_origin=at_operator_origin(request))
    return web.Response(status=found.status, body=found.body, headers=headers)


def _tier2_body(text: str, voice: str, logs: str, guid: str) -> dict[str, str]:
    return {
        "assistant_response": text,
        "response": text,
        "voice_response": voice,
        "agent_logs": logs,
        "user_guid": guid,
    }


ALLOWED = frozenset(
    {
        *("content-type", "content-disposition", "content-language", "content-encoding", "content-range"),
        *("accept-ranges", "age", "allow", "cache-control", "etag", "expires", "last-modified"),
        *("retry-after", "vary"),
    }
)
"""Headers that describe the answer itself. Beside these: ``X-`` headers of a service's own, and ``Location``."""

_AT_OPERATOR_ORIGIN = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}
_OWN = re.compile(r"x-[a-z0-9-]{1,98}")
_OF_BROWSERS = frozenset(
    {
        *("x-content-type-options", "x-dns-prefetch-control", "x-frame-options", "x-ua-compatible"),
        *(
            "x-permitted-cross-domain-policies",
            "x-xss-protection",
            "x-webkit-csp",
            "x-content-security-policy",
        ),
        *("x-accel-redirect", "x-sendfile", "x-rappd-signature"),
    }
)
"""``X-`` headers that tell a browser or a proxy what to do."""
_UNSAFE_PATH = re.compile(r"[\\\x00-\x20\x7f]|//|/\.\.?(?:/|$)|%2e|%2f|%5c", re.IGNORECASE)


def service_headers(service: str, given: Mapping[str, str], *, at_operator_origin: bool) -> dict[str, str]:
    """The headers of ``given`` that the service ``service`` may send.

    At the operator's origin, where its answer would run with the operator's rights, a browser may show it but
    run nothing of it.
    """
    kept = {name: value for name, value in given.items() if _may_send(service, name.lower(), value)}
    return kept | _AT_OPERATOR_ORIGIN if at_operator_origin else kept


def _may_send(service: str, name: str, value: str) -> bool:
    if name == "location":
        return _leads_to(service, value)
    return name in ALLOWED or (name not in _OF_BROWSERS and _OWN.fullmatch(name) is not None)


def _leads_to(service: str, address: str) -> bool:
    """True for a path below the service's own address."""
    path = re.split(r"[?#]", address, maxsplit=1)[0]
    own = f"/api/{service}"
    return (path == own or path.startswith(f"{own}/")) and not _UNSAFE_PATH.search(path)
