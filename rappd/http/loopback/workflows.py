"""Routes for workflows, for the owner: list, show, approve, run, pause, resume and abort."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidFieldError, json_object, text_field
from rappd.http.responses import ok
from rappd.sessions.sessions import Session
from rappd.sessions.workflows.coordinator import Coordinator

log = logging.getLogger(__name__)

routes = web.RouteTableDef()


@routes.get("/workflows")
@operator_only
async def listing(request: web.Request) -> web.Response:
    """Lists workflows, and the runs that are not over."""
    coordinator = _coordinator(request)
    found = await asyncio.to_thread(coordinator.library.listing)
    return ok({"workflows": [one.shown() for one in found], "runs": coordinator.running()})


@routes.post("/workflows/{action:pause|resume|abort}")
@operator_only
async def control(request: web.Request) -> web.Response:
    """Pauses, resumes or aborts the run of a `session`; without one, of the session used last."""
    session = await _session(request, await json_object(request))
    return ok({"run": await _coordinator(request).control(session, request.match_info["action"])})


@routes.get("/workflows/{name}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """One workflow with its text."""
    found = await asyncio.to_thread(_coordinator(request).library.find, request.match_info["name"])
    return ok(found.shown(whole=True))


@routes.post("/workflows/{name}/approve")
@operator_only
async def approve(request: web.Request) -> web.Response:
    """Lets a foreign workflow run, exactly as it was read: the `sha256` that it was shown with."""
    digest, library = text_field(await json_object(request), "sha256"), _coordinator(request).library
    found = await asyncio.to_thread(library.approve, request.match_info["name"], digest)
    log.warning("security: the workflow %s was approved", found.name)
    request.app[DAEMON].tether.workflows_changed()
    return ok(found.shown())


@routes.post("/workflows/{name}/run")
@operator_only
async def run(request: web.Request) -> web.Response:
    """Starts a workflow in a `session` (or the one used last); `files` are texts in place of its files, by their names."""
    body = await json_object(request)
    files = body.get("files") or {}
    if not isinstance(files, dict) or not all(isinstance(one, str) for one in files.values()):
        raise InvalidFieldError("files is an object of texts", do='Send {"files": {"story": "…"}}.')
    session = await _session(request, body)
    return ok({"run": await _coordinator(request).start(session, request.match_info["name"], given=files)})


async def _session(request: web.Request, body: dict[str, Any]) -> Session:
    tether, id = request.app[DAEMON].tether, _maybe(body, "session")
    if not id:
        return await tether.current.open()
    return await tether.sessions.open((await tether.sessions.find(id)).id)


def _coordinator(request: web.Request) -> Coordinator:
    return request.app[DAEMON].coordinator


def _maybe(body: dict[str, Any], name: str) -> str:
    found = body.get(name) or ""
    if not isinstance(found, str):
        raise InvalidFieldError(f"{name} must be a string", do=f'Send {{"{name}": "…"}}.')
    return found
