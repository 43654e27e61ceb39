"""Foreign programs: who one is, what it may use, and the turn that its request becomes.

A protocol's listener has a codec and its routes, and asks here for everything else. On loopback a program is what
``/chat`` is: an everyday caller, never the operator. At the listener for other machines it is the token, or the paired
machine, that it shows.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import orjson
from aiohttp import web

from envelopes.codecs.chat import DEFAULT_USER_GUID, ChatRequest, request_envelope
from envelopes.codecs.strict_json import not_utf8
from envelopes.envelope import DONE, HELP, THREAD, Envelope, as_uuid, brainstem_id, new_id
from envelopes.errors import BadTokenError, ReportableError
from envelopes.program_input import ProgramInput
from neighborhoods.errors import NotPairedError
from rappd.daemon.app import Daemon
from rappd.dispatch.rights import PROGRAM, Caller
from rappd.dispatch.rows import thread_of
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, RappdError, RefusedError
from rappd.features.programs.record import STRANGER
from rappd.federation.errors import ShuttingDownError, UnauthenticatedError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import BodyTooLargeError, InvalidBodyError, body_of, check_depth
from rappd.listeners.federation import callers
from rappd.listeners.federation.callers import FEDERATION, SIGNED_LIMIT
from rappd.listeners.loopback.security import from_control
from rappd.store.conversation_table import PROGRAM_SESSION, one_query
from rappd.tenants.tenant import HOST
from twins.workspace.listing import scan
from twins.workspace.rappid import label

log = logging.getLogger(__name__)

BRAINSTEM = "brainstem"
TWIN = "twin/"
MOST_OF_A_NAME = 80
MOST_OF_A_SESSION = 200
MOST_AT_ONCE = 5 << 20
"""Bytes of a request from elsewhere."""
_LARGE = 1 << 18
_LOOK_SECONDS = 0.5
_SCHEME = "bearer "
_OURS = frozenset({"revoked", "expired", "binding"})
"""Reasons to refuse a token on loopback, too: it is one of this machine's, and would count for more once it is over."""
_CAPABILITY_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")


class UnknownModelError(NotFoundError):
    """No brainstem or twin of that name, as far as the caller may know."""


class ProtocolOffError(NotFoundError):
    """The owner switched the protocol off."""

    code = "protocol_off"


@dataclass(frozen=True)
class Program:
    """A foreign program, as its listener authenticated it.

    ``sender`` is the ``from`` of its envelopes, ``name`` what it calls itself: shown, never trusted. ``key`` is its
    token or machine, "" on this machine without one. ``direct``: it may call agents without a turn, those to which
    ``caller`` is admitted. ``owners``: on this machine and without a token, so that the owner's conversations are its
    own; ``control``: it came over the control socket. ``only``: the agents and twins that the owner left to programs of
    this protocol, None for all.
    """

    protocol: str
    caller: Caller
    sender: str
    name: str
    key: str
    direct: bool
    owners: bool
    control: bool
    only: frozenset[str] | None
    daemon: Daemon = field(repr=False, compare=False)


@dataclass(frozen=True)
class Target:
    """The brainstem or a twin, as programs name it: "brainstem", "twin/SLUG". ``workspace`` is its tenant's name."""

    id: str
    workspace: str
    name: str
    description: str


def program_of(request: web.Request, protocol: str, *, name: str = "") -> Program:
    """The program that asks. ``name`` is what it calls itself, where its protocol says so.

    Raises ``ProtocolOffError``; at the listener for other machines ``UnauthenticatedError``, ``BadTokenError``,
    ``NotPairedError``, ``RefusedError``.
    """
    daemon = request.app[DAEMON]
    called = shown_name(name or request.headers.get("User-Agent", "").split("/")[0])
    if FEDERATION in request.app:
        caller, key = _from_elsewhere(request)
        found = Program(protocol, caller, key, called, key, True, False, False, None, daemon)
    else:
        found = _on_this_machine(request, protocol, called)
    check_on(daemon, protocol)
    return found


def check_on(daemon: Daemon, protocol: str) -> None:
    """Raises ``ProtocolOffError`` where the owner switched a protocol off."""
    if not daemon.settings.on(f"programs.{protocol}"):
        raise ProtocolOffError(
            f"This machine does not answer over {protocol}.", do=f"rappd config set programs.{protocol} on"
        )


async def targets(program: Program) -> list[Target]:
    """The brainstem and the twins that a program may use, in the order of their names."""
    layout = program.daemon.tenants.layout
    twins = (await asyncio.to_thread(scan, layout)).twins
    slugs = [label(twin.name) for twin in twins]
    found = [_brainstem(program)]
    for twin, slug in zip(twins, slugs, strict=True):
        unique = slug if slugs.count(slug) == 1 else f"{slug}-{twin.key[:8]}"
        found.append(Target(f"{TWIN}{unique}", twin.key, twin.name, f"Asks {twin.name} in words."))
    return [one for one in found if _may_use(program, one)]


async def target_of(program: Program, model: str) -> Target:
    """The brainstem or the twin that a program names. Raises ``UnknownModelError``, ``RefusedError``."""
    wanted = model.strip().casefold()
    host = _brainstem(program)
    if wanted == BRAINSTEM and _may_use(program, host):
        return host
    known = await targets(program)
    for one in known:
        if wanted in (one.id.casefold(), f"{TWIN}{one.workspace}"):
            return one
    may = ", ".join(one.id for one in known[:20]) or "nothing"
    if program.caller.caps is None or program.caller.may(f"{HELP}.anybody.anything"):
        raise UnknownModelError(f'There is no "{model[:60]}" here.', do=f"Known to you: {may}.")
    # In the same words whether it exists or not.
    raise RefusedError(f'"{model[:60]}" is not there for you.', do=f"Known to you: {may}.")


def speaking_for(program: Program, user: str) -> Program:
    """The program on behalf of a user of its own.

    On this machine ``user`` is the sender where it is a GUID; a token or a machine only divides what is its own.
    """
    if not user:
        return program
    if program.owners:
        return replace(program, sender=user) if _GUID.fullmatch(user) else program
    return replace(program, sender=f"{program.sender}.{hashlib.sha256(user.encode()).hexdigest()[:16]}")


_GUID = re.compile(r"[0-9a-z]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


async def begin(
    program: Program,
    target: Target,
    asked: ChatRequest,
    *,
    id: str = "",
    session: str = "",
    more: Mapping[str, Any] | None = None,
    brings: ProgramInput | None = None,
    recorded_id: str = "",
) -> Turn:
    """The turn that a request becomes; ``turn.session`` is its conversation, to be named again as it is.

    ``id`` is the client's own for it: such a turn is begun once and answered once, whatever is killed in between, and
    a repeat of the id gets the recorded answer, without events. ``session`` names the conversation; without it,
    ``asked.history`` finds the one that it repeats. ``more`` goes into the HELP's data. ``brings`` is what the program
    has for the model beside the sentence. ``recorded_id`` is an id as the record has it, in place of ``id``.
    """
    daemon = program.daemon
    tenant = daemon.host if target.workspace == HOST else await daemon.tenants.twin(target.workspace)
    tenant.active_requests += 1  # so that it is not closed to make room for others
    try:
        if not session and asked.history:
            session = daemon.programs.session_after(program, program.sender, asked.history)
        named = await session_of(program, target, session)
        own = recorded_id or (turn_id(program, id) if id else "")
        envelope = _envelope(program, asked, tenant.id, own, more or {})
        caller = _caller_for(program, target)
        joined = False
        if own:
            envelope = envelope.extended(**{THREAD: named})
            turn = daemon.dispatcher.submit_once(envelope, caller, synced=not program.owners, program=brings)
            joined = turn.envelope is not envelope
            turn.session = named
        else:
            turn = daemon.dispatcher.submit(
                envelope, caller, session=named, named=True, repeats=False, program=brings
            )
    except BaseException:
        tenant.active_requests -= 1
        raise

    def ended() -> None:
        tenant.active_requests -= 1
        if not joined and (turn.recorded_at or not own):  # no repeat
            _count(program, asked, turn)

    turn.when_over(ended)
    return turn


async def begin_call(
    program: Program,
    workspace: str,
    agent: str,
    arguments: dict[str, Any],
    *,
    id: str = "",
    session: str = "",
    more: Mapping[str, Any] | None = None,
) -> Turn:
    """A direct call of one agent of a tenant, as a turn; ``id``, ``session`` and ``more`` as for ``begin``.

    Raises ``RefusedError`` for a program that may not call directly, or not that agent.
    """
    daemon = program.daemon
    found = daemon.dispatcher.endpoints.named(workspace, agent)
    if (
        not program.direct
        or found is None
        or found.agent is None
        or not found.exposure.admits(program.caller)
    ):
        raise NotFoundError(f'No agent "{agent[:80]}".', do="Ask this machine's owner to share it.")
    target = _brainstem(program) if workspace == HOST else Target("", workspace, "", "")
    asked = ChatRequest("", [], None, program.sender)
    call = {**(more or {}), "agent": found.agent.name, "args": arguments}
    return await begin(program, target, asked, id=id or new_id(), session=session, more=call)


async def session_of(program: Program, target: Target, named: str) -> str:
    """The session of a conversation that a program names, in full; a new one for "".

    Conversations of a program are its own. One of the owner's that exists can be gone on with by programs that are
    the owner's.
    """
    named = named.strip()
    if len(named) > MOST_OF_A_SESSION or not named.isprintable():
        named = hashlib.sha256(named.encode(errors="surrogatepass")).hexdigest()
    prefix = f"{PROGRAM_SESSION}{program.protocol}:"
    if named.startswith(prefix):
        return named
    if named and program.owners:
        thread, _ = thread_of(target.workspace, program.sender, named)
        await program.daemon.store.flush()
        if await program.daemon.store.rows(*one_query(program.sender, thread)):
            return named
    return f"{prefix}{named or new_id()}"


def turn_id(program: Program, id: str) -> str:
    """The id in the record of a turn that a program calls ``id``: no program meets another's, nor a person's."""
    text = f"{program.protocol}\0{program.sender}\0{id}"
    return as_uuid(hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32], "8")


async def reply_of(turn: Turn) -> dict[str, Any]:
    """The data of a turn's DONE. Raises ``ReportableError`` for anything else."""
    reply = await turn.reply()
    if reply.verb == DONE:
        return reply.data
    raise RefusedTurnError(reply)


class RefusedTurnError(RappdError):
    """The ERROR that a turn came to."""

    def __init__(self, reply: Envelope) -> None:
        data = reply.data
        super().__init__(str(data.get("msg") or "It failed."), do=str(data.get("do") or ""))
        status = data.get("code")
        self.code = str(data.get("reason") or "failed")  # type: ignore[misc]
        self.status = status if isinstance(status, int) and 400 <= status < 600 else 500  # type: ignore[misc]


def refused(found: ReportableError) -> str:
    """Sentence and advice on one line, for the client's own error shape."""
    return found.with_advice()


def cancel_when_gone(request: web.Request, turn: Turn) -> None:
    """Cancels a turn once its client has hung up. Not for turns that outlive a connection."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if turn.is_over:
            return
        if request.transport is None or request.transport.is_closing():
            turn.cancel()
        else:
            loop.call_later(_LOOK_SECONDS, look)

    loop.call_later(_LOOK_SECONDS, look)


FOLLOWING = web.AppKey("following", set[asyncio.Task[Any]])
"""Requests that wait for a turn, or stream one."""


def end_at_stop(app: web.Application) -> None:
    """Lets requests of ``app`` that follow a turn say so when its listener closes, while they still can."""
    following: set[asyncio.Task[Any]] = set()
    app[FOLLOWING] = following
    app.on_shutdown.append(_end_following)


@contextmanager
def until_stopped(request: web.Request) -> Iterator[None]:
    """For a block that follows a turn: raises ``ShuttingDownError`` in it when the listener closes."""
    following, task = request.app[FOLLOWING], asyncio.current_task()
    assert task is not None
    following.add(task)
    try:
        yield
    except asyncio.CancelledError as stopped:
        if task in following:
            raise
        task.uncancel()
        raise ShuttingDownError("This machine is stopping.", do="Ask again soon.") from stopped
    finally:
        following.discard(task)


async def _end_following(app: web.Application) -> None:
    following = app[FOLLOWING]
    for task in list(following):
        following.discard(task)
        task.cancel()


async def raw_body(request: web.Request) -> bytes:
    """The body, read after its sender is known; from elsewhere JSON alone. Raises ``ReportableError``."""
    try:
        return await (body_of(request, MOST_AT_ONCE) if FEDERATION in request.app else request.read())
    except web.HTTPRequestEntityTooLarge as error:
        raise BodyTooLargeError(
            "The request is too large.", do="Send less, or raise http.body_mb."
        ) from error


async def json_body(request: web.Request) -> dict[str, Any]:
    """The body as a JSON object. Raises ``ReportableError``."""
    raw = await raw_body(request)
    return await asyncio.to_thread(_object, raw) if len(raw) > _LARGE else _object(raw)


Spoken = Callable[[web.Request, Program], Awaitable[web.StreamResponse]]
Shape = Callable[[ReportableError], web.StreamResponse]


def spoken(
    protocol: str, shape: Shape
) -> Callable[[Spoken], Callable[[web.Request], Awaitable[web.StreamResponse]]]:
    """Wraps a route of a protocol: its program is known and noted, and ``shape`` makes an answer of every error."""

    def wrap(handler: Spoken) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            program: Program | None = None
            try:
                program = program_of(request, protocol)
                program.daemon.programs.seen(program)
                with until_stopped(request):
                    return await handler(request, program)
            except ReportableError as found:
                if request.writer.output_size:
                    raise
                note_refusal(request, protocol, program, found)
                return shape(found)

        handle.__doc__ = handler.__doc__
        return handle

    return wrap


def note_refusal(
    request: web.Request, protocol: str, program: Program | None, found: ReportableError
) -> None:
    """Notes what a program was last refused; one that did not get in is not told apart from others that did not."""
    daemon = request.app[DAEMON]
    known = program or Program(
        protocol, Caller(PROGRAM, caps=()), "", "", STRANGER, False, False, False, None, daemon
    )
    daemon.programs.seen(known, error=refused(found))


def shown_name(text: str) -> str:
    """The name that a program gives itself, as screens can show it."""
    return "".join(one for one in text[: 4 * MOST_OF_A_NAME] if one.isprintable()).strip()[:MOST_OF_A_NAME]


def _on_this_machine(request: web.Request, protocol: str, called: str) -> Program:
    daemon = request.app[DAEMON]
    control = from_control(request)
    if not control and (shown := _shown_token(request)) is not None:
        caller, key = shown
        return Program(protocol, caller, key, called, key, True, False, False, None, daemon)
    only = frozenset(daemon.settings.items(f"programs.{protocol}_agents")) or None
    caller = Caller("loopback")
    if only is not None:
        agents = [one for one in only if _CAPABILITY_SEGMENT.fullmatch(one)]
        caps = (f"{HELP}.{HOST}", *(f"{HELP}.{HOST}.{one}" for one in sorted(agents)))
        caller = Caller("loopback", caps=caps, mine=True)
    direct = control or daemon.settings.on("http.tools")
    return Program(protocol, caller, DEFAULT_USER_GUID, called, "", direct, True, control, only, daemon)


def _shown_token(request: web.Request) -> tuple[Caller, str] | None:
    """A token of this machine on loopback narrows its bearer; any other key says nothing there."""
    shown = request.headers.get("Authorization", "")
    token = shown[len(_SCHEME) :].strip() if shown[: len(_SCHEME)].lower() == _SCHEME else ""
    if token.count(".") != 2:
        return None
    try:
        caller, name = request.app[DAEMON].federation.parts.credentials.who(token, None)
    except NotPairedError:
        return None
    except BadTokenError as found:
        if found.reason in _OURS:
            raise
        return None
    return msgspec.structs.replace(caller, listener=PROGRAM), name or brainstem_id(caller.peer)


def _from_elsewhere(request: web.Request) -> tuple[Caller, str]:
    if "Origin" in request.headers:
        raise RefusedError("Pages of other sites may not use this listener.", do="Ask from a program.")
    try:
        caller, name = callers.caller(request)
        if not caller.peer and not caller.caps:
            raise UnauthenticatedError(
                "Only paired machines, and programs with a token, may ask that.", do="rappd token issue NAME"
            )
    except ReportableError:
        with suppress(KeyError):
            request.app[SIGNED_LIMIT].take(request.remote or "")
        raise
    return msgspec.structs.replace(caller, listener=PROGRAM), name or brainstem_id(caller.peer)


def _brainstem(program: Program) -> Target:
    name = program.daemon.name
    return Target(BRAINSTEM, HOST, name, f"Asks {name} in words.")


def _may_use(program: Program, target: Target) -> bool:
    if program.only is not None and target.workspace != HOST:
        return target.id in program.only
    return program.caller.may(f"{HELP}.{target.workspace}")


def _caller_for(program: Program, target: Target) -> Caller:
    caller = program.caller
    if program.only is None or target.workspace == HOST or target.id not in program.only:
        return caller
    whole = f"{HELP}.{target.workspace}.*"
    return msgspec.structs.replace(caller, caps=(*(caller.caps or ()), whole))


def _envelope(
    program: Program, asked: ChatRequest, recipient: str, id: str, more: Mapping[str, Any]
) -> Envelope:
    made = request_envelope(asked, recipient=recipient)
    data = {**made.data, "program": {"protocol": program.protocol, "name": program.name}, **more}
    return Envelope(id or new_id(), program.sender, recipient, HELP, data, made.extensions)


def _count(program: Program, asked: ChatRequest, turn: Turn) -> None:
    if turn.was_stopped:
        return
    try:
        reply = turn.result()
    except ReportableError as found:
        program.daemon.programs.seen(program, error=refused(found))
        return
    if reply.verb != DONE:
        program.daemon.programs.seen(program, error=refused(RefusedTurnError(reply)))
        return
    program.daemon.programs.answered(program, reply.data)
    answer = reply.data.get("response")
    if isinstance(answer, str):
        said = [
            *asked.history,
            {"role": "user", "content": asked.user_input},
            {"role": "assistant", "content": answer},
        ]
        program.daemon.programs.continues(program, program.sender, said, str(turn.session))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise InvalidBodyError(not_utf8(raw) or "Request body must be a JSON object", do="Send {…}.")
    check_depth(found)
    return found
