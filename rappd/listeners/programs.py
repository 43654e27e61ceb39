"""Foreign programs: who one is, and what it may use.

On loopback a program is what ``/chat`` is: an everyday caller, never the operator. At the listener for other machines
it is the token, or the paired machine, that it shows. ``program_turns.py`` makes turns of its requests,
``program_requests.py`` has what the routes of all protocols share.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import suppress

import msgspec
from aiohttp import web
from msgspec.structs import replace

from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import HELP, brainstem_id
from envelopes.errors import BadTokenError, ReportableError
from neighborhoods.errors import NotPairedError
from rappd.daemon.app import Daemon
from rappd.dispatch.rights import PROGRAM, Caller
from rappd.errors import NotFoundError, RefusedError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.federation import callers
from rappd.listeners.federation.callers import FEDERATION, SIGNED_LIMIT
from rappd.listeners.loopback.request_guard import from_control
from rappd.tenants.tenant import HOST
from twins.workspace.listing import scan
from twins.workspace.rappid import label

BRAINSTEM = "brainstem"
TWIN = "twin/"
MOST_OF_A_NAME = 80
_SCHEME = "bearer "
_OURS = frozenset({"revoked", "expired", "binding"})
"""Reasons to refuse a token on loopback, too: it is one of this machine's, and would count for more once it is over."""
_CAPABILITY_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")


class UnknownModelError(NotFoundError):
    """No brainstem or twin of that name, as far as the caller may know."""


class Program(msgspec.Struct, frozen=True):
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
    daemon: Daemon


class Target(msgspec.Struct, frozen=True):
    """The brainstem or a twin, as programs name it: "brainstem", "twin/SLUG". ``workspace`` is its tenant's name."""

    id: str
    workspace: str
    name: str
    description: str


def program_of(request: web.Request, protocol: str, *, name: str = "") -> Program:
    """The program that asks. ``name`` is what it calls itself, where its protocol says so.

    Raises ``protocol_off``; at the listener for other machines ``not_paired``, ``BadTokenError``,
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
    """Raises ``protocol_off`` where the owner switched a protocol off."""
    if not daemon.settings.on(f"programs.{protocol}"):
        raise NotFoundError(
            f"This machine does not answer over {protocol}.",
            do=f"rappd config set programs.{protocol} on",
            code="protocol_off",
        )


async def targets(program: Program) -> list[Target]:
    """The brainstem and the twins that a program may use, in the order of their names."""
    layout = program.daemon.tenants.layout
    twins = (await asyncio.to_thread(scan, layout)).twins
    slugs = [label(twin.name) for twin in twins]
    found = [brainstem_of(program)]
    for twin, slug in zip(twins, slugs, strict=True):
        unique = slug if slugs.count(slug) == 1 else f"{slug}-{twin.key[:8]}"
        found.append(Target(f"{TWIN}{unique}", twin.key, twin.name, f"Asks {twin.name} in words."))
    return [one for one in found if _may_use(program, one)]


async def target_of(program: Program, model: str) -> Target:
    """The brainstem or the twin that a program names. Raises ``UnknownModelError``, ``RefusedError``."""
    wanted = model.strip().casefold()
    host = brainstem_of(program)
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


def refused(found: ReportableError) -> str:
    """Sentence and advice on one line, for the client's own error shape."""
    return found.with_advice()


def shown_name(text: str) -> str:
    """The name that a program gives itself, as screens can show it."""
    text = text[: 4 * MOST_OF_A_NAME]
    if not text.isprintable():
        text = "".join(filter(str.isprintable, text))
    return text.strip()[:MOST_OF_A_NAME]


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
        caller, name = request.app[DAEMON].machines.credentials.now().who(token, None)
    except NotPairedError:
        return None
    except BadTokenError as found:
        if found.reason in _OURS:
            raise
        return None
    return replace(caller, listener=PROGRAM), name or brainstem_id(caller.peer)


def _from_elsewhere(request: web.Request) -> tuple[Caller, str]:
    if "Origin" in request.headers:
        raise RefusedError("Pages of other sites may not use this listener.", do="Ask from a program.")
    try:
        caller, name = callers.caller(request)
        if not caller.peer and not caller.caps:
            raise RefusedError(
                "Only paired machines, and programs with a token, may ask that.",
                do="rappd token issue NAME",
                code="not_paired",
            )
    except ReportableError:
        with suppress(KeyError):
            request.app[SIGNED_LIMIT].take(request.remote or "")
        raise
    return replace(caller, listener=PROGRAM), name or brainstem_id(caller.peer)


def brainstem_of(program: Program) -> Target:
    """The brainstem, as programs name it."""
    name = program.daemon.name
    return Target(BRAINSTEM, HOST, name, f"Asks {name} in words.")


def _may_use(program: Program, target: Target) -> bool:
    if program.only is not None and target.workspace != HOST:
        return target.id in program.only
    return program.caller.may(f"{HELP}.{target.workspace}")
