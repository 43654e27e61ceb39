"""A2A 1.0, for agents and programs of other vendors: signed cards, JSON-RPC and HTTP+JSON."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson
from aiohttp import web

from envelopes.codecs import a2a, a2a_cards, a2a_tasks
from envelopes.codecs.a2a import A2AError
from envelopes.codecs.a2a_cards import Skill
from envelopes.codecs.jsonrpc import id_in
from envelopes.errors import ReportableError
from neighborhoods.discovery.address_text import join
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError
from rappd.listeners import program_requests, programs
from rappd.listeners.a2a_tasks import ASK, PROTOCOL, Tasks
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import UnsupportedMediaTypeError, read_body, whole_body
from rappd.listeners.event_stream import EventStream, last_seen, opened, with_beats
from rappd.listeners.federation.callers import FEDERATION, HELLO_LIMIT, caller
from rappd.listeners.programs import BRAINSTEM, TWIN, Program, Target, UnknownModelError
from rappd.listeners.request_end import until_stopped
from rappd.tenants.tenant import HOST
from rappd.version import __version__

routes = web.RouteTableDef()

_BASES = ("/a2a", "/a2a/twin/{twin}")
_TASK = "/tasks/{id:[^/:]+}"
_STREAMED = ("SendStreamingMessage", "SubscribeToTask")
BEAT_SECONDS = 3.0
"""Of silence in a stream: clients in Python give up after 5 unless they are told otherwise."""
_LARGE = 1 << 18
_OF_HTTP = (401, 403)
"""Refusals that JSON-RPC tells by the HTTP status, too."""

T = TypeVar("T")
R = TypeVar("R")
Spoken = Callable[[web.Request, Program], Awaitable[web.StreamResponse]]


def _served(
    method: str, path: str, shape: Callable[[ReportableError], web.StreamResponse]
) -> Callable[[Spoken], Spoken]:
    """Registers a route for the brainstem, and for each twin."""

    def add(handler: Spoken) -> Spoken:
        for base in _BASES:
            routes.route(method, base + path)(program_requests.spoken(PROTOCOL, shape)(handler))
        return handler

    return add


def _http_refused(found: ReportableError) -> web.Response:
    return _json(a2a.http_error(found), a2a.shape_of(found).http)


def _rpc_refused(found: ReportableError) -> web.Response:
    return _json(a2a.rpc_error(None, found), a2a.shape_of(found).http)


SHAPES = {"/a2a": _http_refused}


@routes.get(a2a_cards.PATH)
@routes.get("/a2a/twin/{twin}" + a2a_cards.PATH)
async def card(request: web.Request) -> web.Response:
    """The signed agent card: for strangers what the owner published, for others what they may use."""
    try:
        if FEDERATION in request.app and not caller(request)[0].caps:
            found = _card_for_strangers(request)
        else:
            found = await _card(request, programs.program_of(request, PROTOCOL), "")
    except ReportableError as refused:
        return _http_refused(refused)
    return _kept(request, found)


def _kept(request: web.Request, found: web.Response) -> web.Response:
    """The card as clients may keep it: they ask whether it is the same still."""
    assert isinstance(found.body, bytes)
    tag = hashlib.sha256(found.body).hexdigest()[:32]
    if any(one.value == tag for one in request.if_none_match or ()):
        found = web.Response(status=304)
    found.etag = tag
    found.headers["Cache-Control"] = "private, max-age=0, must-revalidate"
    return found


@_served("POST", "", _rpc_refused)
@_served("POST", "/", _rpc_refused)
async def json_rpc(request: web.Request, program: Program) -> web.StreamResponse:
    """A2A over JSON-RPC."""
    raw = await _body(request)
    try:
        a2a.check_version(_version(request))
        called = await _read(request, a2a.decode_rpc, raw)
        if called.method in _STREAMED:
            return await _stream(request, program, called.method, called.params, _RpcEvents(called.id))
        found = await _answer(request, program, called.method, called.params)
    except ReportableError as problem:
        program_requests.note_refusal(request, PROTOCOL, program, problem)
        is_of_http = problem.status in _OF_HTTP or isinstance(problem, UnknownModelError)
        ident = await _read(request, id_in, raw)
        return _json(a2a.rpc_error(ident, problem), problem.status if is_of_http else 200)
    return _json(a2a.rpc_result(called.id, found))


def _over_http(method: str, path: str, called: str) -> None:
    """Registers the route of an operation over HTTP+JSON."""

    async def handle(request: web.Request, program: Program) -> web.StreamResponse:
        a2a.check_version(_version(request))
        params: dict[str, Any] = dict(request.query)
        if method == "POST" and path.startswith("/message"):
            body = await _read(request, a2a.decode_body, await _body(request))
            if not isinstance(body, dict):
                raise A2AError("INVALID_REQUEST", "The body must be an object.", do="Send {…}.")
            params = body
        if "id" in request.match_info:
            params["id"] = request.match_info["id"]
        if called in _STREAMED:
            return await _stream(request, program, called, params, _HttpEvents())
        return _json(await _answer(request, program, called, params), kind=a2a.MEDIA_TYPE)

    handle.__doc__ = f"{called} of A2A, over HTTP+JSON."
    _served(method, path, _http_refused)(handle)


for _method, _path, _called in (
    ("POST", "/message:send", "SendMessage"),
    ("POST", "/message:stream", "SendStreamingMessage"),
    ("GET", _TASK, "GetTask"),
    ("GET", "/tasks", "ListTasks"),
    ("POST", f"{_TASK}:cancel", "CancelTask"),
    ("GET", f"{_TASK}:subscribe", "SubscribeToTask"),
    ("POST", f"{_TASK}:subscribe", "SubscribeToTask"),
    ("GET", "/extendedAgentCard", "GetExtendedAgentCard"),
    ("POST", f"{_TASK}/pushNotificationConfigs", "CreateTaskPushNotificationConfig"),
    ("GET", f"{_TASK}/pushNotificationConfigs", "ListTaskPushNotificationConfigs"),
    ("GET", f"{_TASK}/pushNotificationConfigs/{{push}}", "GetTaskPushNotificationConfig"),
    ("DELETE", f"{_TASK}/pushNotificationConfigs/{{push}}", "DeleteTaskPushNotificationConfig"),
):
    _over_http(_method, _path, _called)


async def _answer(
    request: web.Request, program: Program, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """The result of an operation that does not stream. Raises ``ReportableError``."""
    if "PushNotification" in method:
        raise a2a.no_push()
    if method == "GetExtendedAgentCard":
        found: dict[str, Any] = orjson.loads((await _card(request, program, _named(params))).body)  # type: ignore[arg-type]
        return found
    tasks = Tasks(program, await _target(request, program, _named(params)))
    if method == "SendMessage":
        sent = await _read(request, a2a.read_sent, params)
        begun, turn = await tasks.begin(sent)
        with until_stopped(request):
            at = await (tasks.noted(begun, turn) if sent.at_once else tasks.ended(begun, turn))
        return {"task": a2a_tasks.task(at, history=sent.history)}
    if method == "ListTasks":
        return await tasks.listed(a2a.read_query(params))
    id = a2a.read_task_id(params)
    if method == "CancelTask":
        return a2a_tasks.task(await tasks.cancel(id))
    history = a2a.history_length(params.get("historyLength"))
    return a2a_tasks.task(await tasks.get(id), history=history)


class _RpcEvents:
    """Stream events as JSON-RPC answers."""

    def __init__(self, ident: str | int) -> None:
        self._ident = ident

    def event(self, update: dict[str, Any]) -> dict[str, Any]:
        """One event."""
        return a2a.rpc_result(self._ident, update)

    async def refuse(self, events: EventStream, found: ReportableError) -> None:
        """The last event of a stream whose end is not known."""
        await events.send(a2a.rpc_error(self._ident, found))


class _HttpEvents:
    """Stream events as HTTP+JSON has them."""

    def event(self, update: dict[str, Any]) -> dict[str, Any]:
        """One event."""
        return update

    async def refuse(self, events: EventStream, found: ReportableError) -> None:
        """The last event of a stream whose end is not known."""
        await events.send(a2a.http_error(found), name="error")


async def _stream(
    request: web.Request,
    program: Program,
    method: str,
    params: dict[str, Any],
    shape: _RpcEvents | _HttpEvents,
) -> web.StreamResponse:
    tasks = Tasks(program, await _target(request, program, _named(params)))
    after = last_seen(request) if "Last-Event-ID" in request.headers else None
    if method == "SubscribeToTask":
        found = await tasks.followed(a2a.read_task_id(params), after)
    else:
        begun, turn = await tasks.begin(await _read(request, a2a.read_sent, params))
        found = await tasks.noted(begun, turn)
    asked_for = {one.strip() for one in request.headers.get(a2a.EXTENSIONS_HEADER, "").split(",")}
    active = ", ".join(sorted(asked_for & {a2a.REPLAY, a2a.EVENTS}))
    headers = {a2a.EXTENSIONS_HEADER: active} if active else {}
    everything, whole = a2a.EVENTS in asked_for, method != "SubscribeToTask"
    events_of = tasks.stream(found, after, whole=whole, everything=everything)
    async with opened(request, **headers) as events:
        try:
            with until_stopped(request):
                async for piece in with_beats(events_of, BEAT_SECONDS):
                    programs.program_of(request, PROTOCOL)  # its trust may have ended meanwhile
                    if piece is None:
                        await events.comment()
                    else:
                        await events.send(shape.event(piece[1]), piece[0])
        except ReportableError as problem:
            program_requests.note_refusal(request, PROTOCOL, program, problem)
            await shape.refuse(events, problem)
    return events.response


async def _target(request: web.Request, program: Program, tenant: str) -> Target:
    """The brainstem or the twin that is meant; who may call agents of the brainstem need not be let talk to it."""
    model = _model(request, tenant)
    if model == BRAINSTEM:
        return Target(BRAINSTEM, HOST, program.daemon.name, "")
    return await programs.target_of(program, model)


def _model(request: web.Request, tenant: str) -> str:
    """The brainstem or the twin that is meant: by the path, else by the ``tenant`` of the parameters."""
    return f"{TWIN}{request.match_info['twin']}" if "twin" in request.match_info else tenant or BRAINSTEM


def _named(params: dict[str, Any]) -> str:
    tenant = params.get("tenant", "")
    if not isinstance(tenant, str):
        raise A2AError("INVALID_PARAMS", "tenant must be a string.", do="Leave it out, or name twin/NAME.")
    return tenant


async def _card(request: web.Request, program: Program, tenant: str) -> web.Response:
    target = await _target(request, program, tenant)
    daemon = program.daemon
    if target.workspace != HOST:
        await daemon.tenants.twin(target.workspace)
    endpoints = daemon.dispatcher.endpoints
    usable = [one for one in endpoints.agents(target.workspace, program.caller) if one.kind == "agent"]
    if target.workspace == HOST and program.direct:
        await endpoints.look()
        usable += endpoints.of_sources(program.caller)  # workflows, and agents of other machines
    skills = [
        Skill(one.name, one.name, one.description, "workflow" if one.kind == "workflow" else "agent")
        for one in usable
    ]
    if any(one.workspace == target.workspace for one in await programs.targets(program)):  # may it talk?
        skills.insert(0, _asking(target.name))
    base = "" if target.workspace == HOST else f"/{target.id}"
    return _signed(request, target.name, skills, base)


def _card_for_strangers(request: web.Request) -> web.Response:
    daemon = request.app[DAEMON]
    request.app[HELLO_LIMIT].take(request.remote or "")
    programs.check_on(daemon, PROTOCOL)
    if "twin" in request.match_info:
        raise NotFoundError("There is nothing of that name for you.", do="Ask the owner for a token.")
    public = daemon.machines.catalogue.hello(Caller("federation", caps=())).get("public", ())
    skills = [Skill(one["name"], one["name"], one["description"]) for one in public]
    return _signed(request, daemon.name, [_asking(daemon.name), *skills], "")


def _asking(name: str) -> Skill:
    return Skill(ASK, name, f"Asks {name} in words.")


def _signed(request: web.Request, name: str, skills: list[Skill], base: str) -> web.Response:
    """A card at the address that was asked; signed only where that is this machine's, whatever Host says."""
    daemon, remote = request.app[DAEMON], FEDERATION in request.app
    url = f"{'https' if remote else 'http'}://{request.host}/a2a{base}"
    described = f"{name} answers in words, and with what its agents can do, on a machine of its owner."
    found = a2a_cards.card(name, described, url, skills, __version__, remote=remote)
    identity = daemon.machines.node.identity
    if not remote or _is_own(request, identity.fingerprint):
        found = a2a_cards.signed(found, identity)
    return _json(found)


def _is_own(request: web.Request, fingerprint: str) -> bool:
    """True when Host names the address that the caller reached, or this machine by its name on the local network."""
    name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    if not isinstance(name, tuple):
        return False
    host = socket.gethostname().partition(".")[0].lower()
    names = (name[0], host, f"{host}.local", f"{fingerprint[:12]}.local")
    return request.host.lower() in [join(one, name[1]) for one in names]


async def _body(request: web.Request) -> bytes:
    if FEDERATION not in request.app:
        return await whole_body(request)
    if not a2a.is_content_type(request.headers.get("Content-Type")):
        raise UnsupportedMediaTypeError("The body is not JSON in UTF-8.", do=f"Send {a2a.MEDIA_TYPE}.")
    return await read_body(request, a2a.LONGEST_BODY)


async def _read(request: web.Request, read: Callable[[T], R], found: T) -> R:
    """``read(found)``, of a large request beside the event loop."""
    size = request.content_length
    return await asyncio.to_thread(read, found) if size is None or size > _LARGE else read(found)


def _version(request: web.Request) -> str:
    return request.headers.get(a2a.VERSION_HEADER) or request.query.get(a2a.VERSION_HEADER, "")


def _json(
    body: dict[str, Any],
    status: int = 200,
    *,
    kind: str = "application/json",
    headers: dict[str, str] | None = None,
) -> web.Response:
    more = dict(headers or {})
    if status == 401:
        more["WWW-Authenticate"] = "Bearer"
    return web.Response(body=orjson.dumps(body, default=str), status=status, content_type=kind, headers=more)
