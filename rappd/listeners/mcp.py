"""MCP at ``/mcp``: each request by itself, whatever its revision.

No session is kept. What the older revisions call one is an id that carries the program's name; it and a request's own
id name the turn, so that a repeat gets the same answer and a restart is noticed by nobody.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

import orjson
from aiohttp import web
from msgspec.structs import replace

from envelopes.codecs import jsonrpc, mcp
from envelopes.codecs.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from envelopes.codecs.mcp import McpRequest
from envelopes.envelope import new_id
from envelopes.errors import ReportableError
from rappd.dispatch.turns import Turn
from rappd.errors import RefusedError
from rappd.listeners import mcp_resources
from rappd.listeners.bodies import JSON
from rappd.listeners.event_stream import EventStream, is_wanted, opened
from rappd.listeners.mcp_tools import (
    answer_task,
    begin_tool,
    cancel_task,
    failure,
    result_of,
    sealed,
    task_of,
    tools_of,
    with_answers,
)
from rappd.listeners.mcp_tools import opened as unsealed
from rappd.listeners.program_requests import cancel_when_gone, note_refusal, raw_body
from rappd.listeners.program_turns import turn_id
from rappd.listeners.programs import Program, program_of, shown_name
from rappd.version import __version__

routes = web.RouteTableDef()

OUR_REFUSAL = -32000
"""The first of the numbers that JSON-RPC leaves to servers: the data is this machine's own error."""
TASK_SECONDS = 0.3
"""A call that is not over by then is a task, for programs that take tasks."""
_BEAT_SECONDS = 15.0
_LOOK_SECONDS = 0.5
_READ_SECONDS = 5.0
"""Between two looks at files that nobody watches: workflows."""
_LARGE = 1 << 18
_LONGEST_KEY = 200
_SERVER = {"name": "rappd", "title": "rappd", "version": __version__}
_INSTRUCTIONS = (
    "Agents of one person's own machine. ask is a talk with its brainstem or a twin, which use agents as they need"
    " them; send the conversation of an answer to go on with it. Every other tool is one agent."
)


def _not_let_in(found: ReportableError) -> web.Response:
    problem = _own_refusal(found)
    headers = {"WWW-Authenticate": "Bearer"} if found.status == 401 else None
    return web.Response(
        body=jsonrpc.refused(problem), status=found.status, content_type=JSON, headers=headers
    )


def _own_refusal(found: ReportableError) -> RpcError:
    return RpcError(OUR_REFUSAL, str(found), data=found.as_json(), do=found.do)


SHAPES = {"/mcp": _not_let_in}


@routes.post("/mcp")
async def post(request: web.Request) -> web.StreamResponse:
    """One message of the Model Context Protocol: a request is answered, with its progress where that is wanted."""
    program: Program | None = None
    try:
        program = _program(request)
        asked = await _read(request)
        if asked is not None and asked.client:
            program = replace(program, name=shown_name(asked.client))
        program.daemon.programs.seen(program)
        if asked is None or asked.call.id is None:
            return await _notified(request, program, asked)
        try:
            return await _answer(request, program, asked)
        except RpcError as found:
            found.id = asked.call.id
            if not asked.is_modern:
                found.http = 200
            raise
    except RpcError as found:
        note_refusal(request, "mcp", program, found)
        return web.Response(body=jsonrpc.refused(found), status=found.http, content_type=JSON)
    except ReportableError as found:
        note_refusal(request, "mcp", program, found)
        return _not_let_in(found)


@routes.get("/mcp", allow_head=False)
async def listen(request: web.Request) -> web.StreamResponse:
    """Word of changed tools, for programs of the older revisions; no other request goes this way."""
    try:
        program = _program(request)
        if request.headers.get("Origin") not in (None, *program.daemon.live_settings.origins):
            raise RefusedError(
                "Pages of other sites may not listen here.", do="Add the site to http.origins."
            )
    except ReportableError as found:
        note_refusal(request, "mcp", None, found)
        return _not_let_in(found)
    if not is_wanted(request):
        return web.Response(status=406)
    tools = await _ToolList.seen_by(program)
    async with opened(request) as events:
        await _tell_changes(request, program, events, None, tools)
    return events.response


def _program(request: web.Request) -> Program:
    return program_of(request, "mcp", name=_name_in(request.headers.get(mcp.SESSION_HEADER, "")))


def _check_trust(request: web.Request, program: Program) -> None:
    """Raises ``ReportableError`` where the trust in a token or a machine ended meanwhile."""
    if program.key:
        _program(request)


async def _read(request: web.Request) -> McpRequest | None:
    raw = await raw_body(request)
    headers = request.headers
    return await asyncio.to_thread(mcp.read, raw, headers) if len(raw) > _LARGE else mcp.read(raw, headers)


async def _notified(request: web.Request, program: Program, asked: McpRequest | None) -> web.Response:
    if asked is not None and asked.call.method == "notifications/cancelled":
        named = asked.call.params.get("requestId")
        if isinstance(named, str | int) and (id := _id_in_session(request, named)):
            turn = program.daemon.dispatcher.guests_turns.running(program.sender, turn_id(program, id))
            if turn is not None:
                turn.cancel()
    elif asked is not None and not asked.call.method.startswith("notifications/"):
        raise RpcError(INVALID_REQUEST, "A request needs an id.", do="Send one.")
    return web.Response(status=202)


async def _answer(request: web.Request, program: Program, asked: McpRequest) -> web.StreamResponse:
    method = asked.call.method
    if method in ("tools/list", "tools/call", "subscriptions/listen"):
        await program.daemon.host.ready.wait()  # a program that waited for the start is early
    if method == "tools/call":
        return await _call(request, program, asked)
    if method == "subscriptions/listen" and asked.is_modern:
        return await _subscribe(request, program, asked)
    handler = (_MODERN if asked.is_modern else _OLDER).get(method) or _RESOURCES.get(method)
    if handler is None or (method.startswith("resources/") and not mcp_resources.has_any(program)):
        raise RpcError(METHOD_NOT_FOUND, f"{method[:80]} is not served.", http=404, do="Ask server/discover.")
    found = await handler(program, asked)
    headers = {}
    if method == "initialize":
        headers[mcp.SESSION_HEADER] = _session_of(program.name)
    cached = method in ("server/discover", "tools/list") or method in _RESOURCES
    return _result(asked, found, headers, cached=cached)


def _result(
    asked: McpRequest, found: dict[str, Any], headers: dict[str, str] | None = None, *, cached: bool = False
) -> web.Response:
    body = mcp.result(asked, found, _SERVER, cached=cached)
    return web.Response(body=body, content_type=JSON, headers=headers)


async def _welcome(program: Program, asked: McpRequest) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}, "extensions": {mcp.TASKS: {}}}
    if mcp_resources.has_any(program):
        capabilities["resources"] = {}
    return mcp.welcome(asked, capabilities, _SERVER, _INSTRUCTIONS)


async def _ping(program: Program, asked: McpRequest) -> dict[str, Any]:
    return {}


async def _tools(program: Program, asked: McpRequest) -> dict[str, Any]:
    jsonrpc.refuse_cursor(asked.call)
    return {"tools": [tool.row for tool in (await tools_of(program)).values()]}


async def _task(program: Program, asked: McpRequest) -> dict[str, Any]:
    id = _task_id(asked)
    return (await task_of(program, id)).in_detail()


async def _cancel_task(program: Program, asked: McpRequest) -> dict[str, Any]:
    await cancel_task(program, _task_id(asked))
    return {}


async def _update_task(program: Program, asked: McpRequest) -> dict[str, Any]:
    id = _task_id(asked)
    answers = mcp.answers_in(asked.call)
    if answers is None:
        raise RpcError(INVALID_PARAMS, "inputResponses must be an object.", do="Send it.")
    await answer_task(program, id, answers)
    return {}


def _task_id(asked: McpRequest) -> str:
    if not asked.takes_tasks:
        raise mcp.missing_capability({"extensions": {mcp.TASKS: {}}})
    return mcp.text_parameter(asked.call, "taskId")


Handler = Callable[[Program, McpRequest], Awaitable[dict[str, Any]]]
_MODERN: dict[str, Handler] = {
    "server/discover": _welcome,
    "tools/list": _tools,
    "tasks/get": _task,
    "tasks/cancel": _cancel_task,
    "tasks/update": _update_task,
}
_OLDER: dict[str, Handler] = {"initialize": _welcome, "ping": _ping, "tools/list": _tools}
_RESOURCES: dict[str, Handler] = {
    "resources/list": mcp_resources.listed,
    "resources/read": mcp_resources.read,
    "resources/templates/list": mcp_resources.templates,
}


async def _call(request: web.Request, program: Program, asked: McpRequest) -> web.StreamResponse:
    name, arguments = mcp.text_parameter(asked.call, "name"), mcp.tool_arguments(asked.call)
    answers = mcp.answers_in(asked.call)
    if answers is not None:
        arguments = with_answers(arguments, answers, unsealed(program, asked.call, name))
    takes_tasks = asked.takes_tasks
    progress = asked.progress if asked.progress is not None and is_wanted(request) else None
    id = _call_id(request, asked, takes_tasks)
    try:
        turn = await begin_tool(
            program,
            name,
            arguments,
            id=id,
            takes_tasks=takes_tasks,
            alone=progress is None,
            headers=request.headers if asked.is_modern and not program.control else None,  # a bridge has none
        )
    except RpcError:
        raise
    except ReportableError as found:
        note_refusal(request, "mcp", program, found)
        return _result(asked, failure(found))
    if takes_tasks:
        await turn.over_within(TASK_SECONDS)
        if not turn.is_over:
            await program.daemon.dispatcher.flush()  # its claim, so that a restart finds it
            return _result(asked, (await task_of(program, id)).as_created())
    elif asked.is_modern:
        cancel_when_gone(request, turn)
    if progress is None:
        result = await _finished(program, asked, name, turn)
        _check_trust(request, program)
        return _result(asked, result)
    async with opened(request) as events:
        try:
            async for number, event in _with_beats(turn):
                _check_trust(request, program)
                if number is None:
                    await events.comment()
                elif (told := mcp.progress(progress, number, orjson.loads(event))) is not None:
                    await events.send(told)
            await events.send(mcp.result(asked, await _finished(program, asked, name, turn), _SERVER))
        except RpcError as refusal:
            await events.send(jsonrpc.refused(refusal, asked.call.id))
        except ReportableError as ended:
            turn.cancel()
            await events.send(jsonrpc.refused(_own_refusal(ended), asked.call.id))
    return events.response


async def _finished(program: Program, asked: McpRequest, tool: str, turn: Turn) -> dict[str, Any]:
    """The result of a call: its tool's, or the questions that this asks. Raises ``RpcError``."""
    found = await result_of(turn)
    questions = found.get("questions")
    if questions is None:
        return found
    if not asked.is_modern:
        return mcp.call_result("This agent asks back, which takes revision 2026-07-28 of MCP.", is_error=True)
    return mcp.input_required(asked, questions, sealed(program, tool, questions.state))


async def _with_beats(turn: Turn) -> AsyncIterator[tuple[int | None, bytes]]:
    """A turn's events, and an empty one after each silence: something in between may end a silent connection."""
    following = turn.events()
    while True:
        coming = asyncio.ensure_future(anext(following, None))
        try:
            while not (await asyncio.wait({coming}, timeout=_BEAT_SECONDS))[0]:
                yield None, b""
        finally:
            coming.cancel()  # of no effect where it came
        found = coming.result()
        if found is None:
            return
        yield found


async def _subscribe(request: web.Request, program: Program, asked: McpRequest) -> web.StreamResponse:
    wanted = asked.call.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "notifications must be an object.", do="Say what you listen for.")
    assert asked.call.id is not None
    served = {"toolsListChanged": True} if wanted.get("toolsListChanged") is True else {}
    tools = await _ToolList.seen_by(program) if served else None
    async with opened(request) as events:
        await events.send(mcp.subscribed(asked.call.id, served))
        await _tell_changes(request, program, events, asked.call.id, tools)
        await events.send(mcp.result(asked, mcp.subscription_over(asked), _SERVER))
    return events.response


class _ToolList:
    """The tools of a program as they were at its last look, to tell when they become others."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._published: list[object] = []
        self._rows: list[object] = []

    @classmethod
    async def seen_by(cls, program: Program) -> Self:
        """The tools as they are now: a program that is told that it subscribed misses no change from then on."""
        tools = cls(program)
        tools._published = tools._publish()
        await tools._look()
        return tools

    async def changed(self, request: web.Request) -> bool:
        """True where the tools are others than at the last look."""
        published = self._publish()
        if published == self._published:
            return False
        _program(request)  # its trust may have ended meanwhile
        before = self._rows
        await self._look()
        self._published = published
        return self._rows != before

    def _publish(self) -> list[object]:
        endpoints = self._program.daemon.dispatcher.endpoints
        found: list[object] = [endpoints.published(one.workspace) for one in endpoints.tenants()]
        return [*found, *endpoints.of_sources(self._program.caller)] if self._program.direct else found

    async def _look(self) -> None:
        self._rows = [tool.row for tool in (await tools_of(self._program)).values()]


async def _tell_changes(
    request: web.Request,
    program: Program,
    events: EventStream,
    subscription: jsonrpc.Id | None,
    tools: _ToolList | None,
) -> None:
    """Says each time that ``tools`` are others, until the program goes or the daemon stops."""
    dispatcher, silent, unread = program.daemon.dispatcher, 0.0, 0.0
    while not dispatcher.closing:
        if tools is not None and await tools.changed(request):
            await events.send(mcp.tools_changed(subscription))
            silent = 0.0
        await asyncio.sleep(_LOOK_SECONDS)
        silent, unread = silent + _LOOK_SECONDS, unread + _LOOK_SECONDS
        if program.direct and unread >= _READ_SECONDS:
            await dispatcher.endpoints.look()
            unread = 0.0
        if silent >= _BEAT_SECONDS or request.transport is None or request.transport.is_closing():
            await events.comment()
            silent = 0.0


def _session_of(name: str) -> str:
    """A fresh session: its id carries what the program calls itself, for its later requests do not."""
    return f"{new_id()}.{base64.urlsafe_b64encode(name.encode()).decode().rstrip('=')}"


def _name_in(session: str) -> str:
    _, _, coded = session[:300].partition(".")
    if not coded:
        return ""
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""


def _call_id(request: web.Request, asked: McpRequest, takes_tasks: bool) -> str:
    """The name of a call, which a repeat has, too: its key, or its id within its session; "" where there is neither."""
    if not asked.is_modern:
        return _id_in_session(request, asked.call.id)
    key = request.headers.get(mcp.KEY_HEADER, "")[:_LONGEST_KEY]
    if not takes_tasks:
        return key
    fresh = mcp.task_id(time.time_ns() // 1_000_000, os.urandom(10))
    return key if mcp.created_at(key) is not None else fresh


def _id_in_session(request: web.Request, id: jsonrpc.Id | None) -> str:
    session = request.headers.get(mcp.SESSION_HEADER, "")
    return f"{session}\0{id!r}" if session else ""
